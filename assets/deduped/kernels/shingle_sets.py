"""Exact shingle sets, as sorted hashes.

Purpose: the exact similarity that signatures estimate (see pair_similarity).
Trade-off: 8 bytes per shingle are more than the text itself takes, so only candidates get a set.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.deduped.kernels.shingles import BLOCK, Shingle, Text, first_span, next_spans
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes

_BUCKET = 4  # mean number of hashes of a bucket, which insertion sorts fastest
_LONG_BUCKET = 64  # hashes above which it does not: a text that repeats itself
_MOST_BITS = 20  # of the number of buckets: their ends take 8 MB

Words = NDArray[np.uint64]
Offsets = NDArray[np.int64]
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_shingle = types.Tuple((types.int64, types.boolean))


@njit(**ARRAY_KERNEL)
def _hash_shingles(text: Text, shingle: Shingle, spans: Offsets, hashes: Words) -> int:
    """Write the 64-bit hash of every shingle of a text to `hashes`; return their number."""
    size = 0
    count, state = next_spans(text, shingle, first_span(text, shingle), spans)
    while count:
        for i in range(count):
            hashes[size + i] = hash_bytes(text[0], uint64(spans[0, i]), uint64(spans[1, i]))
        size += count
        count, state = next_spans(text, shingle, state, spans)
    return size


@njit(types.void(types.uint64[::1]), **ARRAY_KERNEL)
def _sort_bucket(values: Words) -> None:
    """Sort a few values in place; many fall back to a comparison sort."""
    if len(values) > _LONG_BUCKET:
        values.sort()
        return
    for i in range(1, len(values)):
        value, at = values[i], i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@njit(types.int64(types.uint64[::1], types.uint64[::1]), **ARRAY_KERNEL)
def _sort_unique(values: Words, spare: Words) -> int:
    """Sort values in place and drop repeats; return the number of distinct values.

    Hashes spread evenly: counted into buckets of a few, they sort in a fifth of the time of a
    comparison sort. `spare` has room for all values.
    """
    bits = 1
    while bits < _MOST_BITS and len(values) >> bits > _BUCKET:
        bits += 1
    shift = uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for value in values:
        ends[np.int64(value >> shift) + 1] += 1
    for bucket in range(1 << bits):
        ends[bucket + 1] += ends[bucket]
    for value in values:
        bucket = np.int64(value >> shift)
        spare[ends[bucket]] = value
        ends[bucket] += 1
    start, size = 0, 0
    for bucket in range(1 << bits):
        _sort_bucket(spare[start : ends[bucket]])
        start = ends[bucket]
    for value in spare[: len(values)]:
        if size == 0 or value != values[size - 1]:
            values[size] = value
            size += 1
    return size


@njit(
    types.Tuple((types.uint64[::1], types.int64[::1], types.uint64[:, ::1]))(
        _bytes, _offsets, _offsets, _shingle, types.int64
    ),
    **ARRAY_KERNEL,
)
def hash_sets(
    joined: NDArray[np.uint8],
    starts: Offsets,
    word_offsets: Offsets,
    shingle: Shingle,
    edge: int,
) -> tuple[Words, Offsets, Words]:
    """Return the sorted distinct shingle hashes of n texts, uint64, and offsets, int64 [n + 1].

    The words are those that `join_words` returns; `shingle` is its number of words, or of
    characters if True comes second. Third come the hashes of the first and the last `edge`
    shingles, [n, 2 * edge]. A text with fewer repeats its last one, and its first one; zeros
    without words.
    """
    # No text has more shingles than words or bytes; pages never written to take no memory.
    values = np.empty(len(joined) if shingle[1] else len(starts), np.uint64)
    offsets = np.zeros(len(word_offsets), np.int64)
    edges = np.zeros((len(word_offsets) - 1, 2 * edge), np.uint64)
    spare = np.empty_like(values)
    spans, size = np.empty((2, BLOCK), np.int64), 0
    for i in range(len(word_offsets) - 1):
        if word_offsets[i + 1] > word_offsets[i]:
            text = joined, starts[word_offsets[i] : word_offsets[i + 1] + 1]
            count = _hash_shingles(text, shingle, spans, values[size:])
            hashes = values[size : size + count]
            for k in range(edge):
                # Before the sort, which is in place.
                edges[i, k] = hashes[min(k, count - 1)]
                edges[i, edge + k] = hashes[max(0, count - edge + k)]
            size += _sort_unique(hashes, spare)
        offsets[i + 1] = size
    return values[:size], offsets, edges
