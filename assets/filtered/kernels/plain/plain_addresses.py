"""Decide on plain e-mail addresses and IP addresses; see the folder."""
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

_MAX_LABEL, _MAX_LOCAL, _MAX_ADDRESS = 63, 64, 250
_BEFORE = 16  # bytes that the check of an IP address reads for words such as "version"


@njit(**OPTIONS)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a letter, digit or dot before or after, which no address has beside it."""
    if start > text[0] and (is_word(data[start - 1]) or data[start - 1] == 46):
        return True
    if end == text[1]:
        return False
    is_dotted = data[end] == 46 and end + 1 < text[1] and is_digit(data[end + 1])
    return is_dotted or is_word(data[end]) or data[end] == 37


@njit(**OPTIONS)
def _among_numbers(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a gap on both sides, and only gaps, digits and dots in the bytes before."""
    if (start > text[0] and not is_gap(data[start - 1])) or (
        end < text[1] and not is_gap(data[end])
    ):
        return False
    for i in range(max(text[0], start - _BEFORE), start):
        if not (is_gap(data[i]) or is_digit(data[i]) or data[i] == 46):
            return False
    return True


@njit(**OPTIONS)
def _is_named(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for what tells an address from the number of a section: a word, a port, a prefix."""
    if end < text[1] and data[end] in (47, 58):
        return True
    at = start - 1
    while at >= text[0] and data[at] != 10 and (is_gap(data[at]) or data[at] == 46):
        at -= 1
    if at < text[0] or data[at] == 10:
        return False
    # The digit of another number, or that of "ipv4".
    is_number = is_digit(data[at]) and (
        at == text[0] or is_digit(data[at - 1]) or is_gap(data[at - 1]) or data[at - 1] == 46
    )
    return not is_number


@njit(**OPTIONS)
def _is_resolver(data: Bytes, start: int, end: int) -> bool:
    """Check for an address that everybody knows: 1.1.1.1, 8.8.8.8, 9.9.9.9, 8.8.4.4, 1.0.0.1."""
    if end - start != 7:
        return False
    one, two, three, four = data[start], data[start + 2], data[start + 4], data[start + 6]
    is_same = one == two == three == four and one in (49, 56, 57)
    is_eights = one == 56 and two == 56 and three == 52 and four == 52
    return is_same or is_eights or (one == 49 and two == 48 and three == 48 and four == 49)


@njit(**OPTIONS)
def decide_ip4(data: Bytes, offsets: Integers, places: Integers, public: Bytes) -> Integers:
    """Decide on IPv4 addresses; public: uint8 [65536], 1 or 0 by the first two bytes, else 2."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        part, digits, number, count, is_small = 0, 0, 0, 0, True
        for at in range(start, end + 1):
            if at < end and is_digit(data[at]):
                # More than a byte, or a zero that leads.
                longer = part * 10 + np.int64(data[at]) - 48
                is_wrong = digits > 0 and (part == 0 or longer > 255)
                part = 256 if is_wrong or part == 256 else longer
                digits += 1
                continue
            if part == 256:
                number = -1
                break
            number, count = (number * 256 + part, count + 1) if count < 2 else (number, count + 1)
            is_small &= part < 50
            part, digits = 0, 0
        verdict = public[number] if number >= 0 else 0
        text = offsets[row], offsets[row + 1]
        is_section = is_small and not (
            _is_resolver(data, start, end) or _is_named(data, text, start, end)
        )
        if verdict == 0 or is_section or _is_part_of_more(data, text, start, end):
            ends[i] = REFUSED
        elif verdict == 1 and not is_small:
            ends[i] = end if _among_numbers(data, text, start, end) else UNSURE
    return ends


@njit(**OPTIONS)
def _end_of_local(data: Bytes, start: int, stop: int) -> int:
    """Return the place of the "@" after a plain local part, or -1."""
    at = start
    if not (is_letter(data[at]) or is_digit(data[at])):
        return -1
    while at < stop and data[at] != 64:
        byte = data[at]
        is_sign = byte in (43, 45, 46, 95)  # + - . _
        if not (is_letter(byte) or is_digit(byte) or is_sign):
            return -1
        if byte == 46 and data[at + 1] in (46, 64):
            return -1
        at += 1
    is_git = at - start == 3 and data[start] == 103 and data[start + 1] == 105
    return at if at < stop and at - start <= _MAX_LOCAL and not is_git else -1


@njit(**OPTIONS)
def _end_of_domain(data: Bytes, start: int, stop: int, tops: Bytes) -> int:
    """Return the end of a plain domain whose last label has two or three letters, or -1."""
    at, label, labels, top, letters = start, start, 0, 0, 0
    while at < stop:
        byte = np.int64(data[at])
        if byte == 46 and (at + 1 == stop or is_gap(data[at + 1])):
            break  # the end of a sentence
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1
            label, labels, top, letters = at + 1, labels + 1, 0, 0
        elif is_letter(byte):
            top, letters = (top * 27 + (byte | 32) - 96) % 531_441, letters + 1
        elif not (is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    is_whole = at == stop or is_gap(data[at]) or data[at] in (46, 34, 41, 58, 60, 62, 93)
    is_top = letters == at - label and 2 <= letters <= 3 and tops[top] == 1
    return at if is_whole and is_top and labels and at - start <= _MAX_ADDRESS else -1


@njit(**OPTIONS)
def _is_in_url(data: Bytes, first: int, start: int) -> bool:
    """Check for a slash in what comes before without a blank: a user may be part of a URL."""
    at = start - 1
    while at >= first and data[at] != 47:
        if data[at] in (32, 10, 9, 13):
            return False
        at -= 1
    return at >= first


@njit(**OPTIONS)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tops: Bytes) -> Integers:
    """Decide on addresses; tops: uint8 [27**3], 1 for a domain of letters as digits to base 27."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        is_open = start == offsets[row] or is_gap(data[start - 1])
        if not is_open and data[start - 1] not in (34, 40, 58, 60, 62, 91):  # "(:<>[
            continue
        sign = _end_of_local(data, start, end)
        stop = _end_of_domain(data, sign + 1, offsets[row + 1], tops) if sign > 0 else UNSURE
        if stop > 0 and not _is_in_url(data, max(offsets[row], start - 400), start):
            ends[i] = stop
    return ends
