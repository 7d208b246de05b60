"""Forms in Markdown: a template each, in which a value is one line and nothing of it is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline_defs.commands.share.facts import Facts, as_text
from pipeline_defs.commands.terminal import one_line

MARKS = re.compile(r"([\\`*{}\[\]|~#!]|\b_|_\b|(?<=\W)_|^_)")
HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
TOLD = ("provenance", "owner", "link", "collected", "purpose", "personal_data")
COUNTED = ("documents", "text_bytes", "tokens")


def filled(form: str, facts: Facts, **others: Any) -> str:
    """Return a template with its values, among them others than facts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        finalize=plain,
        loader=FileSystemLoader(Path(__file__).parent),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["period"] = period
    lines = {"table": table, "sources": sources, "languages": languages, "drawn": drawn}
    return environment.get_template(f"{form}.md").render(facts=facts, **lines, **others)


def plain(value: Any) -> Markup:
    """Return a value as one line without markup."""
    if isinstance(value, Markup):
        return value
    return Markup(MARKS.sub(r"\\\1", one_line(as_text(value)).translate(HTML)))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """Return a table, "None." without rows; numbers are on the right."""
    given = [[*row] for row in rows]
    if not given:
        return Markup("None.\n")
    rules = ["---:" if type(cell) is int else "---" for cell in given[0]]
    heads = [column.replace("_", " ") for column in columns]
    lines: list[Sequence[str]] = [heads, rules, *([*map(plain, row)] for row in given)]
    return Markup("".join(f"| {' | '.join(line)} |\n" for line in lines))


def period(dates: Any) -> str:
    """Return a date, or a period as forms have it, 05/2024 to 06/2024; else the value as it is."""
    if isinstance(dates, list):
        return " to ".join(map(period, dates))
    year, _, rest = str(dates).partition("-")
    return f"{rest[:2]}/{year}" if rest and year.isdecimal() else str(dates)


def sources(facts: Facts, names: Iterable[str]) -> Markup:
    """Return a table of some sources: what is told of them, and what is counted."""
    rows = []
    for name in names:
        told = {key: facts.of(name, key) for key in (*TOLD, *COUNTED)}
        told["collected"] = period(told["collected"])
        rows.append(
            [name, *told.values(), facts.first(name, "languages"), facts.first(name, "licenses")]
        )
    return table(("source", *TOLD, *COUNTED, "languages", "licences"), rows)


def languages(facts: Facts) -> Markup:
    """Return a table of languages, those of code last."""
    names = ("corpus.languages", "corpus.code_languages")
    rows = [row for name in names for row in facts.told(name)]
    total = max(1, facts.told("corpus.text_bytes"))
    shares = ([*row, f"{row[1] / total:.1%}"] for row in rows)
    return table(("language", "text_bytes", "tokens", "share"), shares)


def drawn(facts: Facts) -> Markup:
    """Return a table of what each phase draws of each source, repeats counted.

    Below it is which weights were fitted to proxy runs, by the SHA-256 of the files of these.
    """
    rows = [(phase, s, n, f"{epochs:.2f}") for s, phase, n, epochs in facts.rows("drawn")]
    rows += [(phase, "all", tokens, "") for phase, tokens in facts.told("corpus.drawn")]
    ordered = sorted(rows, key=lambda row: facts.phases.index(row[0]))
    drawn = table(("phase", "source", "tokens drawn", "epochs"), ordered)
    if not (fitted := facts.told("corpus.fitted")):
        return drawn
    files = table(("weights fitted in phase", "SHA-256 of ratios", "SHA-256 of metrics"), fitted)
    return drawn + Markup("\n") + files
