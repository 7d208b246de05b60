"""Read values without quotes, up to where they end: see `pii.passwords`."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    Bytes,
    is_blank,
    is_clause_mark,
    is_digit,
    is_letter,
    is_letter_of_cjk,
    is_word,
    triple_at,
)
from assets.text.kernels.compiling import KERNEL

MAX_VALUE = 128  # characters that the check reads
_ENDS = np.zeros(256, np.uint8)  # 1 for the signs that a value can end before
_ENDS[list(b"\"&'),;>]}*<\\`|")] = 1


@njit(**KERNEL)
def _ends_before(data: Bytes, at: int, stop: int) -> bool:
    """Check that a value ends between ASCII and a character of three bytes: `passwords._WIDE`."""
    if data[at] & 0xF0 != 0xE0 or at + 2 >= stop:
        return False
    sign = triple_at(data, at)
    return is_letter_of_cjk(sign) or is_clause_mark(sign)


@njit(**KERNEL)
def _is_field(data: Bytes, at: int, end: int) -> bool:
    """Check for the next field or an entity after a value: &name= &amp; ,name: ;name="""
    last = at + 1
    while last < end and (is_letter(data[last]) or data[last] == 95):
        last += 1
    size, sign = last - at - 1, data[last] if last < end else 0
    if data[at] != 38:
        return 1 <= size <= 20 and sign in (58, 61)
    is_entity = size == 3 and data[at + 1] == 97 and data[at + 2] == 109 and data[at + 3] == 112
    return (size > 0 and sign == 61) or (is_entity and sign == 59)


@njit(**KERNEL)
def _ends_at(data: Bytes, at: int, end: int) -> bool:
    """Check for a sign that a bare value in data[:end] ends before: `passwords._END`."""
    byte, after = data[at], data[at + 1] if at + 1 < end else 0
    if byte in (96, 124) or (byte == 60 and after == 47):  # ` | </
        return True
    if byte == 92:
        return after in (34, 39, 110, 114)
    if byte in (38, 44, 59) and _is_field(data, at, end):
        return True
    if byte in (34, 39, 41, 44, 59, 62, 93, 125):
        while at < end and data[at] in (34, 39, 41, 44, 59, 62, 93, 125):  # "'),;>]}
            at += 1
        return at == end
    if byte == 42 and after == 42:
        at += 2
        while at < end and not is_word(data[at]):
            at += 1
        return at == end
    return False


@njit(**KERNEL)
def _end_of_run(data: Bytes, start: int, stop: int) -> int:
    """Return where a value of printable ASCII ends; -1 for any other."""
    end = start
    while end < stop and end - start < MAX_VALUE and 32 < data[end] < 127:
        end += 1
    is_end = end - start == MAX_VALUE or end == stop or is_blank(data[end])
    return end if is_end or _ends_before(data, end, stop) else -1


@njit(**KERNEL)
def end_of_bare(data: Bytes, start: int, stop: int) -> int:
    """Return the end of a value without quotes: `passwords._bare`; -1 if not in ASCII."""
    end = _end_of_run(data, start, stop)
    for at in range(start, end):
        if _ENDS[data[at]] and _ends_at(data, at, end):
            end = at if at - start >= 3 else end
            break
    while end > start and data[end - 1] in (34, 39, 41, 44, 46, 58, 59, 62, 93, 125):
        end -= 1
    return end


_MAX_TAG = 8  # letters and digits


@njit(**KERNEL)
def may_be_tag(data: Bytes, start: int, stop: int) -> bool:
    """Check for a tag, or the start of a closing one: a part of `passwords._OPEN`."""
    at, end = start + 1, min(stop, start + 2 + _MAX_TAG)
    if data[start] != 60 or at >= stop:
        return False
    if not 97 <= data[at] <= 122:
        return data[at] == 47
    while at < end and (97 <= data[at] <= 122 or is_digit(data[at])):
        at += 1
    return at < end and data[at] == 62


_PREFIXES = tuple(b"brufLN")  # of a string in quotes


@njit(**KERNEL)
def after_mark(data: Bytes, start: int, stop: int) -> int:
    """Return the place after a lone mark of emphasis: the first part of `passwords._OPEN`."""
    byte, after = data[start] if start < stop else 0, data[start + 1] if start + 1 < stop else 0
    return start + (byte in (42, 96) and after not in (42, 60, 95, 96))  # *` and no *<_`


@njit(**KERNEL)
def _is_lone_line(data: Bytes, start: int, stop: int) -> bool:
    """Check that no underscore follows soon, which could close an emphasis."""
    for at in range(start, min(stop, start + 64)):
        if is_blank(data[at]):
            return True
        if data[at] == 95 or data[at] > 126:
            return False
    return True


@njit(**KERNEL)
def is_bare_start(data: Bytes, start: int, stop: int) -> bool:
    """Check that nothing opens at a value: no quote, no emphasis, no tag, no prefix of a string."""
    if start == stop:
        return True
    byte, after = data[start], data[start + 1] if start + 1 < stop else 0
    if byte > 126 or byte in (34, 39, 42, 96):  # "'*`
        return False
    if byte == 95:
        return _is_lone_line(data, start + 1, stop)
    if byte in (64, 92) and (after in (34, 39, 92, 96) or after > 126):  # @" \'
        return False
    if byte == 60:
        return not may_be_tag(data, start, stop)
    third = data[start + 2] if start + 2 < stop else 0
    is_prefix = byte in _PREFIXES and (
        after in (34, 39) or (after in _PREFIXES and third in (34, 39))
    )
    return not is_prefix
