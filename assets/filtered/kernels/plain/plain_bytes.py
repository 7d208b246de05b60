"""Kinds of bytes that the kernels of plain values tell apart, and their verdicts."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

UNSURE, REFUSED = 0, -1

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]

OPTIONS = {"cache": True, "nogil": True}
INLINED_OPTIONS = {**OPTIONS, "forceinline": True}


@njit(**INLINED_OPTIONS)
def is_gap(byte: int) -> bool:
    """Check for a blank, a line end, a comma or a semicolon."""
    return byte in (32, 10, 9, 13, 44, 59)


@njit(**INLINED_OPTIONS)
def is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@njit(**INLINED_OPTIONS)
def is_letter(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122


@njit(**INLINED_OPTIONS)
def is_word(byte: int) -> bool:
    return is_letter(byte) or is_digit(byte) or byte == 95


@njit(**OPTIONS)
def is_printable(data: Bytes, start: int, end: int) -> bool:
    """Check that all bytes are ASCII, and neither blanks nor control characters."""
    found = True
    for byte in data[start:end]:
        found &= 32 < byte < 127
    return found


def packed(words: str) -> Integers:
    """Return words of up to 7 bytes, with blanks between, as numbers that a kernel can compare."""
    return np.array([int.from_bytes(word.encode(), "big") for word in words.split()])


@njit(**OPTIONS)
def is_among(word: int, words: Integers) -> bool:
    """Check that a number is one of some numbers."""
    found = False
    for own in words:
        found |= own == word
    return found


@njit(**OPTIONS)
def pair_at(data: Bytes, at: int) -> int:
    """Return two bytes as a number, letters as small ones."""
    first, second = np.int64(data[at]), np.int64(data[at + 1])
    first, second = first | 32 * is_letter(first), second | 32 * is_letter(second)
    return first * 256 + second
