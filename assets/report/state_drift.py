"""Drift of whole states: what a source is like tonight, against what it was like before.

Each share of the documents is compared with its share in the state before. It drifts if it moves
by more than chance moves it in so few documents (DEVIATIONS), and by enough to matter. What is new
tonight is compared with the state before in the same way, since a few bad documents do not move a
large source: by more, as the new ones of one night are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

Counts = Mapping[str, int]

LEAST_DOCUMENTS = 15  # of either state
DEVIATIONS = 2.0  # most documents of two states are the same: chance moves their share by less
LEAST_SHARE, LEAST_NEW_SHARE = 0.1, 0.3
LEAST_BY_KEY = {  # of other shares
    "removed": 0.05,
    "in quarantine": 0.05,
    "copies of others": 0.05,
    "line:": 0.2,
    "lang=": 0.25,  # one of many values may be no longer among the most frequent ones
    "license=": 0.25,
    "language ": 0.25,
    "words of ": 0.25,
}
LEAST_OCTAVES = 0.5  # of the mean length: by a factor of 1.4
TENFOLD = 5  # times the documents of a file: it has more than before
RISES = ("line:", "copies", "in quarantine", "U+FFFD", "mojibake", "control", "end in", "upper")
NOT_SHARES = ("all", "documents", "file:", "octave:")


def state_drifts(now: Counts, before: Counts) -> list[str]:
    """Return a line for each drift of a state against the one before."""
    if min(now.get("documents", 0), before.get("documents", 0)) < LEAST_DOCUMENTS:
        return []
    return [
        *share_drifts(now, before, LEAST_SHARE),
        *length_drift(now, before, LEAST_OCTAVES),
        *file_drifts(now, before),
    ]


def new_drifts(new: Counts, before: Counts) -> list[str]:
    """Return a line for each drift of the parts that are new tonight."""
    if min(new.get("documents", 0), before.get("documents", 0)) < LEAST_DOCUMENTS:
        return []
    kinds = ("has ", "mojibake", "U+FFFD", "control", "upper")
    of_kind = {key: number for key, number in new.items() if key.startswith((*kinds, "documents"))}
    was = {key: number for key, number in before.items() if key.startswith((*kinds, "documents"))}
    return [f"of the new parts, {line}" for line in share_drifts(of_kind, was, LEAST_NEW_SHARE)]


def share_drifts(now: Counts, before: Counts, least: float) -> Iterator[str]:
    """Yield a line for each share that moved by more than chance, and by enough to matter."""
    n, m = now["documents"], before["documents"]
    for key in sorted({*now, *before}):
        if key.startswith(NOT_SHARES):
            continue
        share, was = now.get(key, 0) / n, before.get(key, 0) / m
        both = min(max((share * n + was * m) / (n + m), 1 / (n + m)), 1 - 1 / (n + m))
        deviation = math.sqrt(both * (1 - both) * (1 / n + 1 / m))
        own = [share for start, share in LEAST_BY_KEY.items() if key.startswith(start)]
        limit = max(own[0] if own else least, DEVIATIONS * deviation)
        moved = share - was if key.startswith(RISES) else abs(share - was)
        if moved > limit:
            yield f"{said(key)}: {share:.1%} of the documents, {was:.1%} before (limit {limit:.1%})"


def said(key: str) -> str:
    """Write what is counted for people."""
    return "one line or sentence that many share" if key.startswith("line:") else key


def length_drift(now: Counts, before: Counts, least: float) -> Iterator[str]:
    """Yield a line if the mean logarithm of the lengths moved."""
    (mean, spread), (was, spread_before) = octaves(now), octaves(before)
    deviation = math.hypot(
        spread / math.sqrt(now["documents"]), spread_before / math.sqrt(before["documents"])
    )
    if abs(mean - was) > max(least, DEVIATIONS * deviation):
        yield f"length: {2 ** (mean - was):.2f} times that of before, in the geometric mean"


def octaves(counts: Counts) -> tuple[float, float]:
    """Return mean and deviation of the logarithm of lengths."""
    bins = {int(k.removeprefix("octave:")): n for k, n in counts.items() if k.startswith("octave:")}
    number = sum(bins.values()) or 1
    mean = sum(octave * n for octave, n in bins.items()) / number
    square = sum((octave - mean) ** 2 * n for octave, n in bins.items()) / number
    return mean, math.sqrt(square)


def file_drifts(now: Counts, before: Counts) -> Iterator[str]:
    """Yield a line for each file that has many times the documents that it had."""
    for key, number in now.items():
        was = before.get(key, 0)
        if key.startswith("file:") and was and number >= max(LEAST_DOCUMENTS, TENFOLD * was):
            yield f"{key.removeprefix('file:')}: {number:,} documents, {was:,} before"
