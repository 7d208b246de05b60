"""Report of a filtered source: funnel, overlap of rules, languages and histograms of scores.

A part's summary is a few kilobytes; the summaries of all parts are added when the stage reports, so
that no report reads a decision again. Histograms have fixed bins, or they would not add: shares
and probabilities in steps of 1/40, everything else in half powers of two.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.rules.rules import Rule
from assets.report.drift import length_bins
from assets.report.histograms import STEPS, Summary, counted, histograms, is_share
from resources.charts import Bars, Panel, Panels, as_markdown, histogram, share_bars, with_limits
from resources.profiles import Profile
from resources.settings.limits import EVERY_LANGUAGE

TOP_PAIRS = 15
MOST_SCORES = 24  # that are charted


def summarize_decisions(decisions: pl.DataFrame, rules: Sequence[Rule]) -> Summary:
    """Count one part's decisions, by name.

    `broken`, `alone` and `pairs` ("a + b"): documents by rule; `languages`; `first`, `first_bytes`:
    documents and bytes by first reason ("" is kept); `histogram/<score>`: documents by bin.
    """
    names = [rule.name for rule in rules]
    first, broken = _reasons(decisions["reasons"], names)
    documents = np.bincount(first, minlength=len(names) + 1).tolist()
    sizes = np.bincount(first, decisions["num_bytes"].to_numpy(), len(names) + 1).tolist()
    by_first = sorted((name, n) for n, name in enumerate(["", *names]) if documents[n])
    alone = broken[broken.sum(axis=1) == 1].sum(axis=0)
    together = (broken.T @ broken).astype(int)
    summary: Summary = {
        "first": {name: documents[n] for name, n in by_first},
        "first_bytes": {name: int(sizes[n]) for name, n in by_first},
        "broken": {name: int(together[i, i]) for i, name in enumerate(names)},
        "alone": {name: int(alone[i]) for i, name in enumerate(names)},
        "pairs": {
            f"{names[i]} + {names[j]}": int(together[i, j])
            for i in range(len(names))
            for j in range(i + 1, len(names))
            if together[i, j]
        },
        "languages": counted(decisions["detected_lang"], missing="unknown"),
    }
    scores = dict.fromkeys(rule.score for rule in rules if not isinstance(rule.threshold, tuple))
    found = histograms(decisions, list(scores))
    return summary | {f"histogram/{score}": counts for score, counts in found.items()}


def decisions_profile(decisions: pl.DataFrame) -> Profile:
    """Return what drift is measured on: the kept share, reasons, languages and lengths.

    `decisions` has kept, reasons, detected_lang and num_bytes.
    """
    kept = int(decisions["kept"].sum())
    reasons = counted(decisions["reasons"].list.first(), missing="kept")
    return Profile(
        decisions.height,
        numbers={"kept share": kept / max(1, decisions.height)},
        counts={
            "reasons": reasons,
            "languages": counted(decisions["detected_lang"], missing="unknown"),
            "lengths": length_bins(decisions["num_bytes"].to_numpy()),
        },
    )


def _reasons(
    reasons: pl.Series, names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the first broken rule of each document, from 1 (0: none), and a matrix of all.

    The matrix is float32 [documents, rules]: 1 where a document broke a rule.
    """
    values = reasons.explode(empty_as_null=False).cast(pl.Enum(names)).to_physical().to_numpy()
    lengths = reasons.list.len().cast(pl.Int64).to_numpy()
    is_broken, starts = lengths > 0, lengths.cumsum() - lengths
    first = np.zeros(len(lengths), np.int64)
    first[is_broken] = values[starts[is_broken]] + 1
    broken = np.zeros((len(lengths), len(names)), np.float32)
    broken[np.repeat(np.arange(len(lengths)), lengths), values] = 1
    return first, broken


def place_of(score: str, threshold: float) -> float:
    """Return the place of a threshold on the axis of bins."""
    if is_share(score):
        return min(max(threshold, 0.0), 1.0) * STEPS
    return float(np.log2(max(threshold, 0.0) + 1) * 2)


def bin_start(score: str, number: int) -> str:
    """Write the lowest value of a bin."""
    value = number / STEPS if is_share(score) else 2 ** (number / 2) - 1
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def funnel_rows(summary: Summary, rules: Sequence[Rule]) -> list[tuple[str, int, int]]:
    """Return (step, documents left, bytes left): before any rule, then after each in rule order."""
    documents, size = (sum(summary[key].values()) for key in ("first", "first_bytes"))
    rows = [("all documents", documents, size)]
    for rule in rules:
        documents -= summary["first"].get(rule.name, 0)
        size -= summary["first_bytes"].get(rule.name, 0)
        rows.append((rule.name, documents, size))
    return rows


