"""Positions of records in their files and streams, as numbers and as quarantine shows them.

The row of a record in a ZIP file counts members in steps of MEMBER_ROWS. The row of an entry of
Redis holds both numbers of its id: 42 bits of milliseconds (until 2109), and 21 bits of the number
within one (two million; a clock that was set back counts on in one).
"""

from __future__ import annotations

import re

ENTRY = "entry"
MEMBER = "member and row"  # unit of rows that count members in steps of MEMBER_ROWS
MEMBER_ROWS = 10**12  # JSON lines count bytes, of which a member has far less
MEMBER_PLACE = re.compile(r"member (\d+), row (\d+)")
NUMBER_BITS = 21
ROW_BITS = 63


def entry_row(entry_id: str) -> int | None:
    """Return the row of an entry of Redis; None if its id is beyond what a row holds."""
    milliseconds, _, number = entry_id.partition("-")
    row = int(milliseconds) << NUMBER_BITS | int(number)
    return row if int(number) >> NUMBER_BITS == 0 and row >> ROW_BITS == 0 else None


def position_text(unit: str, row: int) -> str:
    """Return the position of a record: "byte 512", "member 2, row 7", "entry 1700000000000-0"."""
    if unit == MEMBER:
        return f"member {row // MEMBER_ROWS}, row {row % MEMBER_ROWS}"
    if unit != ENTRY:
        return f"{unit} {row}"
    if row < 0:
        return f"{unit} of no row"
    return f"{unit} {row >> NUMBER_BITS}-{row & (1 << NUMBER_BITS) - 1}"


def position_row(position: str) -> int | None:
    """Return the row of a position; None if it has none."""
    if match := MEMBER_PLACE.fullmatch(position):
        return int(match[1]) * MEMBER_ROWS + int(match[2])
    unit, _, place = position.partition(" ")
    try:
        return entry_row(place) if unit == ENTRY else int(place)
    except ValueError:
        return None
