"""Decide on plain phone numbers; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_among,
    is_digit,
    is_letter,
    is_word,
    packed,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL

_INTROS = packed("tel phone phones fax faks mobil mobile cell handy tlf fon")
_PREFIXES = packed("tele cell mobile smart i")  # of words such as "telephone"
_MAX_PREFIX = 12  # letters


@njit(**INLINED)
def _number_at(data: Bytes, at: int, size: int) -> int:
    """Return the number of `size` digits at a place, or -1; the bytes are there."""
    number = np.int64(0)
    for i in range(at, at + size):
        if not is_digit(data[i]):
            return -1
        number = number * 10 + np.int64(data[i]) - 48
    return number


@njit(**KERNEL)
def _end_of_american(data: Bytes, at: int, stop: int) -> int:
    """Return the end of a North American number without its 1, or REFUSED."""
    at += at < stop and data[at] == 40
    if at + 10 > stop:
        return REFUSED
    area = _number_at(data, at, 3)
    at += 3 + (data[at + 3] == 41)
    for _ in range(2):
        at += at < stop and data[at] in (32, 45, 46)
    if at + 7 > stop:
        return REFUSED
    exchange = _number_at(data, at, 3)
    is_service = area % 100 == 11 or exchange % 100 == 11 or area // 10 % 10 == 9
    is_valid = area == 555 or (area >= 200 and exchange >= 200 and not is_service)
    at += 3 + (data[at + 3] in (32, 45, 46))
    is_valid &= exchange >= 0 and at + 4 <= stop
    return at + 4 if is_valid and _number_at(data, at, 4) >= 0 else REFUSED


@njit(**KERNEL)
def _after_american(data: Bytes, end: int, stop: int) -> int:
    """Return the end if nothing after it forbids a number, REFUSED, or UNSURE."""
    if end == stop:
        return end
    byte, after = data[end], data[end + 1] if end + 1 < stop else 0
    if byte in (101, 120) or (byte == 32 and after in (101, 120)):  # "x 12", "ext. 12"
        return UNSURE
    if byte in (45, 46) and after > 127:
        return UNSURE
    is_more = is_word(byte) or (byte in (45, 46) and is_digit(after))
    return REFUSED if is_more else end


@njit(**ARRAY_KERNEL)
def decide_american(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Decide on North American numbers; the place of one that begins before is moved."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        begin, stop, first = offsets[row], offsets[row + 1], start
        has_bracket = data[start + 3] == 41
        first -= has_bracket and first > begin and data[first - 1] == 40
        has_one = first > begin + 1 and data[first - 2] == 49 and data[first - 1] in (32, 45, 46)
        first -= 2 * has_one
        has_plus = first > begin and data[first - 1] == 43
        first -= has_plus
        is_wrong = has_plus and not has_one
        is_wrong |= first > begin and is_word(data[first - 1])
        if first > begin + 1 and data[first - 1] in (43, 45, 46, 58):
            is_wrong |= is_word(data[first - 2]) or data[first - 2] == 43
        has_two = not has_bracket and is_digit(data[start + 4])
        is_row = data[start + 3] == 32 or (has_two and data[end - 5] == 32)  # of a table
        for at in range(start + 4, end):
            is_row &= data[at] != 45
        ends[i] = REFUSED
        if not (is_wrong or is_row) and _end_of_american(data, start, stop) == end:
            ends[i] = _after_american(data, end, stop)
        if ends[i] > 0:
            places[i, 1] = first
    return ends


@njit(**KERNEL)
def _end_of_groups(data: Bytes, start: int, stop: int, codes: Bytes) -> int:
    """Return the end of a calling code and groups of digits between single signs, or UNSURE."""
    at, digits, groups, size, first = start, 0, 0, 0, 0
    head = np.int64(0)
    while at < min(stop, start + 38):
        if is_digit(data[at]):
            head = head * 10 + np.int64(data[at]) - 48 if digits < 3 else head
            digits, groups, size = digits + 1, groups + (size == 0), size + 1
            first += groups == 1
        elif data[at] in (32, 45) and at + 1 < stop and is_digit(data[at + 1]):
            size = 0
        else:
            break
        if size > 12 or groups > 7:
            return UNSURE
        at += 1
    if digits < 9 or not 0 < codes[head] <= first or at == start + 38:
        return UNSURE
    if at == stop or data[at] in (9, 10, 13, 44, 59):
        return at
    is_open = data[at] == 32 and (
        at + 1 == stop or (data[at + 1] < 128 and data[at + 1] not in (40, 45, 47))
    )
    return at if is_open else UNSURE


@njit(**KERNEL)
def _is_phone(data: Bytes, start: int, end: int) -> bool:
    """Check the digits of an international number: how many, five zeros, a decimal point."""
    digits, zeros, groups, dots = 0, 0, 0, 0
    for at in range(start, end):
        dots += data[at] == 46
        if is_digit(data[at]):
            groups += not is_digit(data[at - 1])
            digits, zeros = digits + 1, zeros + 1 if data[at] == 48 else 0
            if zeros == 5:
                return False
    return 9 <= digits <= 15 and not (dots == 1 and groups == 2)


@njit(**ARRAY_KERNEL)
def decide_international(
    data: Bytes, offsets: Integers, places: Integers, codes: Bytes
) -> Integers:
    """Decide on numbers after a plus; codes: uint8 [1000], the length of the code they begin."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, _ = places[i]
        stop = offsets[row + 1]
        before = data[start - 1] if start > offsets[row] else 0
        if is_word(before) or before in (41, 43, 46):
            ends[i] = REFUSED
            continue
        if before == 40 or not is_digit(data[start + 1]):
            continue
        if data[start + 1] == 49:
            at = start + 2
            at += at < stop and data[at] == 41
            at += at < stop and data[at] in (32, 45, 46)
            ends[i] = _end_of_american(data, at, stop)
            if ends[i] > 0:
                ends[i] = _after_american(data, ends[i], stop)
            else:
                for byte in data[start : min(stop, start + 40)]:
                    ends[i] = UNSURE if byte > 127 else ends[i]  # digits of other scripts
        else:
            ends[i] = _end_of_groups(data, start + 1, stop, codes)
        if ends[i] > 0 and not _is_phone(data, start, ends[i]):
            ends[i] = REFUSED
    return ends


