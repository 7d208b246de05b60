"""Counts and histograms of parts, which add up to those of the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import polars as pl

Summary = dict[str, dict[str, int]]


STEPS = 40


SHARES = ("_share", "_density", "_score", "_ratio")


def counted(values: pl.Series, missing: str | None = None) -> dict[str, int]:
    """Count the occurrences of each value, sorted by value.

    Nulls count as `missing`, and do not count if that is None.
    """
    counts = dict(values.alias("value").value_counts().iter_rows())
    nulls = counts.pop(None, 0)
    if nulls and missing is not None:
        counts[missing] = nulls
    # Sorted here: a query takes 0.1 ms, and a part has few values.
    return {str(value): counts[value] for value in sorted(counts)}


def is_share(score: str) -> bool:
    """Return True if a score has the scale from 0 to 1 (above counts as 1), by its name."""
    return score.endswith(SHARES)


def bin_of(score: str, values: pl.Series) -> pl.Series:
    """Return the bin of each value, Int64: 40 equal steps of a share, else two bins per octave."""
    return values.alias(score).to_frame().select(_bin(score)).to_series()


def histograms(table: pl.DataFrame, scores: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the values of each score by bin, as `counted` does for `bin_of`, in one query."""
    columns = table.select(_bin(score).fill_null(-1) for score in scores)
    counts = {column.name: np.bincount(column.to_numpy() + 1)[1:].tolist() for column in columns}
    return {
        name: {str(number): count for number, count in enumerate(numbers) if count}
        for name, numbers in counts.items()
    }


@cache
def _bin(score: str) -> pl.Expr:
    value = pl.col(score)
    if is_share(score):
        return (value.clip(0, 1) * STEPS).floor().clip(0, STEPS - 1).cast(pl.Int64)
    return ((value.clip(0) + 1).log(2) * 2).floor().cast(pl.Int64)


def add_summaries(summaries: Iterable[Mapping[str, Mapping[str, int]]]) -> Summary:
    """Add up the counts of each name."""
    total: Summary = {}
    for summary in summaries:
        for key, counts in summary.items():
            kept = total.setdefault(key, {})
            for name, count in counts.items():
                kept[name] = kept.get(name, 0) + count
    return total
