"""Drift of what a run adds against what earlier runs added, and of whole states.

A number of a run is compared by a robust z-score: its distance from the median, by the median
absolute deviation (Iglewicz and Hoaglin, 1993) and by what chance alone gives as few documents.
Counts are compared by the population stability index, sum((p - q) ln(p / q)), against the same
index of the earlier runs. Either must also be large enough to matter: a corpus whose nights are all
alike would otherwise raise an alarm over a thousandth.

Each share of the documents of a state is compared with its share in the state before. It drifts if
it moves by more than chance moves it in so few documents (DEVIATIONS), and by enough to matter.
What is new tonight is compared with the state before in the same way, since a few bad documents do
not move a large source: by more, as the new ones of one night are alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from resources.charts import Panel, Panels, as_markdown
from resources.profiles import Judgement, Profile

LEAST_RUNS = 8  # of history: the deviation of fewer is too uncertain
MOST_RUNS = 30  # that are compared with
LEAST_DOCUMENTS = 50  # of a run that is compared or counts
MOST_Z = 5.0  # of a number: one ordinary night in thousands has more, with eight runs in hundreds
LEAST_SHARE_CHANGE = 0.02  # of a share, below which no drift matters
LEAST_RELATIVE_CHANGE = 0.05  # of any other number
MOST_INDEX = 0.10  # of stability: above 0.1 a change is called moderate, above 0.25 large
INDEX_DEVIATIONS = 5.0
MAD = 1.4826  # from the median absolute deviation to the standard deviation
SMOOTHED = 0.5  # documents added to each count, so that none is 0
RARE = 0.01  # of the documents: rarer values are counted together
OTHERS = "others"
SHARES = ("share", "rate")
Floats = NDArray[np.float64]


def judge_drift(profile: Profile, earlier: Sequence[Profile]) -> Judgement:
    """Compare a run with earlier ones, the newest first; short history says so and passes."""
    if profile.documents < LEAST_DOCUMENTS:
        return Judgement(
            note=f"{profile.documents:,} new documents, too few to compare: {LEAST_DOCUMENTS}"
        )
    alike = [
        each
        for each in earlier
        if each.made_under == profile.made_under and each.documents >= LEAST_DOCUMENTS
    ][:MOST_RUNS]
    if not earlier:
        return Judgement(note="first state in Dagster's records: nothing to compare")
    if len(alike) < LEAST_RUNS:
        return Judgement(
            note=f"{len(alike)} earlier runs under this config, too few to compare: {LEAST_RUNS}"
        )
    facts = {
        **{name: number_facts(name, profile, alike) for name in profile.numbers},
        **{f"index of {name}": index_facts(name, profile, alike) for name in profile.counts},
    }
    drifts = [
        f"{name} is {found['now']:.3g}, {found['usual']:.3g} in the median of {len(alike)} runs "
        f"(limit {found['limit']:.3g} from it)"
        for name, found in facts.items()
        if found["distance"] > found["limit"]
    ]
    return Judgement(drifts, "", facts, picture_of(facts, profile, alike) if facts else "")


def number_facts(name: str, profile: Profile, earlier: Sequence[Profile]) -> dict[str, float]:
    """Return a number now and usually, its z-score, and how far it may be from the usual one."""
    past = np.array([each.numbers[name] for each in earlier if name in each.numbers])
    now = profile.numbers[name]
    if len(past) < LEAST_RUNS:
        return {"now": now, "usual": now, "z": 0.0, "distance": 0.0, "limit": 1.0}
    usual = float(np.median(past))
    is_share = name.endswith(SHARES)
    deviation = MAD * float(np.median(np.abs(past - usual)))
    if is_share:  # of few documents, chance alone moves it
        sure = min(max(usual, 1 / profile.documents), 1 - 1 / profile.documents)
        deviation = math.hypot(deviation, math.sqrt(sure * (1 - sure) / profile.documents))
    least = LEAST_SHARE_CHANGE if is_share else LEAST_RELATIVE_CHANGE * abs(usual)
    distance = abs(now - usual)
    return {
        "now": now,
        "usual": usual,
        "z": (now - usual) / deviation if deviation else 0.0,
        "distance": distance,
        "limit": max(MOST_Z * deviation, least),
    }


def index_facts(name: str, profile: Profile, earlier: Sequence[Profile]) -> dict[str, float]:
    """Return the stability index of counts, and what it usually is: of each earlier run."""
    past = [each.counts[name] for each in earlier if each.counts.get(name)]
    if len(past) < LEAST_RUNS or not profile.counts[name]:
        return {"now": 0.0, "usual": 0.0, "distance": 0.0, "limit": MOST_INDEX}
    names, table = counts_table([profile.counts[name], *past])
    del names
    every = table[1:].sum(0)
    now = stability_index(table[0], every)
    usual = np.array([stability_index(each, every - each) for each in table[1:]])
    middle = float(np.median(usual))
    deviation = MAD * float(np.median(np.abs(usual - middle)))
    limit = max(MOST_INDEX, INDEX_DEVIATIONS * deviation, middle)
    return {"now": now, "usual": middle, "distance": max(0.0, now - middle), "limit": limit}


def counts_table(counts: Sequence[Mapping[str, int]]) -> tuple[list[str], Floats]:
    """Return the values that are not rare, and how often each run has them, [runs, values]."""
    totals: dict[str, int] = {}
    for each in counts:
        for value, number in each.items():
            totals[value] = totals.get(value, 0) + number
    least = RARE * sum(totals.values())
    frequent = {value for value, number in totals.items() if number >= least}
    frequent |= {v for v, n in counts[0].items() if n >= RARE * sum(counts[0].values())}
    names = sorted(frequent)
    rows = [
        [
            *(each.get(value, 0) for value in names),
            sum(number for value, number in each.items() if value not in frequent),
        ]
        for each in counts
    ]
    return [*names, OTHERS], np.array(rows, np.float64)


def stability_index(now: Floats, usual: Floats) -> float:
    """Return the population stability index of two rows of counts."""
    one, other = ((row + SMOOTHED) / (row + SMOOTHED).sum() for row in (now, usual))
    return float(np.sum((one - other) * np.log(one / other)))


def length_bins(lengths: Sequence[int] | NDArray[np.int64]) -> dict[str, int]:
    """Count lengths by power of two; a bin has the name of its least length."""
    sizes = np.asarray(lengths, np.int64)
    powers = np.floor(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    found, counts = np.unique(powers, return_counts=True)
    bins = zip(found.tolist(), counts.tolist(), strict=True)
    return {f"{2**power}": count for power, count in bins}


def picture_of(
    facts: Mapping[str, Mapping[str, float]], profile: Profile, earlier: Sequence[Profile]
) -> str:
    """Chart each number by run, the oldest on the left; of counts, the usual index and now's."""
    panels = []
    for name, found in facts.items():
        past = [each.numbers[name] for each in reversed(earlier) if name in each.numbers]
        is_number = name in profile.numbers
        values = [*past, found["now"]] if is_number else [found["usual"], found["now"]]
        colour = "drift" if found["distance"] > found["limit"] else "usual"
        ends = (0.5, "oldest" if is_number else "usual"), (len(values) - 0.5, "now")
        heights = tuple(abs(value) for value in values)
        title = f"{name}: {found['now']:.3g}, usually {found['usual']:.3g}"
        panels.append(Panel(title, heights, ends, last=colour))
    return as_markdown(Panels("what this run adds, by earlier runs", tuple(panels)), "drift")


Counts = Mapping[str, int]

LEAST_OF_STATE = 15  # of either state
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
    if min(now.get("documents", 0), before.get("documents", 0)) < LEAST_OF_STATE:
        return []
    return [
        *share_drifts(now, before, LEAST_SHARE),
        *length_drift(now, before, LEAST_OCTAVES),
        *file_drifts(now, before),
    ]


def new_drifts(new: Counts, before: Counts) -> list[str]:
    """Return a line for each drift of the parts that are new tonight."""
    if min(new.get("documents", 0), before.get("documents", 0)) < LEAST_OF_STATE:
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
        if key.startswith("file:") and was and number >= max(LEAST_OF_STATE, TENFOLD * was):
            yield f"{key.removeprefix('file:')}: {number:,} documents, {was:,} before"
