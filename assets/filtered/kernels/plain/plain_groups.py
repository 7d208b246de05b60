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
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL

_BESIDE = 28  # characters that the check reads for words and signs beside a number
_AROUND = 60  # characters that it reads for other numbers
_MAX_GROUPS = 8
NO, YES, MAYBE = 0, 1, 2


@njit(**KERNEL)
def _starts_of_groups(data: Bytes, start: int, end: int, starts: Integers) -> int:
    """Write the first bytes of groups with single blanks between, and `end` + 1 after them.

    Returns how many there are, 0 for other signs or too many groups.
    """
    count = 0
    for at in range(start, end):
        is_first = at == start or data[at - 1] == 32
        if is_first and count < _MAX_GROUPS:
            starts[count], count = at, count + 1
        elif is_first:
            return 0
        if not is_digit(data[at]) and (data[at] != 32 or is_first):
            return 0
    starts[count] = end + 1
    return count


@njit(**KERNEL)
def _number(data: Bytes, start: int, size: int) -> int:
    number = np.int64(0)
    for byte in data[start : start + size]:
        number = number * 10 + np.int64(byte) - 48
    return number


@njit(**INLINED)
def _size(starts: Integers, group: int) -> int:
    return starts[group + 1] - starts[group] - 1


@njit(**KERNEL)
def _is_date(data: Bytes, starts: Integers, count: int) -> bool:
    if count < 3:
        return False
    one, two, three = _size(starts, 0), _size(starts, 1), _size(starts, 2)
    second = data[starts[1]]
    if one == 4:
        is_month = two == 1 or (two == 2 and second <= 49)
        is_day = three == 2 and data[starts[2]] <= 51
        return is_month and is_day and _number(data, starts[0], 2) in (19, 20)
    return one <= 2 and two <= 2 and three == 4 and _number(data, starts[2], 2) in (19, 20)


@njit(**KERNEL)
def _is_sequence(data: Bytes, starts: Integers, count: int) -> bool:
    """Check that all groups grow by one step, two are equal, or all digits are 0 and 1."""
    is_binary, is_even, step = True, True, np.int64(0)
    for at in range(starts[0], starts[count] - 1):
        is_binary &= data[at] in (32, 48, 49)
    before = np.int64(0)
    for i in range(count):
        number = _number(data, starts[i], _size(starts, i))
        if i == 1:
            step = number - before
        is_even &= i < 2 or number - before == step
        before = number
    if is_binary or (count == 2 and step == 0):
        return True
    return is_even and count > 2 and step in (0, 1, 2, 5, 10, 11, 100, 111)


@njit(**KERNEL)
def _is_trunk(data: Bytes, starts: Integers, count: int, digits: int) -> bool:
    """Check for a number after the trunk prefix 0: `spaced_phones._TRUNK`."""
    first = starts[0]
    if count < 2 or count > 5 or data[first] != 48 or not is_digit(data[first + 1]):
        return False
    one, two, second = _size(starts, 0), _size(starts, 1), data[first + 1]
    head = _number(data, first, 4) if one >= 4 else 0
    if not (9 <= digits <= 12 or head in (800, 341)):
        return False
    is_short = True
    for group in range(1, count):
        is_short &= 2 <= _size(starts, group) <= 5
    if second >= 49 and 2 <= one <= 5 and (is_short or (count == 2 and 5 <= two <= 8)):
        return True
    if count == 2:
        return second >= 54 and one == 6 and two == 5
    if count == 3:
        is_switchboard = _size(starts, 2) == 1 and data[starts[2]] == 48 and 3 <= two <= 6
        return is_switchboard and second >= 50 and 3 <= one <= 5
    is_hungarian = count == 4 and second == 54 and one == 2 and two == 1
    return is_hungarian and _size(starts, 2) == 3 and _size(starts, 3) == 4


@njit(**KERNEL)
def _shape(starts: Integers, count: int) -> int:
    """Return the sizes of groups as digits to base 16."""
    shape = 0
    for i in range(count):
        shape = shape * 16 + _size(starts, i)
    return shape


@njit(**KERNEL)
def _is_clear(data: Bytes, starts: Integers, count: int) -> bool:
    """Check for a form that amounts do not have: `spaced_phones._CLEAR`."""
    shape, first, second = _shape(starts, count), data[starts[0]], data[starts[0] + 1]
    other = data[starts[1]] if count > 1 else 0
    if shape == 0x13322 or shape == 0x14222:
        return first == 56 and other >= 50
    if shape in (0x2322, 0x3222, 0x55):
        return first >= (49 if shape == 0x2322 else 53 if shape == 0x3222 else 54)
    if shape == 0x344:
        return first == 49 and second >= 51
    if shape == 0x254:
        return first >= 49 and other == 57
    if shape == 0x334:
        area, exchange = _number(data, starts[0], 3), _number(data, starts[1], 3)
        is_area = area >= 200 and area % 100 != 11 and second != 57
        return area in (400, 800) or (is_area and exchange >= 200 and exchange % 100 != 11)
    if shape == 0x1334:
        return first == 49 and other >= 50 and data[starts[2]] >= 50
    if shape == 0x433 or shape == 0x434:
        return _number(data, starts[0], 4) in (1300, 1800)
    if shape == 0x144:
        return first == 57
    is_mexican = shape == 0x2334 and _number(data, starts[0], 2) == 1
    return is_mexican and _number(data, starts[1], 3) == 800


@njit(**KERNEL)
def _is_like_others(data: Bytes, starts: Integers, count: int) -> bool:
    """Check for a form that other numbers have too: `spaced_phones._OPEN`."""
    shape, first = _shape(starts, count), data[starts[0]]
    other = data[starts[1]] if count > 1 else 0
    if shape in (0x333, 0x2222, 0x234, 0x323, 0x334):
        return first >= 50
    if shape == 0x44:
        is_year = _number(data, starts[0], 2) == 20 or _number(data, starts[1], 2) in (19, 20)
        return first >= 50 and not is_year
    if shape == 0x244:
        return first >= 49
    if shape == 0x433:
        return first == 50 or first >= 54
    if shape == 0x144:
        return first == 50 and other == 50
    return shape == 0x37 and (first in (51, 54) or (first >= 50 and other >= 50))


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
        size = _size(starts, i)
        number = _number(data, starts[i], size)
        is_small &= size == 2 and number <= 31
        for j in range(i):
            if _size(starts, j) == size and _number(data, starts[j], size) == number:
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
    count = _starts_of_groups(data, start, end, starts)
    digits = end - start - count + 1
    if count == 0 or not 8 <= digits <= 13:
        return NO, 0, 0
    after = _after(data, end, text[1]) if end == place[1] else MAYBE
    if after == YES or _is_date(data, starts, count) or _is_sequence(data, starts, count):
        return NO, 0, 0
    is_open = not (_is_trunk(data, starts, count, digits) or _is_clear(data, starts, count))
    if is_open and not _is_like_others(data, starts, count):
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
    starts = np.empty(_MAX_GROUPS + 2, np.int64)
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
