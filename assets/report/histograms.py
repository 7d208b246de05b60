"""Counts and histograms of parts, which add up to those of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

Summary = dict[str, dict[str, int]]


STEPS = 40


SHARES = ("_share", "_density", "_score", "_ratio")


def counted(values: pl.Series) -> dict[str, int]:
    """Count the occurrences of each value, sorted by value; nulls do not count."""
    counts = values.drop_nulls().alias("value").value_counts().sort("value")
    return {str(value): count for value, count in counts.iter_rows()}


def is_share(score: str) -> bool:
    """Return True if a score has the scale from 0 to 1 (above counts as 1), by its name."""
    return score.endswith(SHARES)


def bin_of(score: str, values: pl.Series) -> pl.Series:
    """Return the bin of each value, Int64: 40 equal steps of a share, else two bins per octave."""
    if is_share(score):
        return (values.clip(0, 1) * STEPS).floor().clip(0, STEPS - 1).cast(pl.Int64)
    return ((values.clip(0) + 1).log(2) * 2).floor().cast(pl.Int64)


def add_summaries(summaries: Iterable[Mapping[str, Mapping[str, int]]]) -> Summary:
    """Add up the counts of each name."""
    total: Summary = {}
    for summary in summaries:
        for key, counts in summary.items():
            kept = total.setdefault(key, {})
            for name, count in counts.items():
                kept[name] = kept.get(name, 0) + count
    return total
