"""Decode and count the characters of valid UTF-8; every function is inlined into its caller.

A position keeps its type: uint64, which numba indexes fastest, stays uint64. Widths are uint8, the
only type whose sum with uint64 is uint64 and with int64 is int64.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED
from assets.text.kernels.many_bytes import EIGHT, ONES, read_some

Bytes = NDArray[np.uint8]

ONE, TWO, THREE, FOUR = uint8(1), uint8(2), uint8(3), uint8(4)


@njit(**INLINED)
def decode(data: Bytes, at: int) -> tuple[int, int]:
    """Return the code point that begins at byte `at`, uint64, and its width in bytes, uint8."""
    byte = uint64(data[at])
    if byte < 0x80:
        return byte, ONE
    second = uint64(data[at + ONE] & 0x3F)
    if byte < 0xE0:
        return (byte & uint64(0x1F)) << uint64(6) | second, TWO
    tail = second << uint64(6) | uint64(data[at + TWO] & 0x3F)
    if byte < 0xF0:
        return (byte & uint64(0x0F)) << uint64(12) | tail, THREE
    last = uint64(data[at + THREE] & 0x3F)
    return (byte & uint64(0x07)) << uint64(18) | tail << uint64(6) | last, FOUR


@njit(**INLINED)
def last_start(data: Bytes, stop: int) -> int:
    """Return the first byte of the last character before byte `stop`; there must be one."""
    at = stop - ONE
    while data[at] & 0xC0 == 0x80:  # the later bytes of a character
        at -= ONE
    return at


@njit(**INLINED)
def count_continuations(data: Bytes, start: int, stop: int) -> int:
    """Count the bytes of data[start:stop], uint64, that are not the first of a character."""
    total = uint64(0)
    while start < stop:
        word = read_some(data, start, min(stop - start, EIGHT))
        # Bit 7 without bit 6, in eight bytes; the multiplication adds the eight bits up.
        total += ((word >> uint64(7)) & ~(word >> uint64(6)) & ONES) * ONES >> uint64(56)
        start += EIGHT
    return total
