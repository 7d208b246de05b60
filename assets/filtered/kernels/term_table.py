"""Hash table of all listed terms and their beginnings.

The table is open-addressed by 64-bit hashes of words. The key of a term of several words is the
chain of their hashes; each of its beginnings has a key too. The probability of a false match is
1e-16 per word and list of a thousand terms.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED, KERNEL

# An entry describes a code point as in `words`; an apostrophe has a bit of its own here.
APOSTROPHE = 1 << 27
PREFIX = np.uint8(1)  # the words so far begin a longer term
MAX_TERM_WORDS = 16
FILTER_BITS = 17

Bytes = NDArray[np.uint8]
Entries = NDArray[np.uint32]
Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]

ONE = uint64(1)  # uint64 + 1 would be a float64
PRIME = uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd: h * prime + letter
SPREAD = uint64(0xD6E8FEB86659FD93)  # for the slot only: the polynomial's high bits alone are poor


class Tables(NamedTuple):
    """Open-addressing table of all terms and their beginnings; s slots."""

    keys: Hashes  # [s], 0: free
    kinds: Bytes  # [s], PREFIX or 0
    stop_ids: Integers  # [s], -1: no stop word
    profane: Hashes  # [s], one bit per language
    vocabulary: Hashes  # [s], one bit per category
    bits: Bytes  # [2**FILTER_BITS / 8], the filter
    num_stop_words: int
    max_words: int  # of the longest term, 0: no terms


@njit(**INLINED)
def is_plain_word(entry: int) -> int:
    """Return 1 for the entry of a character that joins its neighbours in a word, else 0."""
    return (entry >> uint64(25)) & ((entry >> uint64(26)) ^ ONE) & ONE


@njit(**INLINED)
def chained(key: int, word: int) -> int:
    """Return the key, uint64, of a term extended by one word."""
    return (key ^ (word * SPREAD)) * PRIME + ONE


@njit(**INLINED)
def find(key: int, tables: Tables) -> int:
    """Return the slot of a key, uint64, or -1."""
    mask = uint64(len(tables.keys) - 1)
    slot = ((key * SPREAD) >> uint64(32)) & mask
    while tables.keys[slot] != 0:
        if tables.keys[slot] == key:
            return np.int64(slot)
        slot = (slot + ONE) & mask
    return -1


@njit(**KERNEL)
def enter(key: int, keys: Hashes, bits: Bytes, is_first: bool) -> int:
    """Return the slot of a key, adding it if new; `is_first` adds it to the filter too.

    keys: uint64 [slots], 0 if free; bits: uint8 [2 ** FILTER_BITS / 8]. Both are changed in place.
    """
    if is_first:
        bit = (key * SPREAD) >> uint64(64 - FILTER_BITS)
        bits[bit >> uint64(3)] |= uint8(1 << (bit & uint64(7)))
    mask = uint64(len(keys) - 1)
    slot = ((key * SPREAD) >> uint64(32)) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + ONE) & mask
    keys[slot] = key
    return np.int64(slot)
