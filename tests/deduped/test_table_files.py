"""Rows that a pass over prefixes reads of the parts' tables, and back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assets.deduped.repeats.table_files import rows_of_part, tables_with_prefix
from resources.passes import PassFiles
from resources.store.disk import xxh3_of
from resources.store.records import FileRecord, to_line

HALF = 1 << 63
PARTS = [
    pl.DataFrame(
        {"hash": [1, 7, HALF, HALF + 1], "text": ["a", "b", "long text in a buffer", "d"]},
        schema_overrides={"hash": pl.UInt64},
    ),
    pl.DataFrame(schema={"hash": pl.UInt64, "text": pl.String}),
    pl.DataFrame({"hash": [HALF + 9], "text": ["e"]}, schema_overrides={"hash": pl.UInt64}),
]


def files_of(folder: Path, tables: list[pl.DataFrame], rows_at_once: int) -> PassFiles:
    """Write tables, in batches of some rows, as an earlier pass would."""
    records = []
    for number, table in enumerate(tables):
        path = folder / f"{number}.arrow"
        table.write_ipc(path, compression="uncompressed", record_batch_size=rows_at_once)
        size = path.stat().st_size
        records.append(FileRecord("table", path.name, table.height, size, "", xxh3_of(path)))
    listed = folder / "list.json"
    listed.write_bytes(to_line(records))
    return PassFiles(listed)


def is_mapped(folder: Path) -> bool:
    return str(folder) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("rows_at_once", [1, 100])
def test_all_rows_with_a_prefix_are_read_and_no_file_stays_mapped(
    tmp_path: Path, rows_at_once: int
) -> None:
    files = files_of(tmp_path, PARTS, rows_at_once)

    low, high, both = (list(tables_with_prefix(files, place)) for place in ((0, 1), (1, 1), (0, 0)))

    assert not is_mapped(tmp_path)
    for part, *found in zip(PARTS, low, high, both, strict=True):
        wanted = part.filter(pl.col("hash") < HALF), part.filter(pl.col("hash") >= HALF), part
        for table, expected in zip(found, wanted, strict=True):
            assert_frame_equal(table, expected)


def test_the_rows_of_a_part_are_a_view_of_the_mapped_tables(tmp_path: Path) -> None:
    tables = [
        pl.DataFrame(
            {"part": [0, 0, 1, 3], "hash": [4, 5, 6, 7]}, schema_overrides={"part": pl.UInt32}
        ),
        pl.DataFrame({"part": [1, 2], "hash": [8, 9]}, schema_overrides={"part": pl.UInt32}),
    ]
    files = files_of(tmp_path, tables, 2)

    assert rows_of_part(files, 0)["hash"].to_list() == [4, 5]
    assert rows_of_part(files, 4).height == 0
    rows = rows_of_part(files, 1)
    assert rows["hash"].to_list() == [6, 8]
    assert is_mapped(tmp_path)
