"""Hashes of all runs of N words, and a sample of them by winnowing.

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

Bytes = NDArray[np.uint8]
Hashes = NDArray[np.uint64]
Offsets = NDArray[np.int64]

NOT_PICKED = -1

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)
_hashes = types.Array(types.uint64, 1, "C", readonly=True)


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
            # The pick left the window: search all of it from the right, so the last of equals wins.
            if best < i:
                best = last
                for k in range(last - 1, i - 1, -1):
                    if hashes[k] < hashes[best]:
                        best = k
            # Strictly less: among equals the pick that is there stays.
            elif hashes[last] < hashes[best]:
                best = last
            picks[i] = best
    return picks
