"""`corpus estimate`: what a build would give, from a small sample of every source, before it runs.

Reads ranges of the input files, and writes nothing.
"""

from __future__ import annotations

from typing import Annotated

import polars as pl
from cyclopts import Parameter
from cyclopts.validators import Number

from pipeline_defs.commands.answers import print_frame
from pipeline_defs.commands.build.build import check_names
from pipeline_defs.commands.terminal import Json, Natural, print_json, say
from pipeline_defs.forecast.costs import limits_of
from pipeline_defs.forecast.estimation import Estimate, estimate_corpus
from pipeline_defs.load_corpus import load_corpus
from resources.tasks import GLOBAL

WIDE = 0.5  # of the documents: an interval of copies that is wider is explained


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
    json: Json = False,
) -> int:
    """Estimate documents, tokens, seconds, disk and what rules remove, with intervals of 90 %."""
    corpus = load_corpus()
    known = corpus.settings.source_names()
    check_names(corpus, source, None)
    made = estimate_corpus(
        corpus, [name for name in known if name in (source or known)], share, seed
    )
    if json:
        print_json(made)
    else:
        show(made)
    return 0


def show(made: Estimate) -> None:
    """Print the estimate for people."""
    rules = {s: {f"rule {r}": i for r, i in of.rules.items()} for s, of in made.sources.items()}
    amounts = [(source, of.amounts | rules[source]) for source, of in made.sources.items()]
    rows = [
        (source, amount, *map(round, limits_of(found)))
        for source, of in [*amounts, (GLOBAL, made.total)]
        for amount, found in of.items()
    ]
    columns = ("source", "amount", "value", "at_least", "at_most")
    title = "estimate, with the limits that hold it in nine of ten samples"
    print_frame(title, pl.DataFrame(rows, columns, orient="row"))
    for name, each in made.sources.items():
        part = min(1, each.read_bytes / max(1, each.all_bytes))  # lines can be of two windows
        say(
            f"{name}: read {part:.2%} of {each.all_bytes:,} bytes, "
            f"{each.documents_read:,} documents; another rule removes at most "
            f"{each.unseen.high:,.0f}"
        )
        say(*(f"{name}: {note}" for note in each.notes))
    say(f"{made.total['CPU seconds'].value / made.workers:,.0f} s on {made.workers} workers.")
    copies, documents = made.total["removed as copies"], made.total["documents"]
    if copies.high - copies.low > WIDE * documents.value:
        say(
            f"A sample of {made.share:.2%} holds {made.share**2:.4%} of the pairs of copies, so it "
            "says little about them: the limits of copies, documents kept and tokens are wide. "
            "A larger --share narrows them."
        )
