"""Find candidates that stand in the same text as one before: a page that repeats itself."""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

_options = {"cache": True, "nogil": True}
_SLOT_BITS = 12
_HASHED = 48  # bytes from a candidate's first on, by which candidates meet
_PRIME = uint64(0x100000001B3)


@njit(**_options)
def _slot(data: Bytes, start: int, stop: int) -> int:
    key = uint64(0xCBF29CE484222325)
    for byte in data[start : min(stop, start + _HASHED)]:
        key = (key ^ uint64(byte)) * _PRIME
    return np.int64(key >> uint64(64 - _SLOT_BITS))


@njit(**_options)
def first_alike(
    data: Bytes, offsets: Integers, places: Integers, before: int, after: int
) -> Integers:
    """Return the number of an earlier candidate with the same text around, or its own, int64 [n].

    places: int64 [n, 3]: row, first byte, end. All of a candidate, `before` bytes before it and
    `after` bytes after it are compared, as far as its text goes; some that are alike may be missed.
    """
    firsts = np.arange(len(places))
    lasts = np.full(1 << _SLOT_BITS, -1)
    # What is known to be the same as that `shift` bytes before is not read again: a text of one
    # repeated word has all of its candidates at one distance.
    shift, known, stop = 0, 0, 0
    for i in range(len(places)):
        row, start, end = places[i]
        low, high = max(offsets[row], start - before), min(offsets[row + 1], end + after)
        slot = _slot(data, start, high)
        j, lasts[slot] = lasts[slot], i
        if j < 0:
            continue
        other, first, last = places[j]
        is_alike = end - start == last - first
        is_alike &= start - low == first - max(offsets[other], first - before)
        is_alike &= high - end == min(offsets[other + 1], last + after) - last
        if not is_alike:
            continue
        if start - first != shift or not known <= low <= stop:
            shift, known, stop = start - first, low, low
        while stop < high and data[stop] == data[stop - shift]:
            stop += 1
        if stop >= high:
            firsts[i] = firsts[j]
    return firsts
