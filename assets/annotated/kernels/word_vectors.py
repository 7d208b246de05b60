"""Vectors of texts: sums of rows of a table that hashed words select, in integers.

A text is read in windows of about WINDOW_BYTES. In each a row counts as often as the number of its
words has binary digits, so that a repeated word counts little more than a word; the sums of all
windows are added. Memory does not grow with the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import math

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.word_features import hash_words
from assets.text.kernels.compiling import ARRAY_KERNEL, INLINED
from assets.text.kernels.hashing import finish
from assets.text.kernels.many_bytes import size_of

DIMENSIONS = 256
LENGTH = 512  # of a vector: 32 a dimension on average, of at most 127
# The sum of a window fits in 32 bits: two words are at least three bytes long, so there are at most
# 5,462, of at most 127 * MOST_WEIGHT each.
WINDOW_BYTES = 8192
MOST_WEIGHT = 2047
SUM_BITS = 24  # of the sums whose squares are added

Bytes = NDArray[np.uint8]
Entries = NDArray[np.uint32]
Offsets = NDArray[np.int64]
Counts = NDArray[np.uint32]

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_entries = types.Array(types.uint32, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_weights = types.Array(types.uint16, 1, "C", readonly=True)
_table = types.Array(types.int8, 2, "C", readonly=True)
_counts, _hashes = types.uint32[::1], types.uint64[::1]
_integers = types.int64[::1]


@njit(types.int64(_bytes, types.int64, types.int64), **ARRAY_KERNEL)
def window_end(data: Bytes, at: int, stop: int) -> int:
    """Return the end of the window at a byte: after the last blank or control character of its
    second half, else before a character; at most WINDOW_BYTES further."""
    if stop - at <= WINDOW_BYTES:
        return stop
    end = at + WINDOW_BYTES
    for last in range(end - 1, at + WINDOW_BYTES // 2, -1):
        if data[last] <= 32:
            return last + 1
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return end


@njit(
    types.uint64(_bytes, types.UniTuple(types.int64, 2), _entries, _hashes, _counts, _counts),
    **ARRAY_KERNEL,
)
def count_rows(
    data: Bytes,
    span: tuple[int, int],
    entries: Entries,
    hashes: NDArray[np.uint64],
    counts: Counts,
    rows: Counts,
) -> int:
    """Add the words of a window to the counts of their rows; write the rows, return their number.

    `counts`, uint32 [power of two], is 0 for rows that are not written.
    """
    shift = uint64(65) - size_of(uint64(len(counts)))
    count = hash_words(data, uint64(span[0]), uint64(span[1]), entries, hashes, uint64(1))
    size = uint64(0)
    for i in range(count):
        row = finish(hashes[uint64(i)]) >> shift
        rows[size] = row
        size += uint64(counts[row] == 0)
        counts[row] += np.uint32(1)
    return size


@njit(types.int64(types.int64), **INLINED)
def integer_root(square: int) -> int:
    """Return the root of a number below 2**62, rounded down."""
    root = np.int64(math.sqrt(square))  # correctly rounded on every machine, but to 53 bits
    while root * root > square:
        root -= 1
    while (root + 1) * (root + 1) <= square:
        root += 1
    return root


@njit(types.void(_integers, types.int8[::1]), **ARRAY_KERNEL)
def normalise(sums: Offsets, vector: NDArray[np.int8]) -> None:
    """Write sums scaled to LENGTH, rounded half up, cut at -127 and 127; zeros stay zeros."""
    most = np.int64(0)
    for value in sums:
        most = max(most, abs(value))
    shift = max(np.int64(size_of(uint64(most))) - SUM_BITS, 0)
    square = np.int64(0)
    for value in sums:
        square += (value >> shift) * (value >> shift)
    length = max(integer_root(square), 1)
    for i in range(len(sums)):
        scaled = (2 * LENGTH * (sums[i] >> shift) + length) // (2 * length)
        vector[i] = min(max(scaled, -127), 127)


@njit(types.int8[:, ::1](types.int64[:, ::1]), **ARRAY_KERNEL)
def normalise_rows(sums: Offsets) -> NDArray[np.int8]:
    """Return rows, int64 [n, d], scaled as `normalise` does."""
    vectors = np.empty(sums.shape, np.int8)
    for i in range(len(sums)):
        normalise(sums[i], vectors[i])
    return vectors


@njit(types.int8[:, ::1](_bytes, _offsets, _entries, _table, _weights), **ARRAY_KERNEL)
def embed_texts(
    data: Bytes,
    offsets: Offsets,
    entries: Entries,
    table: NDArray[np.int8],
    weights: NDArray[np.uint16],
) -> NDArray[np.int8]:
    """Return the vectors of n texts, int8 [n, DIMENSIONS]; zeros without words that have a weight.

    data: UTF-8 bytes; offsets: int64 [n + 1]; entries: uint32 [code points], see `words`; table:
    int8 [power of two, DIMENSIONS]; weights: uint16 [power of two], up to MOST_WEIGHT.
    """
    hashes = np.empty(WINDOW_BYTES + 2, np.uint64)
    rows = np.empty(WINDOW_BYTES + 2, np.uint32)
    counts = np.zeros(len(weights), np.uint32)
    window, sums = np.empty(DIMENSIONS, np.int32), np.empty(DIMENSIONS, np.int64)
    vectors = np.empty((len(offsets) - 1, DIMENSIONS), np.int8)
    for i in range(len(vectors)):
        at, stop = offsets[i], offsets[i + 1]
        sums[:] = 0
        while at < stop:
            end = window_end(data, at, stop)
            size = count_rows(data, (at, end), entries, hashes, counts, rows)
            window[:] = 0
            for k in range(size):
                row = uint64(rows[uint64(k)])
                weight = np.int32(weights[row]) * np.int32(size_of(uint64(counts[row])))
                counts[row] = np.uint32(0)
                own = table[row]
                for d in range(DIMENSIONS):
                    window[d] += np.int32(weight) * np.int32(own[d])
            for d in range(DIMENSIONS):
                sums[d] += window[d]
            at = end
        normalise(sums, vectors[i])
    return vectors


@njit(
    types.Tuple((_counts, types.uint8[::1], _integers))(_bytes, _offsets, _entries, types.int64),
    **ARRAY_KERNEL,
)
def find_rows(
    data: Bytes, offsets: Offsets, entries: Entries, num_rows: int
) -> tuple[Counts, Bytes, Offsets]:
    """Return the rows of each window of n texts, uint32, how often each counts, uint8, and offsets.

    Window i has rows[offsets[i]] up to rows[offsets[i + 1]]; offsets: int64 [windows + 1].
    """
    hashes = np.empty(WINDOW_BYTES + 2, np.uint64)
    counts = np.zeros(num_rows, np.uint32)
    most = offsets[-1] - offsets[0]
    rows, times = np.empty(most + WINDOW_BYTES + 2, np.uint32), np.empty(most + 1, np.uint8)
    most_windows = len(offsets) + 2 * (most // WINDOW_BYTES)
    ends, num_windows = np.zeros(most_windows + 1, np.int64), 0
    for i in range(len(offsets) - 1):
        at, stop = offsets[i], offsets[i + 1]
        while at < stop:
            end = window_end(data, at, stop)
            first = ends[num_windows]
            own = rows[first:]
            size = count_rows(data, (at, end), entries, hashes, counts, own)
            for k in range(size):
                times[first + k] = size_of(uint64(counts[own[k]]))
                counts[own[k]] = np.uint32(0)
            num_windows += 1
            ends[num_windows] = first + np.int64(size)
            at = end
    size = ends[num_windows]
    return rows[:size].copy(), times[:size].copy(), ends[: num_windows + 1]
