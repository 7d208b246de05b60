"""Totals of a population from a sample of its blocks, with intervals of 90 %.

A total is that of each stratum: its size times what the sample has per unit of size. How far it may
be off is drawn: DRAWS times the blocks get random weights (the Bayesian bootstrap of Rubin, 1981),
so documents of one block, which may be alike, vary together. Weights are spread wider than usual
where there are few blocks, as Student's t is wider than the normal distribution. What the sample
has none of may still exist: the upper limit of a count of documents of a kind has as many more as
the interval of Jeffreys gives a share of none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import msgspec
import numpy as np
from numpy.typing import NDArray

DRAWS = 2000
LEVEL = 0.9
NORMAL = NormalDist().inv_cdf((1 + LEVEL) / 2)
LEAST_SPREAD = 0.05  # parameter of the weights: two blocks say next to nothing
SKEWED = 2  # by which there is less freedom than blocks: most windows hold no document, few many
WIDER = 1.5  # variance than blocks tell, by benchmarks/estimate_coverage.py
LEAST_DOUBT = 0.03  # of a size: records that are left out, or are not as their file's others
JEFFREYS_NONE = 1.92  # documents: half of the 95 % quantile of chi square with one degree
TINY = 1e-3  # of a block, that rounded weights may come down to
Floats = NDArray[np.float64]


class Interval(msgspec.Struct, frozen=True):
    """An amount, and the limits that hold it in nine of ten samples."""

    value: float
    low: float
    high: float

    def holds(self, actual: float) -> bool:
        """Return whether the actual amount is within the limits."""
        return self.low <= actual <= self.high


@dataclass(frozen=True)
class Blocks:
    """Blocks of one stratum: what each takes, and the size of the stratum, in one unit.

    spans     by amount, [blocks, amounts]: of what documents count by, and of what their bytes do
    values    the amounts of each block, [blocks, amounts]
    doubt     standard deviation of the logarithm of the size, where it is not known exactly
    """

    spans: Floats
    size: float
    values: Floats
    doubt: float = 0.0


@dataclass(frozen=True)
class Totals:
    """Totals of some amounts, and DRAWS of what they may be: [amounts], [DRAWS, amounts]."""

    values: Floats
    draws: Floats


def totals_of(strata: Sequence[Blocks], rng: np.random.Generator) -> Totals:
    """Return the totals over strata of blocks."""
    freedom = max(1, sum(len(each.spans) - 1 for each in strata) // SKEWED)
    width = (NORMAL / student(freedom)) ** 2 / WIDER
    values = sum(each.size * each.values.sum(0) / each.spans.sum(0) for each in strata)
    draws: Floats | int = 0
    for each in strata:
        doubt = rng.normal(0.0, max(each.doubt, LEAST_DOUBT), (DRAWS, 1))
        draws = draws + each.size * np.exp(doubt) * drawn_rates(each, width, rng)
    return Totals(np.asarray(values, np.float64), np.asarray(draws, np.float64))


def drawn_rates(blocks: Blocks, width: float, rng: np.random.Generator) -> Floats:
    """Draw what a stratum may have per unit of its size, [DRAWS, amounts]."""
    number = len(blocks.spans)
    if number == 1:
        return np.repeat(blocks.values / blocks.spans, DRAWS, axis=0)
    spread = max(LEAST_SPREAD, ((number - 1) * width - 1) / number)
    weights = rng.dirichlet(np.full(number, spread), DRAWS)
    spans = np.maximum(weights @ blocks.spans, blocks.spans.max(0) * TINY)
    rates: Floats = (weights @ blocks.values) / spans
    return rates


def count_interval(value: float, draws: Floats, documents: float, missed: float) -> Interval:
    """Return a number of documents of a kind, of which the sample may have missed some."""
    found = interval(value, draws)
    return Interval(found.value, found.low, min(found.high + missed, documents))


def unseen(documents: float, sampled: int) -> float:
    """Return how many documents there may be of a kind of which a sample of them has none."""
    return float(math.ceil(documents * min(1.0, JEFFREYS_NONE / max(1, sampled))))


def student(freedom: int) -> float:
    """Return the 95 % quantile of Student's t, by Hill's expansion (1970), close from 3 on."""
    if freedom <= 2:
        return (6.314, 2.920)[freedom - 1]
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def interval(value: float, draws: Floats) -> Interval:
    """Return a total with the limits that its draws give."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    low, high = min(low, value), max(high, value)
    return Interval(float(value), float(math.floor(low)), float(math.ceil(high)))


class SampledPairs(msgspec.Struct, frozen=True):
    """Pairs of copies in a sample.

    number    pairs of which the later document is of the source
    weight    pairs of the population that they stand for
    removed   documents of the source that are the copy of an earlier one
    share     of the documents that are in the sample
    """

    number: int
    weight: float
    removed: int
    share: float


def copies_interval(pairs: SampledPairs, documents: float) -> Interval:
    """Return how many documents deduplication may remove, of pairs of copies in a sample.

    A sample of a share s has s of the documents and s² of the pairs. Each document that is removed
    in the sample stands for at most 1 / s of the corpus (clusters are whole sooner or later), so
    there are at least `removed` / s; and each cluster has at least as many pairs as documents to
    remove, so there are at most `pairs` / s². The limits are those of Poisson counts. Few samples
    hold a pair: the upper limit is all documents until the sample has some 3 / s of them.
    """
    low = poisson_low(pairs.removed) / pairs.share
    most = pairs.weight + (poisson_high(pairs.number) - pairs.number) / pairs.share**2
    value = min(pairs.weight, documents)
    low, most = min(low, value), min(most, documents)
    return Interval(value, float(math.floor(low)), float(math.ceil(most)))


def poisson_high(count: int) -> float:
    """Return the 95 % upper limit of a mean of which `count` were seen (Wilson and Hilferty)."""
    more = count + 1
    return more * (1 - 1 / (9 * more) + NORMAL / (3 * math.sqrt(more))) ** 3


def poisson_low(count: int) -> float:
    """Return the 95 % lower limit of a mean of which `count` were seen."""
    if not count:
        return 0.0
    return count * max(0.0, 1 - 1 / (9 * count) - NORMAL / (3 * math.sqrt(count))) ** 3
