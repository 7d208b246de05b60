"""`corpus quarantine list`: counts of records in quarantine by source, file and error."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import polars as pl
from cyclopts import Parameter
from rich.text import Text

from assets.raw.raw_records import RAW
from pipeline_defs.commands.life.quarantined import OnlyFile, read_quarantine
from pipeline_defs.commands.terminal.options import Json
from pipeline_defs.commands.terminal.output import ONE_LINE, new_table, print_json, table_console
from pipeline_defs.load_corpus import load_corpus

DIGITS = re.compile(r"[0-9][0-9,.]*")  # places and sizes, which differ from record to record
SHOWN = 200  # characters of an error, which may quote a record


def list_quarantine(
    *,
    source: Annotated[str | None, Parameter(help="Only this source.")] = None,
    file: OnlyFile = None,
    json: Json = False,
) -> int:
    """Print the counts, the first error of each kind, and what to do about it."""
    corpus = load_corpus()
    built = [
        name
        for name in corpus.settings.source_names()
        if corpus.store.newest_or_none(RAW, name) is not None
    ]
    names = [source] if source else built
    counts = pl.concat([count_kinds(read_quarantine(corpus, name, file)) for name in names])
    if json:
        print_json(counts.to_dicts())
    elif counts.is_empty():
        sys.stdout.write("No record is in quarantine.\n")
    else:
        show(counts)
    return 0


def count_kinds(records: pl.DataFrame) -> pl.DataFrame:
    """Count records by file and kind of error: errors that differ in numbers alone are one kind."""
    kinds = pl.Series("kind", [DIGITS.sub("#", error) for error in records["error"]], pl.String())
    return (
        records.with_columns(kinds)
        .group_by("source", "file", "kind", "next_step", maintain_order=True)
        .agg(pl.len().alias("records"), pl.col("error").first())
        .select("source", "file", "records", "error", "next_step")
    )


def show(counts: pl.DataFrame) -> None:
    """Print the table; what it quotes from files is no markup, and cannot move the cursor."""
    table = new_table(
        f"{counts['records'].sum():,} records in quarantine",
        ("source", "file", "first error of its kind", "next step"),
        ("records",),
    )
    for row in counts.iter_rows(named=True):
        texts = (row["source"], row["file"], row["error"][:SHOWN], row["next_step"])
        table.add_row(*(Text(text.translate(ONE_LINE)) for text in texts), f"{row['records']:,}")
    console = table_console()
    console.print(table)
    console.print("See them: corpus quarantine show SOURCE", markup=False, highlight=False)
