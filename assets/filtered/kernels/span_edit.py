"""Work on spans of texts in UTF-8: count characters, choose among overlaps, replace."""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL
from assets.text.kernels.utf8 import decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


KEPT, DROPPED, HIDDEN = 1, 0, 2
NEWLINE = 10


@njit(**ARRAY_KERNEL)
def _count_chars(data: Bytes, start: int, stop: int) -> int:
    count = 0
    for byte in data[start:stop]:  # eight times as fast as by index
        count += byte & 0xC0 != 0x80
    return count


@njit(**ARRAY_KERNEL)
def to_characters(data: Bytes, offsets: Integers, spans: Integers) -> None:
    """Replace the first and the last byte of spans, int64 [n, >= 3], by characters of their text.

    Spans: number of the text, start and end; fastest in order and without overlap. data: UTF-8
    bytes; offsets: int64 [texts + 1].
    """
    row, at, chars = -1, 0, 0
    for i in range(len(spans)):
        if spans[i, 0] != row:
            row, chars = spans[i, 0], 0
            at = offsets[row]
        for k in (1, 2):
            chars += _count_chars(data, at, spans[i, k])
            chars -= _count_chars(data, spans[i, k], at)
            at = spans[i, k]
            spans[i, k] = chars


@njit(**ARRAY_KERNEL)
def to_bytes(data: Bytes, offsets: Integers, spans: Integers) -> None:
    """Replace the characters of spans, as `to_characters` makes them, by bytes of the data."""
    row, at, chars = -1, 0, 0
    for i in range(len(spans)):
        if spans[i, 0] != row:
            row, chars = spans[i, 0], 0
            at = offsets[row]
        for k in (1, 2):
            while chars < spans[i, k]:  # as many bytes as characters are missing are too few
                stop = at + spans[i, k] - chars
                chars += _count_chars(data, at, stop)
                at = stop
            while at < offsets[row + 1] and data[at] & 0xC0 == 0x80:
                at += 1
            spans[i, k] = at


@njit(**ARRAY_KERNEL)
def are_sorted(spans: Integers) -> bool:
    """Check the order of spans, int64 [n, 4]: by text and start, the longest and first kind first.

    Sorting by four keys takes 0.1 s for a million that are in order.
    """
    for i in range(1, len(spans)):
        for k in range(4):
            before, own = spans[i - 1, k], spans[i, k]
            if own != before:
                if (own > before) == (k == 2):
                    return False
                break
    return True


@njit(**ARRAY_KERNEL)
def choose_spans(spans: Integers, last_kind: int, num_kinds: int) -> Bytes:
    """Choose among sorted spans, int64 [n, 4], that overlap: the longest, then the first kind.

    Returns KEPT, DROPPED (for a span that holds it) or HIDDEN (by one that it only overlaps).
    last_kind: the kind that counts after all others.
    """
    marks = np.zeros(len(spans), np.uint8)
    last, last_rank = -1, 0
    for i in range(len(spans)):
        kind = spans[i, 3]
        rank = ((spans[i, 2] - spans[i, 1]) * 2 + (kind != last_kind)) * num_kinds - kind
        is_free = last < 0 or spans[last, 0] != spans[i, 0] or spans[last, 2] <= spans[i, 1]
        if is_free:
            marks[i], last, last_rank = KEPT, i, rank
            continue
        better, worse = (i, last) if rank >= last_rank else (last, i)
        is_inside = spans[better, 1] <= spans[worse, 1] and spans[worse, 2] <= spans[better, 2]
        marks[better], marks[worse] = KEPT, DROPPED if is_inside else HIDDEN
        last, last_rank = better, max(rank, last_rank)
    return marks


@njit(**ARRAY_KERNEL)
def mark_near(places: Integers, kind: int, spans: Integers, reach: int, is_near: Bytes) -> None:
    """Mark the texts with a place of a kind at most `reach` characters from one of n spans.

    places: int64 [p, >= 4]: text, start, end, kind, in any order; spans: the same, in order and
    without overlap. Those of texts that are marked are passed over.
    """
    for i in range(len(places)):
        row, start, end = places[i, 0], places[i, 1], places[i, 2]
        if places[i, 3] != kind or is_near[row]:
            continue
        low, high = 0, len(spans)  # the first span that begins after the place does
        while low < high:
            middle = (low + high) // 2
            own = spans[middle, 0]
            if own < row or (own == row and spans[middle, 1] <= start):
                low = middle + 1
            else:
                high = middle
        follows = low > 0 and spans[low - 1, 0] == row and spans[low - 1, 2] + reach >= start
        leads = low < len(spans) and spans[low, 0] == row and spans[low, 1] <= end + reach
        is_near[row] = follows or leads


@njit(**KERNEL)
def _is_white(code: int) -> bool:
    """Check for White_Space of Unicode."""
    if code < 0x80:
        return code == 32 or 9 <= code <= 13
    return bool(
        code in (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
        or 0x2000 <= code <= 0x200A
    )


@njit(**ARRAY_KERNEL)
def find_edges(data: Bytes, offsets: Integers) -> Integers:
    """Return where n texts begin and end without blank lines first and white space last.

    Returns int64 [n, 2]. data: UTF-8 bytes; offsets: int64 [n + 1].
    """
    edges = np.empty((len(offsets) - 1, 2), np.int64)
    for row in range(len(edges)):
        first, stop = offsets[row], offsets[row + 1]
        while stop > first:
            last = last_start(data, stop)
            if not _is_white(decode(data, last)[0]):
                break
            stop = last
        at = first
        while at < stop:
            code, size = decode(data, at)
            if not _is_white(code):
                break
            at += size
            if code == NEWLINE:
                first = at
        edges[row] = first, stop
    return edges


@njit(**ARRAY_KERNEL)
def replace_spans(
    data: Bytes, offsets: Integers, spans: Integers, words: Bytes, ends: Integers
) -> tuple[Bytes, Integers]:
    """Return the bytes of n texts with words in place of spans, and their offsets, int64 [n + 1].

    spans: int64 [s, 4]: text, first byte, end, number of the word; in order and without overlap.
    words: the bytes of all words; ends: where each ends.
    """
    size = offsets[-1] - offsets[0]
    for i in range(len(spans)):
        word = spans[i, 3]
        size += ends[word] - (ends[word - 1] if word else 0) - (spans[i, 2] - spans[i, 1])
    edited, new_offsets = np.empty(size, np.uint8), np.zeros(len(offsets), np.int64)
    at, done, i = 0, offsets[0], 0
    for row in range(len(offsets) - 1):
        while i < len(spans) and spans[i, 0] == row:
            start, word = spans[i, 1], spans[i, 3]
            edited[at : at + start - done] = data[done:start]
            at, done = at + start - done, spans[i, 2]
            own = words[(ends[word - 1] if word else 0) : ends[word]]
            edited[at : at + len(own)] = own
            at += len(own)
            i += 1
        stop = offsets[row + 1]
        edited[at : at + stop - done] = data[done:stop]
        at, done = at + stop - done, stop
        new_offsets[row + 1] = at
    return edited, new_offsets
