"""Helpers of tables: sums that do not wrap."""

import polars as pl

from assets.text.table_rows import count_bytes


def test_bytes_of_more_than_4_gib_are_counted() -> None:
    texts = pl.Series(["é" * (1 << 19)]).new_from_index(0, 4100)  # one buffer of a mebibyte

    assert count_bytes(texts) == 4100 << 20
    assert count_bytes(texts.head(0)) == 0
