"""Positions of records, as numbers and as text."""

import pytest

from assets.raw.readers.input_record import (
    ENTRY,
    MEMBER,
    MEMBER_ROWS,
    entry_row,
    position_row,
    position_text,
)


@pytest.mark.parametrize(
    ("unit", "row", "text"),
    [
        ("byte", 512, "byte 512"),
        ("row", 7, "row 7"),
        (MEMBER, 2 * MEMBER_ROWS + 7, "member 2, row 7"),
        ("member", 3, "member 3"),
        (ENTRY, (1_700_000_000_000 << 21) + 5, "entry 1700000000000-5"),
    ],
)
def test_a_position_is_read_as_it_was_written(unit: str, row: int, text: str) -> None:
    assert position_text(unit, row) == text
    assert position_row(text) == row


@pytest.mark.parametrize("text", ["entry of no row", "somewhere", "row x", "member 1, row"])
def test_what_is_no_position_has_no_row(text: str) -> None:
    assert position_row(text) is None


def test_an_entry_beyond_the_numbers_of_a_row_has_none() -> None:
    assert entry_row("1700000000000-2097151") == (1_700_000_000_000 << 21) + 2_097_151
    assert entry_row("1700000000000-2097152") is None
