"""Budgets of a phase: whole tokens of each source.

Shares are exact fractions, so that budgets of any size sum to the phase's length (the rest goes by
largest remainder). assets/mixed/plan.py checks that the sources have as many tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from corpus_loader.interleave import as_written
from resources.settings.phases import PhaseConfig

Shares = dict[str, Fraction]
Amount = int | Fraction
ONCE = Fraction(1)
Limits = Mapping[str, int | None]


@dataclass(frozen=True)
class ClassTokens:
    """Tokens of one class of a source, above 0, and its weight in a phase.

    `length` is the key of the phase's `lengths` that the class belongs to (0 without `lengths`).
    """

    available: int
    weight: Fraction
    length: int = 0


Classes = Mapping[str, Mapping[str, ClassTokens]]  # by source, and by the name of what is drawn
NO_CLASSES: Classes = {}
NOTHING: Mapping[str, int] = {}


@dataclass(frozen=True)
class Budget:
    """Demand on a source: `planned` of its `available` tokens, at most `cap` epochs.

    `classes` are the budgets of its classes, of which the phase draws each by itself; `before` are
    the tokens that the phases drew which this one continues; `shares_at` is the share at each of
    the phase's knots, if it changes.
    """

    source: str
    share: Fraction  # of the phase's tokens
    available: int
    planned: int
    cap: float
    classes: tuple[Budget, ...] = ()
    before: int = 0
    shares_at: tuple[Fraction, ...] = ()

    @property
    def weight(self) -> float:
        """Share of the phase's tokens, from 0 to 1."""
        return float(self.share)

    @property
    def epochs(self) -> float:
        """Passes through the source, with those of earlier phases that this one continues."""
        return (self.before + self.planned) / self.available

    @property
    def most(self) -> int:
        """Whole tokens within the cap, which holds for each of its classes."""
        if not self.classes:
            return max(0, tokens_of(self.cap, self.available) - self.before)
        drawn = [part for part in self.classes if part.share]
        levels = [
            (as_written(part.cap) * part.available - part.before) / part.share for part in drawn
        ]
        return max(0, math.floor(min(levels) * self.share)) if drawn else 0

    @property
    def units(self) -> tuple[Budget, ...]:
        """Budgets of what is drawn by itself: the classes, or the source."""
        return self.classes or (self,)


def budgets_of(
    config: PhaseConfig,
    available: Mapping[str, int],
    classes: Classes = NO_CLASSES,
    before: Mapping[str, int] = NOTHING,
) -> tuple[Budget, ...]:
    """Compute the budgets of a phase from the `available` tokens of its sources, above 0 each.

    They sum to the phase's length, or with unimax to the sum of the caps if that is less. An epoch
    of a source with `classes` has each of them as often as its weight says. Caps count what earlier
    phases drew `before`, by what is drawn by itself.
    """
    sizes = sizes_of(available, classes)
    shares = shares_of(config, sizes if config.lengths is None else available)
    caps = {source: cap_of(config, source) for source in available}
    limits: dict[str, int | None] = dict.fromkeys(available)
    if config.weighting == "unimax":
        limits |= {
            source: within_cap(
                caps[source], classes.get(source) or {source: ClassTokens(tokens, ONCE)}, before
            )
            for source, tokens in available.items()
        }
    exact = water_fill(shares, limits, phase_tokens(config, sizes, shares, limits))
    total = sum(exact.values(), Fraction())
    planned = largest_remainder(exact, int(total))
    at_knots = shares_at(config, available)
    whole = (
        Budget(
            source,
            exact[source] / (total or 1),
            tokens,
            planned[source],
            caps[source],
            shares_at=at_knots[source],
        )
        for source, tokens in available.items()
    )
    return tuple(split(each, classes.get(each.source, {}), before) for each in whole)


def drawable(budgets: Iterable[Budget]) -> list[Budget]:
    """Return the budgets of all that is drawn by itself; classes of weight 0 are left out."""
    return [unit for budget in budgets for unit in budget.units if unit.share or not budget.classes]


def sizes_of(available: Mapping[str, int], classes: Classes) -> dict[str, Amount]:
    """Return the tokens of an epoch of each source: a class counts as often as its weight says."""
    return {
        source: sum((part.available * part.weight for part in classes[source].values()), Fraction())
        if source in classes
        else tokens
        for source, tokens in available.items()
    }


def within_cap(cap: float, parts: Mapping[str, ClassTokens], before: Mapping[str, int]) -> int:
    """Return the whole tokens that a source can give without a part beyond the cap."""
    size = sum((part.available * part.weight for part in parts.values()), Fraction())
    levels = [
        (as_written(cap) * part.available - before.get(name, 0)) / (part.available * part.weight)
        for name, part in parts.items()
        if part.weight
    ]
    return max(0, math.floor(min(levels) * size))


