"""A classifier's measures on held-out documents: numbers, a table and a plot.

Purpose: a threshold is a choice between good documents lost and bad ones kept; the report gives
the cost of each threshold before `filtered` uses one.
Good and bad weigh the same in log loss, calibration and precision, whatever their numbers, since
training weighs them so; `kept_share` alone counts the held-out documents as they are.
"""

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from resources.charts import Bars, as_markdown

Doubles = NDArray[np.float64]
Booleans = NDArray[np.bool_]
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
NUM_BINS = 10
SMALLEST = 1e-15  # a probability of 0 would make the log loss infinite


class CalibrationBin(msgspec.Struct, frozen=True):
    """Held-out documents with a score from `start` up to `stop`, their mean score and good share.

    `weight` is their share of all held-out documents, good and bad in equal parts.
    """

    start: float = msgspec.field(name="from")
    stop: float = msgspec.field(name="to")
    documents: int
    weight: float
    mean_score: float
    good_share: float


class ThresholdReport(msgspec.Struct, frozen=True):
    """Shares of the held-out documents that a threshold keeps; precision is null if it keeps none.

    `recall` is the share of the good documents that are kept, `bad_kept` that of the bad ones.
    """

    threshold: float
    precision: float | None
    recall: float
    bad_kept: float
    kept_share: float


class ClassifierReport(msgspec.Struct, frozen=True):
    """Measures of a classifier; null, and no rows, without held-out documents of one side."""

    n_good: int
    n_bad: int
    auc: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    thresholds: tuple[ThresholdReport, ...] = ()


def classifier_report(scores: Doubles, is_good: Booleans) -> ClassifierReport:
    """Measure `scores`, float64 [n] in [0, 1], of n held-out documents.

    `is_good`, bool [n], is their label.
    """
    num_good = int(is_good.sum())
    num_bad = len(is_good) - num_good
    if not (num_good and num_bad):
        return ClassifierReport(num_good, num_bad)
    shares = np.where(is_good, 0.5 / num_good, 0.5 / num_bad)
    label_scores = np.clip(np.where(is_good, scores, 1 - scores), SMALLEST, 1)
    bins = calibration_bins(scores, is_good, shares)
    gaps = [abs(bin_.mean_score - bin_.good_share) * bin_.weight for bin_ in bins]
    return ClassifierReport(
        num_good,
        num_bad,
        auc=area_under_curve(scores, is_good),
        log_loss=float(-(shares * np.log(label_scores)).sum()),
        calibration_error=float(sum(gaps)),
        calibration=bins,
        thresholds=tuple(at_threshold(scores, is_good, threshold) for threshold in THRESHOLDS),
    )


def area_under_curve(scores: Doubles, is_good: Booleans) -> float:
    """Return the chance that a good document scores above a bad one (Mann-Whitney U).

    A tie counts half.
    """
    ranks = pl.Series(scores).rank("average").to_numpy()
    num_good = int(is_good.sum())
    above = float(ranks[is_good].sum()) - num_good * (num_good + 1) / 2
    return above / (num_good * (len(is_good) - num_good))


def calibration_bins(
    scores: Doubles, is_good: Booleans, shares: Doubles
) -> tuple[CalibrationBin, ...]:
    """Bin the scores by equal width and compare them with the labels; empty bins are left out.

    `shares`, float64 [n], is the weight of each document; they add up to 1.
    """
    numbers = np.minimum((scores * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    bins = []
    for number in range(NUM_BINS):
        rows = np.flatnonzero(numbers == number)
        if not len(rows):
            continue
        weight = float(shares[rows].sum())
        bins.append(
            CalibrationBin(
                start=number / NUM_BINS,
                stop=(number + 1) / NUM_BINS,
                documents=len(rows),
                weight=weight,
                mean_score=float((shares * scores)[rows].sum()) / weight,
                good_share=float(shares[rows][is_good[rows]].sum()) / weight,
            )
        )
    return tuple(bins)


def at_threshold(scores: Doubles, is_good: Booleans, threshold: float) -> ThresholdReport:
    """Measure what is kept if a document needs a score of at least `threshold`."""
    is_kept = scores >= threshold
    recall = float(is_kept[is_good].mean())
    bad_kept = float(is_kept[~is_good].mean())
    return ThresholdReport(
        threshold=threshold,
        precision=recall / (recall + bad_kept) if recall + bad_kept else None,
        recall=recall,
        bad_kept=bad_kept,
        kept_share=float(is_kept.mean()),
    )


def classifier_markdown(report: ClassifierReport) -> str:
    """Write the report in Markdown: headline, calibration plot, and the cost of each threshold."""
    counts = f"{report.n_good:,} good and {report.n_bad:,} bad held-out documents"
    if report.auc is None:
        return f"Not measured: {counts}; at least one of each is needed."
    rows = [
        f"| {row.threshold:.2f} | {percent(row.recall)} | {percent(row.bad_kept)} "
        f"| {percent(row.precision)} | {percent(row.kept_share)} |"
        for row in report.thresholds
    ]
    return "\n".join(
        [
            f"**AUC {report.auc:.4f}**, log loss {report.log_loss:.4f}, calibration error "
            f"{report.calibration_error:.4f}, on {counts}.",
            "",
            as_markdown(calibration_bars(report), "Calibration: share of good documents by score"),
            "",
            "| keep from score | good kept | bad kept | precision at equal shares | all kept |",
            "|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )


def percent(share: float | None) -> str:
    """Write a share in percent, "-" for none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def calibration_bars(report: ClassifierReport) -> Bars:
    """Chart the share of good documents by score, a bar a bin; calibrated, it is the mean score."""
    bars = (
        (
            f"score {bin_.mean_score:.2f}",
            bin_.good_share,
            f"{bin_.good_share:.1%} good of {bin_.documents:,}",
        )
        for bin_ in report.calibration
    )
    return Bars("share of good documents by mean score", tuple(bars))
