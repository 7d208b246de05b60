"""Mixtures around the natural one, for small proxy runs: what is varied, its limits, and the draws.

Shares are float64 and sum to 1. Of D sources, V shares are varied: one for each source, or one for
each source that changed and one for all others together, whose ratio stays (the mixture reuse of
Chen et al. 2026, arXiv 2602.12237).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assets.mixed.plan import WEIGHT_DIGITS

Floats = NDArray[np.float64]

# Strengths of the Dirichlet distribution: RegMix draws from 0.1 to 5 (Liu et al. 2024, arXiv
# 2407.01492). Below 0.5 most mixtures have one source alone.
STRENGTHS = (0.5, 5.0)
SMALLEST = 1e-3  # parameter of a source: numpy draws with smaller ones lose their digits
NOTHING = 1e-12


@dataclass(frozen=True)
class Domains:
    """Sources of a phase, D of them, and the V shares of them that are varied.

    natural: shares by tokens [D]; most: greatest shares that the caps on epochs allow [D], which
    sum to 1 or more; parts: share of each source in what is varied [D, V].
    """

    names: tuple[str, ...]
    natural: Floats
    most: Floats
    parts: Floats

    @property
    def limits(self) -> Floats:
        """The greatest value of each varied share [V]."""
        at_most = np.full(self.parts.shape, np.inf)
        np.divide(self.most[:, None], self.parts, at_most, where=self.parts > 0)
        limits: Floats = np.minimum(1.0, at_most.min(axis=0))
        return limits

    @property
    def prior(self) -> Floats:
        """The natural mixture within the limits, as varied shares [V]."""
        return within(self.varied(self.natural), self.limits)

    def varied(self, shares: Floats) -> Floats:
        """Return shares of sources [..., D] as varied shares [..., V]."""
        varied: Floats = shares @ (self.parts > 0)
        return varied

    def spread(self, varied: Floats) -> Floats:
        """Return varied shares [..., V] as shares of sources [..., D]."""
        shares: Floats = varied @ self.parts.T
        return shares


def domains_of(
    natural: Mapping[str, float], most: Mapping[str, float], kept: Mapping[str, float]
) -> Domains:
    """Return the domains of the sources of a phase; the ratio among those `kept` is that of these.

    Raises ValueError if the sources have less than the phase's tokens within their limits.
    """
    names = tuple(natural)
    group = np.array([kept.get(name, 0.0) for name in names])
    parts = np.eye(len(names))[:, [name not in kept for name in names]]
    if kept:
        parts = np.column_stack([parts, group / group.sum()])
    shares, limits = (np.array([of[name] for name in names]) for of in (natural, most))
    domains = Domains(names, shares, limits, parts)
    if domains.limits.sum() < 1:
        raise ValueError(
            "its sources have fewer tokens than it asks for within their caps on epochs"
            f"{', at the ratio of those that are kept' if kept else ''}"
        )
    return domains


def within(shares: Floats, limits: Floats) -> Floats:
    """Scale shares up to their limits until they sum to 1: the nearest such mixture by divergence.

    The limits must sum to 1 or more.
    """
    given, is_full = np.maximum(shares, NOTHING), np.zeros(len(shares), bool)
    while True:
        rest = 1 - limits[is_full].sum()
        scaled = np.where(is_full, limits, given * (rest / max(given[~is_full].sum(), NOTHING)))
        if not (over := (scaled > limits) & ~is_full).any():
            return scaled
        is_full |= over


def draw_mixtures(domains: Domains, runs: int) -> list[dict[str, float]]:
    """Draw the weights of a number of runs; the first has the natural mixture.

    Each is of a Dirichlet distribution around that, with a strength of its own, scaled into the
    limits. A mixture depends on its number, and not on how many there are.
    """
    prior, limits = domains.prior, domains.limits
    low, high = map(math.log, STRENGTHS)
    drawn = [prior]
    for number in range(1, runs):
        rng = np.random.default_rng(number)
        strength = math.exp(rng.uniform(low, high))
        drawn.append(within(rng.dirichlet(np.maximum(prior * strength, SMALLEST)), limits))
    return [as_weights(domains.names, domains.spread(each), domains.most) for each in drawn]


def as_weights(names: Sequence[str], shares: Floats, most: Floats) -> dict[str, float]:
    """Return shares as weights in six digits that sum to 1; rounding takes none over its limit."""
    unit = 10**WEIGHT_DIGITS
    units = np.floor(shares * unit + NOTHING).astype(int)
    units[np.argmax(most - shares)] += unit - units.sum()
    return {name: count / unit for name, count in zip(names, units.tolist(), strict=True)}
