"""Digests of a store see what changed in its tables, and nothing of how its files are named."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from content_digests import column_digest, content_digests

TEXTS = {"doc_id": ["a", "b", "c"], "text": ["one", None, ""], "tokens": [[1, 2], [], None]}
PARTS = {"9f3a5c7d1e2b-0000-0000": TEXTS, "0c1d2e3f4a5b-0000-0000": {**TEXTS, "doc_id": [*"def"]}}


def write_store(store: Path, parts: dict[str, dict[str, Any]], fingerprint: str) -> Path:
    """A partition with a table and a record per part."""
    folder = store / "filtered/web"
    (folder / "_manifests").mkdir(parents=True)
    records = []
    for name, columns in parts.items():
        table, record = (f"{name}-{fingerprint}.{kind}" for kind in ("texts.parquet", "sum.json"))
        pl.DataFrame(columns).write_parquet(folder / table)
        (folder / record).write_text(json.dumps({"kept": 3, "of": [name, fingerprint]}))
        files = [{"kind": "texts", "path": table}, {"kind": "sum", "path": record}]
        records.append({"name": name, "files": [file | {"rows": 3} for file in files]})
    manifest = {"fingerprint": fingerprint, "parts": records, "stats": {"rows_in": 6, "extra": {}}}
    (folder / "_manifests/00000001.json").write_text(json.dumps(manifest))
    return store


def test_names_fingerprints_and_the_order_of_files_are_ignored(tmp_path: Path) -> None:
    first = write_store(tmp_path / "1", PARTS, "0123456789abcdef")
    names = ["00000000aaaa-0000-0000", "ffffffffffff-0000-0000"]
    renamed = dict(zip(names, reversed(PARTS.values()), strict=True))
    second = write_store(tmp_path / "2", renamed, "fedcba9876543210")
    assert content_digests(first) == content_digests(second)


def test_one_changed_cell_changes_its_column_its_table_and_the_total(tmp_path: Path) -> None:
    name = next(iter(PARTS))
    changed = PARTS | {name: TEXTS | {"text": ["one", "", ""]}}
    stores = [
        write_store(tmp_path / str(i), each, "0123456789abcdef")
        for i, each in enumerate([PARTS, changed])
    ]
    before, after = map(content_digests, stores)
    assert before["total"] != after["total"]
    tables = [each["partitions"]["filtered/web"]["kinds"]["texts"] for each in (before, after)]
    assert tables[0]["sha256"] != tables[1]["sha256"]
    columns = [each["columns"] for each in tables]
    assert {key for key in columns[0] if columns[0][key] != columns[1][key]} == {"text"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(["ab", "c"], ["a", "bc"], id="borders of strings"),
        pytest.param([[1], [2, 3]], [[1, 2], [3]], id="borders of lists"),
        pytest.param([[], None], [None, []], id="an empty list and none"),
        pytest.param([float("nan")], [None], id="no number and none"),
        pytest.param([{"x": 1, "y": 2}], [{"x": 2, "y": 1}], id="fields"),
        pytest.param([1, 2], [2, 1], id="order of rows"),
    ],
)
def test_columns_that_differ_have_other_digests(one: list[Any], other: list[Any]) -> None:
    first = pl.Series(one, strict=False)
    assert column_digest(first) != column_digest(pl.Series(other, dtype=first.dtype, strict=False))
    assert column_digest(first) == column_digest(pl.concat([first[:1], first[1:]], rechunk=False))
