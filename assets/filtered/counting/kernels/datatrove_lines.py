"""Count lines and paragraphs as datatrove 0.10 does.

Lines are not stripped: indentation makes them long and different, a blank at the end hides a mark.
Only bullets and ellipses look through it, and count all lines of `str.splitlines`, blank ones too.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.text_counts import SHORT_LINE_CHARS
from assets.filtered.kernels.text_lines import (
    PROBE_LIMIT,
    drop_space,
    ends_in_ellipsis,
    skip_space,
)
from assets.filtered.kernels.text_words import TERMINAL
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import ONE, find_byte
from assets.text.kernels.utf8 import count_continuations, decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

NEWLINE, CARRIAGE_RETURN, BULLET, DASH = 0x0A, 0x0D, 0x2022, 0x2D
PARAGRAPH = uint64(0x9E3779B97F4A7C15)  # no paragraph is equal to a line
FIRST_SLOTS = 64


class LineKind(IntEnum):
    """Counts of lines, in the order of the columns; numba takes the members as integers."""

    CHARACTERS = 0
    NEWLINES = auto()
    HASHES = auto()  # "#"
    SPLIT_LINES = auto()  # of str.splitlines
    BULLET_LINES = auto()
    ELLIPSIS_LINES = auto()
    LINES = auto()  # between runs of "\n"
    DUPLICATE_LINES = auto()
    DUPLICATE_LINE_CHARACTERS = auto()
    FILLED_LINES = auto()  # not of white space alone
    TERMINAL_LINES = auto()
    SHORT_LINES = auto()
    DUPLICATE_FILLED_CHARACTERS = auto()
    PARAGRAPHS = auto()  # between runs of two "\n" or more
    DUPLICATE_PARAGRAPHS = auto()
    DUPLICATE_PARAGRAPH_CHARACTERS = auto()


@njit(**ARRAY_KERNEL)
def count_raw_lines(data: Bytes, span: tuple[int, int], kinds: Bytes, counts: Integers) -> None:
    """Fill `counts`, int64 [LineKind], for the text data[span] of uint64 bounds."""
    start, stop = span
    for i in range(start, stop):
        counts[LineKind.CHARACTERS] += (data[i] & 0xC0) != 0x80
        counts[LineKind.NEWLINES] += data[i] == NEWLINE
        counts[LineKind.HASHES] += data[i] == ord("#")
    if start == stop:
        return
    _count_split_lines(data, span, kinds, counts)
    slots = FIRST_SLOTS
    while slots < 4 * (counts[LineKind.NEWLINES] + 1):
        slots *= 2
    seen = np.zeros(slots, np.uint64)
    _count_lines(data, span, kinds, seen, counts)
    _count_paragraphs(data, span, kinds, seen, counts)


@njit(**ARRAY_KERNEL)
def _count_split_lines(data: Bytes, span: tuple[int, int], kinds: Bytes, counts: Integers) -> None:
    start, stop = span
    while start < stop:
        end = start
        width = uint64(0)
        while end < stop:
            width = _break_at(data, end, stop)
            if width:
                break
            end += ONE
        counts[LineKind.SPLIT_LINES] += 1
        first, _, _ = skip_space(data, (start, end), kinds)
        if first < end:
            code, _ = decode(data, first)
            counts[LineKind.BULLET_LINES] += (code == BULLET) | (code == DASH)
            last, _, _ = drop_space(data, end, kinds)
            counts[LineKind.ELLIPSIS_LINES] += ends_in_ellipsis(data, first, last)
        start = end + width


@njit(**ARRAY_INLINED)
def _break_at(data: Bytes, at: int, stop: int) -> int:
    """Return the bytes of the line break of `str.splitlines` at a byte, 0 for none."""
    byte = data[at]
    if byte > 0x1E and byte != 0xC2 and byte != 0xE2:
        return uint64(0)
    if byte == CARRIAGE_RETURN and at + ONE < stop and data[at + ONE] == NEWLINE:
        return uint64(2)
    if 0x0A <= byte <= 0x0D or 0x1C <= byte <= 0x1E:
        return ONE
    if byte == 0xC2:
        return uint64(2) * uint64(data[at + ONE] == 0x85)
    is_separator = byte == 0xE2 and data[at + ONE] == 0x80 and data[at + uint64(2)] & 0xFE == 0xA8
    return uint64(3) * uint64(is_separator)


@njit(**ARRAY_KERNEL)
def _count_lines(
    data: Bytes, span: tuple[int, int], kinds: Bytes, seen: Hashes, counts: Integers
) -> None:
    start, stop = span
    edges = np.int64(data[start] == NEWLINE) + np.int64(data[stop - ONE] == NEWLINE)
    counts[LineKind.LINES] += edges  # re.split leaves an empty line at each edge
    counts[LineKind.DUPLICATE_LINES] += edges == 2
    while start < stop:
        end = find_byte(data, (start, stop), NEWLINE)
        if end > start:
            length = _length(data, start, end)
            is_copy = _enter(seen, hash_bytes(data, start, end))
            counts[LineKind.LINES] += 1
            counts[LineKind.DUPLICATE_LINES] += is_copy
            counts[LineKind.DUPLICATE_LINE_CHARACTERS] += is_copy * length
            if skip_space(data, (start, end), kinds)[0] < end:
                counts[LineKind.FILLED_LINES] += 1
                counts[LineKind.DUPLICATE_FILLED_CHARACTERS] += is_copy * length
                last = kinds[decode(data, last_start(data, end))[0]]
                counts[LineKind.TERMINAL_LINES] += (last & TERMINAL) != 0
                counts[LineKind.SHORT_LINES] += length <= SHORT_LINE_CHARS
        start = end + ONE


@njit(**ARRAY_KERNEL)
def _count_paragraphs(
    data: Bytes, span: tuple[int, int], kinds: Bytes, seen: Hashes, counts: Integers
) -> None:
    start, stop = span
    start, _, _ = skip_space(data, span, kinds)
    if start == stop:
        counts[LineKind.PARAGRAPHS] = 1
        return
    stop, _, _ = drop_space(data, stop, kinds)
    first = start
    while first < stop:
        end = find_byte(data, (start, stop), NEWLINE)
        after = end
        while after < stop and data[after] == NEWLINE:
            after += ONE
        if end == stop or after > end + ONE:
            is_copy = _enter(seen, hash_bytes(data, first, end) ^ PARAGRAPH)
            counts[LineKind.PARAGRAPHS] += 1
            counts[LineKind.DUPLICATE_PARAGRAPHS] += is_copy
            length = _length(data, first, end)
            counts[LineKind.DUPLICATE_PARAGRAPH_CHARACTERS] += is_copy * length
            first = after
        start = after


@njit(**ARRAY_INLINED)
def _length(data: Bytes, start: int, stop: int) -> int:
    return np.int64(stop - start) - np.int64(count_continuations(data, start, stop))


@njit(**ARRAY_INLINED)
def _enter(seen: Hashes, key: int) -> int:
    """Enter a key in a table that is at most half full; return 1 if it was there.

    A key that finds no slot within PROBE_LIMIT is not entered.
    """
    mask = uint64(len(seen) - 1)
    key = max(key, ONE)
    slot, probes = (key >> uint64(32)) & mask, 1
    while seen[slot] != 0 and seen[slot] != key and probes < PROBE_LIMIT:
        slot = (slot + ONE) & mask
        probes += 1
    if seen[slot] == 0:
        seen[slot] = key
        return 0
    return np.int64(seen[slot] == key)
