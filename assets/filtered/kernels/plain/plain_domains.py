"""Read the domains of e-mail addresses, in letters of all scripts; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    is_ascii,
    is_digit,
    is_gap,
    is_letter,
    is_word,
)
from assets.text.kernels.compiling import KERNEL
from assets.text.kernels.utf8 import decode

_MAX_LABEL, _MAX_ADDRESS = 63, 250
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


@njit(**KERNEL)
def sign_at(data: Bytes, at: int, classes: Bytes) -> tuple[int, int]:
    """Return the classes of a character, 0 if it has more than three bytes, and its bytes."""
    code, width = decode(data, np.uint64(at))
    return (np.int64(classes[code]) if code < len(classes) else 0), np.int64(width)


@njit(**KERNEL)
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
            kind, width = sign_at(data, at, classes)
            if not (kind & LETTER or (kind & INDIC and at > label)):
                break
            at += width - 1
        elif not (is_letter(byte) or is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    return at, label, dots


@njit(**KERNEL)
def _has_hyphen(data: Bytes, start: int, end: int) -> bool:
    found = False
    for byte in data[start:end]:
        found |= byte == 45
    return found


@njit(**KERNEL)
def _verdict_on_top(data: Bytes, label: int, end: int, tops: Bytes) -> int:
    """Return the end of a top-level domain of 2 to 24 ASCII letters, REFUSED, or UNSURE."""
    top = np.int64(0)
    for byte in data[label : min(end, label + 3)]:
        top = top * 27 + np.int64(byte | 32) - 96
    if end - label > 3:
        return end if tops[top] & 2 else UNSURE
    return end if tops[top] & 1 else REFUSED


@njit(**KERNEL)
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


@njit(**KERNEL)
def _ends_no_domain(byte: int) -> bool:
    """Check for a sign after which a domain has not ended."""
    return is_word(byte) or byte in (40, 64, 91)  # (@[


@njit(**KERNEL)
def _end_of_letters(data: Bytes, label: int, stop: int, after: int, classes: Bytes) -> int:
    """Return the end of a top-level domain of 2 to 24 letters, REFUSED, or UNSURE.

    Each may have one more sign of the scripts of India after it.
    """
    at, last, bare, size = label, label, label, 0
    while at < stop and size < _MAX_TOP and data[at] > 127:
        kind, width = sign_at(data, at, classes)
        if kind & UNSPACED or not kind & LETTER:
            break
        last, bare, size = at, at + width, size + 1
        has_more = bare < stop and data[bare] > 127 and sign_at(data, bare, classes)[0] & INDIC
        at = bare + 3 if has_more else bare
    if size < 2:
        return UNSURE if at > bare else REFUSED
    if _ends_no_domain(data[at] if at < stop else after):
        at, size = (bare, size) if at > bare else (last, size - 1)
    return at if size >= 2 else UNSURE


@njit(**KERNEL)
def _end_of_wide_domain(
    data: Bytes, start: int, found: tuple[int, int, int], after: int, tables: EmailTables
) -> int:
    """Return what `end_of_domain` does for a domain with letters that are not in ASCII.

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
        if sign_at(data, end, tables.classes)[0] & UNSPACED:
            verdict = _end_of_name(data, label, at, after, tables.names)
        else:
            verdict = _end_of_letters(data, label, at, after, tables.classes)
    if verdict != REFUSED:
        return verdict
    return REFUSED if dots == 1 and not _has_hyphen(data, start, at) else UNSURE


@njit(**KERNEL)
def end_of_domain(data: Bytes, start: int, stop: int, tables: EmailTables) -> int:
    """Return the end of a plain domain, REFUSED if it is none, or UNSURE."""
    at, label, dots = _read_domain(data, start, stop, tables.classes)
    after = data[at] if 0 <= at < stop else 10
    if at < 0 or not dots or at - start > _MAX_ADDRESS or after in (91, 95):  # [_
        return UNSURE
    if after > 127 and at - label <= _MOST_BYTES:
        if not sign_at(data, at, tables.classes)[0] & NO_WORD:
            return UNSURE
        after = 10  # ends a domain as a line end does
    if not is_ascii(data, start, at):
        return _end_of_wide_domain(data, start, (at, label, dots), after, tables)
    letters, hyphens = 0, 0
    for byte in data[label:at]:
        letters += is_letter(byte)
        hyphens += byte == 45  # of a domain in Punycode: xn--p1ai
    # A call or another "@" forbids the last label, and the one before it, as top-level domains.
    if after in (40, 64) and dots <= 2 and 0 < at - label <= _MAX_LABEL:  # (@
        return UNSURE if _has_hyphen(data, start, at) else REFUSED
    if letters < at - label or not 2 <= letters <= _MAX_TOP or after in (40, 64):
        return REFUSED if dots == 1 and not hyphens else UNSURE
    return _verdict_on_top(data, label, at, tables.tops)
