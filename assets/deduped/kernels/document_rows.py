"""Rows of documents: the first with equal hashes, and those that form candidate pairs with each."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

_WINDOW = 32  # latest candidates of a row that a new one is compared with to drop repeats

_matrix = types.Array(types.uint64, 2, "C", readonly=True)
_pairs = types.Array(types.int32, 2, "C", readonly=True)


@njit(types.int64[::1](_matrix), **ARRAY_KERNEL)
def first_equal(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the first equal column of each column of uint64 [lanes, n], int64 [n]; n < 2**31.

    One pass over an open hash table (Knuth, volume 3, 6.4, algorithm L) of 8 to 16 bytes a column.
    """
    lanes, count = hashes.shape
    size = 2
    while size < 2 * count:
        size *= 2
    slots = np.full(size, -1, np.int32)
    first = np.empty(count, np.int64)
    for i in range(count):
        slot = hashes[0, i] & uint64(size - 1)  # low bits, because columns may share high bits
        while slots[slot] >= 0:
            is_equal = True
            for lane in range(lanes):
                is_equal &= hashes[lane, slots[slot]] == hashes[lane, i]
            if is_equal:
                break
            slot = (slot + uint64(1)) & uint64(size - 1)
        if slots[slot] < 0:
            slots[slot] = i
        first[i] = slots[slot]
    return first


@njit(types.Tuple((types.int64[::1], types.int32[::1]))(_pairs, types.int64), **ARRAY_KERNEL)
def group_pairs(pairs: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Group pairs, int32 [m, 2], by their second end, below `size`; keep the order of first ends.

    Returns offsets, int64 [size + 1], and first ends, int32. Most pairs are repeated, once for each
    band that two rows share: a repeat within the last 32 candidates of a row is dropped.
    """
    offsets = np.zeros(size + 1, np.int64)
    for i in range(len(pairs)):
        offsets[pairs[i, 1] + 1] += 1
    for row in range(size):
        offsets[row + 1] += offsets[row]
    at, earlier = offsets[:-1].copy(), np.empty(len(pairs), np.int32)
    for i in range(len(pairs)):
        later = pairs[i, 1]
        earlier[at[later]] = pairs[i, 0]
        at[later] += 1
    kept = 0
    for row in range(size):
        start, stop = offsets[row], offsets[row + 1]
        offsets[row] = kept
        # In place: what is kept never overtakes what is read.
        for i in range(start, stop):
            known = kept - 1
            while known >= max(offsets[row], kept - _WINDOW) and earlier[known] != earlier[i]:
                known -= 1
            if known < max(offsets[row], kept - _WINDOW):
                earlier[kept] = earlier[i]
                kept += 1
    offsets[size] = kept
    return offsets, earlier[:kept]
