"""Exact shingle sets, as sorted hashes.

Purpose: the exact similarity that signatures estimate (see pair_similarity).
Trade-off: 8 bytes per shingle are more than the text itself takes, so only candidates get a set.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.deduped.kernels.shingles import BLOCK, Shingle, Text, first_span, next_spans
from assets.text.kernels.hashing import hash_bytes

Words = NDArray[np.uint64]
Offsets = NDArray[np.int64]
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_shingle = types.Tuple((types.int64, types.boolean))
_options = {"cache": True, "nogil": True}


@njit(**_options)
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


@njit(types.int64(types.uint64[::1]), **_options)
def _sort_unique(values: Words) -> int:
    """Sort values in place and drop repeats; return the number of distinct values."""
    values.sort()
    size = 0
    for i in range(len(values)):
        if size == 0 or values[i] != values[size - 1]:
            values[size] = values[i]
            size += 1
    return size


@njit(
    types.Tuple((types.uint64[::1], types.int64[::1]))(_bytes, _offsets, _offsets, _shingle),
    **_options,
)
def hash_sets(
    joined: NDArray[np.uint8], starts: Offsets, word_offsets: Offsets, shingle: Shingle
) -> tuple[Words, Offsets]:
    """Return the sorted distinct shingle hashes of n texts, uint64, and offsets, int64 [n + 1].

    The words are those that `join_words` returns; `shingle` is its number of words, or of
    characters if True comes second.
    """
    # No text has more shingles than words or bytes; pages never written to take no memory.
    values = np.empty(len(joined) if shingle[1] else len(starts), np.uint64)
    offsets = np.zeros(len(word_offsets), np.int64)
    spans, size = np.empty((2, BLOCK), np.int64), 0
    for i in range(len(word_offsets) - 1):
        if word_offsets[i + 1] > word_offsets[i]:
            text = joined, starts[word_offsets[i] : word_offsets[i + 1] + 1]
            count = _hash_shingles(text, shingle, spans, values[size:])
            size += _sort_unique(values[size : size + count])
        offsets[i + 1] = size
    return values[:size], offsets


@njit(
    types.uint64[:, ::1](_bytes, _offsets, _offsets, _shingle, types.int64),
    **_options,
)
def hash_edges(
    joined: NDArray[np.uint8],
    starts: Offsets,
    word_offsets: Offsets,
    shingle: tuple[int, bool],
    size: int,
) -> Words:
    """Return the hashes of the first and the last `size` shingles of n texts, uint64 [n, 2 * size].

    A text with fewer shingles repeats its last one, and its first one; zeros without words.
    """
    edges = np.zeros((len(word_offsets) - 1, 2 * size), np.uint64)
    spans, latest = np.empty((2, BLOCK), np.int64), np.empty((2, size), np.int64)
    for i in range(len(edges)):
        if word_offsets[i + 1] == word_offsets[i]:
            continue
        text = joined, starts[word_offsets[i] : word_offsets[i + 1] + 1]
        count, state = next_spans(text, shingle, first_span(text, shingle), spans)
        for k in range(size):
            at = min(k, count - 1)
            edges[i, k] = hash_bytes(joined, uint64(spans[0, at]), uint64(spans[1, at]))
            latest[:, k] = spans[:, 0]
        while count:
            kept = max(0, size - count)  # of the block before: the last ones move to the front
            for k in range(kept):
                latest[:, k] = latest[:, size - kept + k]
            for k in range(kept, size):
                latest[:, k] = spans[:, count - size + k]
            count, state = next_spans(text, shingle, state, spans)
        for k in range(size):
            edges[i, size + k] = hash_bytes(joined, uint64(latest[0, k]), uint64(latest[1, k]))
    return edges
