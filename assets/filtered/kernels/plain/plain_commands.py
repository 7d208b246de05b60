"""Decide on plain commands with a password; see the folder. It mirrors `passwords._OPTION`."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_ascii,
    is_plain,
    is_word,
)
from assets.filtered.kernels.plain.plain_names import WordTree
from assets.filtered.kernels.plain.plain_values import is_placeholder
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

_FAR = 80  # characters between a command and its option
_MAX_VALUE = 100


@njit(**KERNEL)
def _end_of_value(data: Bytes, start: int, stop: int, ends_at_sign: bool) -> int:
    """Return the end of 4 to 100 signs of a value, or 0."""
    at = start
    while at < stop and at - start < _MAX_VALUE:
        byte = data[at]
        if byte in (34, 39) or byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31:
            break
        if byte == 64 and ends_at_sign:
            break
        at += 1
    return at if at - start >= 4 else 0


@njit(**KERNEL)
def _option_of_mysql(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the value of -p after a blank."""
    if at + 2 >= stop or data[at - 1] != 32 or data[at] != 45 or data[at + 1] != 112:
        return 0, 0
    first = at + 2 + (data[at + 2] in (34, 39))
    return first, _end_of_value(data, first, stop, False)


@njit(**KERNEL)
def _option_of_others(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the value of -p, -P, -a or -w after a blank."""
    if at + 3 >= stop or data[at] != 32 or data[at + 1] != 45:
        return 0, 0
    if data[at + 2] not in (80, 97, 112, 119):  # Papw
        return 0, 0
    first = at + 3 + (data[at + 3] == 32)
    first += first < stop and data[first] in (34, 39)
    return first, _end_of_value(data, first, stop, False)


@njit(**KERNEL)
def _option_of_curl(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return the password of user:password after -u, --user or -a."""
    if at + 2 >= stop or data[at] != 45:
        return 0, 0
    first = at + 2
    if data[at + 1] == 45:
        for byte in (117, 115, 101, 114):  # user
            if first >= stop or data[first] != byte:
                return 0, 0
            first += 1
    elif data[at + 1] not in (97, 117):
        return 0, 0
    if first >= stop or data[first] != 32:
        return 0, 0
    first += 1
    first += first < stop and data[first] in (34, 39)
    sign = first
    while sign < stop and (is_word(data[sign]) or data[sign] in (43, 45, 46, 64)):  # +-.@
        sign += 1
    if not 1 <= sign - first <= 64 or sign == stop or data[sign] != 58:
        return 0, 0
    return sign + 1, _end_of_value(data, sign + 1, stop, True)


@njit(**KERNEL)
def _after_command(data: Bytes, start: int, stop: int) -> int:
    """Return where the first option may be after the name of a command, or -1."""
    at = start
    if data[start] == 109:  # mysql and mariadb, with up to 8 letters after them
        at = start + (5 if data[start + 1] == 121 else 7)
        first = at
        while at < stop and 97 <= data[at] <= 122:
            at += 1
        return at + 1 if at - first <= 8 and at < stop and data[at] == 32 else -1
    if data[start] in (99, 119):  # curl and wget
        return start + 5 if start + 4 < stop and data[start + 4] == 32 else -1
    if data[start] == 108:  # ldap, with 3 to 9 letters after it
        at = start + 4
        while at < stop and is_word(data[at]) and at - start < 13:
            at += 1
        return at if at - start >= 7 else -1
    return start + (7 if data[start] == 115 else 12 if data[start] == 100 else 9)


@njit(**KERNEL)
def _value_of_option(data: Bytes, start: int, stop: int) -> tuple[int, int]:
    """Return the start and end of the first value of an option that may be a password."""
    at = _after_command(data, start, stop)
    if at < 0:
        return 0, 0
    for place in range(at, min(stop, at + _FAR + 1)):
        if data[start] == 109:
            first, end = _option_of_mysql(data, place, stop)
        elif data[start] in (99, 119):
            first, end = _option_of_curl(data, place, stop)
        else:
            first, end = _option_of_others(data, place, stop)
        if end:
            return first, end
    return 0, 0


@njit(**ARRAY_KERNEL)
def decide_option(data: Bytes, offsets: Integers, places: Integers, tree: WordTree) -> Integers:
    """Decide on commands; the place of one that is accepted is that of the value.

    tree: see `plain_names`.
    """
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        _, start, stop = places[i]
        first, end = _value_of_option(data, start, stop)
        if not is_ascii(data, start, first if end else min(stop, start + 320)):
            ends[i] = UNSURE
        elif end and end - first < _MAX_VALUE and is_plain(data, first, end):
            ends[i] = REFUSED if is_placeholder(data, first, end, tree) else end
        elif end:
            ends[i] = UNSURE
        if ends[i] > 0:
            places[i, 1] = first
    return ends
