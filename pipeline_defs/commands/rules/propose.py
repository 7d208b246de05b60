"""`corpus rules propose`: tighter thresholds and other weights, from losses of a training run.

It counts what they would do, as `corpus rules whatif` does, and prints the edit of pipeline.yaml
that accepts them. It changes nothing.
"""

from __future__ import annotations

import json as json_module
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import polars as pl
import yaml
from cyclopts import Parameter
from cyclopts.validators import Number

from assets.filtered.rules.loss_proposals import (
    ThresholdProposal,
    propose_threshold,
    propose_weights,
)
from assets.filtered.rules.rules import rules_for
from pipeline_defs.commands.rules.filtered_files import (
    decision_files,
    filter_data,
    pick_sources,
    rules_config,
)
from pipeline_defs.commands.rules.whatif import SourceKept, what_if
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError

KEYS = ("doc_id", "source", "class")
ACCEPT = (
    "To accept, write this into pipeline.yaml, weights in place of what now gives the phase its "
    "shares (nothing was changed):"
)
NO_CHANGE = "The losses speak for no other threshold, and for no other weights."


class Proposed(msgspec.Struct, frozen=True):
    """Proposals by source, what whatif says of each, the weights, and the edit that accepts all."""

    thresholds: dict[str, list[ThresholdProposal]]
    kept: dict[str, SourceKept]
    weights: dict[str, float]
    edit: str


def propose(
    *,
    loss: Annotated[
        Path,
        Parameter(
            help="JSONL or CSV: loss, and doc_id, source or class (a detected language); "
            "reference, the loss of a reference model, if there is one."
        ),
    ],
    most_text: Annotated[
        float,
        Parameter(help="Share of a source's text to give up.", validator=Number(gt=0, lt=1)),
    ] = 0.05,
    json: Json = False,
) -> int:
    """Propose thresholds and weights from losses; print the edit that accepts them."""
    corpus = load_corpus()
    found = proposed(corpus, read_losses(loss), most_text)
    if json:
        print_json(found)
        return 0
    for name, proposals in found.thresholds.items():
        say(*(line_of(name, each) for each in proposals))
        now, then = found.kept[name].now, found.kept[name].then
        say(
            f"{name}: {now.documents:,} documents are kept now, {then.documents:,} then; "
            f"{now.bytes / 1e6:,.1f} and {then.bytes / 1e6:,.1f} MB."
        )
    if found.weights:
        say(f"weights: {json_module.dumps(found.weights)}")
    if not found.edit:
        say("", NO_CHANGE)
        return 0
    say("", ACCEPT, "", *found.edit.rstrip().split("\n"))
    return 0


def line_of(source: str, each: ThresholdProposal) -> str:
    """Return a sentence about a proposal."""
    return (
        f"{source}: {each.key} {each.now:g} -> {each.proposed:g}: drops {each.documents:,} "
        f"documents with a loss of {each.loss_of_dropped:.3f}, {each.text_share:.2%} of the text; "
        f"the mean goes from {each.loss_now:.3f} to {each.loss_then:.3f}"
    )


def read_losses(path: Path) -> pl.DataFrame:
    """Read a file of losses: `loss`, one of KEYS, and `reference` if it has one."""
    try:
        is_csv = path.suffix.lower() == ".csv"
        table = pl.read_csv(path) if is_csv else pl.read_ndjson(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"{path}: cannot be read as losses: {error}. Give JSONL or CSV.") from None
    key = next((name for name in KEYS if name in table.columns), None)
    if key is None or "loss" not in table.columns:
        raise UsageError(
            f"{path}: has the columns {', '.join(table.columns)}; it needs loss, and one of "
            f"{', '.join(KEYS)}."
        )
    reference = pl.col("reference") if "reference" in table.columns else pl.lit(None)
    numbers = {"loss": pl.col("loss"), "reference": reference}
    try:
        table = table.select(
            pl.col(key).cast(pl.String),
            **{name: values.cast(pl.Float64) for name, values in numbers.items()},
        )
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"{path}: loss and reference must be numbers: {error}") from None
    bad = table.filter(~pl.col("loss").is_finite().fill_null(False))
    if bad.height or table.is_empty():
        raise UsageError(f"{path}: {bad.height:,} of {table.height:,} losses are no finite number.")
    return table.group_by(key, maintain_order=True).mean()


