"""Cut texts into paragraphs without copying them, as offsets into Arrow's text buffers.

The segments follow each other without gaps, so their starts are Arrow offsets over the same bytes.
"""
# mypy: disable-error-code="untyped-decorator"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_NEWLINE, _BLANK = 0x0A, 0x20


def cut_paragraphs(data: Bytes, offsets: Offsets, min_chars: int) -> tuple[Offsets, Offsets]:
    """Return the starts of segments, int64 [segments + 1], and the segments of n texts.

    The second array, int64 [n + 1], counts segments: text t has segments[t] to segments[t + 1], and
    segment i is data[begins[i]:begins[i + 1]]. A segment ends with the blank lines (of ASCII white
    space) after a paragraph, or, in a text without blank lines inside, with each line. A segment
    under `min_chars` characters other than ASCII white space is joined to the next, the last to the
    one before. An empty text has no segment.
    """
    most = np.zeros(len(offsets), np.int64)
    _count_lines(data, offsets, most)
    begins = np.empty(most[-1] + 1, np.int64)
    segments = np.zeros(len(offsets), np.int64)
    _cut_texts(data, offsets, min_chars, begins, segments)
    return begins[: segments[-1] + 1], segments


@njit(**ARRAY_KERNEL)
def _count_lines(data: Bytes, offsets: Offsets, most: Offsets) -> None:
    """Fill in the running number of lines, an upper bound of the segments."""
    for row in range(len(offsets) - 1):
        lines = 0
        for byte in data[offsets[row] : offsets[row + 1]]:
            lines += byte == _NEWLINE
        most[row + 1] = most[row] + lines + 1


@njit(**ARRAY_KERNEL)
def _cut_texts(
    data: Bytes, offsets: Offsets, min_chars: int, begins: Offsets, segments: Offsets
) -> None:
    count = 0
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        text, places = data[start:stop], begins[count:]
        num = _cut_text(text, min_chars, True, places)
        if num == 1:
            num = _cut_text(text, min_chars, False, places)
        places[:num] += start
        count += num
        segments[row + 1] = count
    begins[count] = offsets[-1]


@njit(**ARRAY_KERNEL)
def _cut_text(text: Bytes, min_chars: int, at_blank_lines: bool, places: Offsets) -> int:
    """Write the starts of the segments, and return their number."""
    num = characters = start = 0
    is_open = True  # the next line with text may begin a segment
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
