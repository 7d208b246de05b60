"""Metadata and log line of a materialized partition.

First ten numbers, in the same order for every stage; then the counts that are not zero; then the
stage's own reports; last its fingerprint, folder, columns and first rows.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from resources.corpus import Corpus
from resources.materialize.excerpts import DocumentText
from resources.materialize.preview import column_schema, shown_table
from resources.run_reports import RunReport
from resources.stage import Metadata, MetadataValue, Stage, Table
from resources.store.preview_files import preview_path
from resources.store.records import Manifest, Stats
from resources.store.scratch import place_of
from resources.tasks import GLOBAL


def metadata_of(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, ran: RunReport, own: Metadata
) -> dict[str, Any]:
    """Return the metadata of a materialization; `own`, the stage's, may replace other values."""
    merged = first_numbers(manifest.stats, ran) | other_numbers(manifest.stats, ran) | dict(own)
    texts = {name: str(text) for name, text in merged.items() if isinstance(text, DocumentText)}
    rest = {name: value for name, value in merged.items() if name not in texts}
    return shown(rest) | origin(corpus, manifest) | table_of(corpus, stage, manifest, texts)


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
    """Tabulate the rejected rows by reason, the most frequent first; None without any."""
    reasons = sorted(stats.rejected.items(), key=lambda item: -item[1])
    rows = [(reason, count, round(count / stats.rows_in, 4)) for reason, count in reasons if count]
    return Table(("reason", "rows", "share"), rows) if rows else None


def shown(metadata: Metadata) -> dict[str, Any]:
    """Return metadata as Dagster takes it: texts are Markdown."""
    return {name: dagster_value(value) for name, value in metadata.items() if value is not None}


def dagster_value(value: MetadataValue) -> Any:
    """Return one value as Dagster takes it."""
    if isinstance(value, str):
        return dg.MetadataValue.md(value)
    if isinstance(value, dict):
        return dg.MetadataValue.json(value)
    if isinstance(value, Table):
        rows = [dict(zip(value.columns, row, strict=True)) for row in value.rows]
        types = {name: type(cell).__name__ for name, cell in rows[0].items()}
        schema = dg.TableSchema([dg.TableColumn(name, kind) for name, kind in types.items()])
        return dg.MetadataValue.table([dg.TableRecord(row) for row in rows], schema)
    return value


def origin(corpus: Corpus, manifest: Manifest) -> dict[str, Any]:
    """Return the fingerprint and the folder of a partition."""
    folder = corpus.store.partition(manifest.stage, manifest.partition).folder
    return {
        "fingerprint": manifest.fingerprint,
        "path": dg.MetadataValue.path(str(folder)),
    }


def table_of(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return columns and number of rows of the stage's main table, and where its preview is."""
    key = "row_count" if manifest.partition == GLOBAL else "partition_row_count"
    rows: dict[str, Any] = {f"dagster/{key}": manifest.stats.rows_kept}
    table = stage.main_table
    shown = shown_table(corpus, table, manifest, texts)
    if shown.preview:
        path = preview_path(corpus.store.root, manifest.stage, manifest.partition)
        rows["preview"] = link_to(path)
    if table and shown.xxh3:
        rows["dagster/column_schema"] = column_schema(shown, table)
    return rows


def link_to(path: Path) -> dg.MetadataValue[Any]:
    """Return a link to a file of the store."""
    place = place_of(path)
    return dg.MetadataValue.url(place) if "://" in place else dg.MetadataValue.path(place)


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
