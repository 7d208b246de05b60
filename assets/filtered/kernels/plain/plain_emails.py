"""Decide on e-mail addresses; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    OPTIONS,
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_among,
    is_ascii,
    is_digit,
    is_gap,
    is_letter,
    is_printable,
    is_word,
    packed,
    pair_at,
)

# The last two letters of names of fields with an address: "mail", "to", "login".
_ENDS_OF_KEYS = packed("il to om cc er me in id ct or ly ss nt sr ho")
_MAX_LABEL, _MAX_LOCAL, _MAX_ADDRESS = 63, 64, 250
_CLOSING = tuple(b"}'`*|_~/$")
_MAX_RUN = 200  # characters that the check reads before the "@"
_MAX_USER = 80  # characters that the check reads before an address, for the start of a URL
_MAX_TOP = 24  # letters of a top-level domain
_MOST_BYTES = 3 * (_MAX_LABEL + 1)  # no label with a dot after it has more

# Classes of characters that are not in ASCII.
LETTER = 1
INDIC = 2  # of the blocks of India's scripts, whose marks patterns do not take for parts of words
MARK = 4  # a mark or number
NO_WORD = 8  # neither a part of a word nor in INDIC
UNSPACED = 16  # of scripts without blanks, where text may follow a top-level domain
CJK = 32


class EmailTables(NamedTuple):
    """What the check of addresses knows, for the kernel.

    tops     uint8 [27**3], by letters as digits to base 27: 1 for a domain of two or three letters,
             plus 2 where longer names that begin so are domains
    classes  uint8 [65536], by code point
    names    uint8 [n, size], top-level domains in UNSPACED scripts, UTF-8, with zeros after them
    """

    tops: Bytes
    classes: Bytes
    names: Bytes


@njit(**OPTIONS)
def _may_be_key(data: Bytes, start: int, sign: int) -> bool:
    """Check that what is before "=" may name an address: `email_addresses._KEY`."""
    if sign - start < 2:
        return False
    first, last = data[sign - 2], data[sign - 1]
    is_constant = not (97 <= first <= 122 or 97 <= last <= 122)
    return is_constant or is_among(pair_at(data, sign - 2), _ENDS_OF_KEYS)


@njit(**OPTIONS)
def _sign_at(data: Bytes, at: int, stop: int, classes: Bytes) -> tuple[int, int]:
    """Return the classes of a character that is not in ASCII, 0 if unknown, and its bytes."""
    byte = np.int64(data[at])
    if 0xC2 <= byte < 0xE0 and at + 1 < stop:
        return np.int64(classes[(byte & 31) << 6 | (data[at + 1] & 63)]), 2
    if byte & 0xF0 == 0xE0 and at + 2 < stop:
        later = np.int64(data[at + 1] & 63) << 6 | np.int64(data[at + 2] & 63)
        return np.int64(classes[(byte & 15) << 12 | later]), 3
    return 0, 1


@njit(**OPTIONS)
def _start_of_sign(data: Bytes, end: int) -> int:
    """Return where the character before a place begins."""
    at = end - 1
    while data[at] & 0xC0 == 0x80:
        at -= 1
    return at


@njit(**OPTIONS)
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
            kind, width = _sign_at(data, at, stop, classes)
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


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def _start_of_latin(data: Bytes, start: int, end: int, classes: Bytes) -> int:
    """Return where a local part begins after letters of CJK: `email_addresses._LATIN_END`.

    The start if there are none, or -1 if unsure.
    """
    at = end
    while at > start and end - at < _MAX_RUN:
        before = _start_of_sign(data, at)
        if data[before] > 127:
            kind = _sign_at(data, before, end, classes)[0]
            if kind & CJK:
                return at
            if not kind & (LETTER | MARK):
                return -1
        at = before
    return start


@njit(**OPTIONS)
def _start_of_cjk(data: Bytes, start: int, end: int, classes: Bytes) -> int:
    """Return where up to 16 signs of CJK at the end begin: `email_addresses._WIDE_END`."""
    at, size = end, 0
    while at > start and size < 16:
        before = _start_of_sign(data, at)
        if data[before] < 128 or not _sign_at(data, before, end, classes)[0] & CJK:
            break
        at, size = before, size + 1
    return at


@njit(**OPTIONS)
def _read_domain(data: Bytes, start: int, stop: int, classes: Bytes) -> tuple[int, int, int]:
    """Return the end of a plain domain or -1, the start of its last label, and how many dots.

    A last label that is too long to be one before a dot is not read to its end.
    """
    at, label, dots = start, start, 0
    while at < stop and at - label <= _MOST_BYTES:
        byte = data[at]
        if byte == 46 and (at + 1 == stop or is_gap(data[at + 1])):
            break  # the end of a sentence
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1, 0, 0
            label, dots = at + 1, dots + 1
        elif byte > 127:
            kind, width = _sign_at(data, at, stop, classes)
            if not (kind & LETTER or (kind & INDIC and at > label)):
                break
            at += width - 1
        elif not (is_letter(byte) or is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    return at, label, dots


@njit(**OPTIONS)
def _has_hyphen(data: Bytes, start: int, end: int) -> bool:
    found = False
    for byte in data[start:end]:
        found |= byte == 45
    return found


@njit(**OPTIONS)
def _verdict_on_top(data: Bytes, label: int, end: int, tops: Bytes) -> int:
    """Return the end of a top-level domain of 2 to 24 ASCII letters, REFUSED, or UNSURE."""
    top = np.int64(0)
    for byte in data[label : min(end, label + 3)]:
        top = top * 27 + np.int64(byte | 32) - 96
    if end - label > 3:
        return end if tops[top] & 2 else UNSURE
    return end if tops[top] & 1 else REFUSED


@njit(**OPTIONS)
def _end_of_name(data: Bytes, label: int, stop: int, after: int, names: Bytes) -> int:
    """Return the end of the first top-level domain that a label begins with, REFUSED, or UNSURE.

    names: see `EmailTables`.
    """
    for name in names:
        size = 0
        while name[size] and label + size < stop and data[label + size] == name[size]:
            size += 1
        if not name[size]:
            end = label + size
            return UNSURE if _ends_no_domain(data[end] if end < stop else after) else end
    return REFUSED


@njit(**OPTIONS)
def _ends_no_domain(byte: int) -> bool:
    """Check for a sign after which a domain has not ended."""
    return is_word(byte) or byte in (40, 64, 91)  # (@[


@njit(**OPTIONS)
def _end_of_letters(data: Bytes, label: int, stop: int, after: int, classes: Bytes) -> int:
    """Return the end of a top-level domain of 2 to 24 letters, REFUSED, or UNSURE.

    Each may have one more sign of the scripts of India after it.
    """
    at, last, size, width = label, label, 0, 0
    while at < stop and size < _MAX_TOP and data[at] > 127:
        kind, width = _sign_at(data, at, stop, classes)
        if kind & UNSPACED or not kind & LETTER:
            break
        last, at, size = at, at + width, size + 1
        if at < stop and data[at] > 127 and _sign_at(data, at, stop, classes)[0] & INDIC:
            at += 3
    if size < 2:
        return UNSURE if at - label > 3 else REFUSED
    if _ends_no_domain(data[at] if at < stop else after):
        has_more = at - last > _sign_at(data, last, stop, classes)[1]
        at, size = (at - 3, size) if has_more else (last, size - 1)
    return at if size >= 2 else UNSURE


@njit(**OPTIONS)
def _end_of_wide_domain(
    data: Bytes, start: int, found: tuple[int, int, int], after: int, tables: EmailTables
) -> int:
    """Return what `_end_of_domain` does for a domain with letters that are not in ASCII.

    found: as of `_read_domain`. A top-level domain in ASCII ends before the first of them.
    """
    at, label, dots = found
    end, verdict = label, REFUSED
    while end < at and is_letter(data[end]):
        end += 1
    after_label = data[end] if end < at else after
    if 2 <= end - label <= _MAX_TOP and (
        after_label > 127 or (end == at and after not in (40, 64))
    ):
        return _verdict_on_top(data, label, end, tables.tops)
    if end == label and end < at and data[end] > 127:
        if _sign_at(data, end, at, tables.classes)[0] & UNSPACED:
            verdict = _end_of_name(data, label, at, after, tables.names)
        else:
            verdict = _end_of_letters(data, label, at, after, tables.classes)
    if verdict != REFUSED:
        return verdict
    return REFUSED if dots == 1 and not _has_hyphen(data, start, at) else UNSURE


@njit(**OPTIONS)
def _end_of_domain(data: Bytes, start: int, stop: int, tables: EmailTables) -> int:
    """Return the end of a plain domain, REFUSED if it is none, or UNSURE."""
    at, label, dots = _read_domain(data, start, stop, tables.classes)
    after = data[at] if 0 <= at < stop else 10
    if at < 0 or not dots or at - start > _MAX_ADDRESS or after in (91, 95):  # [_
        return UNSURE
    if after > 127 and at - label <= _MOST_BYTES:
        if not _sign_at(data, at, stop, tables.classes)[0] & NO_WORD:
            return UNSURE
        after = 10  # ends a domain as a line end does
    letters, hyphens, is_wide = 0, 0, False
    for byte in data[start:at]:
        is_wide |= byte > 127
    if is_wide:
        return _end_of_wide_domain(data, start, (at, label, dots), after, tables)
    for byte in data[label:at]:
        letters += is_letter(byte)
        hyphens += byte == 45  # of a domain in Punycode: xn--p1ai
    # A call or another "@" forbids the last label, and the one before it, as top-level domains.
    if after in (40, 64) and dots <= 2 and 0 < at - label <= _MAX_LABEL:  # (@
        return UNSURE if _has_hyphen(data, start, at) else REFUSED
    if letters < at - label or not 2 <= letters <= _MAX_TOP or after in (40, 64):
        return REFUSED if dots == 1 and not hyphens else UNSURE
    return _verdict_on_top(data, label, at, tables.tops)


@njit(**OPTIONS)
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


@njit(**OPTIONS)
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


@njit(**OPTIONS)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tables: EmailTables) -> Integers:
    """Decide on addresses; the place of one after signs that are cut off is moved."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        text, stop, sign = offsets[row], offsets[row + 1], start
        while data[sign] != 64:
            sign += 1
        last = _end_of_domain(data, sign + 1, stop, tables)
        if last <= 0:
            ends[i] = last
            continue
        first = _plain_start(data, (start, sign), (last, stop), tables.classes)
        if first >= 0 and _end_of_local(data, first, end, tables.classes) == sign:
            ends[i] = _verdict_in_url(data, max(text, first - 400), first, last)
            places[i, 1] = first if ends[i] > 0 else start
    return ends
