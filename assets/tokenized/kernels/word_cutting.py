r"""Cut text into words as GPT-2's split does.

Purpose: the split by `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
(openai/gpt-2, src/encoder.py) of UTF-8 bytes, without a regular expression, which takes most of the
time of `tokenizers`. The functions are inlined into their callers.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED
from assets.text.kernels.many_bytes import EIGHT, HIGH_BITS, ONES, read_8
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]

OTHER, LETTER, NUMBER, BLANK, UNKNOWN = range(5)  # classes of characters
ONE, TWO, THREE = uint64(1), uint64(2), uint64(3)
LOWER_CASE = uint64(0x20) * ONES
FROM_A, AFTER_Z = uint64(0x80 - ord("a")) * ONES, uint64(0x80 - ord("z") - 1) * ONES


@njit(**ARRAY_INLINED)
def class_and_width(data: Bytes, at: int, classes: Bytes) -> tuple[int, int]:
    """Return the class of the character at byte `at`, and its width."""
    first = data[at]
    if first < 0x80:
        return classes[first], ONE
    point, width = decode(data, at)
    if point >= uint64(len(classes)):
        return UNKNOWN, uint64(width)
    return classes[point], uint64(width)


@njit(**ARRAY_INLINED)
def contraction_end(data: Bytes, at: int, stop: int) -> int:
    """Return the end of 's, 't, 'm, 'd, 're, 've or 'll, whose apostrophe is at `at`; else `at`."""
    if at + ONE >= stop:
        return at
    letter = data[at + ONE]
    if letter == ord("s") or letter == ord("t") or letter == ord("m") or letter == ord("d"):
        return at + TWO
    if at + TWO < stop:
        last = data[at + TWO]
        if (letter == ord("r") or letter == ord("v")) and last == ord("e"):
            return at + THREE
        if letter == ord("l") and last == ord("l"):
            return at + THREE
    return at


@njit(**ARRAY_INLINED)
def ascii_letters_end(data: Bytes, at: int, stop: int) -> int:
    """Return the end of the run of ASCII letters from `at` on, or a place in it near `stop`.

    Eight bytes at a time: the length of a word is hard to predict, so a loop over bytes costs a
    wrong guess of the processor for each.
    """
    while at + EIGHT <= stop:
        word = read_8(data, at)
        lower = (word | LOWER_CASE) & ~HIGH_BITS
        others = ~((lower + FROM_A) & ~(lower + AFTER_Z) & ~word) & HIGH_BITS
        if others:
            below = (others & (~others + ONE)) - ONE
            return at + ((below & ONES) * ONES >> uint64(56)) - ONE
        at += EIGHT
    return at


@njit(**ARRAY_INLINED)
def run_end(data: Bytes, at: int, stop: int, kind: int, classes: Bytes) -> tuple[int, int]:
    """Return the end of the run of characters of a class from `at` on, and the width of its last.

    The width is 0 if the run is empty, or of ASCII letters.
    """
    last = uint64(0)
    if kind == LETTER:
        at = ascii_letters_end(data, at, stop)
    while at < stop:
        following, width = class_and_width(data, at, classes)
        if following != kind:
            break
        at, last = at + width, width
    return at, last


@njit(**ARRAY_INLINED)
def word_end(data: Bytes, at: int, stop: int, classes: Bytes) -> int:
    """Return the end of the word that begins at byte `at` of a text that ends at `stop`; uint64.

    The classes of all characters must be known.
    """
    if data[at] == ord("'"):
        end = contraction_end(data, at, stop)
        if end > at:
            return end
    start = at
    kind, width = class_and_width(data, at, classes)
    if data[at] == ord(" ") and at + ONE < stop:
        kind, width = class_and_width(data, at + ONE, classes)
        if kind == BLANK:
            width = ONE
        else:
            start = at + ONE
    end, last = run_end(data, start + width, stop, kind, classes)
    if kind == BLANK and end < stop and last > uint64(0):
        return end - last  # the last blank belongs to the next word
    return end
