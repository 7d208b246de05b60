"""Byte spans of the shingles of a text in its joined words, one block at a time.

Purpose: one loop over word and character shingles for every kind of hash. With blocks, a text of
50 MB needs no arrays of its size. Use:

    count, state = next_spans(text, shingle, first_span(text, shingle), spans)
    while count:
        ...
        count, state = next_spans(text, shingle, state, spans)

`text` is (joined, starts) of one text with at least one word, as `join_words` returns them.
`shingle` is (number of words or characters, True for characters). A text shorter than a shingle is
one shingle.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED

BLOCK = 1024  # shingles: their hashes stay in the first-level cache for all 112 permutations

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Text = tuple[Bytes, Offsets]
Shingle = tuple[int, bool]
Span = tuple[int, int]


@njit(**ARRAY_INLINED)
def _after_character(joined: Bytes, at: int) -> int:
    """Return the position after the UTF-8 character that begins at position `at`."""
    byte = joined[at]
    return at + 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)


@njit(**ARRAY_INLINED)
def first_span(text: Text, shingle: Shingle) -> Span:
    """Return the first state of `next_spans`: the first character shingle, or (0, 0) for words."""
    (joined, starts), (ngram, is_characters) = text, shingle
    if not is_characters:
        return 0, 0
    end, stop = starts[0], starts[-1] - 1
    for _ in range(ngram):
        if end < stop:
            end = _after_character(joined, end)
    return starts[0], end


@njit(**ARRAY_INLINED)
def _word_spans(starts: Offsets, first: int, ngram: int, spans: Offsets) -> int:
    """Write the spans of the word shingles from word `first` on; return their number."""
    words = min(ngram, len(starts) - 1)
    count = min(BLOCK, len(starts) - words - first)
    begins, ends = starts[first : first + count], starts[first + words :]
    for i in range(count):
        spans[0, i] = begins[i]
        spans[1, i] = ends[i] - 1
    return count


@njit(**ARRAY_INLINED)
def _character_spans(text: Text, span: Span, spans: Offsets) -> tuple[int, Span]:
    """Write character shingles from `span` on; return their number and the next one's span."""
    (joined, starts), (start, end) = text, span
    stop = starts[-1] - 1
    count = 0
    while count < BLOCK and start < stop:
        spans[0, count], spans[1, count] = start, end
        count += 1
        start = stop if end == stop else _after_character(joined, start)
        end = stop if end == stop else _after_character(joined, end)
    return count, (start, end)


@njit(**ARRAY_INLINED)
def next_spans(text: Text, shingle: Shingle, state: Span, spans: Offsets) -> tuple[int, Span]:
    """Write the first byte and the byte after the last one of each shingle, int64 [2, BLOCK].

    Returns the number of shingles in this block, 0 after the last one, and the next state.
    """
    ngram, is_characters = shingle
    if is_characters:
        return _character_spans(text, state, spans)
    count = _word_spans(text[1], state[0], ngram, spans)
    return count, (state[0] + count, 0)
