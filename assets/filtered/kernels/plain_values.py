"""Decide on candidates in plain surroundings: lists of personal data have millions of them.

Each kernel returns, for candidates int64 [n, 3] (row, first byte, end), the end of the span that
begins where the candidate does, REFUSED, or UNSURE where only the check of the scan can tell.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

UNSURE, REFUSED = 0, -1
_MAX_LABEL, _MAX_LOCAL, _MAX_ADDRESS = 63, 64, 250
_BEFORE = 16  # bytes that the check of an IP address reads for words such as "version"

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def _is_gap(byte: int) -> bool:
    """Check for a blank, a line end, a comma or a semicolon."""
    return byte in (32, 10, 9, 13, 44, 59)


@njit(**_inlined)
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@njit(**_inlined)
def _is_letter(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122


@njit(**_inlined)
def _is_word(byte: int) -> bool:
    return _is_letter(byte) or _is_digit(byte) or byte == 95


@njit(**_options)
def _is_part_of_more(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a letter, digit or dot before or after, which no address has beside it."""
    if start > text[0] and (_is_word(data[start - 1]) or data[start - 1] == 46):
        return True
    if end == text[1]:
        return False
    is_dotted = data[end] == 46 and end + 1 < text[1] and _is_digit(data[end + 1])
    return is_dotted or _is_word(data[end]) or data[end] == 37


@njit(**_options)
def _among_numbers(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for a gap on both sides, and only gaps, digits and dots in the bytes before."""
    if (start > text[0] and not _is_gap(data[start - 1])) or (
        end < text[1] and not _is_gap(data[end])
    ):
        return False
    for i in range(max(text[0], start - _BEFORE), start):
        if not (_is_gap(data[i]) or _is_digit(data[i]) or data[i] == 46):
            return False
    return True


@njit(**_options)
def decide_ip4(data: Bytes, offsets: Integers, places: Integers, public: Bytes) -> Integers:
    """Decide on IPv4 addresses; public: uint8 [65536], 1 or 0 by the first two bytes, else 2."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        part, digits, number, count, is_small = 0, 0, 0, 0, True
        for at in range(start, end + 1):
            if at < end and _is_digit(data[at]):
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
        if verdict == 0 or _is_part_of_more(data, text, start, end):
            ends[i] = REFUSED
        elif verdict == 1 and not is_small:
            ends[i] = end if _among_numbers(data, text, start, end) else UNSURE
    return ends


@njit(**_options)
def _end_of_local(data: Bytes, start: int, stop: int) -> int:
    """Return the place of the "@" after a plain local part, or -1."""
    at = start
    if not (_is_letter(data[at]) or _is_digit(data[at])):
        return -1
    while at < stop and data[at] != 64:
        byte = data[at]
        is_sign = byte in (43, 45, 46, 95)  # + - . _
        if not (_is_letter(byte) or _is_digit(byte) or is_sign):
            return -1
        if byte == 46 and data[at + 1] in (46, 64):
            return -1
        at += 1
    is_git = at - start == 3 and data[start] == 103 and data[start + 1] == 105
    return at if at < stop and at - start <= _MAX_LOCAL and not is_git else -1


@njit(**_options)
def _end_of_domain(data: Bytes, start: int, stop: int, tops: Bytes) -> int:
    """Return the end of a plain domain whose last label has two or three letters, or -1."""
    at, label, labels, top, letters = start, start, 0, 0, 0
    while at < stop:
        byte = np.int64(data[at])
        if byte == 46 and (at + 1 == stop or _is_gap(data[at + 1])):
            break  # the end of a sentence
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1
            label, labels, top, letters = at + 1, labels + 1, 0, 0
        elif _is_letter(byte):
            top, letters = (top * 27 + (byte | 32) - 96) % 531_441, letters + 1
        elif not (_is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    is_whole = at == stop or _is_gap(data[at]) or data[at] in (46, 34, 41, 58, 60, 62, 93)
    is_top = letters == at - label and 2 <= letters <= 3 and tops[top] == 1
    return at if is_whole and is_top and labels and at - start <= _MAX_ADDRESS else -1


@njit(**_options)
def _is_in_url(data: Bytes, first: int, start: int) -> bool:
    """Check for a slash in what comes before without a blank: a user may be part of a URL."""
    at = start - 1
    while at >= first and data[at] != 47:
        if data[at] in (32, 10, 9, 13):
            return False
        at -= 1
    return at >= first


@njit(**_options)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tops: Bytes) -> Integers:
    """Decide on addresses; tops: uint8 [27**3], 1 for a domain of letters as digits to base 27."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        is_open = start == offsets[row] or _is_gap(data[start - 1])
        if not is_open and data[start - 1] not in (34, 40, 58, 60, 62, 91):  # "(:<>[
            continue
        sign = _end_of_local(data, start, end)
        if sign > 0 and not _is_in_url(data, max(offsets[row], start - 400), start):
            ends[i] = max(UNSURE, _end_of_domain(data, sign + 1, offsets[row + 1], tops))
    return ends


@njit(**_options)
def _is_plain_card(data: Bytes, text: tuple[int, int], start: int, end: int) -> bool:
    """Check for 16 digits, whole or in fours, of Visa or Mastercard with a fitting last digit."""
    first, total, count, signs, is_one = data[start], 0, 0, 0, True
    for at in range(start, end):
        if not _is_digit(data[at]):
            if count not in (4, 8, 12) or data[at] != data[start + 4]:
                return False
            signs += 1
            continue
        digit = data[at] - 48
        is_one &= data[at] == first
        doubled = digit * 2 - 9 * (digit > 4) if count % 2 == 0 else digit
        total, count = total + doubled, count + 1
    is_known = first == 52 or (first == 53 and 49 <= data[start + 1] <= 53)
    if not (count == 16 and signs in (0, 3) and is_known) or total % 10 or is_one:
        return False
    # The check reads more before a blank: the head of an IBAN has two digits there.
    is_open = start == text[0] or data[start - 1] in (10, 44, 59)
    is_open |= start > text[0] + 1 and data[start - 1] == 32 and not _is_digit(data[start - 2])
    return is_open and (end == text[1] or _is_gap(data[end]))


@njit(**_options)
def decide_card(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Accept plain card numbers; refuse digits none of whose groups have the sizes of a card's."""
    ends = np.full(len(places), REFUSED, np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        if _is_plain_card(data, (offsets[row], offsets[row + 1]), start, end):
            ends[i] = end
            continue
        sizes = (0, 0, 0)
        size = 0
        for at in range(start, end + 1):
            if at < end and _is_digit(data[at]):
                size += 1
                continue
            sizes, size = (sizes[1], sizes[2], size), 0
            is_grouped = sizes == (4, 4, 4) or sizes == (4, 6, 4) or sizes == (4, 6, 5)
            if is_grouped or 13 <= sizes[2] <= 19:
                ends[i] = UNSURE
                break
    return ends


@njit(**_options)
def decide_spaced(data: Bytes, offsets: Integers, places: Integers) -> Integers:
    """Refuse groups with too many or too few digits for a phone number."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        digits, brackets = 0, 0
        for byte in data[start : min(end, start + 41)]:
            digits += _is_digit(byte)
            brackets += byte == 40
        # The check cuts a time or a date off: these marks are beside it, or a bracket opens.
        is_cut = start > offsets[row] and data[start - 1] in (44, 45, 46, 47, 58)
        is_cut |= end < offsets[row + 1] and (data[end] in (44, 45, 46, 47, 58) or data[end] > 127)
        if digits < 8 or end - start > 40 or (digits > 13 and not is_cut and not brackets):
            ends[i] = REFUSED
    return ends