def report_markdown(summary: Summary, rules: Sequence[Rule]) -> dict[str, str]:
    """Return Markdown by title: `funnel`, `rule_pairs`, `languages` and `score_histograms`."""
    pairs = sorted(summary["pairs"].items(), key=lambda item: (-item[1], item[0]))[:TOP_PAIRS]
    return {
        "funnel": as_markdown(funnel_bars(summary, rules), "funnel"),
        "rule_pairs": "\n".join(
            [
                "| two rules together | documents |",
                "|---|---:|",
                *(f"| {pair} | {count:,} |" for pair, count in pairs),
            ]
        ),
        "languages": as_markdown(
            share_bars("detected language, documents", summary["languages"]), "languages"
        ),
        "score_histograms": as_markdown(score_panels(summary, rules), "scores"),
    }


def funnel_bars(summary: Summary, rules: Sequence[Rule]) -> Bars:
    """Chart what each rule removed of the documents that the rules before it left."""
    rows = funnel_rows(summary, rules)
    every, left = rows[0][1], rows[-1][1]
    removed = [
        (name, before - after, f"{before - after:,} documents, {(size - rest) / 1e3:,.1f} kB")
        for (_, before, size), (name, after, rest) in pairwise(rows)
        if after < before
    ]
    title = f"removed by each rule: of {every:,} documents {left:,} are kept"
    return Bars(title, tuple(removed))


def rule_rows(summary: Summary) -> list[tuple[str, int, int, int]]:
    """Return (rule, documents that break it, only it, it first), the most frequent rule first."""
    broken = {name: count for name, count in summary["broken"].items() if count}
    return [
        (name, count, summary["alone"].get(name, 0), summary["first"].get(name, 0))
        for name, count in sorted(broken.items(), key=lambda item: (-item[1], item[0]))
    ]


def score_panels(summary: Summary, rules: Sequence[Rule]) -> Panels:
    """Chart the documents by score, of the MOST_SCORES scores that most documents fail."""
    by_score: dict[str, list[Rule]] = {}
    for rule in rules:
        if not isinstance(rule.threshold, tuple):
            by_score.setdefault(rule.score, []).append(rule)
    failed = {s: sum(summary["broken"].get(r.name, 0) for r in of) for s, of in by_score.items()}
    most = set(sorted(by_score, key=lambda score: -failed[score])[:MOST_SCORES])
    panels = [
        score_panel(score, summary, limited) for score, limited in by_score.items() if score in most
    ]
    more = f" ({len(panels)} of {len(by_score)} scores)" if len(by_score) > len(panels) else ""
    return Panels(f"documents by score; lines are limits{more}", tuple(panels))


def score_panel(score: str, summary: Summary, limited: Sequence[Rule]) -> Panel:
    """Return the histogram of a score with its limits."""
    counts = {int(number): n for number, n in summary[f"histogram/{score}"].items()}
    limits = [
        (place_of(score, limit), text) for limit, text in _limits(limited, summary["languages"])
    ]
    last = STEPS - 1 if is_share(score) else int(max([*counts, *(x for x, _ in limits), 0]))
    bins = [(bin_start(score, i), counts.get(i, 0)) for i in range(last + 1)]
    name = score if is_share(score) else f"{score} (log scale)"
    return with_limits(histogram("", bins, name), limits).panels[0]


def _limits(rules: Sequence[Rule], languages: Collection[str]) -> list[tuple[float, str]]:
    """Return the limits and their labels; languages with one limit share a line.

    Limits of languages that the source has no document of are left out.
    """
    limits: list[tuple[float, str]] = []
    for rule in rules:
        if isinstance(rule.threshold, Mapping):
            here = {EVERY_LANGUAGE, *languages}
            known = {k: n for k, n in rule.threshold.items() if k in here and n is not None}
            for number in sorted(set(known.values())):
                langs = [lang for lang, limit in known.items() if limit == number]
                limits.append((number, f"{number:g} {' '.join(langs)}"))
        elif not isinstance(rule.threshold, tuple):
            limits.append((rule.threshold, f"{rule.threshold:g}"))
    return limits
