"""Merge the bytes of a word into tokens by byte-pair encoding.

A pair of tokens is looked up in a table of two columns, uint64 [slots, 2]: the pair, and the rank
of its merge above the id that it makes. The number of slots is a power of two, at most half are
used, and a pair is in the first free slot from that of its hash on.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import Any

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.hashing import MULTIPLIER

Words = NDArray[np.uint64]

MOST_BYTES = 128  # of a word; the time grows with the square
NO_MERGE = uint64(0xFFFFFFFFFFFFFFFF)
HALF = uint64(32)
ID_BITS = uint64(0xFFFFFFFF)

_inlined = {"cache": True, "nogil": True, "forceinline": True}


@njit(**_inlined)
def pair_slot(table: Words, pair: int) -> int:
    """Return the slot of a pair, or the free one in which it would be."""
    mask = uint64(len(table) - 1)
    slot = (pair * MULTIPLIER >> HALF) & mask
    while table[slot, 0] != pair and table[slot, 0] != NO_MERGE:
        slot = (slot + uint64(1)) & mask
    return slot


@njit(**_inlined)
def find_merge(table: Words, left: int, right: int) -> int:
    """Return the rank and id of the merge of two tokens, NO_MERGE if there is none."""
    slot = pair_slot(table, uint64(left) << HALF | uint64(right))
    return table[slot, 1]


@njit(
    types.void(types.uint64[:, ::1], types.uint64[::1], types.uint64[::1]), cache=True, nogil=True
)
def fill_pairs(table: Words, pairs: Words, merges: Words) -> None:
    """Enter the merges of pairs into a table that is full of NO_MERGE."""
    for i in range(len(pairs)):
        slot = pair_slot(table, pairs[i])
        table[slot, 0], table[slot, 1] = pairs[i], merges[i]


@njit(**_inlined)
def merge_word(ids: NDArray[Any], size: int, merges: Words, table: Words) -> int:
    """Merge the first `size` of `ids` in place, always the leftmost of the lowest rank.

    Returns the number of ids left. `merges` is scratch space for as many.
    """
    for i in range(size - 1):
        merges[i] = find_merge(table, ids[i], ids[i + 1])
    while size > 1:
        best, place = NO_MERGE, 0
        for i in range(size - 1):
            if merges[i] < best:
                best, place = merges[i], i
        if best == NO_MERGE:
            break
        size -= 1
        ids[place] = best & ID_BITS
        for i in range(place + 1, size):
            ids[i] = ids[i + 1]
            merges[i - 1] = merges[i]
        if place > 0:
            merges[place - 1] = find_merge(table, ids[place - 1], ids[place])
        if place < size - 1:
            merges[place] = find_merge(table, ids[place], ids[place + 1])
    return size
