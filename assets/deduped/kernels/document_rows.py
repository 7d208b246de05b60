"""Rows of documents: by their refs, by equal hashes, by the round that they came in.

Purpose: 20 million pairs of 64-bit refs become pairs of row numbers, and 128-bit hashes become row
numbers that can be compared at once. Refs cluster by part, so the bits that no row number uses are
squeezed out and the rest is a direct index: one step of a search is left on average.
Price: 60 ns per end of a pair, 60 ns per hash; 8 bytes of table per document.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

NO_ROW = np.uint32(0xFFFFFFFF)  # one more than the last row that a Polars frame can have
_ROW_BITS = uint64(32)
_LOW = uint64(0xFFFFFFFF)
_WINDOW = 32  # candidates among which a repeated one is recognised

_refs = types.Array(types.uint64, 1, "C", readonly=True)
_words = types.Array(types.uint64, 2, "C", readonly=True)
_flags = types.Array(types.boolean, 1, "C", readonly=True)
_rows = types.Array(types.int32, 1, "C", readonly=True)
_pairs = types.Array(types.int32, 2, "C", readonly=True)
_options = {"cache": True, "nogil": True}


@njit(types.uint64(types.uint64, types.int64, types.int64), **_options)
def _squeeze(ref: int, row_bits: int, dropped: int) -> int:
    """A ref without the bits above the largest row number, and without its last bits."""
    part, row = ref >> _ROW_BITS, ref & _LOW
    return ((part << uint64(row_bits)) | row) >> uint64(dropped)


@njit(types.Tuple((types.int32[::1], types.int64, types.int64))(_refs, types.uint64), **_options)
def _index(refs: NDArray[np.uint64], largest: int) -> tuple[NDArray[np.int32], int, int]:
    """Where refs of each squeezed value start, and how to squeeze: row bits, dropped bits."""
    row_bits, dropped = 0, 0
    while (largest >> uint64(row_bits)) > 0:
        row_bits += 1
    span = _squeeze(refs[-1], row_bits, 0) - _squeeze(refs[0], row_bits, 0)
    while span >> uint64(dropped) > uint64(2 * len(refs)):
        dropped += 1
    base = _squeeze(refs[0], row_bits, dropped)
    starts = np.zeros(np.int64(_squeeze(refs[-1], row_bits, dropped) - base) + 2, np.int32)
    for ref in refs:
        starts[np.int64(_squeeze(ref, row_bits, dropped) - base) + 1] += 1
    for slot in range(len(starts) - 1):
        starts[slot + 1] += starts[slot]
    return starts, row_bits, dropped


@njit(types.int64(_refs, types.uint64, types.int64, types.int64), **_options)
def _find(refs: NDArray[np.uint64], ref: int, start: int, stop: int) -> int:
    """Position of a ref in refs[start:stop], ascending, or -1."""
    while stop - start > 1:
        middle = (start + stop) // 2
        if refs[middle] <= ref:
            start = middle
        else:
            stop = middle
    return start if start < stop and refs[start] == ref else -1


@njit(types.int32[:, ::1](_refs, _rows, _words), **_options)
def rows_of_pairs(
    refs: NDArray[np.uint64], places: NDArray[np.int32], pairs: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Pairs of refs, uint64 [m, 2], as pairs of rows (smaller, larger), int32 [m, 2].

    `refs`, uint64 [n], one at least, are ascending, and `places`, int32 [n], are their rows. A ref
    that is not among them gives -1.
    """
    largest = uint64(0)
    for ref in refs:
        largest = max(largest, ref & _LOW)
    starts, row_bits, dropped = _index(refs, largest)
    base = _squeeze(refs[0], row_bits, dropped)
    ends = np.empty(2, np.int32)
    rows = np.empty(pairs.shape, np.int32)
    for pair in range(len(pairs)):
        for end in range(2):
            ref, found = pairs[pair, end], np.int64(-1)
            if refs[0] <= ref <= refs[-1] and (ref & _LOW) <= largest:
                slot = np.int64(_squeeze(ref, row_bits, dropped) - base)
                found = _find(refs, ref, np.int64(starts[slot]), np.int64(starts[slot + 1]))
            ends[end] = places[found] if found >= 0 else -1
        rows[pair, 0], rows[pair, 1] = min(ends[0], ends[1]), max(ends[0], ends[1])
    return rows


@njit(types.uint32[::1](_words, _flags), **_options)
def first_of_equal(words: NDArray[np.uint64], is_set: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """First row with the same words, uint64 [n, k], uint32 [n]; its own row where not `is_set`."""
    bits = 1
    while 1 << bits < 2 * len(words):
        bits += 1
    slots = np.full(1 << bits, NO_ROW, np.uint32)
    firsts = np.empty(len(words), np.uint32)
    for row in range(len(words)):
        firsts[row] = row
        if not is_set[row]:
            continue
        mixed = uint64(0)
        for word in words[row]:  # Fibonacci hash: words may be small numbers
            mixed = uint64((mixed ^ (mixed >> uint64(32)) ^ word) * uint64(0x9E3779B97F4A7C15))
        slot = np.int64(mixed >> uint64(64 - bits))
        while slots[slot] != NO_ROW:
            if (words[np.int64(slots[slot])] == words[row]).all():
                break
            slot = (slot + 1) & ((1 << bits) - 1)
        if slots[slot] == NO_ROW:
            slots[slot] = row
        firsts[row] = slots[slot]
    return firsts


@njit(types.Tuple((types.int64[::1], types.int32[::1]))(_pairs, types.int64), **_options)
def group_pairs(pairs: NDArray[np.int32], size: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """First ends of the pairs, int32 [m, 2], of each second end below `size`.

    Returns offsets, int64 [size + 1], and rows, int32. Side by side pairs are read 4 times as fast
    as in the order of their keys, and most are repeated: once for each band that two rows share.
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
        for i in range(start, stop):
            known = kept - 1
            while known >= max(offsets[row], kept - _WINDOW) and earlier[known] != earlier[i]:
                known -= 1
            if known < max(offsets[row], kept - _WINDOW):
                earlier[kept] = earlier[i]
                kept += 1
    offsets[size] = kept
    return offsets, earlier[:kept]
