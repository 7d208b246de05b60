"""Decide on plain payment cards and IBANs; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    OPTIONS,
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_digit,
    is_gap,
    is_letter,
    is_word,
)


@njit(**OPTIONS)
def _end_of_card(data: Bytes, text: tuple[int, int], start: int, end: int) -> int:
    """Decide on 16 digits, whole or in fours: Visa's and Mastercard's with a fitting last digit."""
    first, total, count, signs, is_one = data[start], 0, 0, 0, True
    for at in range(start, end):
        if not is_digit(data[at]):
            if count not in (4, 8, 12) or data[at] != data[start + 4]:
                return UNSURE
            signs += 1
            continue
        digit = data[at] - 48
        is_one &= data[at] == first
        doubled = digit * 2 - 9 * (digit > 4) if count % 2 == 0 else digit
        total, count = total + doubled, count + 1
    is_known = first == 52 or (first == 53 and 49 <= data[start + 1] <= 53)
    if count != 16 or signs not in (0, 3):
        return UNSURE
    if total % 10 or is_one:
        return REFUSED
    # The check reads more before a blank: the head of an IBAN has two digits there.
    is_open = start == text[0] or data[start - 1] in (10, 44, 59)
    is_open |= start > text[0] + 1 and data[start - 1] == 32 and not is_digit(data[start - 2])
    is_open &= end == text[1] or is_gap(data[end])
    return end if is_known and is_open else UNSURE


@njit(**OPTIONS)
def _fits_luhn(data: Bytes, start: int, end: int) -> bool:
    """Check that 13 to 19 digits of some groups in a row have a fitting last digit."""
    for first in range(start, end):
        if not is_digit(data[first]) or (first > start and is_digit(data[first - 1])):
            continue
        even, odd, count = 0, 0, 0  # sums with every second digit doubled, from the first or second
        for at in range(first, end):
            if count == 19:
                break
            if not is_digit(data[at]):
                continue
            digit = np.int64(data[at]) - 48
            doubled = digit * 2 - 9 * (digit > 4)
            even, odd = (
                (even + doubled, odd + digit) if count % 2 == 0 else (even + digit, odd + doubled)
            )
            count += 1
            is_last = at + 1 == end or not is_digit(data[at + 1])
            if is_last and count >= 13 and (odd if count % 2 else even) % 10 == 0:
                return True
    return False


@njit(**OPTIONS)
def decide_card(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Accept plain card numbers; refuse digits without groups of a card's sizes and last digit."""
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        verdict = _end_of_card(data, (offsets[row], offsets[row + 1]), start, end)
        if verdict != UNSURE:
            ends[i] = verdict
            continue
        sizes, size, fours = (0, 0, 0), 0, 0
        for at in range(start, end + 1):
            if at < end and is_digit(data[at]):
                size += 1
                continue
            # Groups of four beside more of them are a table.
            is_grouped = (fours == 4 and size != 4) or (fours == 3 and size == 1)
            is_grouped |= sizes[0] != 4 and sizes[1:] == (4, 6) and size in (4, 5)
            if is_grouped or 13 <= size <= 19:
                ends[i] = UNSURE
                break
            fours = fours + 1 if size == 4 else 0
            sizes, size = (sizes[1], sizes[2], size), 0
        if fours == 4:
            ends[i] = UNSURE
        if ends[i] == UNSURE and not _fits_luhn(data, start, end):
            ends[i] = REFUSED
    return ends


@njit(**OPTIONS)
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


@njit(**OPTIONS)
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
