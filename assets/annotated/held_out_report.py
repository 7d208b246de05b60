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
FEWEST_PAIRS = 25  # of a good and a bad example of a source: fewer say nothing


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
    pairs, within = pairs_within_sources(held)
    is_measured = pairs >= FEWEST_PAIRS or pairs == 0
    if auc >= HIGH and held["source"].n_unique() > 1 and within < NEAR_CHANCE and is_measured:
        found = f"AUC {within:.2f} within them" if pairs else "none has both good and bad ones"
        yield (
            f"the score may only tell sources apart: AUC {auc:.2f} over all examples, and "
            f"{found}. Label good and bad documents of each source"
        )


def pairs_within_sources(held: pl.DataFrame) -> tuple[int, float]:
    """Count the pairs of a good and a bad example of one source; the good one is above in a share.

    The share is 0 without a pair.
    """
    pairs, above = 0, 0.0
    for group in held.partition_by("source"):
        is_good = group["is_good"].to_numpy()
        if count := int(is_good.sum()) * int((~is_good).sum()):
            above += count * area_under_curve(group["score"].to_numpy(), is_good)
            pairs += count
    return pairs, above / max(1, pairs)


def report_markdown(report: HeldOutReport) -> str:
    """Write a report in Markdown: warnings, measures, and the languages."""
    right = [f"{language}: {percent(share)}" for language, share in report.right.items()]
    told = [f"**Warning:** {warning}." for warning in report.warnings]
    by_language = [f"On the right side of 0.5: {', '.join(right)}."] if right else []
    return "\n\n".join([*told, classifier_markdown(report.measures), *by_language])
