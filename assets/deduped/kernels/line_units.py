"""Split texts into lines or paragraphs, hash them, and remove some of them.

Purpose: the pass over all bytes that finds repeated lines. It returns Arrow buffers, so that the
texts of the few repeated lines are taken from them without a Python object per line.
A *unit* is a line or a paragraph. A line ends at "\\n"; a paragraph is a run of lines that are not
blank (ASCII white space).
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import ONE, find_byte
from assets.text.kernels.utf8 import count_continuations

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Units = tuple[Hashes, Offsets, Bytes, Offsets]

NEWLINE, BLANK = 0x0A, 0x20

# Read-only, as Arrow's memory is; numba then accepts writable arrays as well.
_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_offsets = types.Array(types.int64, 1, "C", readonly=True)


@njit(**ARRAY_INLINED)
def _is_space(byte: int) -> bool:
    """Check for ASCII white space."""
    return byte == BLANK or (byte >= 0x09 and byte <= 0x0D)


@njit(**ARRAY_INLINED)
def _is_blank(data: Bytes, at: int, stop: int) -> bool:
    """Check that data[at:stop] is white space or empty."""
    while at < stop and _is_space(data[at]):
        at += ONE
    return at >= stop


@njit(**ARRAY_INLINED)
def _unit_end(data: Bytes, span: tuple[int, int], by_paragraph: bool) -> tuple[int, int]:
    """Return the end of the unit that begins at the span's start, and the next line's start.

    A blank line between paragraphs is a unit of its own.
    """
    start, stop = span
    end = find_byte(data, (start, stop), NEWLINE)
    if by_paragraph and not _is_blank(data, start, end):
        while end < stop:
            next_end = find_byte(data, (end + ONE, stop), NEWLINE)
            if _is_blank(data, end + ONE, next_end):
                break
            end = next_end
    return end, end + ONE


@njit(**ARRAY_INLINED)
def _fold(data: Bytes, span: tuple[int, int], folded: Bytes, size: int) -> int:
    """Append data[span] with each run of white space as one blank, trimmed; return the new size."""
    at, stop = span
    begin, after_space = size, ONE
    while at < stop:
        byte = data[at]
        is_space = uint64(_is_space(byte))
        folded[size] = BLANK if is_space else byte
        size += ONE ^ (is_space & after_space)
        after_space = is_space
        at += ONE
    return size - ONE if size > begin and after_space else size


@njit(**ARRAY_INLINED)
def _copy(data: Bytes, span: tuple[int, int], out: Bytes, size: int) -> int:
    """Append data[span] to `out` and return the new size."""
    at, stop = span
    while at < stop:
        out[size] = data[at]
        at += ONE
        size += ONE
    return size


@njit(
    types.Tuple((types.uint64[::1], types.int64[::1], types.uint8[::1], types.int64[::1]))(
        _bytes, _offsets, types.boolean, types.boolean, types.int64
    ),
    **ARRAY_KERNEL,
)
def find_units(
    data: Bytes, offsets: Offsets, by_paragraph: bool, folds: bool, min_chars: int
) -> Units:
    """Hash the compared form of every unit of n texts, UTF-8 with int64 offsets [n + 1].

    The compared form is the unit itself or, if `folds`, with its white space folded to blanks.
    Returns hashes, uint64 [units]; the text number of each, int64 [units]; and the compared forms:
    UTF-8 bytes and offsets, int64 [units + 1]. A blank unit, and one whose compared form has fewer
    than `min_chars` characters, have the hash 0 and no bytes.
    """
    first, last = uint64(offsets[0]), uint64(offsets[-1])
    most = len(offsets) - 1
    for at in range(first, last):
        most += data[at] == NEWLINE
    hashes, rows = np.zeros(most, np.uint64), np.empty(most, np.int64)
    held, ends = np.empty(last - first + ONE, np.uint8), np.zeros(most + 1, np.int64)
    count, size = 0, uint64(0)
    for row in range(len(offsets) - 1):
        start, stop = uint64(offsets[row]), uint64(offsets[row + 1])
        is_last = False
        while not is_last:
            end, next_start = _unit_end(data, (start, stop), by_paragraph)
            is_last = end >= stop
            begin = size
            # Too few bytes are too few characters: such a unit is not even copied.
            if end - start >= uint64(min_chars) and not _is_blank(data, start, end):
                if folds:
                    size = _fold(data, (start, end), held, size)
                else:
                    size = _copy(data, (start, end), held, size)
                # Bytes less continuations, without a difference that could fall below 0.
                if size - begin < uint64(min_chars) + count_continuations(held, begin, size):
                    size = begin
                else:
                    hashes[count] = hash_bytes(held, begin, size)
            rows[count] = row
            count += 1
            ends[count] = size
            start = next_start
    return hashes[:count], rows[:count], held[:size], ends[: count + 1]


@njit(
    types.Tuple((types.uint8[::1], types.int64[::1]))(
        _bytes, _offsets, types.boolean, types.boolean[::1]
    ),
    **ARRAY_KERNEL,
)
def drop_units(
    data: Bytes, offsets: Offsets, by_paragraph: bool, is_dropped: NDArray[np.bool_]
) -> tuple[Bytes, Offsets]:
    """Return bytes and offsets, int64 [n + 1], of n texts without the marked units, bool [units].

    The remaining units are joined by one "\\n". A dropped paragraph takes the blank lines after it
    with it.
    """
    out = np.empty(offsets[-1] - offsets[0] + 1, np.uint8)
    new_offsets = np.zeros(len(offsets), np.int64)
    unit, size = 0, uint64(0)
    for row in range(len(offsets) - 1):
        start, stop = uint64(offsets[row]), uint64(offsets[row + 1])
        is_first, is_last, drops = True, False, False
        while not is_last:
            end, next_start = _unit_end(data, (start, stop), by_paragraph)
            is_last = end >= stop
            is_tail = by_paragraph and drops and _is_blank(data, start, end)
            drops = is_dropped[unit] or is_tail
            if not drops:
                if not is_first:
                    out[size] = NEWLINE
                    size += ONE
                size = _copy(data, (start, end), out, size)
                is_first = False
            unit += 1
            start = next_start
        new_offsets[row + 1] = size
    return out[:size], new_offsets
