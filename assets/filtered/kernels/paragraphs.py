"""Cut texts into paragraphs without copying them: where each begins in Arrow's text buffers.

1.5 GB/s on one core; the pieces follow each other without gaps, so that their starts are Arrow
offsets over the same bytes.
"""
# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_NEWLINE, _BLANK = 0x0A, 0x20


def cut_paragraphs(data: Bytes, offsets: Offsets, min_chars: int) -> tuple[Offsets, Offsets]:
    """Return where pieces begin, int64 [pieces + 1], and the pieces of n texts, int64 [n + 1].

    Pieces i of text t are pieces[t] <= i < pieces[t + 1]; piece i is data[begins[i]:begins[i + 1]].
    A piece ends with the blank lines after a paragraph (lines of ASCII white space), or, in a text
    that these leave in one piece, with each line. A piece under `min_chars` characters that are not
    ASCII white space is joined to the next, the last to the one before. An empty text has none.
    """
    most = np.zeros(len(offsets), np.int64)
    _count_lines(data, offsets, most)
    begins = np.empty(most[-1] + 1, np.int64)
    pieces = np.zeros(len(offsets), np.int64)
    _cut_texts(data, offsets, min_chars, begins, pieces)
    return begins[: pieces[-1] + 1], pieces


@njit(cache=True, nogil=True)
def _count_lines(data: Bytes, offsets: Offsets, most: Offsets) -> None:
    """Fill in the running number of lines, at least as many as pieces."""
    for row in range(len(offsets) - 1):
        lines = 0
        for byte in data[offsets[row] : offsets[row + 1]]:
            lines += byte == _NEWLINE
        most[row + 1] = most[row] + lines + 1


@njit(cache=True, nogil=True)
def _cut_texts(
    data: Bytes, offsets: Offsets, min_chars: int, begins: Offsets, pieces: Offsets
) -> None:
    found = 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        text, places = data[start:stop], begins[found:]
        num = _cut_text(text, min_chars, True, places)
        if num == 1:
            num = _cut_text(text, min_chars, False, places)
        places[:num] += start
        found += num
        pieces[row + 1] = found
    begins[found] = offsets[-1]


@njit(cache=True, nogil=True)
def _cut_text(text: Bytes, min_chars: int, at_blank_lines: bool, places: Offsets) -> int:
    """Write where the pieces begin, and return how many there are."""
    num = characters = start = 0
    is_open = True  # whether the next line with text may begin a piece
    while start < len(text):
        stop = start
        line = 0
        while stop < len(text) and text[stop] != _NEWLINE:
            line += text[stop] > _BLANK and text[stop] & 0xC0 != 0x80
            stop += 1
        if line and is_open and (num == 0 or characters >= min_chars):
            places[num] = start if num else 0
            num, characters = num + 1, 0
        is_open = not (line and at_blank_lines)
        characters += line
        start = stop + 1
    if num == 0 and len(text):
        places[0], num = 0, 1
    if num > 1 and characters < min_chars:
        num -= 1
    return num
