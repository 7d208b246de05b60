"""Kinds of bytes that the kernels of plain values tell apart, and their verdicts."""
# mypy: disable-error-code="untyped-decorator, no-any-return, return-value"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.compiling import INLINED, KERNEL

UNSURE, REFUSED = 0, -1

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


@njit(**INLINED)
def is_gap(byte: int) -> bool:
    """Check for a blank, a line end, a comma or a semicolon."""
    return byte in (32, 10, 9, 13, 44, 59)


@njit(**INLINED)
def is_blank(byte: int) -> bool:
    return byte in (9, 10, 13, 32)


@njit(**INLINED)
def is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@njit(**INLINED)
def is_letter(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122


@njit(**INLINED)
def is_word(byte: int) -> bool:
    return is_letter(byte) or is_digit(byte) or byte == 95


@njit(**KERNEL)
def is_printable(data: Bytes, start: int, end: int) -> bool:
    """Check that all bytes are ASCII, and neither blanks nor control characters."""
    found = True
    for byte in data[start:end]:
        found &= 32 < byte < 127
    return found


@njit(**KERNEL)
def is_ascii(data: Bytes, start: int, end: int) -> bool:
    most = 0
    for byte in data[start:end]:
        most |= byte
    return most < 128


def packed(words: str) -> Integers:
    """Return words of up to 7 bytes, with blanks between, as numbers that a kernel can compare."""
    return np.array([int.from_bytes(word.encode(), "big") for word in words.split()])


_CLAUSE_MARKS = packed("、 。 ， ； ！ ？ ） 」 』 】 । ॥")  # those of `passwords._WIDE`


@njit(**KERNEL)
def is_among(word: int, words: Integers) -> bool:
    """Check that a number is one of some numbers."""
    found = False
    for own in words:
        found |= own == word
    return found


@njit(**KERNEL)
def pair_at(data: Bytes, at: int) -> int:
    """Return two bytes as a number, letters as small ones."""
    first, second = np.int64(data[at]), np.int64(data[at + 1])
    first, second = first | 32 * is_letter(first), second | 32 * is_letter(second)
    return first * 256 + second


@njit(**KERNEL)
def triple_at(data: Bytes, at: int) -> int:
    """Return three bytes as a number."""
    return (np.int64(data[at]) << 16) | (np.int64(data[at + 1]) << 8) | np.int64(data[at + 2])


@njit(**KERNEL)
def _code_of(sign: int) -> int:
    """Return the code point of three bytes of UTF-8."""
    return (sign >> 16 & 15) << 12 | (sign >> 8 & 63) << 6 | (sign & 63)


@njit(**KERNEL)
def is_letter_of_cjk(sign: int) -> bool:
    """Check three bytes for a letter of Chinese, Japanese or Korean: `passwords._WIDE`."""
    code = _code_of(sign)
    return 0x3040 <= code <= 0x30FF or 0x4E00 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3


@njit(**KERNEL)
def is_clause_mark(sign: int) -> bool:
    """Check three bytes for a mark that ends a clause, a quotation or brackets."""
    return is_among(sign, _CLAUSE_MARKS)


@njit(**KERNEL)
def is_plain(data: Bytes, start: int, end: int) -> bool:
    """Check for printable ASCII, after five signs of which one mark may be the last character."""
    if end - start < 8 or data[end - 1] < 128:
        return is_printable(data, start, end)
    return is_clause_mark(triple_at(data, end - 3)) and is_printable(data, start, end - 3)


@njit(**KERNEL)
def word_at(data: Bytes, start: int, stop: int) -> int:
    """Return the bytes of up to 7 letters as a number, 0 for more."""
    word, at = np.int64(0), start
    while at < stop and is_letter(data[at]) and at - start < 8:
        word, at = word * 256 + np.int64(data[at]), at + 1
    return word if at - start < 8 else 0
