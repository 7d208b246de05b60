"""The columns and the first rows of a partition's main table, for people."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import dagster as dg
import polars as pl

from resources.corpus import Corpus
from resources.materialize.excerpts import as_excerpt
from resources.stage import MainTable
from resources.store.mapped_files import map_arrow
from resources.store.records import Manifest
from resources.store.scratch import scratch_of

ROWS = 5
CELL_CHARS = 80
READ_CHARS = 10 * CELL_CHARS  # of a text: white space is folded before it is cut
READ_ITEMS = 20  # of a list


def main_file(corpus: Corpus, table: MainTable | None, manifest: Manifest) -> Path | None:
    """Return the first file of a manifest's main table, one with rows if there is any.

    On an object store it is one that this machine has a copy of, or else the smallest.
    """
    if table is None:
        return None
    files = [file for part in manifest.parts if (file := part.file(table.kind))]
    files = [file for file in files if file.rows] or files
    if scratch_of(corpus.store.root):
        copies = [file for file in files if corpus.store.path_of(manifest, file).exists()]
        files = copies or sorted(files, key=lambda file: file.bytes)
    return corpus.store.file_of(manifest, files[0]).checked() if files else None


def column_schema(path: Path, table: MainTable) -> dg.TableSchema:
    """Return the columns of a file of a main table: names, types and meanings."""
    read = pl.read_parquet_schema if path.suffix == ".parquet" else pl.read_ipc_schema
    return dg.TableSchema(
        [
            dg.TableColumn(name, str(dtype), meaning_of(name, table))
            for name, dtype in read(path).items()
        ]
    )


def meaning_of(column: str, table: MainTable) -> str | None:
    """Return the meaning of a column, None if the stage gives none."""
    found = (text for name, text in table.columns.items() if fnmatchcase(column, name))
    return next(found, None)


def preview(path: Path) -> str | None:
    """Return the first rows of a table as Markdown; None without rows.

    The texts are untrusted: each cell is an excerpt, without any Markdown or HTML.
    """
    is_parquet = path.suffix == ".parquet"
    rows = pl.read_parquet(path, n_rows=ROWS) if is_parquet else map_arrow(path).head(ROWS)
    if rows.is_empty():
        return None
    short = rows.select(shortened(name, dtype) for name, dtype in rows.schema.items())
    lines = [short.columns, ["---"] * short.width]
    lines += [[as_excerpt(cell_text(cell), CELL_CHARS) for cell in row] for row in short.rows()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shortened(name: str, dtype: pl.DataType) -> pl.Expr:
    """Cut the values of a column to what a cell can show."""
    column = pl.col(name)
    if isinstance(dtype, pl.String):
        return column.str.slice(0, READ_CHARS)
    if isinstance(dtype, pl.Array):
        column = column.arr.to_list()
    if isinstance(dtype, pl.Array | pl.List):
        return column.list.head(READ_ITEMS)
    return column


def cell_text(value: object) -> str:
    """Return a value as text: bytes as hexadecimal digits, lists and structs without brackets."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value[:CELL_CHARS].hex()
    if isinstance(value, list):
        return ", ".join(cell_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {cell_text(item)}" for name, item in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
