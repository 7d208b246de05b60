"""Decide on plain payment cards and IBANs; see the folder."""
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
    pair_at,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL


@njit(**KERNEL)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for what no card number has beside it: letters, signs of amounts, an IBAN's head."""
    byte = data[start - 1] if start > text[0] else 10
    before = data[start - 2] if start > text[0] + 1 else 10
    if is_word(byte) or byte in (36, 43, 47) or (byte in (45, 46) and is_word(before)):  # $+/-.
        return True
    is_head = byte == 32 and start >= text[0] + 5 and is_digit(before) and is_digit(data[start - 3])
    if is_head and 65 <= data[start - 4] <= 90 and 65 <= data[start - 5] <= 90:
        return True
    byte = data[end] if end < text[1] else 10
    after = data[end + 1] if end + 1 < text[1] else 10
    return is_word(byte) or (byte in (45, 46) and is_digit(after))


@njit(**KERNEL)
def _is_card(data: Bytes, start: int, end: int, cards: Integers) -> bool:
    """Check the digits of a number in equal signs: a range in use, its length, the last digit."""
    count, head, even, odd = 0, 0, 0, 0  # sums with every second digit doubled, from either first
    sign, is_one, is_even = np.int64(0), True, True
    for at in range(start, end):
        if not is_digit(data[at]):
            is_even &= sign in (0, np.int64(data[at]))
            sign = np.int64(data[at])
            continue
        digit = np.int64(data[at]) - 48
        doubled = digit * 2 - 9 * (digit > 4)
        even, odd = (
            (even + doubled, odd + digit) if count % 2 == 0 else (even + digit, odd + doubled)
        )
        head = head * 10 + digit if count < 4 else head
        is_one &= data[at] == data[start]
        count += 1
    total = odd if count % 2 else even
    return is_even and not is_one and total % 10 == 0 and cards[head] >> count & 1 == 1


@njit(**KERNEL)
def _groups_of_card(sizes: Integers, i: int, count: int) -> tuple[int, int]:
    """Return how many groups of digits from `i` on may make a card number, and how many else."""
    shape = np.int64(0)  # sizes of up to five groups as digits to base 16
    for j in range(i, i + 5):
        shape = shape * 16 + (min(sizes[j], 15) if j < count else 0)
    if shape == 0x44443:
        return 5, 4
    if shape >> 4 == 0x4444:
        return 4, 0
    if shape >> 8 in (0x465, 0x464):
        return 3, 0
    return (4 if shape >> 4 == 0x4441 else 0), 0


@njit(**KERNEL)
def _size_of_card(
    data: Bytes, text: tuple[int, int], groups: tuple[Integers, Integers], i: int, cards: Integers
) -> int:
    """Return how many groups from `i` on are a card number: `identity_numbers._card_groups_at`."""
    starts, sizes = groups
    count = len(sizes)
    one, other = _groups_of_card(sizes, i, count)
    for size in (1 if 13 <= sizes[i] <= 19 else 0, one, other):
        if size == 0:
            continue
        is_table = i > 0 and sizes[i - 1] == 4
        is_table |= i + size < count and sizes[i + size] == 4
        first, last = starts[i], starts[i + size - 1] + sizes[i + size - 1]
        is_free = not (size > 1 and is_table) and not _is_part_of_more(data, text, first, last)
        if is_free and _is_card(data, first, last, cards):
            return size
    return 0


@njit(**ARRAY_KERNEL)
def _groups_of_digits(data: Bytes, start: int, end: int) -> tuple[Integers, Integers]:
    """Return the first bytes of all groups of digits, and their sizes."""
    starts, sizes = np.empty(end - start, np.int64), np.empty(end - start, np.int64)
    count = 0
    for at in range(start, end):
        if not is_digit(data[at]):
            continue
        if at == start or not is_digit(data[at - 1]):
            starts[count], sizes[count], count = at, 0, count + 1
        sizes[count - 1] += 1
    return starts[:count], sizes[:count]


@njit(**ARRAY_KERNEL)
def find_cards(data: Bytes, offsets: Integers, places: Integers, cards: Integers) -> Integers:
    """Return the card numbers in candidates, and candidates without one, int64 [n, 4].

    Columns: row, first byte, end; 1, or 0 without. cards: int64 [10_000], by the first four digits:
    a bit for each length of a card's number.
    """
    # A card number has 13 digits at least, and each candidate has one row at least.
    room = len(places)
    for i in range(len(places)):
        room += (places[i, 2] - places[i, 1]) // 13
    found = np.empty((room, 4), np.int64)
    count = 0
    for row, start, end in places:
        before, i = count, 0
        starts, sizes = _groups_of_digits(data, start, end)
        while i < len(sizes):
            text = (offsets[row], offsets[row + 1])
            size = _size_of_card(data, text, (starts, sizes), i, cards)
            if size:
                last = i + size - 1
                found[count] = row, starts[i], starts[last] + sizes[last], 1
                count += 1
            i += max(1, size)
        if count == before:
            found[count] = row, start, end, 0
            count += 1
    return found[:count]


