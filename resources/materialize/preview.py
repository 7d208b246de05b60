"""The columns and the first rows of a partition's main table, for people.

They are kept beside the reports of runs, since most nights change few of these tables: to compare
the file with its hash and to read five rows took a sixth of a run with nothing to do.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import dagster as dg
import msgspec
import polars as pl

from resources.corpus import Corpus
from resources.dagster_home import records_folder, write_record
from resources.materialize.excerpts import as_excerpt
from resources.stage import MainTable
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, to_json
from resources.store.scratch import scratch_of

ROWS = 5
CELL_CHARS = 80
READ_CHARS = 10 * CELL_CHARS  # of a text: white space is folded before it is cut
READ_ITEMS = 20  # of a list


class ShownTable(msgspec.Struct, frozen=True):
    """What is shown of a table: Markdown of its first rows, None without rows; names and types.

    xxh3    hash of the file that it was read from
    """

    xxh3: str
    preview: str | None
    columns: tuple[tuple[str, str], ...]


def shown_table(corpus: Corpus, table: MainTable, manifest: Manifest) -> ShownTable | None:
    """Return what is shown of a partition's main table, read again if its file is another one."""
    file = main_file(corpus, table, manifest)
    if file is None:
        return None
    folder = records_folder(corpus.store.root) / "tables"
    kept = folder / manifest.stage / f"{manifest.partition}.json"
    try:
        known = msgspec.json.decode(kept.read_bytes(), type=ShownTable)
    except (FileNotFoundError, msgspec.DecodeError):
        known = None
    if known is not None and known.xxh3 == file.xxh3:
        return known
    path = file.checked()
    shown = ShownTable(file.xxh3, preview(path), columns_of(path))
    write_record(kept, to_json(shown))
    return shown


def main_file(corpus: Corpus, table: MainTable, manifest: Manifest) -> PublishedFile | None:
    """Return the first file of a manifest's main table, one with rows if there is any.

    On an object store it is one that this machine has a copy of, or else the smallest.
    """
    files = [file for part in manifest.parts if (file := part.file(table.kind))]
    files = [file for file in files if file.rows] or files
    if scratch_of(corpus.store.root):
        copies = [file for file in files if corpus.store.path_of(manifest, file).exists()]
        files = copies or sorted(files, key=lambda file: file.bytes)
    return corpus.store.file_of(manifest, files[0]) if files else None


def columns_of(path: Path) -> tuple[tuple[str, str], ...]:
    """Return names and types of the columns of a table."""
    read = pl.read_parquet_schema if path.suffix == ".parquet" else pl.read_ipc_schema
    return tuple((name, str(dtype)) for name, dtype in read(path).items())


def column_schema(shown: ShownTable, table: MainTable) -> dg.TableSchema:
    """Return the columns of a main table: names, types and meanings."""
    return dg.TableSchema(
        [dg.TableColumn(name, dtype, meaning_of(name, table)) for name, dtype in shown.columns]
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
