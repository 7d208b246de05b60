"""Count a block of texts as datatrove 0.10 does: words, lines, and repeated runs of words.

The most frequent n-gram is the first of equally frequent ones, with the blanks between its words,
even if it occurs once. Of the others, those count that came before, from left to right, and the
next one begins after them.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.counting.kernels.datatrove_lines import LineKind, count_raw_lines
from assets.filtered.counting.kernels.datatrove_words import TokenCount, count_tokens
from assets.filtered.kernels.ngrams import DUPLICATE_SIZES, PROBE_LIMIT, TOP_SIZES
from assets.filtered.kernels.text_lines import count_ellipses
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import join

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

FIRST_LINE = len(TokenCount)
ELLIPSES = FIRST_LINE + len(LineKind)
FIRST_COUNT = uint64(1 << 32)
ONE = uint64(1)


class Tables(NamedTuple):
    """Tables to count a text with: classes of characters and of marks, hashes of stop words."""

    kinds: Bytes
    classes: NDArray[np.uint16]  # [2, codes]
    stop_words: Hashes
    has_ngrams: bool


@njit(**ARRAY_KERNEL)
def count_texts(
    data: Bytes, starts: Integers, keeps_hyphens: Integers, tables: Tables, counts: Integers
) -> None:
    """Fill `counts`, int64 [n, columns], for n texts with `starts`, int64 [n + 1].

    Columns: TokenCount, LineKind, ellipses, and `ngrams.NGRAM_COUNTS`. `keeps_hyphens`: 1 for a
    text in a language whose words with hyphens are one word, else 0.
    """
    room = np.diff(starts).max()
    words = np.empty(room, np.uint64), np.empty(room, np.int64)
    for row in range(len(counts)):
        span, own = (uint64(starts[row]), uint64(starts[row + 1])), counts[row]
        own_tables = (tables.classes[keeps_hyphens[row]], tables.stop_words)
        total = count_tokens(data, span, own_tables, words, own)
        count_raw_lines(data, span, tables.kinds, own[FIRST_LINE:])
        text = data[starts[row] : starts[row + 1]]
        own[ELLIPSES] = count_ellipses(text, len(text) > own[FIRST_LINE])
        if tables.has_ngrams:
            _count_ngrams(words[0][:total], words[1][:total], own[ELLIPSES + 1 :])


@njit(**ARRAY_KERNEL)
def _count_ngrams(hashes: Hashes, ends: Integers, counts: Integers) -> None:
    """Fill `counts`, int64 [len(NGRAM_COUNTS)]."""
    slots = 4
    while slots < 2 * len(hashes):
        slots *= 2
    table = np.empty(slots, np.uint64), np.empty(slots, np.uint64)
    grams = hashes.copy()
    for size in range(2, DUPLICATE_SIZES[-1] + 1):
        number = len(hashes) - size + 1
        if number < 1:
            break
        for i in range(number):
            grams[i] = join(grams[i], hashes[i + size - 1])
        if size <= TOP_SIZES[-1]:
            counts[size - 2] = _top(grams[:number], ends, size, table)
        else:
            counts[size - 2] = _later_copies(grams[:number], ends, size, table[0])


@njit(**ARRAY_KERNEL)
def _top(grams: Hashes, ends: Integers, size: int, table: tuple[Hashes, Hashes]) -> int:
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
    start = ends[first - 1] if first else 0
    characters = ends[first + size - 1] - start + size - 1
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
def _later_copies(grams: Hashes, ends: Integers, size: int, seen: Hashes) -> int:
    """Return the characters of the n-grams that came before."""
    seen[:] = 0
    i, characters = 0, 0
    while i < len(grams):
        key = max(grams[i], ONE)
        slot = _slot(seen, seen, key)
        if seen[slot] == key:
            characters += ends[i + size - 1] - (ends[i - 1] if i else 0)
            i += size
        else:
            if seen[slot] == 0:
                seen[slot] = key
            i += 1
    return characters