def proposed(corpus: Corpus, losses: pl.DataFrame, most_text: float) -> Proposed:
    """Return what losses propose for every source that has decisions."""
    thresholds: dict[str, list[ThresholdProposal]] = {}
    kept: dict[str, SourceKept] = {}
    means: dict[str, tuple[float, float]] = {}  # excess loss, and bytes of text
    for name in pick_sources(corpus, None):
        table = with_losses(corpus, name, losses)
        if table.is_empty():
            continue
        means[name] = excess_of(table), float(table["num_bytes"].sum())
        found = source_proposals(corpus, name, table, most_text)
        if found:
            best = min(found, key=lambda each: each.loss_then)
            thresholds[name] = [best]
            change = f"{best.key}={best.proposed:g}"
            kept |= what_if(corpus, [name], [change]).sources
    if not means:
        raise UsageError(f"no {losses.columns[0]} of the file is one of the corpus's documents.")
    weights = weights_of(corpus, means)
    return Proposed(thresholds, kept, weights, edit_of(corpus, kept, weights))


def with_losses(corpus: Corpus, source: str, losses: pl.DataFrame) -> pl.DataFrame:
    """Return the kept decisions of a source whose loss is known."""
    key = losses.columns[0]
    manifest = corpus.store.newest("filtered", source)
    files = decision_files(corpus, manifest)
    if not files:
        return pl.DataFrame()
    decisions = pl.concat([pl.read_parquet(path) for path, _ in files], how="diagonal_relaxed")
    column = {"class": "detected_lang", "source": "source"}.get(key, key)
    placed = decisions.filter("kept").with_columns(source=pl.lit(source))
    return placed.join(losses.rename({key: column}), on=column, how="inner")


def excess_of(table: pl.DataFrame) -> float:
    """Return the mean loss of a source's text, above that of the reference if it is given."""
    has_reference = table["reference"].null_count() < table.height
    excess = pl.col("loss") - pl.col("reference") if has_reference else pl.col("loss")
    counted = table.select(excess=excess, size="num_bytes").drop_nulls()
    value = float(np.average(counted["excess"], weights=counted["size"]))
    return max(0.0, value) if has_reference else value


def source_proposals(
    corpus: Corpus, source: str, table: pl.DataFrame, most_text: float
) -> list[ThresholdProposal]:
    """Return a proposal for each rule whose threshold the losses speak against."""
    if table["loss"].n_unique() < 2:  # of the source as a whole: no document differs
        return []
    manifest = corpus.store.newest("filtered", source)
    losses, sizes = (table[name].to_numpy().astype(np.float64) for name in ("loss", "num_bytes"))
    found = []
    for rule in rules_for(rules_config(manifest), filter_data(corpus, manifest).custom):
        if rule.score in table.columns and table[rule.score].dtype.is_numeric():
            scores = table[rule.score].cast(pl.Float64).fill_null(np.nan).to_numpy()
            found.append(propose_threshold(rule, scores, losses, sizes, most_text))
    return [each for each in found if each is not None]


def weights_of(corpus: Corpus, means: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return weights of the sources; none unless the loss of every source is known."""
    if len(means) < 2 or set(means) != set(corpus.settings.source_names()):
        return {}
    total = sum(size for _, size in means.values())
    shares = {name: size / total for name, (_, size) in means.items()}
    return propose_weights({name: excess for name, (excess, _) in means.items()}, shares)


def edit_of(corpus: Corpus, kept: Mapping[str, SourceKept], weights: Mapping[str, float]) -> str:
    """Return the keys of pipeline.yaml that accept thresholds and weights, as YAML."""
    sources = [
        {"name": name, "filters": msgspec.to_builtins(found.filters)}
        for name, found in kept.items()
    ]
    phase = corpus.settings.phases[0].name
    edit: dict[str, object] = {"sources": sources} if sources else {}
    if weights:
        edit["phases"] = [{"name": phase, "weights": dict(weights)}]
    return yaml.safe_dump(edit, sort_keys=False) if edit else ""
