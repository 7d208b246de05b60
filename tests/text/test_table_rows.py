"""Rows of tables: selected, replaced, and counted without wrapping."""

from prelude import np, pl

from assets.text.table_rows import (
    change_where,
    count_bytes,
    has_characters,
    replace_rows,
    table_of,
)

TEXTS = pl.Series("text", ["a", "b", None, "d"])


def test_bytes_of_more_than_4_gib_are_counted() -> None:
    texts = pl.Series(["é" * (1 << 19)]).new_from_index(0, 4100)  # one buffer of a mebibyte

    assert count_bytes(texts) == 4100 << 20
    assert count_bytes(texts.head(0)) == 0


def test_rows_are_replaced_at_their_index() -> None:
    replaced = replace_rows(TEXTS, pl.Series([0, 3], dtype=pl.UInt32), pl.Series(["A", None]))

    assert (replaced.name, replaced.to_list()) == ("text", ["A", "b", None, None])
    nothing = pl.Series([], dtype=pl.UInt32)
    assert replace_rows(TEXTS, nothing, pl.Series([], dtype=pl.String)) is TEXTS


def test_a_null_in_the_mask_changes_nothing() -> None:
    mask = pl.Series([None, True, False, True])

    changed = change_where(TEXTS, mask, lambda texts: texts + "!")

    assert changed.to_list() == ["a", "b!", None, "d!"]
    assert change_where(TEXTS, pl.Series([None] * 4, dtype=pl.Boolean), lambda _: _) is TEXTS


def test_a_table_has_the_columns_of_its_matrix() -> None:
    matrix = np.arange(12).reshape(4, 3)

    table = table_of(matrix, "abc")

    assert table.rows() == [tuple(row) for row in matrix.tolist()]
    assert table_of(matrix.T, "abcd").rows() == [tuple(row) for row in matrix.T.tolist()]
    assert table_of(matrix[:0], "abc").schema == table.schema


def test_no_more_characters_are_counted_than_are_needed() -> None:
    texts = pl.DataFrame({"text": ["", "é", "éa", "éab", None]})

    for least in range(4):
        found = texts.select(has_characters(pl.col("text"), least)).to_series()
        assert found.to_list() == [least == 0, least <= 1, least <= 2, True, None]
