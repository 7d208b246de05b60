"""Words of plain ASCII, up to 63 bytes at once, as the bits of a number.

White space is that of `str.isspace`. Bit i is that of byte `at + i`, and the highest bit is 0, so
that the end of a word, the place after it, has a bit too.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED
from assets.text.kernels.many_bytes import RUN, first_one, mark_bytes, ones_below, size_of

Bytes = NDArray[np.uint8]


@njit(**INLINED)
def plain_words(data: Bytes, span: tuple[int, int]) -> tuple[int, int]:
    """Mark the bytes of the whole words at the start of data[span] that are ASCII, in one line.

    Returns the mask and the bytes it stands for: 0 if the text begins with a newline, a word that
    is longer or not ASCII, or near the end of `data`. `span` and all results are uint64.
    """
    at, stop = span
    if data[at] >= 0x80 or at + RUN > uint64(len(data)):
        return uint64(0), uint64(0)
    spaces = mark_bytes(data, at, uint64(9), uint64(5)) | mark_bytes(
        data, at, uint64(28), uint64(5)
    )
    size = min(stop - at, uint64(63))
    is_whole = size == stop - at
    newline = first_one(mark_byte(data, at, 10))
    wide = first_one(mark_bytes(data, at, uint64(0x80), uint64(0x80)))
    if newline < size:
        size, is_whole = newline, True
    if wide < size:
        size, is_whole = wide, False
    if not is_whole:
        size = size_of(spaces & ones_below(size))
    return ~spaces & ones_below(size), size


@njit(**INLINED)
def mark_byte(data: Bytes, at: int, byte: int) -> int:
    """Mark those of the 64 bytes at data[at] that are equal to `byte`."""
    return mark_bytes(data, at, uint64(byte), uint64(1))


@njit(**INLINED)
def small_letters(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(97), uint64(26))


@njit(**INLINED)
def capitals(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(65), uint64(26))


@njit(**INLINED)
def digit_bytes(data: Bytes, at: int) -> int:
    return mark_bytes(data, at, uint64(48), uint64(10))
