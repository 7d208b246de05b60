"""A table of distinct byte strings with a number each: open addressing, compared byte by byte.

A record takes half a cache line, so that a lookup costs one miss for the record and one for the
bytes. Strings lie end to end in a buffer of the caller. What is full is made larger by the caller:
numba's arrays cannot grow, and a copy of the table with twice the slots is rarely made.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import EIGHT, read_some

HASH, START, LENGTH, VALUE = 0, 1, 2, 3  # the fields of a record; a free one has VALUE 0

Bytes = NDArray[np.uint8]
Records = NDArray[np.uint64]  # [slots, 4], slots a power of two

_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@njit(**_inlined)
def _is_equal(first: Bytes, start: int, second: Bytes, at: int, size: int) -> bool:
    while size > EIGHT:
        if read_some(first, start, EIGHT) != read_some(second, at, EIGHT):
            return False
        start, at, size = start + EIGHT, at + EIGHT, size - EIGHT
    return read_some(first, start, size) == read_some(second, at, size)


@njit(**_inlined)
def find_string(records: Records, data: Bytes, text: Bytes, start: int, stop: int) -> int:
    """Slot of text[start:stop], not empty, uint64; a free one, with hash and length, if it is new.

    `data` holds the strings of the table.
    """
    size = stop - start
    key = hash_bytes(text, start, stop)
    mask = uint64(len(records) - 1)
    slot = key & mask
    while records[slot, VALUE] != 0:
        if (
            records[slot, HASH] == key
            and records[slot, LENGTH] == size
            and _is_equal(data, records[slot, START], text, start, size)
        ):
            return slot
        slot = (slot + uint64(1)) & mask
    records[slot, HASH], records[slot, LENGTH] = key, size
    return slot


@njit(**_options)
def larger_table(records: Records) -> Records:
    """Return the table with twice the slots."""
    larger = np.zeros((2 * len(records), 4), np.uint64)
    mask = uint64(len(larger) - 1)
    for row in range(len(records)):
        if records[row, VALUE] != 0:
            slot = records[row, HASH] & mask
            while larger[slot, VALUE] != 0:
                slot = (slot + uint64(1)) & mask
            larger[slot] = records[row]
    return larger
