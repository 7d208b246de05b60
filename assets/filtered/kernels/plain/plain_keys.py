"""Decide on plain API keys; see the folder."""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import math

import numpy as np
from numba import njit

from assets.filtered.kernels.plain.plain_bytes import (
    REFUSED,
    UNSURE,
    Bytes,
    Integers,
    is_digit,
    is_letter,
)
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED, KERNEL


@njit(**INLINED)
def _is_sign_of_key(byte: int) -> bool:
    return is_letter(byte) or is_digit(byte) or byte in (43, 45, 46, 47, 95, 126)  # +-./_~


@njit(**KERNEL)
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


@njit(**KERNEL)
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


@njit(**KERNEL)
def _is_hash(data: Bytes, start: int, end: int) -> bool:
    """Check for hex digits, a UUID, and "sha256-" with anything after it: `secret_keys._HASH`."""
    hexes, is_uuid = 0, end - start == 36
    for at in range(start, end):
        byte = data[at]
        is_hex = is_digit(byte) or 97 <= (byte | 32) <= 102
        hexes += is_hex
        is_uuid &= byte == 45 if at - start in (8, 13, 18, 23) else is_hex
    if hexes == end - start or is_uuid:
        return True
    at = start + 3
    while at < end and is_digit(data[at]):
        at += 1
    is_sha = data[start] == 115 and data[start + 1] == 104 and data[start + 2] == 97
    return is_sha and start + 3 < at < end and data[at] in (45, 61)


@njit(**KERNEL)
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


@njit(**ARRAY_KERNEL)
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
        if _is_hash(data, first, end):
            continue
        entropy = _entropy(data, first, end, counts)
        if abs(entropy - min_entropy) < 1e-9:
            ends[i] = UNSURE
        elif entropy > min_entropy:
            places[i, 1], ends[i] = first, end
    return ends
