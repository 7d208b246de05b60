"""Row numbers of documents: for row ids, for equal hashes, and grouped by candidate pairs.

Purpose: pairs of 64-bit row ids become pairs of 32-bit row numbers, and 128-bit hashes become row
numbers that compare in one step. Row ids cluster by part: without the bits that no row uses, they
index a table directly, and on average one step of a search remains.
Price: 8 bytes of table per document.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

NO_ROW = np.uint32(0xFFFFFFFF)  # one more than the last row of the largest Polars frame
_ROW_BITS = uint64(32)
_LOW = uint64(0xFFFFFFFF)
_WINDOW = 32  # latest candidates of a row that a new one is compared with to drop repeats

_row_ids = types.Array(types.uint64, 1, "C", readonly=True)
_words = types.Array(types.uint64, 2, "C", readonly=True)
_flags = types.Array(types.boolean, 1, "C", readonly=True)
_rows = types.Array(types.int32, 1, "C", readonly=True)
_pairs = types.Array(types.int32, 2, "C", readonly=True)


@njit(types.uint64(types.uint64, types.int64, types.int64), **ARRAY_KERNEL)
def _squeeze(row_id: int, row_bits: int, dropped: int) -> int:
    """Return a row id with `row_bits` bits for the row, without its `dropped` lowest bits."""
    part, row = row_id >> _ROW_BITS, row_id & _LOW
    return ((part << uint64(row_bits)) | row) >> uint64(dropped)


@njit(
    types.Tuple((types.int32[::1], types.int64, types.int64))(_row_ids, types.uint64),
    **ARRAY_KERNEL,
)
def _index(row_ids: NDArray[np.uint64], largest: int) -> tuple[NDArray[np.int32], int, int]:
    """Return the first position of each squeezed row id, and the row bits and dropped bits."""
    row_bits, dropped = 0, 0
    while (largest >> uint64(row_bits)) > 0:
        row_bits += 1
    span = _squeeze(row_ids[-1], row_bits, 0) - _squeeze(row_ids[0], row_bits, 0)
    while span >> uint64(dropped) > uint64(2 * len(row_ids)):
        dropped += 1
    base = _squeeze(row_ids[0], row_bits, dropped)
    starts = np.zeros(np.int64(_squeeze(row_ids[-1], row_bits, dropped) - base) + 2, np.int32)
    for row_id in row_ids:
        starts[np.int64(_squeeze(row_id, row_bits, dropped) - base) + 1] += 1
    for slot in range(len(starts) - 1):
        starts[slot + 1] += starts[slot]
    return starts, row_bits, dropped


@njit(types.int64(_row_ids, types.uint64, types.int64, types.int64), **ARRAY_KERNEL)
def _find(row_ids: NDArray[np.uint64], wanted: int, start: int, stop: int) -> int:
    """Return the position of a row id in row_ids[start:stop], ascending, or -1."""
    while stop - start > 1:
        middle = (start + stop) // 2
        if row_ids[middle] <= wanted:
            start = middle
        else:
            stop = middle
    return start if start < stop and row_ids[start] == wanted else -1


@njit(types.int32[:, ::1](_row_ids, _rows, _words), **ARRAY_KERNEL)
def rows_of_pairs(
    row_ids: NDArray[np.uint64], row_numbers: NDArray[np.int32], pairs: NDArray[np.uint64]
) -> NDArray[np.int32]:
    """Translate pairs of row ids, uint64 [m, 2], to row numbers (smaller, larger), int32 [m, 2].

    `row_ids`, uint64 [n], n at least 1, ascend; `row_numbers`, int32 [n], are their rows. A row id
    that is not among them becomes -1.
    """
    largest = uint64(0)
    for row_id in row_ids:
        largest = max(largest, row_id & _LOW)
    starts, row_bits, dropped = _index(row_ids, largest)
    base = _squeeze(row_ids[0], row_bits, dropped)
    ends = np.empty(2, np.int32)
    rows = np.empty(pairs.shape, np.int32)
    for pair in range(len(pairs)):
        for end in range(2):
            wanted, position = pairs[pair, end], np.int64(-1)
            if row_ids[0] <= wanted <= row_ids[-1] and (wanted & _LOW) <= largest:
                slot = np.int64(_squeeze(wanted, row_bits, dropped) - base)
                start, stop = np.int64(starts[slot]), np.int64(starts[slot + 1])
                position = _find(row_ids, wanted, start, stop)
            ends[end] = row_numbers[position] if position >= 0 else -1
        rows[pair, 0], rows[pair, 1] = min(ends[0], ends[1]), max(ends[0], ends[1])
    return rows


@njit(types.uint32[::1](_words, _flags), **ARRAY_KERNEL)
def first_of_equal(words: NDArray[np.uint64], is_set: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the first row with the same words as each row of uint64 [n, k], uint32 [n].

    A row where `is_set`, bool [n], is false gets its own number.
    """
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
        for i in range(start, stop):
            known = kept - 1
            while known >= max(offsets[row], kept - _WINDOW) and earlier[known] != earlier[i]:
                known -= 1
            if known < max(offsets[row], kept - _WINDOW):
                earlier[kept] = earlier[i]
                kept += 1
    offsets[size] = kept
    return offsets, earlier[:kept]
