"""Exchange by hash: rows that a pass over prefixes reads of the parts' tables, and back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from resources.exchange import OfPart, OfPrefix
from resources.passes import PassFiles
from resources.store.disk import xxh3_of
from resources.store.published import as_it_is
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

    places = (0, 1), (1, 1), (0, 0)
    of_prefixes = (OfPrefix(place, {"table": files}, None, 1) for place in places)
    low, high, both = (list(each.tables("table")) for each in of_prefixes)

    assert not is_mapped(tmp_path)
    for part, *found in zip(PARTS, low, high, both, strict=True):
        wanted = part.filter(pl.col("hash") < HALF), part.filter(pl.col("hash") >= HALF), part
        for table, expected in zip(found, wanted, strict=True):
            assert_frame_equal(table, expected)


@pytest.mark.parametrize(("own", "expected"), [(PARTS[0], ["a", "c", "e"]), (PARTS[1], [])])
def test_a_part_finds_what_was_made_of_its_hashes_under_all_prefixes(
    tmp_path: Path, own: pl.DataFrame, expected: list[str]
) -> None:
    tables = [
        pl.DataFrame(
            {"hash": hashes, "text": texts},
            schema_overrides={"hash": pl.UInt64, "text": pl.String},
        )
        for hashes, texts in [([1, 2], ["a", "b"]), ([], []), ([HALF, HALF], ["c", "e"]), ([], [])]
    ]
    own.write_ipc(tmp_path / "own.arrow", compression="uncompressed")
    found = {"table": files_of(tmp_path, tables, 1)}

    file = as_it_is(tmp_path / "own.arrow")
    part = OfPart(0, None, {"table": (file, own.height)}, found)

    assert part.look_up("table")["text"].to_list() == expected
    assert_frame_equal(part.read("table"), own)
