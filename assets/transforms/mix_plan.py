"""Can a phase be had? Its budgets, what is worth a warning, and what would do where it cannot.

Nothing is raised here but by `accepted`: a plan says what is wrong with it, so that `corpus plan`
can show it before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from assets.transforms.mix_budgets import Budget, as_written, budgets_of, tokens_of
from assets.transforms.mixed import MixError, PhaseConfig

SUM_TOLERANCE = Fraction(1, 10**6)  # 0.333333 three times counts as 1
WEIGHT_DIGITS = 6


@dataclass(frozen=True)
class PhasePlan:
    """The budgets of a phase; one with `faults` is refused, and `feasible` is what would do.

    `feasible`: {"tokens": most at these shares, "weights": {source: most at this length}}, or
    {"budgets": {source: most}}.
    """

    phase: str
    budgets: tuple[Budget, ...]
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    feasible: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Tokens of the phase."""
        return sum(budget.planned for budget in self.budgets)

    @property
    def verdict(self) -> str:
        """ok, warning or refused."""
        return "refused" if self.faults else "warning" if self.warnings else "ok"

    def accepted(self) -> PhasePlan:
        """The same plan; MixError if the phase is refused."""
        if self.faults:
            raise MixError("\n".join(self.faults))
        return self


def plan_phase(config: PhaseConfig, available: Mapping[str, int]) -> PhasePlan:
    """The plan of a phase, from the tokens that its sources (as `sources_of` gives them) have.

    A source that the phase names must have tokens; one that `weighting` finds is left out.
    """
    empty = [source for source, tokens in available.items() if tokens == 0]
    there = {source: tokens for source, tokens in available.items() if tokens}
    is_named = config.weighting is None or config.sources is not None
    if (empty and (is_named or not there)) or config.one_epoch_of in empty:
        return PhasePlan(config.name, (), faults=(empty_fault(config, empty),))
    budgets = budgets_of(config, there)
    warnings = [f"{source!r} has no tokens: left out" for source in empty]
    warnings += [*weights_warning(config), *epoch_warnings(config, budgets)]
    check = unimax_faults if config.weighting == "unimax" else cap_faults
    return PhasePlan(config.name, budgets, tuple(warnings), *check(config, budgets))


def empty_fault(config: PhaseConfig, empty: Sequence[str]) -> str:
    """What is said of sources without tokens."""
    where = f" in buckets {', '.join(config.buckets)}" if config.buckets else ""
    return (
        f"phase {config.name!r} asks for tokens of {empty}, which have none{where} after filtering "
        "and deduplication. Set their weight to 0, or look at `corpus summary` for why."
    )


def unimax_faults(
    config: PhaseConfig, budgets: Sequence[Budget]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(faults, what would do) of a length that all sources together do not have within caps."""
    most = sum(budget.most for budget in budgets)
    if config.tokens is None or config.tokens <= most:
        return (), {}
    caps = ", ".join(f"{budget.source} {budget.cap:g}" for budget in budgets)
    fault = (
        f"phase {config.name!r} asks for {config.tokens:,} tokens; within the caps on epochs "
        f"({caps}) its sources have {most:,}. Set `tokens` to at most {most:,}, or raise "
        "`warn_epochs` or the `epochs` of a source."
    )
    return (fault,), {"tokens": most}


def cap_faults(
    config: PhaseConfig, budgets: Sequence[Budget]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """(faults, what would do) of sources that are asked for more than their caps."""
    over = [budget for budget in budgets if budget.planned > budget.most]
    if not over:
        return (), {}
    asked = "; ".join(
        f"{budget.planned:,} tokens of {budget.source!r}, which has {budget.available:,}: "
        f"{budget.epochs:,.1f} epochs, over its cap of {budget.cap:g}"
        for budget in over
    )
    total = sum(budget.planned for budget in budgets)
    feasible: dict[str, Any]
    if config.budgets is not None:
        feasible = {"budgets": {budget.source: budget.most for budget in over}}
        advice = f"Ask for at most {numbers(feasible['budgets'])}"
    else:
        tokens = min(math.floor(budget.most / budget.share) for budget in over)
        feasible = {
            "tokens": tokens,
            "weights": {budget.source: rounded_down(budget.most / total) for budget in over},
        }
        advice = (
            f"Set `tokens` to at most {tokens:,} at these shares, or at {total:,} tokens give a "
            f"share of at most {numbers(feasible['weights'])}"
        )
    fault = (
        f"phase {config.name!r} asks for {asked}. {advice}; or raise `max_epochs` or the `epochs` "
        "of a source."
    )
    return (fault,), feasible


def numbers(named: Mapping[str, float]) -> str:
    """ "web 3,000, books 0.25"."""
    return ", ".join(f"{name} {number:,}" for name, number in named.items())


def rounded_down(weight: float) -> float:
    """A weight to be shown, never above what it stands for."""
    return float(math.floor(weight * 10**WEIGHT_DIGITS) / 10**WEIGHT_DIGITS)


def weights_warning(config: PhaseConfig) -> list[str]:
    """Said of weights that do not sum to one."""
    weights = {source: as_written(weight) for source, weight in (config.weights or {}).items()}
    total = sum(weights.values(), Fraction())
    if not weights or abs(total - 1) <= SUM_TOLERANCE:
        return []
    shares = ", ".join(f"{name} {float(weight / total):.4g}" for name, weight in weights.items())
    return [f"the weights sum to {float(total):g}, not 1; normalised to {shares}"]


def epoch_warnings(config: PhaseConfig, budgets: Sequence[Budget]) -> list[str]:
    """Said of sources that are repeated more often than is useful."""
    return [
        f"{budget.source!r} is repeated {budget.epochs:,.1f} times; more than "
        f"{config.warn_epochs:g} epochs teach little new. Lower its weight or the phase's tokens."
        for budget in budgets
        if budget.planned > tokens_of(config.warn_epochs, budget.available)
    ]
