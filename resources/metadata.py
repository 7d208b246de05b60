"""Metadata and log line of a materialized partition, with the same keys for every stage."""

from typing import Any

import dagster as dg
import polars as pl

from resources.corpus import Corpus
from resources.run_reports import RunReport
from resources.stage import Metadata
from resources.store.records import Manifest

MAIN_KINDS = ("documents", "sequences", "tokens", "signatures", "clusters", "parquet.parquet")


def metadata_of(corpus: Corpus, manifest: Manifest, ran: RunReport) -> dict[str, Any]:
    """Return the metadata that every materialization has, with the same keys for every stage."""
    stats = manifest.stats
    schema = table_schema(corpus, manifest)
    return {
        "rows_in": stats.rows_in,
        "rows_kept": stats.rows_kept,
        "rows_rejected": sum(stats.rejected.values()),
        "rejected": dict(stats.rejected),
        "duplicates": stats.duplicates,
        "quarantined": stats.quarantined,
        "tokens": stats.tokens,
        "bytes": stats.bytes,
        "seconds": ran.seconds,
        "mb_per_second": ran.mb_per_second,
        "parts_computed": ran.parts_computed,
        "parts_reused": ran.parts_reused,
        "fingerprint": manifest.fingerprint,
        "path": dg.MetadataValue.path(
            str(corpus.store.partition(manifest.stage, manifest.partition).folder)
        ),
        "schema": schema,
        "dagster/column_schema": schema,
        "dagster/row_count": stats.rows_kept,
        **{f"rejected/{reason}": count for reason, count in stats.rejected.items()},
        **{
            key: dg.MetadataValue.json(value) if isinstance(value, dict) else value
            for key, value in stats.numbers.items()
        },
    }


def shown(metadata: Metadata) -> dict[str, Any]:
    """Return metadata as Dagster takes it: texts are Markdown."""
    return {
        name: dg.MetadataValue.md(value) if isinstance(value, str) else value
        for name, value in metadata.items()
    }


def table_schema(corpus: Corpus, manifest: Manifest) -> dg.TableSchemaMetadataValue:
    """Return the columns of the stage's main table."""
    files = [file for part in manifest.parts for file in part.files if file.kind in MAIN_KINDS]
    columns: list[dg.TableColumn] = []
    if files:
        path = corpus.store.path_of(manifest, files[0])
        read = pl.read_parquet_schema if path.suffix == ".parquet" else pl.read_ipc_schema
        columns = [dg.TableColumn(name, str(dtype)) for name, dtype in read(path).items()]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))


def log_line(manifest: Manifest, ran: RunReport) -> str:
    """Return one line for the run's log."""
    stats = manifest.stats
    return (
        f"{manifest.stage}[{manifest.partition}]: {stats.rows_kept:,} of {stats.rows_in:,} rows "
        f"kept, {ran.parts_computed} parts computed, {ran.parts_reused} reused, "
        f"{ran.seconds:.1f} s, {ran.mb_per_second:.0f} MB/s"
    )
