"""`corpus quarantine show`: records in quarantine, with place, reason, next step and bytes."""

from __future__ import annotations

import sys

from rich.console import Console

from pipeline_defs.commands.life.quarantined import OnlyFile, SourceName, read_quarantine
from pipeline_defs.commands.look.document_lines import print_lines
from pipeline_defs.commands.terminal.options import Json, Positive
from pipeline_defs.commands.terminal.output import one_line, print_json
from pipeline_defs.load_corpus import load_corpus

SHOWN_BYTES = 2000


def show_records(
    source: SourceName, /, *, file: OnlyFile = None, limit: Positive = 10, json: Json = False
) -> int:
    """Print the first records; the bytes are escaped as Python writes them."""
    records = read_quarantine(load_corpus(), source, file)
    rows = [
        {
            "file": row["file"],
            "position": row["position"],
            **({"line": str(row["line"])} if row["line"] else {}),
            "why": row["error"],
            "next_step": row["next_step"],
            "raw": escaped(row["raw"]),
        }
        for row in records.head(limit).iter_rows(named=True)
    ]
    if json:
        print_json(rows)
        return 0
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for row in rows:
        print_lines(console, {name: one_line(value) for name, value in row.items()})
        console.rule()
    shown = f"{len(rows):,} of {records.height:,} records in quarantine\n"
    sys.stdout.write(shown if rows else "No record is in quarantine.\n")
    return 0


def escaped(raw: bytes) -> str:
    """Return the first bytes of a record in ASCII, and how many follow."""
    more = len(raw) - SHOWN_BYTES
    return f"{raw[:SHOWN_BYTES]!r}{f' and {more:,} bytes more' if more > 0 else ''}"
