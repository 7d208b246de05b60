"""Count the different words of texts, each known by the place where it was first met.

The table has a slot for each word, at most half of them used: int64 [slots], the number of the word
or NO_WORD. It grows with the number of different words.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import EIGHT, read_some
from assets.tokenized.kernels.word_cutting import UNKNOWN, class_and_width, word_end

Bytes = NDArray[np.uint8]
Edges = NDArray[np.int64]

NO_WORD = -1
FIRST_WORDS = 1 << 16  # for which there is room

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_edges = types.Array(types.int64, 1, "C", readonly=True)


@njit(types.boolean[::1](_bytes, _edges, _bytes), **ARRAY_KERNEL)
def are_known(data: Bytes, edges: Edges, classes: Bytes) -> NDArray[np.bool_]:
    """Check for each text that the classes of all its characters are known."""
    known = np.ones(len(edges) - 1, np.bool_)
    for row in range(len(known)):
        at, stop = uint64(edges[row]), uint64(edges[row + 1])
        while at < stop and known[row]:
            kind, width = class_and_width(data, at, classes)
            known[row] = kind != UNKNOWN
            at += width
    return known


@njit(**ARRAY_INLINED)
def are_same(data: Bytes, start: int, other: int, size: int) -> bool:
    """Compare `size` bytes from two places on; all uint64."""
    for done in range(0, size, 8):
        rest = min(size - uint64(done), EIGHT)
        if read_some(data, start + uint64(done), rest) != read_some(
            data, other + uint64(done), rest
        ):
            return False
    return True


@njit(**ARRAY_KERNEL)
def larger_table(table: Edges, data: Bytes, words: Edges) -> Edges:
    """Return a table with twice the slots and the same words."""
    larger = np.full(2 * len(table), NO_WORD, np.int64)
    mask = uint64(len(larger) - 1)
    for word in range(len(table) // 2):
        start = uint64(words[word, 0])
        slot = hash_bytes(data, start, start + uint64(words[word, 1])) & mask
        while larger[slot] != NO_WORD:
            slot = (slot + uint64(1)) & mask
        larger[slot] = word
    return larger


@njit(types.int64[:, ::1](_bytes, _edges, _bytes, types.int64), **ARRAY_KERNEL)
def count_words(data: Bytes, edges: Edges, classes: Bytes, num_cut: int) -> Edges:
    """Return the start, size and number of each different word, int64 [words, 3].

    The first `num_cut` texts are cut into words, whose characters must be known; each of the rest
    is a word. Words come in the order in which they are first met.
    """
    words, num_words = np.empty((FIRST_WORDS, 3), np.int64), 0
    table = np.full(2 * FIRST_WORDS, NO_WORD, np.int64)
    for row in range(len(edges) - 1):
        at, stop = uint64(edges[row]), uint64(edges[row + 1])
        while at < stop:
            end = stop
            if row < num_cut:
                end = word_end(data, at, stop, classes)
            size, mask = end - at, uint64(len(table) - 1)
            slot = hash_bytes(data, at, end) & mask
            while table[slot] != NO_WORD:
                word = table[slot]
                if uint64(words[word, 1]) == size and are_same(
                    data, at, uint64(words[word, 0]), size
                ):
                    break
                slot = (slot + uint64(1)) & mask
            if table[slot] == NO_WORD:
                if num_words == len(words):
                    words = np.concatenate((words, np.empty_like(words)))
                    table = larger_table(table, data, words)
                    continue
                table[slot] = num_words
                words[num_words, 0], words[num_words, 1] = at, size
                words[num_words, 2] = 0
                num_words += 1
            words[table[slot], 2] += 1
            at = end
    return words[:num_words].copy()
