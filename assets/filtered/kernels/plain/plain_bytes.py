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
