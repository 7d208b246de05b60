"""`corpus estimate`: what a build would give, from a small sample of every source, before it runs.

Reads ranges of the input files, and writes nothing but the estimate itself, with our records of
runs: `--compare` holds it against the build that followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from assets.report.sample_intervals import Interval
from assets.stages import used_stages
from pipeline_defs.commands.build.build import check_names
from pipeline_defs.commands.terminal import Json, Natural, Row, print_json, print_table, say
from pipeline_defs.forecast.costs import limits_of
from pipeline_defs.forecast.estimation import (
    Estimate,
    SourceEstimate,
    estimate_corpus,
    keep_estimate,
    kept_estimate,
)
from pipeline_defs.forecast.sampled_store import bytes_on_disk
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.stage import partition_names

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
    check_names(corpus, source, None)
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
    rows: list[Row] = []
    for name, each in made.sources.items():
        rules = {f"rule {rule}": found for rule, found in each.rules.items()}
        rows += [row_of(name, *item) for item in (each.amounts | rules).items()]
    rows += [row_of(ALL, *item) for item in made.total.items()]
    title = "estimate, with the limits that hold it in nine of ten samples"
    print_table(title, ("source", "amount"), ("value", "at least", "at most"), rows)
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


def show_error(corpus: Corpus, *, json: bool) -> int:
    """Print how the last estimate differs from the build."""
    compared = compare_with_build(corpus, kept_estimate(corpus))
    if json:
        print_json(
            [{**each._asdict(), "held": each.estimated.holds(each.actual)} for each in compared]
        )
        return 0
    rows = (compared_row(each) for each in compared)
    numbers = ("estimated", "at least", "at most", "is", "error", "in the limits")
    print_table("the last estimate, and the newest build", ("source", "amount"), numbers, rows)
    held = sum(each.estimated.holds(each.actual) for each in compared)
    say(f"{held} of {len(compared)} amounts are within their limits.")
    return 0


def row_of(source: str, amount: str, found: Interval) -> Row:
    """Return the cells of one amount."""
    return (source, amount, *(f"{value:,.0f}" for value in limits_of(found)))


def compared_row(each: Compared) -> Row:
    """Return the cells of one amount that was built."""
    error = "-" if each.error is None else f"{each.error:+.1%}"
    held = "yes" if each.estimated.holds(each.actual) else "no"
    found = [f"{value:,.0f}" for value in (*limits_of(each.estimated), each.actual)]
    return (each.source, each.amount, *found, error, held)


class Compared(NamedTuple):
    """An amount of a source, or of all, as it was estimated and as it is."""

    source: str
    amount: str
    estimated: Interval
    actual: float

    @property
    def error(self) -> float | None:
        """Return the relative error of the value, None where there is nothing."""
        return self.estimated.value / self.actual - 1 if self.actual else None


def compare_with_build(corpus: Corpus, made: Estimate) -> list[Compared]:
    """Compare every amount of an estimate with the newest manifests.

    StoreError if a source is not built. Rules that the sample did not see broken are compared, too:
    their estimate is the limit of what was not seen.
    """
    found: list[Compared] = []
    total: dict[str, float] = {}
    for name, each in made.sources.items():
        actual = actual_amounts(corpus, name)
        total = {key: total.get(key, 0.0) + value for key, value in actual.items()}
        found += [Compared(name, key, each.amounts[key], value) for key, value in actual.items()]
        found += list(compared_rules(corpus, name, each))
    if set(made.sources) == set(corpus.settings.source_names()):
        total |= {"CPU seconds": cpu_seconds(corpus), "disk bytes": float(bytes_on_disk(corpus))}
    found += [Compared(ALL, key, made.total[key], value) for key, value in total.items()]
    return found


def actual_amounts(corpus: Corpus, source: str) -> dict[str, float]:
    """Return what a source has in the newest manifests."""
    raw, filtered, deduped, tokenized = (
        corpus.store.newest(stages[name], source).stats
        for stages in [used_stages(corpus.settings)]
        for name in ("raw", "filtered", "deduped", "tokenized")
    )
    return {
        "documents": raw.rows_kept,
        "text bytes": raw.text_bytes,
        "removed by rules": sum(filtered.rejected.values()),
        "removed as copies": deduped.duplicates,
        "tokens before deduplication": tokenized.tokens * filtered.bytes / max(1, deduped.bytes),
        "documents kept": deduped.rows_kept,
        "tokens": tokenized.tokens,
    }


def compared_rules(corpus: Corpus, source: str, each: SourceEstimate) -> Iterator[Compared]:
    """Yield the rules that a source's documents break."""
    filtered = used_stages(corpus.settings)["filtered"]
    broken = corpus.store.newest(filtered, source).stats.numbers.broken_rules
    for rule in sorted({*broken, *each.rules}):
        estimated = each.rules.get(rule, each.unseen)
        yield Compared(source, f"rule {rule}", estimated, broken.get(rule, 0))


def cpu_seconds(corpus: Corpus) -> float:
    """Return the CPU seconds of the last run of every partition, under this DAGSTER_HOME."""
    return sum(
        read_report(corpus.store.root, stage.name, partition).cpu_seconds
        for stage in used_stages(corpus.settings).values()
        for partition in partition_names(stage, corpus.settings)
    )
