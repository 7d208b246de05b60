"""Decide on plain groups of digits with blanks; see the folder. Mirrors `pii.spaced_phones`.

A number is refused wherever one of the reasons against it is sure. It is accepted at the start of a
line or after a bracket, before the end of a line or a sign that no unit begins with.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_ascii,
    is_digit,
    is_letter,
    is_word,
)
from assets.filtered.kernels.plain.plain_group_forms import (
    MAX_GROUPS,
    is_clear,
    is_date,
    is_like_others,
    is_sequence,
    is_trunk,
    number_at,
    size_of,
    starts_of_groups,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL

_BESIDE = 28  # characters that the check reads for words and signs beside a number
_AROUND = 60  # characters that it reads for other numbers
NO, YES, MAYBE = 0, 1, 2


@njit(**KERNEL)
def _may_be_named(data: Bytes, low: int, start: int) -> bool:
    """Check for a word in the line before that may name a phone; most have two letters or more."""
    for at in range(start - 1, max(low, start - _BESIDE) - 1, -1):
        byte = data[at]
        if byte == 10:
            return False
        if byte > 127 or (byte | 32) in (102, 104, 109, 112, 116, 119):  # fhmptw
            return True
        if is_letter(byte) and at > low and is_letter(data[at - 1]):
            return True
    return False


@njit(**KERNEL)
def _before(data: Bytes, low: int, start: int) -> int:
    """Check for what a phone number does not follow, no word: `spaced_phones._BEFORE`."""
    byte = data[start - 1] if start > low else 10
    before = data[start - 2] if start > low + 1 else 10
    if is_word(byte) or byte in (35, 36, 37, 43, 45, 46, 47, 60, 61, 92, 94, 126):  # #$%+-./<=\^~
        return YES
    if byte == 44 and before > 127:
        return MAYBE
    if byte == 44 and is_digit(before):
        return YES
    is_open = byte in (10, 34, 40, 44, 59, 91, 123, 124)  # line end "(,;[{|
    return NO if is_open or (byte == 32 and before in (40, 44, 59, 91, 123, 124)) else MAYBE


@njit(**KERNEL)
def _after(data: Bytes, end: int, stop: int) -> int:
    """Check for what does not follow a phone number, no unit: `spaced_phones._AFTER`."""
    byte, after = data[end] if end < stop else 10, data[end + 1] if end + 1 < stop else 10
    if is_word(byte) or byte in (36, 37, 43, 47, 61, 92, 94):  # $%+/=\^
        return YES
    if byte in (44, 45, 46, 58) and is_digit(after):
        return YES
    is_end = byte in (10, 13, 33, 34, 39, 41, 44, 46, 58, 59, 63, 93, 124, 125)  # !"'),.:;?]|}
    return NO if is_end else MAYBE


@njit(**KERNEL)
def _is_row_after(data: Bytes, end: int, stop: int) -> bool:
    """Check that the next line begins with two numbers: `spaced_phones._ROW_AFTER`."""
    at, stop = end, min(stop, end + _BESIDE)
    while at < stop and data[at] in (9, 32, 41, 44, 59, 93, 124, 125):  # ),;]|}
        at += 1
    if at == stop or data[at] != 10:
        return False
    at += 1
    while at < stop and data[at] in (9, 32, 40, 91, 123, 124):  # ([{|
        at += 1
    first = at
    while at < stop and is_digit(data[at]):
        at += 1
    last = at
    while at < stop and data[at] in (9, 32):
        at += 1
    return first < last < at < stop and is_digit(data[at])


@njit(**KERNEL)
def _is_row_before(data: Bytes, low: int, start: int) -> bool:
    """Check that the line before ends with two numbers: `spaced_phones._ROW_BEFORE`."""
    at, low = start - 1, max(low, start - _BESIDE)
    while at >= low and data[at] in (9, 32, 40, 91, 123, 124):  # ([{|
        at -= 1
    if at < low or data[at] != 10:
        return False
    at -= 1
    while at >= low and data[at] in (9, 32, 41, 44, 59, 93, 124, 125):  # ),;]|}
        at -= 1
    last = at
    while at >= low and is_digit(data[at]):
        at -= 1
    first = at
    while at >= low and data[at] in (9, 32):
        at -= 1
    return last > first > at >= low and is_digit(data[at])


@njit(**KERNEL)
def _count_numbers(data: Bytes, start: int, end: int) -> int:
    """Return how many numbers begin in some bytes, of which the first has nothing before it."""
    count = 0
    for at in range(start, end):
        count += is_digit(data[at]) and (at == start or not is_word(data[at - 1]))
    return count


@njit(**KERNEL)
def _is_among_numbers(data: Bytes, text: tuple[int, int], starts: Integers, count: int) -> bool:
    """Check for a list, a table or a formula: `spaced_phones._is_among_numbers`."""
    start, end = starts[0], starts[count] - 1
    low, high = max(text[0], start - _AROUND), min(text[1], end + _AROUND)
    is_small, repeated = True, 0
    for i in range(count):
        size = size_of(starts, i)
        number = number_at(data, starts[i], size)
        is_small &= size == 2 and number <= 31
        for j in range(i):
            if size_of(starts, j) == size and number_at(data, starts[j], size) == number:
                repeated += 1
                break
    if is_small or count - repeated < min(3, count):
        return True
    opening, closing = data[start - 1] if start > low else 0, data[end] if end < high else 0
    if opening in (91, 123) and closing in (93, 125):
        return True
    at = start - 1
    at -= at >= low and data[at] == 32
    if at >= low and data[at] in (44, 59, 124):  # ,;|
        at -= 1
        at -= at >= low and data[at] == 32
        if at >= low and is_digit(data[at]):
            return True
    # A blank is between what is before and what is after.
    return _count_numbers(data, low, start) + _count_numbers(data, end, high) > 3


@njit(**KERNEL)
def _whole_groups(data: Bytes, text: tuple[int, int], start: int, end: int) -> tuple[int, int]:
    """Cut a time or a date off the ends of groups: `spaced_phones._whole_groups`; 0 if unsure."""
    first, last = start, end
    while first < end and data[first] != 32:
        first += 1
    while last > start and data[last - 1] != 32:
        last -= 1
    if first == end:
        return start, end
    is_time = start > text[0] + 1 and data[start - 1] in (44, 45, 46, 47, 58)
    if is_time and data[start - 2] > 127:
        return 0, 0
    if is_time and is_digit(data[start - 2]):
        start = first + 1
    after = data[end] if end < text[1] else 0
    follows = data[end + 1] if end + 1 < text[1] else 0
    if after > 127 or (after in (44, 45, 46, 47, 58) and follows > 127):
        return 0, 0
    if after in (44, 45, 46, 47, 58) and is_digit(follows) and last > start:
        end = last - 1
    return start, end


@njit(**KERNEL)
def _decide(
    data: Bytes, text: tuple[int, int], place: tuple[int, int], starts: Integers
) -> tuple[int, int, int]:
    """Return YES, NO or MAYBE for a candidate, and the span that counts."""
    start, end = _whole_groups(data, text, place[0], place[1])
    if start == end == 0:
        return MAYBE, 0, 0
    count = starts_of_groups(data, start, end, starts)
    digits = end - start - count + 1
    if count == 0 or not 8 <= digits <= 13:
        return NO, 0, 0
    after = _after(data, end, text[1]) if end == place[1] else MAYBE
    if after == YES or is_date(data, starts, count) or is_sequence(data, starts, count):
        return NO, 0, 0
    is_open = not (is_trunk(data, starts, count, digits) or is_clear(data, starts, count))
    if is_open and not is_like_others(data, starts, count):
        return NO, 0, 0
    low, high = max(text[0], start - _AROUND), min(text[1], end + _AROUND)
    if _may_be_named(data, text[0], start) or (is_open and not is_ascii(data, low, high)):
        return MAYBE, 0, 0
    if is_open and (
        _is_row_after(data, end, text[1])
        or _is_row_before(data, text[0], start)
        or _is_among_numbers(data, text, starts, count)
    ):
        return NO, 0, 0
    before = _before(data, text[0], start)
    if before == YES:
        return NO, 0, 0
    return (YES if before == NO and after == NO else MAYBE), start, end


@njit(**ARRAY_KERNEL)
def decide_spaced(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Decide on groups of digits; the place of one whose first group is cut off is moved."""
    ends = np.zeros(len(places), np.int64)
    starts = np.empty(MAX_GROUPS + 2, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        text = (offsets[row], offsets[row + 1])
        digits, brackets = 0, 0
        for byte in data[start : min(end, start + 41)]:
            digits += is_digit(byte)
            brackets += byte == 40 or byte == 41
        # The check cuts a time or a date off: these marks are beside it, or a bracket opens.
        is_cut = start > text[0] and data[start - 1] in (44, 45, 46, 47, 58)
        is_cut |= end < text[1] and (data[end] in (44, 45, 46, 47, 58) or data[end] > 127)
        is_wrong = digits < 8 or end - start > 40 or (digits > 13 and not is_cut and not brackets)
        follows_plus = start > text[0] and data[start - 1] == 43 and is_digit(data[start])
        if is_wrong or (follows_plus and not _may_be_named(data, text[0], start)):
            ends[i] = REFUSED
        elif not brackets:
            verdict, first, last = _decide(data, text, (start, end), starts)
            ends[i] = UNSURE if verdict == MAYBE else REFUSED if verdict == NO else last
            if verdict == YES:
                places[i, 1] = first
    return ends
