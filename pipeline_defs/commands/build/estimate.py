"""`corpus estimate`: what a build would give, from a small sample of every source, before it runs.

Reads ranges of the input files, and writes nothing but the estimate itself, with our records of
runs: `--compare` holds it against the build that followed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from assets.report.sample_intervals import Interval
from pipeline_defs.commands.terminal.options import Json, Natural
from pipeline_defs.commands.terminal.output import ONE_LINE, new_table, print_json, table_console
from pipeline_defs.forecast.estimate_error import Compared, compare_with_build
from pipeline_defs.forecast.estimation import (
    Estimate,
    estimate_corpus,
    keep_estimate,
    kept_estimate,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name

WIDE = 0.5  # of the documents: an interval of copies that is wider is explained
ALL = "all"


def estimate(
    *,
    share: Annotated[
        float,
        Parameter(help="Share of each source's bytes to read.", validator=Number(gt=0, lte=1)),
    ] = 0.01,
    source: Annotated[
        tuple[str, ...], Parameter(help="A source; may be repeated (default: all).")
    ] = (),
    seed: Annotated[Natural, Parameter(help="Seed of the sample.")] = 0,
    compare: Annotated[
        bool, Parameter(help="Hold the last estimate against the newest build; read no input.")
    ] = False,
    json: Json = False,
) -> int:
    """Estimate documents, tokens, seconds, disk and what rules remove, with intervals of 90 %."""
    corpus = load_corpus()
    if compare:
        return show_error(corpus, json=json)
    known = corpus.settings.source_names()
    for name in source:
        if name not in known:
            raise UsageError(unknown_name("source", name, known))
    made = estimate_corpus(
        corpus, [name for name in known if name in (source or known)], share, seed
    )
    keep_estimate(corpus, made)
    if json:
        print_json(made)
    else:
        show(made)
    return 0


def show(made: Estimate) -> None:
    """Print the estimate for people."""
    console = table_console()
    table = new_table(
        "estimate, with the limits that hold it in nine of ten samples",
        ["source", "amount"],
        ["value", "at least", "at most"],
    )
    for name, each in made.sources.items():
        add_rows(table, name, each.amounts)
        add_rows(table, name, {f"rule {rule}": found for rule, found in each.rules.items()})
    add_rows(table, ALL, made.total)
    console.print(table)
    for name, each in made.sources.items():
        part = min(1, each.read_bytes / max(1, each.all_bytes))  # lines can be of two windows
        say(
            f"{name}: read {part:.2%} of {each.all_bytes:,} bytes, "
            f"{each.documents_read:,} documents; another rule removes at most "
            f"{each.unseen.high:,.0f}"
        )
        for note in each.notes:
            say(f"{name}: {note}")
    say(f"{made.total['CPU seconds'].value / made.workers:,.0f} s on {made.workers} workers.")
    copies, documents = made.total["removed as copies"], made.total["documents"]
    if copies.high - copies.low > WIDE * documents.value:
        say(
            f"A sample of {made.share:.2%} holds {made.share**2:.4%} of the pairs of copies, so it "
            "says little about them: the limits of copies, documents kept and tokens are wide. "
            "A larger --share narrows them."
        )


def add_rows(table: object, source: str, amounts: Mapping[str, Interval]) -> None:
    """Add a row per amount."""
    for amount, found in amounts.items():
        limits = (f"{value:,.0f}" for value in (found.value, found.low, found.high))
        table.add_row(source, amount, *limits)  # type: ignore[attr-defined]


def show_error(corpus: Corpus, *, json: bool) -> int:
    """Print how the last estimate differs from the build."""
    compared = compare_with_build(corpus, kept_estimate(corpus))
    if json:
        print_json(
            [{**each._asdict(), "held": each.estimated.holds(each.actual)} for each in compared]
        )
        return 0
    table = new_table(
        "the last estimate, and the newest build",
        ["source", "amount"],
        ["estimated", "at least", "at most", "is", "error", "in the limits"],
    )
    for each in compared:
        table.add_row(*row_of(each))
    table_console().print(table)
    held = sum(each.estimated.holds(each.actual) for each in compared)
    say(f"{held} of {len(compared)} amounts are within their limits.")
    return 0


def row_of(each: Compared) -> tuple[str, ...]:
    """Return the cells of one amount."""
    found = each.estimated
    numbers = (found.value, found.low, found.high, each.actual)
    error = "-" if each.error is None else f"{each.error:+.1%}"
    held = "yes" if found.holds(each.actual) else "no"
    return each.source, each.amount, *(f"{number:,.0f}" for number in numbers), error, held


def say(text: str) -> None:
    """Print a line; names of files are untrusted."""
    sys.stdout.write(text.translate(ONE_LINE) + "\n")
