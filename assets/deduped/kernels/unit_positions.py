"""Positions of words or characters of normalised text in the original text.

Purpose: words are compared as `words.join_words` writes them, without their positions. The
positions of the few words of a hit come from a second pass over the text, code point by code point.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.many_bytes import ONE
from assets.text.kernels.words import entry_and_width

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


@njit(**ARRAY_KERNEL)
def locate_units(
    data: Bytes, offsets: Integers, entries: NDArray[np.uint32], wanted: Integers, by_word: bool
) -> Integers:
    """Return the first byte and the byte after the last one of n units of texts, int64 [n, 2].

    Positions count from the start of the text. `wanted`, int64 [n, 2], are sorted (text, unit);
    a unit is a word or, if not `by_word`, a character of a word. A text is read once, up to the
    last wanted unit.
    """
    spans = np.zeros((len(wanted), 2), np.int64)
    row = 0
    while row < len(wanted):
        text = wanted[row, 0]
        begin, stop = uint64(offsets[text]), uint64(offsets[text + 1])
        at, between, unit, end = begin, True, -1, begin
        while at < stop:
            entry, width = entry_and_width(data, at, entries)
            is_word, is_single = entry >> uint64(25) & ONE != 0, entry >> uint64(26) & ONE != 0
            if is_word and (between or is_single or not by_word):
                unit += 1
                # A wanted unit ends with the last byte of a word before the next unit begins.
                while row < len(wanted) and wanted[row, 0] == text and wanted[row, 1] < unit:
                    spans[row, 1] = end - begin
                    row += 1
                if row == len(wanted) or wanted[row, 0] != text:
                    break
                if wanted[row, 1] == unit:
                    spans[row, 0] = at - begin
            at += width
            between = is_single or not is_word
            if is_word:
                end = at
        while row < len(wanted) and wanted[row, 0] == text:
            spans[row, 1] = end - begin
            row += 1
    return spans
