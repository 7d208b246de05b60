"""Text columns as Arrow buffers that kernels read."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

# Blocks of scripts written without spaces (https://www.unicode.org/Public/UNIDATA/Blocks.txt).
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK unified ideographs
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x116D0, 0x116FF),  # Myanmar extended C
    (0x1AFF0, 0x1B16F),  # Kana extended and supplement
)


_BLOCK_TEXTS = 256


TextBuffers = tuple[NDArray[np.uint8], NDArray[np.int64]]


# Within `shared_buffers`: Polars' own view of the last column, and its buffers.
_SHARED: ContextVar[list[tuple[Any, TextBuffers]] | None] = ContextVar("_SHARED", default=None)


_TABLE_SIZE = 0x20000  # planes 0 and 1; the kernel has a rule for the rest


_AFTER_IDEOGRAPHS = 0x40000  # planes 2 and 3


def normalized_text(texts: pl.Series) -> pl.Series:
    """Lower-case texts as words are cut from them, each code point to exactly one; null stays null.

    Polars lower-cases all letters except two: İ, which would become two code points, becomes i, and
    the final sigma ς, which would depend on its position, becomes σ.
    """
    lowered = texts.str.replace_all("İ", "i", literal=True).str.to_lowercase()
    return lowered.str.replace_all("ς", "σ", literal=True)


@cache
def code_point_entries(
    lowercase: bool = True, punctuation: Literal["remove", "keep"] = "remove"
) -> NDArray[np.uint32]:
    """Make the table of code points that `kernels.words` reads, uint32; takes 20 ms, once.

    It has 0x20000 entries, and all 0x110000 if punctuation is kept, since no rule gives the rest.
    Categories are those of Python's `unicodedata`: a new Unicode version may turn a code point that
    was not assigned before from a separator into a letter.
    """
    from assets.text.kernels.words import BLANK, SINGLE, SPACE, WORD

    codes = np.arange(_TABLE_SIZE, dtype=np.uint32)
    codes[0xD800:0xE000] = ord(" ")
    text = codes.tobytes().decode("utf-32-le")
    written = normalized_text(pl.Series([text]))[0] if lowercase else text
    characters = codes.view("<U1")
    is_mark = np.array([unicodedata.category(character)[0] == "M" for character in text])
    is_letter = np.strings.isalnum(characters) | (characters == "_") | is_mark
    is_space = np.strings.isspace(characters)
    is_word = ~is_space if punctuation == "keep" else is_letter
    entries = np.where(is_word, np.frombuffer(written.encode("utf-32-le"), np.uint32), BLANK)
    entries = entries | np.where(is_word, WORD, 0) | np.where(is_space, SPACE, 0)
    for first, last in _UNSPACED:
        entries[first : last + 1] |= np.where(is_letter[first : last + 1], SINGLE, 0)
    if punctuation == "keep":
        rest = np.arange(_TABLE_SIZE, sys.maxunicode + 1)
        entries = np.append(entries, rest | np.where(rest < _AFTER_IDEOGRAPHS, SINGLE, WORD))
    return entries.astype(np.uint32)


@contextmanager
def shared_buffers() -> Iterator[None]:
    """Keep the last result of `text_buffers` within, for calls with the same column: no new copy.

    The copy of a column takes 0.1 CPU s/GB. It is freed at the end.
    """
    token = _SHARED.set([])
    try:
        yield
    finally:
        _SHARED.reset(token)


def text_buffers(texts: pl.Series) -> TextBuffers:
    """Return UTF-8 bytes and offsets, int64 [n + 1], of n texts (String) without nulls."""
    shared = _SHARED.get()
    if shared is None:
        return _copied(texts)
    own: Any = texts.to_arrow(compat_level=pl.CompatLevel.newest())  # no copy
    if not shared or _place(shared[0][0]) != _place(own):
        shared[:] = [(own, _copied(texts))]
    return shared[0][1]


def _place(view: Any) -> tuple[int, ...]:
    """Return where a column is in memory; no other can be there while the view is kept."""
    addresses = (0 if buffer is None else buffer.address for buffer in view.buffers())
    return (view.offset, len(view), *addresses)


def _copied(texts: pl.Series) -> TextBuffers:
    array: Any = texts.to_arrow()
    _, offsets, data = array.buffers()
    if len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return held, np.frombuffer(offsets, np.int64)[: len(texts) + 1]


def texts_in(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pl.Series:
    """Return the n texts of a buffer of UTF-8 bytes, offsets int64 [n + 1], without a copy."""
    import pyarrow

    buffers = [pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    array = pyarrow.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)
    return pl.Series(array, dtype=pl.String)


def spans_in(data: NDArray[np.uint8], spans: NDArray[np.int64]) -> pl.Series:
    """Return the texts of spans, int64 [n >= 1, 2]: first byte, end; without a copy.

    The spans are in order and do not overlap.
    """
    return texts_in(data, np.ascontiguousarray(spans).ravel()).gather_every(2)


def blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yield rows and offsets of runs of 256 texts, so that the words of a run fit the CPU cache."""
    for first in range(0, len(offsets) - 1, _BLOCK_TEXTS):
        block = offsets[first : first + _BLOCK_TEXTS + 1]
        yield slice(first, first + len(block) - 1), block
