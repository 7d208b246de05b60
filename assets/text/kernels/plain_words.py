"""Words of plain ASCII, up to 63 bytes at once, as the bits of a number.

White space is that of `str.isspace`. Bit i is that of byte `at + i`, and the highest bit is 0, so
that the end of a word, the place after it, has a bit too.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED
from assets.text.kernels.many_bytes import ONE, RUN, first_one, mark_bytes, ones_below, size_of

Bytes = NDArray[np.uint8]


@njit(**INLINED)
def plain_words(data: Bytes, span: tuple[int, int]) -> tuple[int, int]:
    """Mark the bytes of the whole words of ASCII at the start of data[span], up to 63 bytes.

    Returns the mask and the bytes it stands for: 0 if the text begins with a word that is longer or
    not ASCII, or near the end of `data`: from any byte of the mask, 64 can be read. `span` and all
    results are uint64.
    """
    at, stop = span
    if data[at] >= 0x80 or at + RUN + RUN > uint64(len(data)):
        return uint64(0), uint64(0)
    spaces = plain_spaces(data, at)
    size = min(stop - at, uint64(63), first_one(wide_bytes(data, at)))
    if size != stop - at:
        size = size_of(spaces & ones_below(size))
    return ~spaces & ones_below(size), size


@njit(**INLINED)
def plain_spaces(data: Bytes, at: int) -> int:
    """Mark the white space of ASCII."""
    return mark_bytes(data, at, uint64(9), uint64(5)) | mark_bytes(data, at, uint64(28), uint64(5))


@njit(**INLINED)
def wide_bytes(data: Bytes, at: int) -> int:
    """Mark the bytes that are not ASCII."""
    return mark_bytes(data, at, uint64(0x80), uint64(0x80))


@njit(**INLINED)
def wide_spaces(data: Bytes, at: int) -> int:
    """Mark the first bytes of white space that is not ASCII: 67 bytes must be readable.

    It is U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F and U+3000.
    """
    of_two, of_three = mark_byte(data, at, 0xC2), mark_bytes(data, at, uint64(0xE1), uint64(3))
    if not of_two | of_three:
        return uint64(0)
    next_at, last_at = at + ONE, at + ONE + ONE
    of_two &= mark_byte(data, next_at, 0x85) | mark_byte(data, next_at, 0xA0)
    is_first = mark_byte(data, last_at, 0x80)
    ogham = mark_byte(data, at, 0xE1) & mark_byte(data, next_at, 0x9A) & is_first
    ideographic = mark_byte(data, at, 0xE3) & mark_byte(data, next_at, 0x80) & is_first
    quads = mark_bytes(data, last_at, uint64(0x80), uint64(11)) | mark_byte(data, last_at, 0xAF)
    quads |= mark_bytes(data, last_at, uint64(0xA8), uint64(2))
    medium = mark_byte(data, next_at, 0x81) & mark_byte(data, last_at, 0x9F)
    general = mark_byte(data, at, 0xE2) & (mark_byte(data, next_at, 0x80) & quads | medium)
    return of_two | ogham | general | ideographic


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


@njit(**INLINED)
def word_bytes(data: Bytes, at: int) -> int:
    """Mark letters, digits and underscores."""
    letters = small_letters(data, at) | capitals(data, at)
    return letters | digit_bytes(data, at) | mark_byte(data, at, 95)
