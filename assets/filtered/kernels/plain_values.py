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
                is_wrong = digits > 0 and (part == 0 or part * 10 + data[at] - 48 > 255)
                part = 256 if is_wrong or part == 256 else part * 10 + data[at] - 48
                digits += 1
                continue
            if part == 256:
                number = -1
                break
            number, count = (number * 256 + part, count + 1) if count < 2 else (number, count + 1)
            is_small &= part < 50
            part, digits = 0, 0
        verdict = public[number] if number >= 0 else 0
        if verdict == 0:
            ends[i] = REFUSED
        elif verdict == 1 and not is_small:
            text = offsets[row], offsets[row + 1]
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
        byte = data[at]
        if byte == 46:
            if at == label or at - label > _MAX_LABEL or data[at - 1] == 45:
                return -1
            label, labels, top, letters = at + 1, labels + 1, 0, 0
        elif _is_letter(byte):
            top, letters = (top * 27 + (byte | 32) - 96) % 531_441, letters + 1
        elif not (_is_digit(byte) or (byte == 45 and at > label)):
            break
        at += 1
    is_whole = at == stop or _is_gap(data[at])
    is_top = letters == at - label and 2 <= letters <= 3 and tops[top] == 1
    return at if is_whole and is_top and labels and at - start <= _MAX_ADDRESS else -1


@njit(**_options)
def decide_email(data: Bytes, offsets: Integers, places: Integers, tops: Bytes) -> Integers:
    """Decide on addresses; tops: uint8 [27**3], 1 for a domain of letters as digits to base 27."""
    ends = np.zeros(len(places), np.int64)
    for i in range(len(places)):
        row, start, end = places[i]
        # A comma may belong to the user part of a URL.
        if start > offsets[row] and data[start - 1] not in (32, 10, 9, 13):
            continue
        sign = _end_of_local(data, start, end)
        if sign > 0:
            ends[i] = max(UNSURE, _end_of_domain(data, sign + 1, offsets[row + 1], tops))
    return ends
