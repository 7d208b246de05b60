"""Count repeated runs of words as datatrove 0.10 does.

The most frequent n-gram is the first of equally frequent ones, with the blanks between its words,
even if it occurs once. Of the others, those count that came before, from left to right, and the
next one begins after them; two are equal if they are joined to the same characters.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.counting.kernels.datatrove_words import TokenList
from assets.filtered.kernels.ngrams import DUPLICATE_SIZES, PROBE_LIMIT, TOP_SIZES
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes, join

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

FIRST_COUNT = uint64(1 << 32)
ONE = uint64(1)


@njit(**ARRAY_KERNEL)
def count_token_ngrams(text: TokenList, total: int, counts: Integers) -> None:
    """Fill `counts`, int64 [len(NGRAM_COUNTS)], from the first tokens of a list."""
    slots = 4
    while slots < 2 * total:
        slots *= 2
    keys, values = np.empty(slots, np.uint64), np.empty(slots, np.uint64)
    grams = text.hashes[:total].copy()
    for size in range(2, TOP_SIZES[-1] + 1):
        for i in range(total - size + 1):
            grams[i] = join(grams[i], text.hashes[i + size - 1])
        if total >= size:
            counts[size - 2] = _top(grams[: total - size + 1], text, size, (keys, values))
    for size in range(DUPLICATE_SIZES[0], DUPLICATE_SIZES[-1] + 1):
        counts[size - 2] = _later_copies(text, total, size, keys)


@njit(**ARRAY_KERNEL)
def _top(grams: Hashes, text: TokenList, size: int, table: tuple[Hashes, Hashes]) -> int:
    """Return the characters of the most frequent n-gram, times its occurrences."""
    keys, values = table
    values[:] = 0
    most = FIRST_COUNT
    for i in range(len(grams)):
        slot = _slot(keys, values, grams[i])
        if values[slot] == 0:
            keys[slot] = grams[i]
            values[slot] = uint64(i)
        elif keys[slot] != grams[i]:
            continue
        values[slot] += FIRST_COUNT
        most = max(most, values[slot] & ~(FIRST_COUNT - ONE))
    first = len(grams)
    for i in range(len(values)):
        if values[i] >= most:
            first = min(first, np.int64(values[i] - most))
    start = text.characters[first - 1] if first else 0
    characters = text.characters[first + size - 1] - start + size - 1
    return np.int64(characters * np.int64(most >> uint64(32)))


@njit(**ARRAY_INLINED)
def _slot(keys: Hashes, values: Hashes, key: int) -> int:
    """Return the slot of a key, or a free one; after PROBE_LIMIT that of another key."""
    mask = uint64(len(keys) - 1)
    slot, probes = key & mask, 1
    while values[slot] != 0 and keys[slot] != key and probes < PROBE_LIMIT:
        slot = (slot + ONE) & mask
        probes += 1
    return slot


@njit(**ARRAY_KERNEL)
def _later_copies(text: TokenList, total: int, size: int, seen: Hashes) -> int:
    """Return the characters of the n-grams that came before."""
    seen[:] = 0
    i, characters = 0, 0
    while i + size <= total:
        start = uint64(text.ends[i - 1]) if i else uint64(0)
        key = max(hash_bytes(text.data, start, uint64(text.ends[i + size - 1])), ONE)
        slot = _slot(seen, seen, key)
        if seen[slot] == key:
            before = text.characters[i - 1] if i else 0
            characters += text.characters[i + size - 1] - before
            i += size
        else:
            if seen[slot] == 0:
                seen[slot] = key
            i += 1
    return characters
