"""Positions of records in their files and streams, as numbers and as quarantine shows them.

The row of an entry of Redis holds both numbers of its id: 42 bits of milliseconds (until 2109), and
21 bits of the number within one (two million; a clock that was set back counts on in one).
"""

from __future__ import annotations

ENTRY = "entry"
NUMBER_BITS = 21
ROW_BITS = 63


def entry_row(entry_id: str) -> int | None:
    """Return the row of an entry of Redis; None if its id is beyond what a row holds."""
    milliseconds, _, number = entry_id.partition("-")
    row = int(milliseconds) << NUMBER_BITS | int(number)
    return row if int(number) >> NUMBER_BITS == 0 and row >> ROW_BITS == 0 else None


def position_text(unit: str, row: int) -> str:
    """Return the position of a record: "byte 512", "row 7", "entry 1700000000000-0"."""
    if unit != ENTRY:
        return f"{unit} {row}"
    if row < 0:
        return f"{unit} of no row"
    return f"{unit} {row >> NUMBER_BITS}-{row & (1 << NUMBER_BITS) - 1}"


def position_row(position: str) -> int | None:
    """Return the row of a position; None if it has none."""
    unit, _, place = position.partition(" ")
    try:
        return entry_row(place) if unit == ENTRY else int(place)
    except ValueError:
        return None
