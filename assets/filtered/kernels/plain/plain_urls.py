"""Decide on plain secrets in URLs and connection strings; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_digit,
    is_letter,
    is_printable,
    is_word,
)
from assets.filtered.kernels.plain.plain_names import WordTree
from assets.filtered.kernels.plain.plain_values import is_placeholder
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

_MIN_TOKEN = 16  # characters of a user that may be a token
_MAX_MORE = 100  # characters after an "@", in which a password may go on


@njit(**KERNEL)
def _judge(data: Bytes, start: int, end: int, tree: WordTree) -> int:
    """Return the end of a secret in printable ASCII, or REFUSED for a placeholder."""
    return REFUSED if is_placeholder(data, start, end, tree) else end


@njit(**KERNEL)
def _is_sure_host(data: Bytes, start: int, stop: int) -> bool:
    """Check that no password goes on after an "@", of which a host is: `url_secrets._MORE`."""
    characters = 0
    for byte in data[start : min(stop, start + 4 * _MAX_MORE + 1)]:
        characters += byte & 0xC0 != 0x80
        if characters > _MAX_MORE + 1:
            return True
        if byte in (9, 10, 13, 32, 34, 35, 39, 44, 47, 60, 62, 63, 96):  # blanks "#',/<>?`
            return True
        if byte < 32 or byte in (64, 127):
            return False
    return True


@njit(**KERNEL)
def _may_be_port(data: Bytes, start: int, end: int) -> bool:
    at = start
    while at < end and is_digit(data[at]):
        at += 1
    return start < at <= start + 5 and (at == end or data[at] in (35, 63))  # #?


@njit(**KERNEL)
def _has_token(data: Bytes, first: int, secret: int, end: int) -> bool:
    """Check for "x-oauth-basic", beside which the user may be the token."""
    return data[secret] == 120 and end - secret == 13 and secret - 1 - first >= _MIN_TOKEN


@njit(**KERNEL)
def _is_same(data: Bytes, first: int, second: int, size: int) -> bool:
    is_same = True
    for i in range(size):
        is_same &= data[first + i] == data[second + i]
    return is_same


@njit(**ARRAY_KERNEL)
def decide_url(data: Bytes, offsets: Integers, places: Integers, tree: WordTree) -> Integers:
    """Decide on `://user:secret@`; the place of one that is accepted is that of the secret.

    tree: see `plain_names`.
    """
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        stop, first, last = offsets[row + 1], start + 3, end - 1
        before = data[start - 1] if start > offsets[row] else 32
        after = data[end] if end < stop else 32
        is_host = is_word(after) or after in (36, 37, 40, 60, 91, 123) or after > 127
        if not is_host or not (is_letter(before) or is_digit(before)):
            continue
        ends[i] = UNSURE
        if after > 127 or not is_printable(data, first, last):
            continue
        if not _is_sure_host(data, end, stop):
            continue
        sign = first
        while sign < last and data[sign] != 58:
            sign += 1
        size, secret = last - sign - 1, sign + 1
        if size <= 0 or (size == 1 and data[secret] == 120):  # the user may be a token
            ends[i] = UNSURE if sign - first >= _MIN_TOKEN else REFUSED
        elif size < 3 or (size == sign - first and _is_same(data, first, secret, size)):
            ends[i] = REFUSED
        elif not (_may_be_port(data, secret, last) or _has_token(data, first, secret, last)):
            ends[i] = _judge(data, secret, last, tree)
        if ends[i] > 0:
            places[i, 1] = secret
    return ends


@njit(**ARRAY_KERNEL)
def decide_dsn(data: Bytes, offsets: Integers, places: Integers, tree: WordTree) -> Integers:
    """Decide on `user:secret@tcp(` as `decide_url` does."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        first = places[i, 1]
        while data[first] != 58:
            first += 1
        first += 1
        end = first
        while data[end] != 64:
            end += 1
        if not is_printable(data, first, end):
            continue
        ends[i] = _judge(data, first, end, tree) if end - first >= 3 else REFUSED
        if ends[i] > 0:
            places[i, 1] = first
    return ends
