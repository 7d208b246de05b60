"""Tell the forms of plain groups of digits with blanks between; mirrors `pii.spaced_phones`.

`starts` are the first bytes of the groups, and one more than the end of the last after them.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import Bytes, Integers, is_digit
from assets.text.kernels.compiling import INLINED, KERNEL

MAX_GROUPS = 8


@njit(**KERNEL)
def starts_of_groups(data: Bytes, start: int, end: int, starts: Integers) -> int:
    """Write the first bytes of groups with single blanks between, and `end` + 1 after them.

    Returns how many there are, 0 for other signs or too many groups.
    """
    count = 0
    for at in range(start, end):
        is_first = at == start or data[at - 1] == 32
        if is_first and count < MAX_GROUPS:
            starts[count], count = at, count + 1
        elif is_first:
            return 0
        if not is_digit(data[at]) and (data[at] != 32 or is_first):
            return 0
    starts[count] = end + 1
    return count


@njit(**KERNEL)
def number_at(data: Bytes, start: int, size: int) -> int:
    """Return the number that `size` digits are."""
    number = np.int64(0)
    for byte in data[start : start + size]:
        number = number * 10 + np.int64(byte) - 48
    return number


@njit(**INLINED)
def size_of(starts: Integers, group: int) -> int:
    """Return the number of digits of a group."""
    return starts[group + 1] - starts[group] - 1


@njit(**KERNEL)
def is_date(data: Bytes, starts: Integers, count: int) -> bool:
    """Check for a date of the years 1900 to 2099: `spaced_phones._DATE`."""
    if count < 3:
        return False
    one, two, three = size_of(starts, 0), size_of(starts, 1), size_of(starts, 2)
    second = data[starts[1]]
    if one == 4:
        is_month = two == 1 or (two == 2 and second <= 49)
        is_day = three == 2 and data[starts[2]] <= 51
        return is_month and is_day and number_at(data, starts[0], 2) in (19, 20)
    return one <= 2 and two <= 2 and three == 4 and number_at(data, starts[2], 2) in (19, 20)


@njit(**KERNEL)
def is_sequence(data: Bytes, starts: Integers, count: int) -> bool:
    """Check that all groups grow by one step, two are equal, or all digits are 0 and 1."""
    is_binary, is_even, step = True, True, np.int64(0)
    for at in range(starts[0], starts[count] - 1):
        is_binary &= data[at] in (32, 48, 49)
    before = np.int64(0)
    for i in range(count):
        number = number_at(data, starts[i], size_of(starts, i))
        if i == 1:
            step = number - before
        is_even &= i < 2 or number - before == step
        before = number
    if is_binary or (count == 2 and step == 0):
        return True
    return is_even and count > 2 and step in (0, 1, 2, 5, 10, 11, 100, 111)


@njit(**KERNEL)
def is_trunk(data: Bytes, starts: Integers, count: int, digits: int) -> bool:
    """Check for a number after the trunk prefix 0: `spaced_phones._TRUNK`."""
    first = starts[0]
    if count < 2 or count > 5 or data[first] != 48 or not is_digit(data[first + 1]):
        return False
    one, two, second = size_of(starts, 0), size_of(starts, 1), data[first + 1]
    head = number_at(data, first, 4) if one >= 4 else 0
    if not (9 <= digits <= 12 or head in (800, 341)):
        return False
    is_short = True
    for group in range(1, count):
        is_short &= 2 <= size_of(starts, group) <= 5
    if second >= 49 and 2 <= one <= 5 and (is_short or (count == 2 and 5 <= two <= 8)):
        return True
    if count == 2:
        return second >= 54 and one == 6 and two == 5
    if count == 3:
        is_switchboard = size_of(starts, 2) == 1 and data[starts[2]] == 48 and 3 <= two <= 6
        return is_switchboard and second >= 50 and 3 <= one <= 5
    is_hungarian = count == 4 and second == 54 and one == 2 and two == 1
    return is_hungarian and size_of(starts, 2) == 3 and size_of(starts, 3) == 4


@njit(**KERNEL)
def _shape(starts: Integers, count: int) -> int:
    """Return the sizes of groups as digits to base 16."""
    shape = 0
    for i in range(count):
        shape = shape * 16 + size_of(starts, i)
    return shape


@njit(**KERNEL)
def is_clear(data: Bytes, starts: Integers, count: int) -> bool:
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
        area, exchange = number_at(data, starts[0], 3), number_at(data, starts[1], 3)
        is_area = area >= 200 and area % 100 != 11 and second != 57
        return area in (400, 800) or (is_area and exchange >= 200 and exchange % 100 != 11)
    if shape == 0x1334:
        return first == 49 and other >= 50 and data[starts[2]] >= 50
    if shape == 0x433 or shape == 0x434:
        return number_at(data, starts[0], 4) in (1300, 1800)
    if shape == 0x144:
        return first == 57
    is_mexican = shape == 0x2334 and number_at(data, starts[0], 2) == 1
    return is_mexican and number_at(data, starts[1], 3) == 800


@njit(**KERNEL)
def is_like_others(data: Bytes, starts: Integers, count: int) -> bool:
    """Check for a form that other numbers have too: `spaced_phones._OPEN`."""
    shape, first = _shape(starts, count), data[starts[0]]
    other = data[starts[1]] if count > 1 else 0
    if shape in (0x333, 0x2222, 0x234, 0x323, 0x334):
        return first >= 50
    if shape == 0x44:
        is_year = number_at(data, starts[0], 2) == 20 or number_at(data, starts[1], 2) in (19, 20)
        return first >= 50 and not is_year
    if shape == 0x244:
        return first >= 49
    if shape == 0x433:
        return first == 50 or first >= 54
    if shape == 0x144:
        return first == 50 and other == 50
    return shape == 0x37 and (first in (51, 54) or (first >= 50 and other >= 50))