@njit(**KERNEL)
def _small_word(data: Bytes, start: int, end: int) -> int:
    """Return up to 7 letters as a number, in small letters, 0 for more."""
    word = np.int64(0)
    for byte in data[start : min(end, start + 8)]:
        word = word * 256 + np.int64(byte | 32)
    return word if end - start < 8 else 0


@njit(**KERNEL)
def _judge_intro(data: Bytes, begin: int, start: int, stop: int) -> int:
    """Return the end of a word that introduces a phone, REFUSED for another, or UNSURE."""
    at = first = start
    while at < stop and is_letter(data[at]):
        at += 1
    size = at - start
    if size == 0 or size > 20 or (at < stop and data[at] > 127):
        return UNSURE
    while first > begin and start - first < _MAX_PREFIX and is_letter(data[first - 1]):
        first -= 1
    if first < start and not is_among(_small_word(data, first, start), _PREFIXES):
        return REFUSED
    if size < 8 and is_among(_small_word(data, start, at), _INTROS):
        return at
    if size > 3 and _small_word(data, start, start + 3) == _INTROS[0]:
        head = start + 3 + (data[start + 3] | 32 == 101)  # "telefon", "tel" and "telephone"
        one, two = data[head] | 32, data[head + 1] | 32 if head + 1 < at else 0
        return at if head < at and (one == 102 or (one == 112 and two == 104)) else REFUSED
    return UNSURE if size > 7 else REFUSED


@njit(**KERNEL)
def _is_open_end(data: Bytes, at: int, stop: int) -> bool:
    """Check that nothing after a number goes on with it, or forbids it."""
    if at == stop or data[at] in (9, 10, 13, 34, 39, 44, 59, 60):  # "',;<
        return True
    after = data[at + 1] if at + 1 < stop else 10
    if data[at] == 46:
        return after in (10, 32)
    # No digit, no sign between digits, and no "x 12" or "ext. 12".
    is_more = is_digit(after) or after > 127 or after in (40, 45, 47, 69, 88, 101, 120)
    return data[at] == 32 and not is_more


@njit(**KERNEL)
def _end_of_introduced(data: Bytes, start: int, stop: int) -> int:
    """Return the end of groups of digits between single signs, REFUSED, or UNSURE."""
    at = start + (data[start] == 43)
    digits, groups, size = 0, 1, 0
    while at < min(stop, start + 38):
        if is_digit(data[at]):
            digits, size = digits + 1, size + 1
        elif data[at] in (32, 45, 46, 47) and at + 1 < stop and is_digit(data[at + 1]):
            groups, size = groups + 1, 0
        else:
            break
        if size > 12 or groups > 7:
            return UNSURE
        at += 1
    if at == start + 38 or digits > 15:
        return UNSURE
    if at < stop and groups == 1 and is_word(data[at]) and data[at] | 32 not in (101, 120):
        return REFUSED
    if not _is_open_end(data, at, stop) or (groups in (2, 3) and digits <= 8):  # a date, perhaps
        return UNSURE
    return at if digits >= (7 if groups == 1 else 6) else REFUSED


@njit(**ARRAY_KERNEL)
def decide_introduced(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Decide on numbers after a word; the place of one that is accepted is that of the number."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        stop = offsets[row + 1]
        ends[i] = at = _judge_intro(data, offsets[row], start, stop)
        if at <= 0:
            continue
        is_sign = False
        while at < end and data[at] < 128 and not is_sign and not is_digit(data[at]):
            is_sign = data[at] == 40 or (data[at] == 43 and is_digit(data[at + 1]))
            is_sign = is_sign or (data[at] == 43 and data[at + 1] == 40)
            at += not is_sign
        is_number = at < end and (is_digit(data[at]) or (data[at] == 43 and data[at + 1] != 40))
        ends[i] = _end_of_introduced(data, at, stop) if is_number and data[at] < 128 else UNSURE
        if ends[i] > 0:
            places[i, 1] = at
    return ends
