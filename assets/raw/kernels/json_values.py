"""Copy JSON values, without a Python object for any of them.

A value is read at a position, uint64, and written at the end of a buffer; both are returned. The
position is FAILED, 0, where the value is not plain. Every line ends in a newline, which no value
holds: it stops all of the loops. Buffers have PADDING bytes more than they use.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.many_bytes import (
    EIGHT,
    HIGH_BITS,
    ONE,
    ONES,
    find_bytes,
    read_8,
    write_8,
)

Bytes = NDArray[np.uint8]

FAILED = uint64(0)
ZERO, TWO, FOUR, SIX = uint64(0), uint64(2), uint64(4), uint64(6)
PADDING = 16
MAX_KEYS = 256  # of a line; their comparison in pairs takes less than 50 us
MAX_DEPTH = 64  # of a plain value
QUOTE, BACKSLASH, COMMA, COLON = uint8(0x22), uint8(0x5C), uint8(0x2C), uint8(0x3A)
LEFT_BRACE, RIGHT_BRACE, RIGHT_BRACKET = uint8(0x7B), uint8(0x7D), uint8(0x5D)
NEWLINE = uint8(0x0A)
ZERO_DIGIT, NINE_DIGIT, MINUS, POINT = uint8(0x30), uint8(0x39), uint8(0x2D), uint8(0x2E)
LETTER_U, SLASH = uint8(0x75), uint8(0x2F)
INTEGER_DIGITS = uint64(18)  # all of these numbers are in the range of int64
FLOAT_DIGITS = uint64(15)  # any such decimal is the shortest that is read as its float64

ESCAPES = np.zeros(256, np.uint8)
ESCAPES[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
HEX_DIGITS = np.full(256, 255, np.uint8)
HEX_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
HEX_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
NUMBER_BYTES = np.zeros(256, np.bool_)
NUMBER_BYTES[np.frombuffer(b"0123456789+-.eE", np.uint8)] = True
LITERALS = np.frombuffer(b"true\nfalse\nnull\n", np.uint8)


@njit(**ARRAY_INLINED)
def copy_run(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int]:
    """Copy the bytes before the next quote, backslash or control character."""
    while True:
        word = read_8(data, at)
        # All eight at once: what is behind the run is written over later.
        write_8(out, end, word)
        marks = find_bytes(word, uint64(QUOTE) * ONES) | find_bytes(word, uint64(BACKSLASH) * ONES)
        # Control characters: a byte below 0x20 borrows into its highest bit.
        marks |= (word - uint64(0x20) * ONES) & ~word & HIGH_BITS
        if marks:
            # The place of the lowest mark, as in `find_byte`.
            below = (marks & (~marks + ONE)) - ONE
            size = ((below & ONES) * ONES >> uint64(56)) - ONE
            return at + size, end + size
        at += EIGHT
        end += EIGHT


@njit(**ARRAY_INLINED)
def skip_blanks(data: Bytes, at: int) -> int:
    """Return the position of the next byte that is no blank of JSON; a newline is none here."""
    while data[at] == 0x20 or data[at] == 0x09 or data[at] == 0x0D:
        at += ONE
    return at


@njit(**ARRAY_INLINED)
def read_code_unit(data: Bytes, at: int) -> int:
    r"""Return the number of an escape \uXXXX at `at`, uint64, or 0x10000 if it is none."""
    if data[at] != BACKSLASH or data[at + ONE] != LETTER_U:
        return uint64(0x10000)
    code = ZERO
    for place in range(4):
        digit = HEX_DIGITS[data[at + TWO + uint64(place)]]
        if digit > 15:
            return uint64(0x10000)
        code = code << FOUR | uint64(digit)
    return code


@njit(**ARRAY_INLINED)
def write_utf8(out: Bytes, end: int, code: int) -> int:
    """Write a code point, and return the end behind it."""
    if code < 0x80:
        out[end] = code
        return end + ONE
    tail = uint64(0x80) | code & uint64(0x3F)
    if code < 0x800:
        out[end], out[end + ONE] = uint64(0xC0) | code >> SIX, tail
        return end + TWO
    middle = uint64(0x80) | code >> SIX & uint64(0x3F)
    if code < 0x10000:
        out[end], out[end + ONE] = uint64(0xE0) | code >> uint64(12), middle
        out[end + TWO] = tail
        return end + uint64(3)
    out[end] = uint64(0xF0) | code >> uint64(18)
    out[end + ONE] = uint64(0x80) | code >> uint64(12) & uint64(0x3F)
    out[end + TWO], out[end + uint64(3)] = middle, tail
    return end + FOUR


@njit(**ARRAY_KERNEL)
def unescape_code(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int]:
    r"""Write the character of an escape \uXXXX, or of a pair; half a pair alone fails."""
    code = read_code_unit(data, at)
    at += SIX
    # Half of a pair: the other half must follow, as an escape.
    if code & uint64(0xF800) == 0xD800:
        low = read_code_unit(data, at)
        if code >= 0xDC00 or low & uint64(0x1FC00) != 0xDC00:
            return FAILED, end
        code = uint64(0x10000) + ((code & uint64(0x3FF)) << uint64(10) | low & uint64(0x3FF))
        at += SIX
    elif code >= 0x10000:
        return FAILED, end
    return at, write_utf8(out, end, code)


@njit(**ARRAY_KERNEL)
def unescape(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int]:
    """Write the text of a string; `at` is behind its first quote, the result behind its last."""
    while True:
        at, end = copy_run(data, at, out, end)
        if data[at] == QUOTE:
            return at + ONE, end
        if data[at] != BACKSLASH:
            return FAILED, end
        if data[at + ONE] == LETTER_U:
            at, end = unescape_code(data, at, out, end)
            if at == FAILED:
                return FAILED, end
        else:
            byte = ESCAPES[data[at + ONE]]
            if byte == 0:
                return FAILED, end
            out[end] = byte
            at += TWO
            end += ONE


@njit(**ARRAY_KERNEL)
def copy_string(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int, bool]:
    """Copy a string with its quotes; the third value is whether an encoder spells it so."""
    out[end] = QUOTE
    at, end, is_canonical = at + ONE, end + ONE, True
    while True:
        at, end = copy_run(data, at, out, end)
        if data[at] == QUOTE:
            out[end] = QUOTE
            return at + ONE, end + ONE, is_canonical
        letter = data[at + ONE]
        if data[at] != BACKSLASH or (ESCAPES[letter] == 0 and letter != LETTER_U):
            return FAILED, end, False
        is_canonical = is_canonical and letter != LETTER_U and letter != SLASH
        out[end], out[end + ONE] = BACKSLASH, letter
        at += TWO
        end += TWO


@njit(**ARRAY_INLINED)
def skip_digits(data: Bytes, at: int) -> int:
    """Return the position behind the digits at `at`."""
    while data[at] >= ZERO_DIGIT and data[at] <= NINE_DIGIT:
        at += ONE
    return at


@njit(**ARRAY_KERNEL)
def copy_number(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int, bool]:
    """Copy what may be a number; the third value is whether it is one that an encoder spells so."""
    start = at
    first = at + ONE if data[at] == MINUS else at
    at = skip_digits(data, first)
    whole = at - first
    is_canonical = whole > ZERO and (whole == ONE or data[first] != ZERO_DIGIT)
    if data[at] == POINT:
        point = at
        at = skip_digits(data, point + ONE)
        decimals = at - point - ONE
        is_trimmed = decimals == ONE or (decimals > ONE and data[at - ONE] != ZERO_DIGIT)
        is_large = data[first] != ZERO_DIGIT or data[point + ONE] != ZERO_DIGIT  # no exponent
        is_short = whole + decimals <= FLOAT_DIGITS
        is_canonical = is_canonical and is_trimmed and is_short and (is_large or decimals <= FOUR)
    else:
        is_minus_zero = first != start and data[first] == ZERO_DIGIT
        is_canonical = is_canonical and whole <= INTEGER_DIGITS and not is_minus_zero
    # An exponent, or what is no number at all: left to the decoder.
    while NUMBER_BYTES[data[at]]:
        at += ONE
        is_canonical = False
    if at == start:
        return FAILED, end, False
    for place in range(start, at):
        out[end] = data[place]
        end += ONE
    return at, end, is_canonical


@njit(**ARRAY_KERNEL)
def copy_literal(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int]:
    """Copy true, false or null."""
    place = 0 if data[at] == LITERALS[0] else 5 if data[at] == LITERALS[5] else 11
    while LITERALS[place] != 0x0A:
        if data[at] != LITERALS[place]:
            return FAILED, end
        out[end] = data[at]
        at += ONE
        end += ONE
        place += 1
    return at, end


@njit(**ARRAY_KERNEL)
def copy_scalar(data: Bytes, at: int, out: Bytes, end: int) -> tuple[int, int, bool]:
    """Copy a string, number or literal."""
    if data[at] == QUOTE:
        return copy_string(data, at, out, end)
    if NUMBER_BYTES[data[at]] and data[at] < 0x40:
        return copy_number(data, at, out, end)
    at, end = copy_literal(data, at, out, end)
    return at, end, True


@njit(**ARRAY_KERNEL)
def is_new_key(data: Bytes, keys: NDArray[np.uint64], span: tuple[int, int]) -> bool:
    """Return whether the last of keys[span] differs from all before it; each is (start, stop)."""
    last = span[1] - 1
    start, size = keys[last, 0], keys[last, 1] - keys[last, 0]
    for other in range(span[0], last):
        if keys[other, 1] - keys[other, 0] == size:
            place = ZERO
            while place < size and data[keys[other, 0] + place] == data[start + place]:
                place += ONE
            if place == size:
                return False
    return True


@njit(**ARRAY_KERNEL)
def copy_key(
    data: Bytes, at: int, out: Bytes, end: int, keys: NDArray[np.uint64], span: tuple[int, int]
) -> tuple[int, int, bool]:
    """Copy a key and its colon; the third value is whether it is spelled so, and new in its span.

    Keys of an object are noted in `keys`; `span` ends with the one to note.
    """
    if data[at] != QUOTE or span[1] > MAX_KEYS:
        return FAILED, end, False
    keys[span[1] - 1, 0] = at + ONE
    at, end, is_canonical = copy_string(data, at, out, end)
    if at == FAILED:
        return FAILED, end, False
    keys[span[1] - 1, 1] = at - ONE
    at = skip_blanks(data, at)
    if data[at] != COLON:
        return FAILED, end, False
    out[end] = COLON
    return skip_blanks(data, at + ONE), end + ONE, is_canonical and is_new_key(data, keys, span)
