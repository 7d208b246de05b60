"""Metadata and log line of a materialized partition.

First ten numbers, in the same order for every stage; then the counts that are not zero; then the
stage's own reports; last its fingerprint, folder, columns and first rows.

The first rows, and what reports quote of documents, are a file of the store. The columns are kept
beside the reports of runs, since most nights change few of these tables: to compare the file with
its hash and to read five rows took a sixth of a run with nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import dagster as dg
import msgspec
import polars as pl

from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.dagster_home import tables_folder, write_record
from resources.drawn_charts import with_pictures
from resources.materialize.excerpts import DocumentText, as_excerpt
from resources.run_reports import RunReport
from resources.stage import MainTable, Metadata, MetadataValue, Stage, Table
from resources.store.mapped_files import map_arrow
from resources.store.preview_files import PAGE_ADDRESS, preview_path, write_preview
from resources.store.published import PublishedFile
from resources.store.records import Manifest, Stats, fingerprint_of, to_json
from resources.store.scratch import place_of, scratch_of
from resources.tasks import GLOBAL

NUMBERS_OF_RUN = (
    "parts_computed",
    "seconds",
    "cpu_seconds",
    "peak_memory_mb",
    "docs_per_second",
    "mb_per_second",
    "parts_reused",
)


def metadata_of(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, ran: RunReport, own: Metadata
) -> dict[str, Any]:
    """Return the metadata of a materialization; `own`, the stage's, may replace other values."""
    merged = first_numbers(manifest.stats, ran) | other_numbers(manifest.stats, ran) | dict(own)
    texts = {name: str(text) for name, text in merged.items() if isinstance(text, DocumentText)}
    rest = {name: value for name, value in merged.items() if name not in texts}
    rest = dict(sorted(rest.items(), key=lambda item: isinstance(item[1], dict)))  # long JSON last
    folder = corpus.store.partition(manifest.stage, manifest.partition).folder
    origin = {
        "fingerprint": manifest.fingerprint,
        "path": dg.MetadataValue.path(str(folder)),
    }
    return shown(rest) | origin | table_of(corpus, stage, manifest, texts)


def first_numbers(stats: Stats[Any], ran: RunReport) -> dict[str, MetadataValue | None]:
    """Return the ten numbers that every materialization begins with.

    The last three are those of computed parts: a run that computed none has none.
    """
    return {
        "rows_in": stats.rows_in,
        "rows_kept": stats.rows_kept,
        "kept_share": kept_share(stats),
        "bytes": stats.bytes,
        "parts_computed": ran.parts_computed,
        "seconds": ran.seconds,
        "cpu_seconds": ran.cpu_seconds,
        "peak_memory_mb": round(ran.peak_bytes / 1e6) or None,
        "docs_per_second": ran.docs_per_second or None,
        "mb_per_second": ran.mb_per_second or None,
    }


def kept_share(stats: Stats[Any]) -> float:
    """Return the share of rows that were kept, 1 if there were none."""
    return round(stats.rows_kept / stats.rows_in, 4) if stats.rows_in else 1.0


def other_numbers(stats: Stats[Any], ran: RunReport) -> dict[str, MetadataValue | None]:
    """Return the other counts of a partition, and the numbers of its stage, that are not zero."""
    counts = {
        "tokens": stats.tokens,
        "rows_rejected": sum(stats.rejected.values()),
        "duplicates": stats.duplicates,
        "quarantined": stats.quarantined,
        "parts_reused": ran.parts_reused,
        "rejected": reasons_table(stats),
        **stats.numbers,
    }
    return {name: value for name, value in counts.items() if value}


def reasons_table(stats: Stats[Any]) -> Table | None:
    """Tabulate the rows that are not kept by reason; None if all are."""
    rows = [(why, count, round(count / stats.rows_in, 4)) for why, count in stats.removed().items()]
    return Table(("reason", "rows", "share"), rows) if rows else None


def shown(metadata: Metadata) -> dict[str, Any]:
    """Return metadata as Dagster takes it: texts are Markdown."""
    return {name: dagster_value(value) for name, value in metadata.items() if value is not None}


def dagster_value(value: MetadataValue) -> Any:
    """Return one value as Dagster takes it."""
    if isinstance(value, str):
        return dg.MetadataValue.md(with_pictures(value))
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return dg.MetadataValue.json(value)
    if isinstance(value, Table):
        rows = [dict(zip(value.columns, row, strict=True)) for row in value.rows]
        types = {name: type(cell).__name__ for name, cell in rows[0].items()}
        schema = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in types.items()])
        return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema)
    return value


