"""Decide on plain API keys; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import math

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    INLINED_OPTIONS,
    OPTIONS,
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_digit,
    is_letter,
)


@njit(**INLINED_OPTIONS)
def _is_sign_of_key(byte: int) -> bool:
    return is_letter(byte) or is_digit(byte) or byte in (43, 45, 46, 47, 95, 126)  # +-./_~


@njit(**OPTIONS)
def _end_of_value(data: Bytes, start: int, stop: int) -> int:
    """Return the end of 32 to 512 signs of a key and up to two equals signs, or REFUSED."""
    end = start
    while end < stop and end - start <= 512 and _is_sign_of_key(data[end]):
        end += 1
    if not 32 <= end - start <= 512:
        return REFUSED
    last = end
    while end < stop and end - last < 2 and data[end] == 61:
        end += 1
    # No sign of a key and no call follows: with an equals sign less, that sign does.
    if end < stop and (_is_sign_of_key(data[end]) or data[end] == 40):
        return end - 1 if end > last else REFUSED
    return end


@njit(**OPTIONS)
def _is_like_words(data: Bytes, start: int, end: int) -> bool:
    """Check for fewer than two digits, 12 small letters, 14 capitals, or a path of words."""
    digits, small, capitals, marks = 0, 0, 0, 0
    for at in range(start, end):
        byte = data[at]
        digits += is_digit(byte)
        small = small + 1 if 97 <= byte <= 122 else 0
        capitals = capitals + 1 if 65 <= byte <= 90 else 0
        if byte in (45, 46, 47, 95):  # -./_
            marks += 1
        elif not is_letter(byte):
            marks = 0
        if small == 12 or capitals == 14 or marks == 3:
            return True
    return digits < 2


@njit(**OPTIONS)
def _entropy(data: Bytes, start: int, end: int, counts: Integers) -> float:
    """Return the entropy in bits per byte; counts: int64 [256], zeros before and after."""
    total, size = 0.0, end - start
    for at in range(start, end):
        counts[data[at]] += 1
    for at in range(start, end):
        count = counts[data[at]]
        counts[data[at]] = 0
        if count > 1:
            total += count * math.log2(count)
    return math.log2(size) - total / size


@njit(**OPTIONS)
def decide_assigned_key(
    data: Bytes, offsets: Integers, places: Integers, min_entropy: float
) -> Integers:
    """Decide on keys that are assigned; the place of one that is accepted is that of the value."""
    ends = np.full(len(places), REFUSED, np.int64)
    counts = np.zeros(256, np.int64)
    for i in range(len(places)):
        row, start, first = places[i]
        while first > start and data[first - 1] not in (9, 10, 32, 34, 39, 58, 59, 61):
            first -= 1
        end = _end_of_value(data, first, offsets[row + 1])
        if end == REFUSED or _is_like_words(data, first, end):
            continue
        hexes, hyphens = 0, 0
        for byte in data[first:end]:
            hexes += is_digit(byte) or 97 <= (byte | 32) <= 102
            hyphens += byte == 45
        if hexes == end - first:
            continue
        is_sha = data[first] == 115 and data[first + 1] == 104 and data[first + 2] == 97
        entropy = _entropy(data, first, end, counts)
        if is_sha or hexes + hyphens == end - first or abs(entropy - min_entropy) < 1e-9:
            ends[i] = UNSURE
        elif entropy > min_entropy:
            places[i, 1], ends[i] = first, end
    return ends
