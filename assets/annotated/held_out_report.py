"""What a classifier says of the examples that it did not learn from, and what that warns of."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from assets.filtered.classifier.report import (
    ClassifierReport,
    area_under_curve,
    classifier_markdown,
    classifier_report,
    percent,
)

LEAST_OF_A_LANGUAGE = 20  # examples: a share is off by 0.1 in two of three languages
NEARLY_CONSTANT = 0.05  # between the 5th and the 95th percentile
NEAR_CHANCE = 0.6  # AUC
HIGH = 0.75  # AUC from which it matters whether only sources are told apart
FEWEST_PAIRS = 100  # of a good and a bad example of a source: fewer say nothing


class HeldOutReport(msgspec.Struct, frozen=True):
    """Measures on all examples, the share that 0.5 puts on the right side by language, warnings."""

    measures: ClassifierReport
    right: dict[str, float]
    warnings: tuple[str, ...]


def report_on(held: pl.DataFrame) -> HeldOutReport:
    """Measure the examples that are held out: `score` Float64, `is_good`, `source` and `lang`."""
    measures = classifier_report(held["score"].to_numpy(), held["is_good"].to_numpy())
    sides = held.with_columns(right=(pl.col("score") >= 0.5) == pl.col("is_good"))
    languages = sides.drop_nulls("lang").group_by("lang").agg(pl.len(), pl.col("right").mean())
    measured = languages.filter(pl.col("len") >= LEAST_OF_A_LANGUAGE).sort("lang")
    right = dict(measured.select("lang", "right").iter_rows())
    return HeldOutReport(measures, right, tuple(_find_warnings(held, measures.auc)))


def _find_warnings(held: pl.DataFrame, auc: float | None) -> Iterator[str]:
    if auc is None:
        yield "nothing is measured: the examples that are held out are all good, or all bad"
        return
    low, high = (held["score"].quantile(share, "nearest") or 0.0 for share in (0.05, 0.95))
    if high - low <= NEARLY_CONSTANT:
        yield f"the score is nearly the same everywhere: {low:.2f} to {high:.2f} for nine of ten"
    if auc < NEAR_CHANCE:
        yield f"the score says nothing: AUC {auc:.2f}, and chance is 0.50"
    within = auc_within_sources(held)
    if auc >= HIGH and held["source"].n_unique() > 1 and (within or 0.0) < NEAR_CHANCE:
        found = "no source has enough of both" if within is None else f"AUC {within:.2f}"
        yield (
            f"the score may only tell sources apart: AUC {auc:.2f} over all examples, within a "
            f"source {found}. Label good and bad documents of each source"
        )


def auc_within_sources(held: pl.DataFrame) -> float | None:
    """Return the chance that a good document scores above a bad one of its source.

    None if there are fewer than FEWEST_PAIRS of both.
    """
    pairs, above = 0, 0.0
    for group in held.partition_by("source"):
        is_good = group["is_good"].to_numpy()
        count = int(is_good.sum()) * int((~is_good).sum())
        above += count * area_under_curve(group["score"].to_numpy(), is_good) if count else 0.0
        pairs += count
    return above / pairs if pairs >= FEWEST_PAIRS else None


def report_markdown(report: HeldOutReport) -> str:
    """Write a report in Markdown: warnings, measures, and the languages."""
    right = [f"{language}: {percent(share)}" for language, share in report.right.items()]
    told = [f"**Warning:** {warning}." for warning in report.warnings]
    by_language = [f"On the right side of 0.5: {', '.join(right)}."] if right else []
    return "\n\n".join([*told, classifier_markdown(report.measures), *by_language])