def table_of(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return columns and number of rows of the stage's main table, and where its preview is."""
    key = "row_count" if manifest.partition == GLOBAL else "partition_row_count"
    rows: dict[str, Any] = {f"dagster/{key}": manifest.stats.rows_kept}
    if stage.name in EXCERPTED:
        rows["removed_texts"] = dg.MetadataValue.url(f"{PAGE_ADDRESS}#{stage.name}")
    table = stage.main_table
    shown = shown_table(corpus, table, manifest, texts)
    if shown.preview:
        place = place_of(preview_path(corpus.store.root, manifest.stage, manifest.partition))
        value = dg.MetadataValue
        rows["preview"] = value.url(place) if "://" in place else value.path(place)
    if table and shown.xxh3:
        rows["dagster/column_schema"] = column_schema(shown, table)
    return rows


def log_line(title: str, stats: Stats[Any], ran: RunReport) -> str:
    """Return one line for the run's log, of a partition or of a whole step."""
    numbers = [
        f"{stats.rows_kept:,} of {stats.rows_in:,} rows kept",
        f"{ran.parts_computed:,} parts computed, {ran.parts_reused:,} reused",
    ]
    if ran.parts_computed:
        numbers.append(f"{ran.seconds:.1f} s, {ran.cpu_seconds:.1f} CPU s")
    if ran.docs_per_second:
        numbers.append(f"{ran.docs_per_second:,.0f} docs/s")
    if ran.mb_per_second:
        numbers.append(f"{ran.mb_per_second:.3g} MB/s")
    if ran.peak_bytes:
        numbers.append(f"{ran.peak_bytes / 1e6:,.0f} MB of memory")
    return f"{title}: {', '.join(numbers)}"


ROWS = 5
EXCERPTED = (stage_names.RAW, stage_names.FILTERED, stage_names.DEDUPED)  # sections of the report
CELL_CHARS = 80
READ_CHARS = 10 * CELL_CHARS  # of a text: white space is folded before it is cut
READ_ITEMS = 20  # of a list


class ShownTable(msgspec.Struct, frozen=True):
    """Record of a partition's preview: names and types of the columns of its main table.

    xxh3      hash of the file that it was read from; "" if there is none
    texts     fingerprint of what reports quote of documents
    preview   whether there is anything to show
    """

    xxh3: str
    texts: str
    preview: bool
    columns: tuple[tuple[str, str], ...]


def shown_table(
    corpus: Corpus, table: MainTable | None, manifest: Manifest, texts: Mapping[str, str]
) -> ShownTable:
    """Return the record of a partition's preview, which is written again if it is another one.

    `texts` are what reports quote of documents, by their titles.
    """
    root, stage, partition = corpus.store.root, manifest.stage, manifest.partition
    file = main_file(corpus, table, manifest) if table else None
    path = preview_path(root, stage, partition)
    kept = tables_folder(root) / stage / f"{partition}.json"
    try:
        known = msgspec.json.decode(kept.read_bytes(), type=ShownTable)
    except (FileNotFoundError, msgspec.DecodeError):
        known = None
    made_of = (file.xxh3 if file else "", fingerprint_of(texts) if texts else "")
    if known and (known.xxh3, known.texts) == made_of and is_written(path, known):
        return known
    rows = preview(file.checked()) if file else None
    reports = {f"First rows of {stage}[{partition}]": rows, **texts}
    content = "\n".join(f"## {title}\n\n{text}\n" for title, text in reports.items() if text)
    write_preview(path, content)
    columns = columns_of(file.checked()) if file else ()
    shown = ShownTable(*made_of, preview=bool(content), columns=columns)
    write_record(kept, to_json(shown))
    return shown


def is_written(path: Path, known: ShownTable) -> bool:
    """Return whether a preview is there; on an object store it is not looked for every night."""
    return not known.preview or scratch_of(path.parent) is not None or path.exists()


def main_file(corpus: Corpus, table: MainTable, manifest: Manifest) -> PublishedFile | None:
    """Return the smallest file of a manifest's main table, one with rows if there is any."""
    files = [file for part in manifest.parts if (file := part.file(table.kind))]
    files = [file for file in files if file.rows] or files
    smallest = min(files, key=lambda file: file.bytes, default=None)
    return corpus.store.file_of(manifest, smallest) if smallest else None


def columns_of(path: Path) -> tuple[tuple[str, str], ...]:
    """Return names and types of the columns of a table."""
    read = pl.read_parquet_schema if path.suffix == ".parquet" else pl.read_ipc_schema
    return tuple((name, str(dtype)) for name, dtype in read(path).items())


def column_schema(shown: ShownTable, table: MainTable) -> dg.TableSchema:
    """Return the columns of a main table: names, types, and meanings if the stage gives some."""
    columns = []
    for name, dtype in shown.columns:
        meanings = (text for known, text in table.columns.items() if fnmatchcase(name, known))
        columns.append(dg.TableColumn(name, dtype, next(meanings, None)))
    return dg.TableSchema(columns)


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
