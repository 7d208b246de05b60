"""Markdown of facts: every value is one line, and nothing in it is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline_defs.commands.share.facts import Facts, as_text
from pipeline_defs.commands.terminal import one_line

MARKS = re.compile(r"([\\`*_{}\[\]|~#!])")
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def plain(value: Any) -> str:
    """Return a value as one line without markup."""
    return MARKS.sub(r"\\\1", one_line(as_text(value)).translate(HTML))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return the lines of a table, "None." without rows; numbers are on the right."""
    given = [[*row] for row in rows]
    if not given:
        return ["None.", ""]
    right = [isinstance(cell, int) and not isinstance(cell, bool) for cell in given[0]]
    rules = ["---:" if is_number else "---" for is_number in right]
    lines = [columns, rules, *([plain(cell) for cell in row] for row in given)]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def period(dates: Any) -> str:
    """Return a period as the forms have it, 05/2024 to 06/2024; what is unknown as it is."""
    return " to ".join(map(month, dates)) if isinstance(dates, list) else str(dates)


def month(date: str) -> str:
    """Return a date as month and year, or as the year that alone is known."""
    year, _, rest = date.partition("-")
    return f"{rest[:2]}/{year}" if rest else year


def share(number: int, total: int) -> str:
    """Return a part of a total in per cent."""
    return f"{number / max(1, total):.1%}"


def languages(rows: Sequence[Sequence[Any]], kind: str = "language") -> list[str]:
    """Return the lines of a table of languages, none without rows."""
    total = sum(row[1] for row in rows)
    shares = ([*row, share(row[1], total)] for row in rows)
    return table((kind, "bytes of text", "tokens", "share of the text"), shares) if rows else []


def drawn(facts: Facts) -> list[str]:
    """Return the lines of a table of what each phase draws of each source."""
    rows = [
        (phase, source, tokens, f"{epochs:.2f}")
        for source in facts.sources
        for phase, tokens, epochs in facts.known(f"sources.{source}.drawn")
    ]
    totals = [(phase, "all", tokens, "") for phase, tokens in facts.known("corpus.drawn")]
    ordered = sorted(rows + totals, key=lambda row: facts.phases.index(row[0]))
    return table(("phase", "source", "tokens, repeats counted", "epochs"), ordered)


def changed(facts: Facts) -> list[str]:
    """Return the section on what differs from an earlier disclosure, if it was compared."""
    if facts.changes is None:
        return []
    columns = ("fact", "before", "now")
    return ["## Changes since the last version", "", *table(columns, facts.changes)]
