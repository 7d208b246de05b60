"""64-bit hashes of bytes and of sequences of hashes, inlined into their callers.

Multiply by an odd constant, fold the high half down, multiply by another: the pattern of
MurmurHash3's finalizer. A million different keys collide with a probability of 3e-8.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED
from assets.text.kernels.many_bytes import EIGHT, read_8, read_some

MULTIPLIER, INCREMENT = uint64(0x9E3779B97F4A7C15), uint64(0xD6E8FEB86659FD93)


@njit(**INLINED)
def absorb(key: int, value: int) -> int:
    """Return the key of a sequence with its next value absorbed; all uint64."""
    key = (key ^ value) * MULTIPLIER
    return key ^ (key >> uint64(32))


@njit(**INLINED)
def finish(key: int) -> int:
    """Spread all bits of a key, uint64, over all bits of the hash."""
    key = (key ^ (key >> uint64(32))) * INCREMENT
    return key ^ (key >> uint64(29))


@njit(**INLINED)
def join(key: int, next_key: int) -> int:
    """Return the hash of two hashes in their order; all uint64."""
    return finish(key * MULTIPLIER + next_key)


@njit(**INLINED)
def hash_bytes(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """Return the hash of data[start:stop], which must not be empty; all uint64."""
    size = stop - start
    key = size * INCREMENT
    if size <= EIGHT:
        key ^= read_some(data, start, size)
    else:
        while start + EIGHT < stop:
            key = absorb(key, read_8(data, start))
            start += EIGHT
        key ^= read_8(data, stop - EIGHT)  # may take bytes twice: the size tells them apart
    return finish(key * MULTIPLIER)