# The last two letters of words that introduce the number of a product: "part", "order", "p/n".
_ENDS_OF_PRODUCTS = packed(
    "rt ts el ls ku al em ms er ce og ue ot ef /n bn on et se ck no nr de id"
)


@njit(**KERNEL)
def _may_be_product(data: Bytes, low: int, start: int) -> bool:
    """Check for the end of a word before that may be: `identity_numbers._PRODUCT_BEFORE`."""
    at = start - 1
    while at >= low and at > start - 4 and data[at] in (32, 35, 46, 58):  # blank #.:
        at -= 1
    if at <= low or not is_letter(data[at]):
        return at > low and data[at] > 127
    return data[at - 1] > 127 or is_among(pair_at(data, at - 1), _ENDS_OF_PRODUCTS)


@njit(**ARRAY_KERNEL)
def decide_ssn(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Decide on social security numbers; the place of one after a word is that of the number."""
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, _, end = places[i]
        low, stop = offsets[row], offsets[row + 1]
        at = end - 4
        at -= not is_digit(data[at - 1])
        group = (data[at - 2], data[at - 1])
        at -= 2
        at -= not is_digit(data[at - 1])
        at -= 3
        area = (data[at], data[at + 1], data[at + 2])
        is_zero = True
        for byte in data[end - 4 : end]:
            is_zero &= byte == 48
        is_issued = area[0] != 57 and area != (48, 48, 48) and area != (54, 54, 54)
        if is_zero or not is_issued or group == (48, 48):
            continue
        byte = data[at - 1] if at > low else 10
        before = data[at - 2] if at > low + 1 else 10
        if byte in (45, 46) and before > 127:
            ends[i] = UNSURE
            continue
        if is_word(byte) or byte == 43 or (byte in (45, 46) and is_digit(before)):
            continue
        byte, after = data[end] if end < stop else 10, data[end + 1] if end + 1 < stop else 10
        if is_word(byte) or (byte == 45 and is_word(after)) or (byte == 46 and is_digit(after)):
            continue
        ends[i] = UNSURE if _may_be_product(data, low, at) else end
        if ends[i] == end:
            places[i, 1] = at
    return ends


@njit(**KERNEL)
def _end_of_iban(data: Bytes, text: tuple[int, int], start: int, length: int) -> int:
    """Return the end of a valid IBAN in capitals, whole or in fours, or -1."""
    is_spaced = data[start + 4] == 32
    end = start + length + (length - 1) // 4 * is_spaced
    if end > text[1] or (start > text[0] and is_word(data[start - 1])):
        return -1
    rest, head = np.int64(0), np.int64(0)
    for at in range(start, end):
        byte = np.int64(data[at])
        if is_spaced and (at - start) % 5 == 4:
            if byte != 32:
                return -1
            continue
        if not (is_digit(byte) or is_letter(byte)):
            return -1
        value, power = (byte - 48, 10) if is_digit(byte) else ((byte | 32) - 87, 100)
        if at < start + 4:
            head = head * power + value
        else:
            rest = (rest * power + value) % 97
    is_valid = (rest * 1_000_000 + head) % 97 == 1
    return end if is_valid and (end == text[1] or not is_word(data[end])) else -1


@njit(**ARRAY_KERNEL)
def find_ibans(data: Bytes, offsets: Integers, places: Integers, lengths: Integers) -> Integers:
    """Return the IBANs in candidates, and candidates without one, int64 [n, 4].

    Columns: row, first byte, end; 1, or 0 without. lengths: int64 [26 * 26], 0 for no country.
    """
    found = np.empty((len(places), 4), np.int64)
    count = 0
    for row, start, end in places:
        before, at = count, start
        while at + 4 < end:
            first, second = np.int64(data[at]) - 65, np.int64(data[at + 1]) - 65
            is_head = 0 <= first < 26 and 0 <= second < 26 and is_digit(data[at + 2])
            is_head &= is_digit(data[at + 3])
            is_head &= data[at + 4] != 32 or (at + 5 < end and data[at + 5] != 32)
            length = lengths[first * 26 + second] if is_head else 0
            stop = _end_of_iban(data, (offsets[row], offsets[row + 1]), at, length) if length else 0
            if stop <= 0:
                at += 1
                continue
            if count + 1 >= len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = row, at, stop, 1
            at, count = stop, count + 1
        if count == before:
            if count == len(found):
                found = np.concatenate((found, np.empty_like(found)))
            found[count] = row, start, end, 0
            count += 1
    return found[:count]
