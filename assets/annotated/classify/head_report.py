"""What held-out documents say of a head: confusion, calibration, agreement, and what is suspect.

Agreement is Cohen's kappa, 0 for chance and 1 for no error; of numbered labels an error weighs the
square of its steps (Cohen 1968). Within sources chance knows the source of a document: a head that
tells sources apart and nothing else has a kappa of 0 there (marin#6849, marin#6860).
"""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.annotated.classify.head import UNITS, Head

NUM_BINS = 10
LEAST_RANGE = 0.1  # of the labels' range, that the middle 90 % of scores span
MOST_OF_ONE = 0.98  # share of documents with the same name
LEAST_KAPPA, LEAST_WITHIN = 0.2, 0.1
LEAST_DOCUMENTS = 20  # of a language with a kappa of its own

Counts = NDArray[np.int64]


class ScoreBin(msgspec.Struct, frozen=True):
    """Documents with scores in one of ten equal steps of the labels' range: means of both."""

    documents: int
    mean_score: float
    mean_label: float


class HeadReport(msgspec.Struct, frozen=True):
    """Measures of a head; `confusion` has a row a label, a column an answer (the nearest label).

    kappa is null if all labels and answers are the same. `calibration` is empty of names.
    """

    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    accuracy: float
    kappa: float | None
    kappa_within_sources: float | None
    kappa_by_language: dict[str, float | None]
    calibration: tuple[ScoreBin, ...]
    warnings: tuple[str, ...]


def measure_head(held_out: pl.DataFrame, head: Head) -> HeadReport:
    """Measure a head by held-out documents: `score` (see `score_vectors`), `label` as in training,
    `language` and `source` (String). Documents without a score, and with a label
    that the head lacks, do not count.

    Raises ValueError if no document has one.
    """
    known = held_out.drop_nulls("score")
    number_of = {label: number for number, label in enumerate(head.labels)}
    is_ordered = len(head.scores) > 0
    nearest = (2 * pl.col("score").cast(pl.Int64) + UNITS) // (2 * UNITS)
    answer = nearest.cast(pl.String) if is_ordered else pl.col("score")
    numbered = known.with_columns(
        answer=answer.replace_strict(number_of, return_dtype=pl.Int64),
        truth=pl.col("label")
        .cast(pl.String)
        .replace_strict(number_of, default=None, return_dtype=pl.Int64),
    ).drop_nulls("truth")
    if numbered.is_empty():
        raise ValueError("classify: no held-out document has a score. Label more documents.")
    confusion = _confusions(numbered, head)[0]
    by_source = np.stack([_confusions(own, head)[0] for own in numbered.partition_by("source")])
    within = kappa(by_source, is_ordered=is_ordered)
    overall = kappa(confusion[None], is_ordered=is_ordered)
    languages = numbered.drop_nulls("language").partition_by("language", as_dict=True)
    return HeadReport(
        labels=head.labels,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        accuracy=float(np.trace(confusion) / confusion.sum()),
        kappa=overall,
        kappa_within_sources=within,
        kappa_by_language={
            str(language): kappa(_confusions(own, head), is_ordered=is_ordered)
            for (language,), own in sorted(languages.items())
            if len(own) >= LEAST_DOCUMENTS
        },
        calibration=_calibration(numbered, head),
        warnings=tuple(_warnings(numbered, head, overall, within)),
    )


def kappa(confusions: Counts, *, is_ordered: bool) -> float | None:
    """Return Cohen's kappa of strata, int64 [strata, labels, answers]: chance is that of each.

    None if chance makes no error.
    """
    steps = np.arange(confusions.shape[1])
    errors = (steps[:, None] - steps) ** 2 if is_ordered else steps[:, None] != steps
    totals = np.maximum(confusions.sum(axis=(1, 2), keepdims=True), 1)
    chance = confusions.sum(axis=2, keepdims=True) * confusions.sum(axis=1, keepdims=True) / totals
    expected = float((chance * errors).sum())
    return 1 - float((confusions * errors).sum()) / expected if expected else None


def _confusions(numbered: pl.DataFrame, head: Head) -> Counts:
    counts = np.zeros((1, len(head.labels), len(head.labels)), np.int64)
    np.add.at(counts[0], (numbered["truth"].to_numpy(), numbered["answer"].to_numpy()), 1)
    return counts


def _calibration(numbered: pl.DataFrame, head: Head) -> tuple[ScoreBin, ...]:
    if not len(head.scores):
        return ()
    most = UNITS * (len(head.labels) - 1)
    step = (pl.col("score").cast(pl.Int64) * NUM_BINS // most).clip(0, NUM_BINS - 1)
    bins = numbered.group_by(step.alias("bin")).agg(
        pl.len(), pl.col("score").mean() / UNITS, pl.col("truth").mean()
    )
    return tuple(ScoreBin(*row) for row in bins.sort("bin").drop("bin").iter_rows())


def _warnings(
    numbered: pl.DataFrame, head: Head, overall: float | None, within: float | None
) -> list[str]:
    found = []
    if len(head.scores):
        low, high = (numbered["score"].quantile(q, "nearest") for q in (0.05, 0.95))
        assert low is not None and high is not None, "there is a score"
        if high - low < LEAST_RANGE * UNITS * (len(head.labels) - 1):
            found.append(
                f"scores are nearly constant: 90 % are from {low / UNITS:.2f} to "
                f"{high / UNITS:.2f}; a threshold would cut at noise"
            )
    share = numbered["answer"].value_counts()["count"].max() or 0
    if not len(head.scores) and int(str(share)) > MOST_OF_ONE * len(numbered):
        found.append("answers are nearly constant: over 98 % of documents have the same")
    if (overall or 0) >= LEAST_KAPPA and (within or 0) < LEAST_WITHIN:
        found.append(
            f"answers only sort sources: kappa is {overall:.2f} over all documents, and "
            f"{within or 0:.2f} within sources; a weight by source does the same"
        )
    return found
