"""Split lines of JSON objects into columns of documents; lines that are not plain are refused.

A line is plain if its outcome can be told from its bytes alone: an object of unique keys without
escapes, with a text. Everything else, all faults included, is left to the careful decoder.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.raw.kernels.json_values import (
    COMMA,
    FAILED,
    LEFT_BRACE,
    MAX_DEPTH,
    MAX_KEYS,
    NEWLINE,
    NUMBER_BYTES,
    POINT,
    QUOTE,
    RIGHT_BRACE,
    RIGHT_BRACKET,
    copy_key,
    copy_number,
    copy_scalar,
    skip_blanks,
    unescape,
)
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.many_bytes import ONE, find_byte

Bytes = NDArray[np.uint8]
Columns = NDArray[np.uint8]  # a row each
Positions = NDArray[np.uint64]

NUM_COLUMNS = 6
TEXT, ID, URL, META = 0, 1, 4, 5  # columns; 2 and 3 are language and licence
PLAIN, RESPELLED, REFUSED = 0, 1, 2  # kinds of lines; RESPELLED: `meta` is to be encoded again


@njit(**ARRAY_KERNEL)
def close_values(
    data: Bytes, at: int, out: Bytes, end: int, closings: Bytes, depth: int
) -> tuple[int, int, int]:
    """Copy the brackets that close behind a value, then a comma; the third value is the depth."""
    while depth:
        at = skip_blanks(data, at)
        out[end] = data[at]
        is_comma = data[at] == COMMA
        if not is_comma and data[at] != closings[depth - 1]:
            return FAILED, end, depth
        at, end = at + ONE, end + ONE
        if is_comma:
            break
        depth -= 1
    return at, end, depth


@njit(**ARRAY_KERNEL)
def copy_value(
    data: Bytes, at: int, out: Bytes, end: int, keys: Positions, num_keys: int
) -> tuple[int, int, bool]:
    """Copy any value without its blanks; the third value is whether an encoder spells it so."""
    closings, firsts = np.empty(MAX_DEPTH, np.uint8), np.empty(MAX_DEPTH, np.int64)
    depth, is_canonical, is_same, is_open = 0, True, True, False
    while at != FAILED:
        # In ASCII both closing brackets are two behind the opening ones.
        closing = data[at] + 2
        is_open = closing in (RIGHT_BRACE, RIGHT_BRACKET)
        if is_open and depth == MAX_DEPTH:
            break
        if is_open:
            out[end] = data[at]
            at, end = skip_blanks(data, at + ONE), end + ONE
            closings[depth], firsts[depth] = closing, num_keys
            depth += 1
            is_open = data[at] != closing
        else:
            at, end, is_same = copy_scalar(data, at, out, end)
            is_canonical = is_canonical and is_same
        if at != FAILED and not is_open:
            at, end, left = close_values(data, at, out, end, closings, depth)
            # The keys of closed objects are forgotten; those of open ones stay before them.
            num_keys = firsts[left] if left < depth else num_keys
            depth = left
        if depth == 0 or at == FAILED:
            return at, end, is_canonical
        at = skip_blanks(data, at)
        if closings[depth - 1] == RIGHT_BRACE:
            num_keys += 1
            at, end, is_same = copy_key(data, at, out, end, keys, (firsts[depth - 1], num_keys))
            is_canonical = is_canonical and is_same
    return FAILED, end, False


@njit(**ARRAY_KERNEL)
def role_of(data: Bytes, span: tuple[int, int], names: Bytes, ends: Positions) -> int:
    """Return the column of a key by the names of the columns, META if none is its name."""
    size, first = span[1] - span[0], uint64(0)
    for role in range(NUM_COLUMNS):
        if ends[role] - first == size and size:
            place = uint64(0)
            while place < size and names[first + place] == data[span[0] + place]:
                place += ONE
            if place == size:
                return role
        first = ends[role]
    return META


@njit(**ARRAY_KERNEL)
def take_value(
    data: Bytes, at: int, role: int, columns: Columns, tops: Positions
) -> tuple[int, bool]:
    """Write a value into the column of its role, and return whether `meta` goes without it."""
    column, end = columns[role], tops[role]
    if data[at] == QUOTE:
        after, stop = unescape(data, at + ONE, column, end)
        tops[role] = stop
        return after, role != URL and (role != ID or stop > end)
    if role == TEXT:
        return FAILED, False
    if role == ID and NUMBER_BYTES[data[at]]:
        after, stop, is_canonical = copy_number(data, at, column, end)
        is_whole = True
        for place in range(end, stop):
            is_whole = is_whole and column[place] != POINT
        if is_whole:
            tops[role] = stop
        return after if is_canonical else FAILED, is_whole
    return at, False


@njit(**ARRAY_KERNEL)
def read_object(
    data: Bytes,
    at: int,
    names: tuple[Bytes, Positions],
    columns: Columns,
    tops: Positions,
    keys: Positions,
) -> tuple[int, bool]:
    """Write a line into the columns, which end at `tops`; `at` is behind its first brace.

    Returns the position of the newline, FAILED if the line is not plain, and whether an encoder
    spells its `meta` so.
    """
    meta, has_text, is_canonical, num_keys = columns[META], False, True, 0
    first = end = tops[META] + ONE
    meta[end - ONE] = LEFT_BRACE
    while True:
        num_keys += 1
        # Each key is written to `meta`, and over if its value goes to a column of its own.
        meta[end] = COMMA
        at, value, is_plain = copy_key(
            data,
            skip_blanks(data, at),
            meta,
            end + ONE if end > first else end,
            keys,
            (0, num_keys),
        )
        if at == FAILED or not is_plain:
            return FAILED, False
        role = role_of(data, (keys[num_keys - 1, 0], keys[num_keys - 1, 1]), names[0], names[1])
        after, is_taken = take_value(data, at, role, columns, tops) if role != META else (at, False)
        has_text = has_text or role == TEXT
        if is_taken:
            at = after
        elif after != FAILED:
            at, end, is_plain = copy_value(data, at, meta, value, keys, num_keys)
            is_canonical = is_canonical and is_plain
        if at == FAILED or after == FAILED:
            return FAILED, False
        at = skip_blanks(data, at)
        if data[at] != COMMA:
            break
        at += ONE
    meta[end], tops[META] = RIGHT_BRACE, end + ONE
    newline = skip_blanks(data, at + ONE)
    is_whole = has_text and data[at] == RIGHT_BRACE and data[newline] == NEWLINE
    return newline if is_whole else FAILED, is_canonical


@njit(**ARRAY_KERNEL)
def split_json_lines(
    data: Bytes,
    sizes: tuple[int, int],
    names: tuple[Bytes, Positions],
    columns: Columns,
    ends: Positions,
    lines: Positions,
) -> tuple[int, int]:
    """Write the plain lines of `data` into the columns; return how many lines and plain ones.

    `sizes` are those of `data` without its padding, and of the longest plain line; `names` the
    names of the columns in one, and where each ends. `lines` gets (start, stop, kind) of each line,
    `ends` those of each plain line in each column, after the 0 that it begins with.
    """
    tops, keys = np.zeros(NUM_COLUMNS, np.uint64), np.empty((MAX_KEYS, 2), np.uint64)
    at, num_lines, num_plain = uint64(0), 0, 0
    while at < sizes[0]:
        start, is_canonical = at, False
        at = skip_blanks(data, start)
        for role in range(NUM_COLUMNS):
            tops[role] = ends[role, num_plain]
        if data[at] == LEFT_BRACE:
            at, is_canonical = read_object(data, at + ONE, names, columns, tops, keys)
        else:
            at = FAILED
        if at == FAILED or at - start > sizes[1]:
            at = find_byte(data, (start, sizes[0]), NEWLINE)
            lines[num_lines, 2] = REFUSED
        else:
            num_plain += 1
            for role in range(NUM_COLUMNS):
                ends[role, num_plain] = tops[role]
            lines[num_lines, 2] = PLAIN if is_canonical else RESPELLED
        lines[num_lines, 0], lines[num_lines, 1] = start, at
        num_lines += 1
        at += ONE
    return num_lines, num_plain
