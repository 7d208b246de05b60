"""Find where records of CSV and of text start, block by block of a file.

`state` holds what is known at the end of a block: an int64 per name below.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Bytes = NDArray[np.uint8]
State = NDArray[np.int64]

AT, START, KIND, ROWS, LINES = 0, 1, 2, 3, 4  # of the state; START: of the row, or of the line
STATE_SIZE = 5
LOST = 7  # the kind after which no further record is found
ROW, FIELD, PLAIN, QUOTED, AFTER_QUOTE, RETURN, BLANK_RETURN = range(7)  # kinds in CSV
GAP, BLANK, FILLED = range(3)  # kinds in text: of the line so far, BLANK behind a filled one

QUOTE, NEWLINE, CARRIAGE_RETURN, SPACE, TAB = 0x22, 0x0A, 0x0D, 0x20, 0x09


@njit(**ARRAY_KERNEL)
def next_csv_row(
    rules: tuple[int, int, bool], data: Bytes, base: int, wanted: int, state: State
) -> int:
    """Return where the first row at or behind `wanted` starts; -1 if not in this block.

    `data` begins at byte `base` of the content. The automaton is that of Python's csv module in
    strict mode. It is lost where that reports an error, and at a row that is too long. `rules` are
    the most bytes of a row, the separator, and whether fields may be quoted.
    """
    at, start, kind, rows, lines = state[AT], state[START], state[KIND], state[ROWS], state[LINES]
    found = -1
    while at < len(data) and kind != LOST and found < 0:
        byte = data[at]
        at += 1
        lines += byte == NEWLINE
        if kind == QUOTED:
            kind = AFTER_QUOTE if byte == QUOTE else QUOTED
        elif byte == NEWLINE:
            rows += kind not in (ROW, BLANK_RETURN)
            kind = ROW if base + at - start <= rules[0] else LOST
            start = base + at
            found = start if kind == ROW and start >= wanted else -1
        elif byte == CARRIAGE_RETURN:
            kind = BLANK_RETURN if kind in (ROW, BLANK_RETURN) else RETURN
        elif kind in (RETURN, BLANK_RETURN):
            kind = LOST
        elif byte == rules[1]:
            kind = FIELD
        elif byte == QUOTE and rules[2]:
            kind = PLAIN if kind == PLAIN else QUOTED
        else:
            kind = LOST if kind == AFTER_QUOTE else PLAIN
    state[AT], state[START], state[KIND], state[ROWS], state[LINES] = at, start, kind, rows, lines
    return found


@njit(**ARRAY_KERNEL)
def next_paragraph(max_bytes: int, data: Bytes, base: int, wanted: int, state: State) -> int:
    """Return where the first run of filled lines at or behind `wanted` starts; -1 as above.

    The row of what is found counts already. A blank line of more than `max_bytes`, which the reader
    does not call blank, is where no further run is found.
    """
    at, start, kind, rows, lines = state[AT], state[START], state[KIND], state[ROWS], state[LINES]
    found = -1
    while at < len(data) and kind != LOST and found < 0:
        byte = data[at]
        at += 1
        if byte == NEWLINE:
            is_long = base + at - 1 - start > max_bytes
            kind = BLANK if kind == FILLED else LOST if is_long else GAP
            start = base + at
            lines += 1
        elif kind != FILLED and byte != SPACE and not TAB <= byte <= CARRIAGE_RETURN:
            if kind == GAP:
                rows += 1
                found = start if start >= wanted else -1
            kind = FILLED
    state[AT], state[START], state[KIND], state[ROWS], state[LINES] = at, start, kind, rows, lines
    return found