def split(budget: Budget, classes: Mapping[str, ClassTokens], before: Mapping[str, int]) -> Budget:
    """Divide the budget of a source among its classes by their tokens times their weights.

    Adds the tokens that were drawn `before`: of each class, and of the source.
    """
    if not classes:
        return replace(budget, before=before.get(budget.source, 0))
    amounts = {name: part.available * part.weight for name, part in classes.items()}
    size = sum(amounts.values(), Fraction())
    exact = {name: budget.planned * amount / size for name, amount in amounts.items()}
    planned = largest_remainder(exact, budget.planned)
    parts = tuple(
        Budget(
            name,
            budget.share * amounts[name] / size,
            part.available,
            planned[name],
            budget.cap,
            before=before.get(name, 0),
            shares_at=tuple(share * amounts[name] / size for share in budget.shares_at),
        )
        for name, part in classes.items()
    )
    return replace(budget, classes=parts, before=sum(part.before for part in parts))


def shares_of(config: PhaseConfig, available: Mapping[str, Amount]) -> Shares:
    """Return the share of each source, not normalised."""
    if config.weights_at is not None:
        knots = list(map(as_written, config.weights_at))
        return {s: mean_of(knots, shares) for s, shares in shares_at(config, available).items()}
    given = config.weights if config.weights is not None else config.budgets
    if given is not None:
        return {source: as_written(given[source]) for source in available}
    if config.weighting == "unimax":
        return dict.fromkeys(available, Fraction(1))
    if config.weighting == "natural":
        return {source: Fraction(tokens) for source, tokens in available.items()}
    # Twelve digits: the last one of a power may differ from one machine's libm to another's.
    powers = {source: tokens**config.exponent for source, tokens in available.items()}
    return {source: Fraction(f"{power:.12g}") for source, power in powers.items()}


def shares_at(config: PhaseConfig, sources: Iterable[str]) -> dict[str, tuple[Fraction, ...]]:
    """Return the share of each source at each knot of a phase; they sum to 1 at each."""
    knots = (config.weights_at or {}).values()
    given = [{name: as_written(weight) for name, weight in knot.items()} for knot in knots]
    totals = [sum(knot.values(), Fraction()) for knot in given]
    return {
        source: tuple(
            knot.get(source, Fraction()) / total for knot, total in zip(given, totals, strict=True)
        )
        for source in sources
    }


def mean_of(knots: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    """Return the mean of a line from knot to knot, which are from 0 to 1."""
    gaps = zip(pairwise(knots), pairwise(values), strict=True)
    areas = ((stop - start) * (left + right) / 2 for (start, stop), (left, right) in gaps)
    return sum(areas, Fraction())


def tokens_of(epochs: float, available: Amount) -> int:
    """Return the whole tokens of a number of epochs."""
    return math.floor(as_written(epochs) * available)


def cap_of(config: PhaseConfig, source: str) -> float:
    """Return the most epochs of a source; with unimax repeats stop at `warn_epochs`."""
    is_unimax = config.weighting == "unimax"
    unless_named = min(config.warn_epochs, config.max_epochs) if is_unimax else config.max_epochs
    return config.epochs.get(source, unless_named)


def phase_tokens(
    config: PhaseConfig, available: Mapping[str, Amount], shares: Shares, limits: Limits
) -> int:
    """Return the length of a phase: as asked, or one epoch of a source (the first that ends)."""
    if config.budgets is not None:
        return sum(config.budgets.values())
    if config.tokens is not None:
        return config.tokens
    ends = list(available) if config.one_epoch_of is None else [config.one_epoch_of]
    level = min(available[source] / shares[source] for source in ends)
    taken = [up_to(limits[source], level * share) for source, share in shares.items()]
    return math.floor(sum(taken, Fraction()))


def water_fill(shares: Shares, limits: Limits, total: int) -> Shares:
    """Divide `total` by shares; tokens above the limit of a source go to the others.

    Sums to `total`, or to all limits together if that is less. Equal shares give UniMax.
    """

    def full_at(source: str) -> tuple[bool, Fraction, str]:
        limit = limits[source]
        return limit is None, Fraction(limit or 0) / shares[source], source

    filled: Shares = {}
    rest, rest_shares = Fraction(total), sum(shares.values(), Fraction())
    for source in sorted(shares, key=full_at):
        filled[source] = up_to(limits[source], rest * shares[source] / rest_shares)
        rest -= filled[source]
        rest_shares -= shares[source]
    return {source: filled[source] for source in shares}


def up_to(limit: int | None, amount: Fraction) -> Fraction:
    """Return the amount, or the limit if that is lower."""
    return amount if limit is None else min(Fraction(limit), amount)


def largest_remainder(exact: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Round to whole numbers that sum to `total` (Hamilton's method; ties by name)."""
    floors = {source: math.floor(share) for source, share in exact.items()}
    by_remainder = sorted(exact, key=lambda source: (floors[source] - exact[source], source))
    for source in by_remainder[: total - sum(floors.values())]:
        floors[source] += 1
    return floors


class MixError(ValueError):
    """Phase that cannot be mixed as asked; the message suggests changes."""
