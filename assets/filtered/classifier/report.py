"""How good a quality classifier is on held-out documents: numbers, a table and a plot.

Purpose: a threshold is a choice between good documents lost and bad ones kept; the report says
what each threshold costs before `filtered` uses one.
Good and bad weigh the same in log loss, calibration and precision, whatever their numbers, since
training weighs them so; `kept_share` alone counts the held-out documents as they are.
The plot is an SVG of 3 kB inside the Markdown, as a data URI: nothing to serve, nothing to install.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.report.plots import as_markdown

Doubles = NDArray[np.float64]
Booleans = NDArray[np.bool_]
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
NUM_BINS = 10
SMALLEST = 1e-15  # a probability of 0 would make the log loss infinite
SIZE, MARGIN = 260, 46  # of the plot, in pixels


def classifier_report(scores: Doubles, is_good: Booleans) -> dict[str, Any]:
    """Measure `scores`, float64 [n] in [0, 1], of n held-out documents; all of it is JSON.

    Without documents of one side there is nothing to compare: those measures are null.
    """
    num_good = int(is_good.sum())
    num_bad = len(is_good) - num_good
    report: dict[str, Any] = {"n_good": num_good, "n_bad": num_bad, "auc": None, "log_loss": None}
    report |= {"calibration_error": None, "calibration": [], "thresholds": []}
    if not (num_good and num_bad):
        return report
    shares = np.where(is_good, 0.5 / num_good, 0.5 / num_bad)
    given = np.clip(np.where(is_good, scores, 1 - scores), SMALLEST, 1)
    bins = calibration(scores, is_good, shares)
    gaps = [abs(each["mean_score"] - each["good_share"]) * each["weight"] for each in bins]
    return report | {
        "auc": area_under_curve(scores, is_good),
        "log_loss": float(-(shares * np.log(given)).sum()),
        "calibration_error": float(sum(gaps)),
        "calibration": bins,
        "thresholds": [at_threshold(scores, is_good, threshold) for threshold in THRESHOLDS],
    }


def area_under_curve(scores: Doubles, is_good: Booleans) -> float:
    """Chance that a good document scores above a bad one, ties counted half (Mann-Whitney U)."""
    ranks = pl.Series(scores).rank("average").to_numpy()
    num_good = int(is_good.sum())
    above = float(ranks[is_good].sum()) - num_good * (num_good + 1) / 2
    return above / (num_good * (len(is_good) - num_good))


def calibration(scores: Doubles, is_good: Booleans, shares: Doubles) -> list[dict[str, float]]:
    """Mean score and share of good documents in ten bins of equal width; empty bins are left out.

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
            {
                "from": number / NUM_BINS,
                "to": (number + 1) / NUM_BINS,
                "documents": len(rows),
                "weight": weight,
                "mean_score": float((shares * scores)[rows].sum()) / weight,
                "good_share": float(shares[rows][is_good[rows]].sum()) / weight,
            }
        )
    return bins


def at_threshold(scores: Doubles, is_good: Booleans, threshold: float) -> dict[str, float | None]:
    """What is kept if a document needs a score of at least `threshold`."""
    is_kept = scores >= threshold
    recall = float(is_kept[is_good].mean())
    bad_kept = float(is_kept[~is_good].mean())
    return {
        "threshold": threshold,
        "precision": recall / (recall + bad_kept) if recall + bad_kept else None,
        "recall": recall,
        "bad_kept": bad_kept,
        "kept_share": float(is_kept.mean()),
    }


def classifier_markdown(report: dict[str, Any]) -> str:
    """The report for people: headline, calibration plot, and what each threshold costs."""
    counts = f"{report['n_good']:,} good and {report['n_bad']:,} bad held-out documents"
    if report["auc"] is None:
        return f"Not measured: {counts}; at least one of each is needed."
    rows = [
        f"| {row['threshold']:.2f} | {percent(row['recall'])} | {percent(row['bad_kept'])} "
        f"| {percent(row['precision'])} | {percent(row['kept_share'])} |"
        for row in report["thresholds"]
    ]
    return "\n".join(
        [
            f"**AUC {report['auc']:.4f}**, log loss {report['log_loss']:.4f}, calibration error "
            f"{report['calibration_error']:.4f}, on {counts}.",
            "",
            as_markdown(calibration_svg(report), "Calibration: share of good documents by score"),
            "",
            "| keep from score | good kept | bad kept | precision at equal shares | all kept |",
            "|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )


def percent(share: float | None) -> str:
    """A share for people."""
    return "-" if share is None else f"{100 * share:.1f} %"


def calibration_svg(report: dict[str, Any]) -> str:
    """Share of good documents over mean score, a dot per bin; on the diagonal scores are honest.

    The area of a dot grows with the documents in its bin.
    """
    bins = report["calibration"]
    points = [(place(each["mean_score"]), SIZE - place(each["good_share"])) for each in bins]
    line = " ".join(f"{x + MARGIN:.1f},{y + MARGIN / 2:.1f}" for x, y in points)
    dots = [
        f'<circle cx="{x + MARGIN:.1f}" cy="{y + MARGIN / 2:.1f}" '
        f'r="{2.5 + 9 * each["weight"] ** 0.5:.1f}" fill="#4F43DD" fill-opacity="0.75"/>'
        for (x, y), each in zip(points, bins, strict=True)
    ]
    width, height = SIZE + 1.5 * MARGIN, SIZE + 1.5 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            'font-family="sans-serif" font-size="11" fill="#444">',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
            *grid_lines(),
            f'<line x1="{MARGIN}" y1="{SIZE + MARGIN / 2}" x2="{SIZE + MARGIN}" y2="{MARGIN / 2}" '
            'stroke="#999" stroke-dasharray="4 4"/>',
            f'<polyline points="{line}" fill="none" stroke="#4F43DD" stroke-width="1.5"/>',
            *dots,
            f'<text x="{MARGIN + SIZE / 2}" y="{height - 6:.0f}" text-anchor="middle">score</text>',
            f'<text transform="translate(12 {MARGIN / 2 + SIZE / 2}) rotate(-90)" '
            'text-anchor="middle">share of good documents</text>',
            "</svg>",
        ]
    )


def place(share: float) -> float:
    """Pixels from the axis."""
    return SIZE * share


def grid_lines() -> list[str]:
    """Grid and labels at every quarter, of both axes."""
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = MARGIN + place(share), MARGIN / 2 + SIZE - place(share)
        lines += [
            f'<line x1="{x}" y1="{MARGIN / 2}" x2="{x}" y2="{SIZE + MARGIN / 2}" stroke="#ddd"/>',
            f'<line x1="{MARGIN}" y1="{y}" x2="{SIZE + MARGIN}" y2="{y}" stroke="#ddd"/>',
            f'<text x="{x}" y="{SIZE + MARGIN / 2 + 14}" text-anchor="middle">{share:g}</text>',
            f'<text x="{MARGIN - 6}" y="{y + 4}" text-anchor="end">{share:g}</text>',
        ]
    return lines
