"""Hashes of all runs of N words, a sample of them by winnowing, and positions of words.

Purpose: find equal runs of words in text of any size, in time linear in the number of words.
The hash of a run combines those of two shorter runs that cover it, as in prefix doubling (Manber
and Myers 1993, "Suffix arrays"): six steps from 1 word to 50. Unlike a rolling hash it is not
linear in the words, so periodic texts do not collide.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes, join
from assets.text.kernels.words import SINGLE, WORD, entry_and_width

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Offsets = NDArray[np.int64]
Entries = NDArray[np.uint32]

NOT_PICKED = -1

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_entries = types.Array(types.uint32, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_hashes = types.Array(types.uint64, 1, "C", readonly=True)
_matrix = types.Array(types.uint64, 2, "C", readonly=True)
_spans = types.Array(types.int64, 2, "C", readonly=True)


@njit(types.uint64[:, ::1](_bytes, _offsets), **ARRAY_KERNEL)
def hash_words(joined: Bytes, starts: Offsets) -> Hashes:
    """Return two independent hashes of each word that `join_words` returns, uint64 [2, words].

    The second hash includes the blank after the word: another length, and so other inner states.
    """
    hashes = np.empty((2, len(starts) - 1), np.uint64)
    for i in range(len(starts) - 1):
        start, after = uint64(starts[i]), uint64(starts[i + 1])
        hashes[0, i] = hash_bytes(joined, start, after - uint64(1))
        hashes[1, i] = hash_bytes(joined, start, after)
    return hashes


@njit(types.void(types.uint64[::1], types.int64, types.int64), **ARRAY_KERNEL)
def extend_runs(hashes: Hashes, words: int, wanted: int) -> None:
    """Turn the hashes of the runs of `words` words at each word into those of `wanted` words.

    Works in place and across the ends of texts: the last `wanted` - 1 hashes have no meaning.
    """
    while words < wanted:
        step = min(words, wanted - words)  # two overlapping runs cover a run of any length
        for i in range(len(hashes) - step):
            hashes[i] = join(hashes[i], hashes[i + step])
        words += step


@njit(types.int64[::1](_hashes, _offsets, types.int64, types.int64), **ARRAY_KERNEL)
def winnow(hashes: Hashes, word_offsets: Offsets, run_words: int, width: int) -> Offsets:
    """Return the pick of the run of `run_words` words that begins at each word, int64 [words].

    `word_offsets`, int64 [n + 1], are the first words of n texts. The pick is the position of the
    smallest of the run's first `width` hashes, or NOT_PICKED where no such run begins. Among equal
    hashes an earlier pick is kept, else the last is taken: robust winnowing (Schleimer, Wilkerson
    and Aiken 2003, doi 10.1145/872757.872770). It is linear for periodic texts: a kept pick is
    searched for again only after `width` words.
    """
    picks = np.full(len(hashes), NOT_PICKED, np.int64)
    for text in range(len(word_offsets) - 1):
        best = NOT_PICKED
        for i in range(word_offsets[text], word_offsets[text + 1] - run_words + 1):
            last = i + width - 1
            if best < i:
                best = last
                for k in range(last - 1, i - 1, -1):
                    if hashes[k] < hashes[best]:
                        best = k
            elif hashes[last] < hashes[best]:
                best = last
            picks[i] = best
    return picks


@njit(types.int64[::1](_matrix), **ARRAY_KERNEL)
def first_equal(hashes: Hashes) -> Offsets:
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


@njit(types.int64[:, ::1](_bytes, _offsets, _entries, _spans), **ARRAY_KERNEL)
def locate_words(data: Bytes, offsets: Offsets, entries: Entries, spans: Offsets) -> Offsets:
    """Return the first byte and the byte after the last one of spans of words, int64 [2, m].

    Positions count from the start of the text. `spans`, int64 [3, m], are texts, first words and
    the words after the last ones within them; sorted, not empty and disjoint.
    """
    places = np.zeros((2, spans.shape[1]), np.int64)
    text, at, words, between = np.int64(-1), uint64(0), np.int64(0), True
    for i in range(spans.shape[1]):
        if spans[0, i] != text:
            text = spans[0, i]
            at, words, between = uint64(offsets[text]), np.int64(0), True
        while at < uint64(offsets[text + 1]):
            entry, width = entry_and_width(data, at, entries)
            is_word = entry & uint64(WORD) != 0
            is_single = entry & uint64(SINGLE) == uint64(SINGLE)
            begins = is_word and (between or is_single)
            if begins and words == spans[2, i]:
                break
            words += begins
            if begins and words == spans[1, i] + 1:
                places[0, i] = np.int64(at) - offsets[text]
            at += width
            if is_word and words == spans[2, i]:
                places[1, i] = np.int64(at) - offsets[text]
            between = is_single or not is_word
    return places
