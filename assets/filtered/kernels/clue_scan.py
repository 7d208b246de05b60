"""Look for clues, short patterns of bytes, in texts: one pass over the bytes for all of them.

Digits are one byte here, and so are the two cases of a letter: the hash of the last four bytes
selects, with a table of bits, the places where a clue may be, and only there bytes are compared.
A clue that a text has shown already is not looked for again.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint32, uint64
from numpy.typing import NDArray

GRAM = 4  # bytes
HASH_BITS = 19  # 64 kB of bits; some 5,000 grams set 1 % of them

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class ClueTables(NamedTuple):
    """Tables of c clues with e elements in all, and of the hashes of their grams."""

    folded: NDArray[np.uint32]  # [256]: the byte that stands for a byte, in the highest 8 bits
    bits: NDArray[np.uint32]  # [2**HASH_BITS / 32]
    slots: NDArray[np.int32]  # [2**HASH_BITS]: the first clue of a hash's chain in `chained`
    chained: NDArray[np.int32]  # [links, 2]: a clue, and the next link or -1
    elements: Bytes  # [e, 256]: 1 where an element allows the byte
    starts: Integers  # [c + 1]: first element of each clue
    ends: Integers  # [c]: elements of a clue up to the end of its gram
    masks: Hashes  # [c]: bits of what a clue is for


_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def hash_gram(gram: int) -> int:
    """Hash four folded bytes, uint32, to HASH_BITS bits."""
    return uint32(gram * uint32(0x9E3779B1)) >> uint32(32 - HASH_BITS)


@njit(**_options)
def _is_there(data: Bytes, span: tuple[int, int], elements: Bytes) -> bool:
    start, stop = span
    for k in range(len(elements)):
        byte = data[start + k] if start + k < stop else 0
        if not elements[k, byte]:
            return False
    return True


@njit(**_options)
def _compare(
    data: Bytes, span: tuple[int, int, int], tables: ClueTables, link: int, found: int
) -> int:
    """Return `found` with the bits of the clues of a chain whose gram ends before `at`."""
    start, at, stop = span
    while link >= 0:
        clue = tables.chained[link, 0]
        if tables.masks[clue] & ~found:
            first = at - tables.ends[clue]
            own = tables.elements[tables.starts[clue] : tables.starts[clue + 1]]
            if first >= start and _is_there(data, (first, stop), own):
                found |= tables.masks[clue]
        link = tables.chained[link, 1]
    return found


@njit(**_options)
def find_clues(data: Bytes, offsets: Integers, tables: ClueTables) -> Hashes:
    """Return the bits of the clues that each of n texts has, uint64 [n].

    data: UTF-8 bytes; offsets: int64 [n + 1].
    """
    hits = np.zeros(len(offsets) - 1, np.uint64)
    folded, bits = tables.folded, tables.bits
    for row in range(len(hits)):
        start, stop = offsets[row], offsets[row + 1]
        at, end = uint64(start), uint64(stop)
        gram, found = uint32(0), uint64(0)
        while at < end:
            gram = (gram >> uint32(8)) | folded[data[at]]
            at += uint64(1)
            key = hash_gram(gram)
            if bits[key >> uint32(5)] & (uint32(1) << (key & uint32(31))):
                place = (start, np.int64(at), stop)
                found = _compare(data, place, tables, tables.slots[key], found)
        key = hash_gram(gram >> uint32(8))  # a clue may end with the byte after the text
        place = (start, stop + 1, stop)
        found = _compare(data, place, tables, tables.slots[key], found)
        hits[row] = found
    return hits
