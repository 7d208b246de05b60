"""Decide on e-mail addresses; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_among,
    is_ascii,
    is_digit,
    is_letter,
    is_printable,
    packed,
    pair_at,
)
from assets.filtered.kernels.plain.plain_domains import (
    CJK,
    LETTER,
    MARK,
    EmailTables,
    end_of_domain,
    sign_at,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL
from assets.text.kernels.utf8 import last_start

# The last two letters of names of fields with an address: "mail", "to", "login".
_ENDS_OF_KEYS = packed("il to om cc er me in id ct or ly ss nt sr ho")
_MAX_LOCAL = 64
_CLOSING = tuple(b"}'`*|_~/$")
_MAX_RUN = 200  # characters that the check reads before the "@"
_MAX_USER = 80  # characters that the check reads before an address, for the start of a URL


@njit(**KERNEL)
def _may_be_key(data: Bytes, start: int, sign: int) -> bool:
    """Check that what is before "=" may name an address: `email_addresses._KEY`."""
    if sign - start < 2:
        return False
    first, last = data[sign - 2], data[sign - 1]
    is_constant = not (97 <= first <= 122 or 97 <= last <= 122)
    return is_constant or is_among(pair_at(data, sign - 2), _ENDS_OF_KEYS)


@njit(**KERNEL)
def _end_of_local(data: Bytes, start: int, stop: int, classes: Bytes) -> int:
    """Return the place of the "@" after a plain local part, or -1."""
    if start == stop or (
        data[start] < 128 and not (is_letter(data[start]) or is_digit(data[start]))
    ):
        return -1
    at, size, has_word = start, 0, False
    while at < stop and data[at] != 64:
        byte, width = data[at], 1
        is_part = is_letter(byte) or is_digit(byte)
        if byte > 127:
            kind, width = sign_at(data, at, classes)
            is_part = kind & LETTER > 0
            if not kind & (LETTER | MARK):
                return -1
        elif not (is_part or byte in (43, 45, 46, 61, 95)):  # +-.=_
            return -1
        if (byte == 46 and data[at + 1] in (46, 64)) or (
            byte == 61 and _may_be_key(data, start, at)
        ):
            return -1
        at, size, has_word = at + width, size + 1, has_word | is_part
    is_git = at - start == 3 and data[start] == 103 and data[start + 1] == 105
    return at if at < stop and size <= _MAX_LOCAL and has_word and not is_git else -1


@njit(**KERNEL)
def _first_of_local(data: Bytes, start: int, end: int, closing: int) -> int:
    """Return where a local part begins after what is cut off: `email_addresses._first_of_local`."""
    at, opening = start, closing
    if closing in (123, 125):  # { closes nothing, } closes {
        opening = 123 if closing == 125 else 0
    if opening in (36, 39, 42, 47, 96, 123, 124, 126):  # $'*/`{|~
        while data[at] == opening:
            at += 1
        if at == start:
            for i in range(start, end):
                at = i + 1 if data[i] == opening else at
    while at < end and data[at] in (39, 42, 43, 45, 46, 61, 96, 124):  # '*+-.=`|
        at += 1
    return at


@njit(**KERNEL)
def _start_of_latin(data: Bytes, start: int, end: int, classes: Bytes) -> int:
    """Return where a local part begins after letters of CJK: `email_addresses._LATIN_END`.

    The start if there are none, or -1 if unsure.
    """
    at = end
    while at > start and end - at < _MAX_RUN:
        before = np.int64(last_start(data, np.uint64(at)))
        if data[before] > 127:
            kind = sign_at(data, before, classes)[0]
            if kind & CJK:
                return at
            if not kind & (LETTER | MARK):
                return -1
        at = before
    return start


@njit(**KERNEL)
def _start_of_cjk(data: Bytes, start: int, end: int, classes: Bytes) -> int:
    """Return where up to 16 signs of CJK at the end begin: `email_addresses._WIDE_END`."""
    at, size = end, 0
    while at > start and size < 16:
        before = np.int64(last_start(data, np.uint64(at)))
        if data[before] < 128 or not sign_at(data, before, classes)[0] & CJK:
            break
        at, size = before, size + 1
    return at


@njit(**KERNEL)
def _verdict_in_url(data: Bytes, first: int, start: int, end: int) -> int:
    """Return REFUSED for the user of a URL, UNSURE, or the end: `email_addresses._USER_OF_URL`."""
    at = start - 1
    while at >= first and data[at] != 47:
        if data[at] in (32, 10, 9, 13, 64):
            return end
        at -= 1
    if at < first:
        return end
    if not is_printable(data, at, start):
        return UNSURE
    is_url = at > first and data[at - 1] == 47 and at - 1 >= start - _MAX_USER
    return REFUSED if is_url else end


@njit(**KERNEL)
def _plain_start(
    data: Bytes, local: tuple[int, int], after: tuple[int, int], classes: Bytes
) -> int:
    """Return where a local part begins after all that is cut off; -1 if unsure.

    after: the end of the domain, and that of the text.
    """
    start, sign = local
    last, stop = after
    closing = data[last] if last < stop else 0
    cut = _start_of_latin(data, start, sign, classes)
    is_latin = cut < sign and is_ascii(data, cut, sign)
    if cut > start and (is_latin or is_printable(data, sign + 1, last)):
        # What is before letters of CJK is cut off with them, unless a closing sign has a say.
        if closing in _CLOSING:
            return -1
        if cut == sign:
            return _start_of_cjk(data, start, sign, classes)
        return _first_of_local(data, cut, sign, 0)
    if cut < 0 or sign - start >= _MAX_RUN:
        return -1
    return _first_of_local(data, start, sign, closing)


@njit(**ARRAY_KERNEL)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tables: EmailTables) -> Integers:
    """Decide on addresses; the place of one after signs that are cut off is moved."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        text, stop, sign = offsets[row], offsets[row + 1], start
        while data[sign] != 64:
            sign += 1
        last = end_of_domain(data, sign + 1, stop, tables)
        if last <= 0:
            ends[i] = last
            continue
        first = _plain_start(data, (start, sign), (last, stop), tables.classes)
        if first >= 0 and _end_of_local(data, first, end, tables.classes) == sign:
            ends[i] = _verdict_in_url(data, max(text, first - 400), first, last)
            places[i, 1] = first if ends[i] > 0 else start
    return ends
