"""Propose limits under which a share of clean text is kept, from its scores.

Every rule may cut the same number of documents, its most extreme ones; the number is the largest at
which all rules together lose no more than was asked, and what is left goes to the first rules, one
document each. Documents that several rules reject (5-gram to 10-gram repetition) count once. A
language with enough documents has limits of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.rules.rules import Direction, Rule
from assets.filtered.rules.threshold_replay import CUSTOM, rule_groups
from resources.settings.limits import EVERY_LANGUAGE, LANGUAGE_NAME, Amount, Count, Share

LEAST_DOCUMENTS = 50  # of a source: below, a twentieth is two documents
LEAST_OF_LANGUAGE = 100  # with limits of its own: below, a twentieth is five documents
SHARE_DIGITS = 3  # of a proposed share
MOST_DECIMALS = 15  # a float64 has no more
NEVER = np.iinfo(np.int64).max  # tail of a document that no rule can cut

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Limits = dict[str, float | None]


def language_rows(languages: pl.Series | None, num_documents: int) -> dict[str, Integers]:
    """Return the rows of every language of LEAST_OF_LANGUAGE documents, and of all others as `*`.

    `*` comes last, and may have no rows. Without languages, or with one only, all rows are in `*`;
    those of a name that no limit can have ("visual basic") are in `*`, too.
    """
    everything = {EVERY_LANGUAGE: np.arange(num_documents)}
    if languages is None:
        return everything
    rows = pl.DataFrame({"lang": languages}).with_row_index("row")
    rows = rows.filter(pl.col("lang").str.contains(f"^{LANGUAGE_NAME}$"))
    groups = rows.group_by("lang").agg("row").sort("lang")
    large = groups.filter(pl.col("row").list.len() >= LEAST_OF_LANGUAGE)
    found = {lang: np.array(numbers, np.int64) for lang, numbers in large.iter_rows()}
    others = np.setdiff1d(everything[EVERY_LANGUAGE], np.concatenate([[], *found.values()]))
    if not found or (len(found) == 1 and not len(others)):
        return everything
    return {**found, EVERY_LANGUAGE: others.astype(np.int64)}


def propose_limits(
    rules: Sequence[Rule],
    read: Callable[[str], Floats],
    groups: Mapping[str, Integers],
    is_lost: NDArray[np.bool_],
    keep: float,
) -> dict[str, Limits]:
    """Return the limits of every rule by language, by the rule's name.

    `read` returns the column of a score, NaN for null. `is_lost` marks documents that are rejected
    whatever the limits are. A rule is left out where it has no score at all; None: no limit.
    """
    tails = np.full(len(is_lost), NEVER)
    for rule in rules:
        scores = read(rule.score)
        for rows in groups.values():
            tails[rows] = np.minimum(tails[rows], tail_lengths(scores[rows], rule.direction))
    cuts = {lang: longest_cut(tails[rows], is_lost[rows], keep) for lang, rows in groups.items()}
    lost = {lang: is_lost[rows] | (tails[rows] <= cuts[lang]) for lang, rows in groups.items()}
    proposed = {}
    for rule in rules:
        scores = read(rule.score)
        limits: Limits = {}
        for lang, rows in groups.items():
            own = scores[rows]
            if not np.isnan(own).all():
                longer = tail_lengths(own, rule.direction) <= cuts[lang] + 1
                spends = (lost[lang] | longer).sum() <= most_lost(len(rows), keep)
                lost[lang] |= longer & spends
                limits[lang] = limit_at(own, rule, cuts[lang] + int(spends))
        if limits:
            proposed[rule.name] = with_default(limits, rule, len(groups[EVERY_LANGUAGE]))
    return proposed


def tail_lengths(scores: Floats, direction: Direction) -> Integers:
    """Return for each document how many are at least as extreme; NEVER for NaN."""
    extremes = scores if direction == "above" else -scores
    ordered = np.sort(extremes[~np.isnan(extremes)])
    lengths = len(ordered) - np.searchsorted(ordered, extremes, "left")
    return np.where(np.isnan(extremes), NEVER, lengths)


def longest_cut(tails: Integers, is_lost: NDArray[np.bool_], keep: float) -> int:
    """Return the largest number of documents that each rule may cut.

    `tails` has the shortest tail of each document over all rules: it is cut if that is at most the
    number.
    """
    allowed = most_lost(len(tails), keep) - int(is_lost.sum())
    rest = np.sort(tails[~is_lost])
    if allowed < 0 or not len(rest):
        return 0
    return int(min(rest[min(allowed, len(rest) - 1)] - 1, len(tails)))


def most_lost(num_documents: int, keep: float) -> int:
    """Return the number of documents that may be lost."""
    return num_documents - math.ceil(num_documents * keep - 1e-9)  # 100 * 0.95 is 95.00000000000001


def limit_at(scores: Floats, rule: Rule, cut: int) -> float | None:
    """Return the limit of a rule that cuts at most `cut` documents, rounded away from the text.

    None where an inclusive rule has no such limit within the bounds of its score.
    """
    sign = 1 if rule.direction == "above" else -1
    ordered = np.sort(sign * scores[~np.isnan(scores)])[::-1]
    edge = float(sign * ordered[min(cut, len(ordered) - 1)])
    form = form_of(rule)
    digits = {"count": 0, "share": SHARE_DIGITS}.get(form, decimals(edge))
    steps = round(edge * 10**digits)
    beyond = sign * (rounded(steps, digits) - edge)
    if beyond < 0 or (rule.is_inclusive and beyond == 0):
        steps += sign
    limit = rounded(steps, digits)
    if form == "count":
        limit = int(limit)
    bounded = min(max(limit, 0), 1 if form == "share" else math.inf)
    return None if rule.is_inclusive and bounded != limit else bounded


def form_of(rule: Rule) -> str:
    """Return "count", "share" or "amount"; an empty text for a flag, names or a fixed rule."""
    if not rule.field:
        return ""
    if rule.group == CUSTOM:
        return "amount"
    annotation = rule_groups()[rule.group].model_fields[rule.field].annotation
    return {str(Count): "count", str(Share): "share", str(Amount): "amount"}.get(
        str(annotation), ""
    )


def rounded(steps: int, digits: int) -> float:
    """Return a number of steps of 10**-digits."""
    return round(steps / 10.0**digits, max(0, digits))


def decimals(number: float) -> int:
    """Return the decimals that leave three digits of a number; below 0 for large ones."""
    if number == 0:
        return SHARE_DIGITS
    return min(MOST_DECIMALS, 2 - math.floor(math.log10(abs(number))))


def with_default(limits: Limits, rule: Rule, num_others: int) -> Limits:
    """Give languages without limits of their own those of all others, or of few others the widest.

    A null among the limits is the widest.
    """
    if num_others >= LEAST_OF_LANGUAGE and EVERY_LANGUAGE in limits:
        return limits
    return {**limits, EVERY_LANGUAGE: widest(limits, rule)}


def widest(limits: Limits, rule: Rule) -> float | None:
    """Return the limit that rejects least."""
    numbers = [limit for limit in limits.values() if limit is not None]
    if len(numbers) < len(limits):
        return None
    return max(numbers) if rule.direction == "above" else min(numbers)
