"""Suggest feasible changes to a phase that asks for more than the caps on epochs allow.

Every proposal is tested: it is laid over the config and planned again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypedDict

from pydantic import ValidationError

from assets.mixed.budgets import Budget, Classes, budgets_of, drawable, water_fill
from assets.mixed.samples import SourceRows, none_drawn
from resources.settings.phases import PhaseConfig

WEIGHT_DIGITS = 6


class Proposals(TypedDict, total=False):
    """Changes that each make a phase feasible by itself; keys of pipeline.yaml.

    tokens   most tokens at these shares
    weights  share of each source at this length
    budgets  most tokens of the sources that are over their caps
    """

    tokens: int
    weights: dict[str, float]
    budgets: dict[str, int]


def is_beyond_caps(config: PhaseConfig, budgets: Sequence[Budget]) -> bool:
    """Return whether a source is asked for more than its cap, or (unimax) all together are."""
    if config.weighting == "unimax":
        return config.tokens is not None and config.tokens > most_of(budgets)
    return any(budget.planned > budget.most for budget in budgets)


def most_of(budgets: Sequence[Budget]) -> int:
    """Return the tokens that all sources together have within their caps."""
    return sum(budget.most for budget in budgets)


def proposals_of(
    config: PhaseConfig,
    budgets: Sequence[Budget],
    rows: Mapping[str, SourceRows],
    classes: Classes,
) -> Proposals:
    """Suggest changes that each make the phase feasible by itself."""
    proposals: Proposals = {}
    if config.budgets is not None:
        less = {budget.source: budget.most for budget in budgets if budget.planned > budget.most}
        if is_possible(config, {"budgets": config.budgets | less}, budgets, rows, classes):
            proposals["budgets"] = less
        return proposals
    tokens = most_tokens(config, budgets)
    if is_possible(config, {"tokens": tokens, "one_epoch_of": None}, budgets, rows, classes):
        proposals["tokens"] = tokens
    if config.weights is not None and config.tokens is not None:
        weights = nearest_weights(budgets, config.tokens)
        # A weight of 0 would leave a source out.
        if min(weights.values()) > 0 and is_possible(
            config, {"weights": weights}, budgets, rows, classes
        ):
            proposals["weights"] = weights
    return proposals


def is_possible(
    config: PhaseConfig,
    change: dict[str, object],
    budgets: Sequence[Budget],
    rows: Mapping[str, SourceRows],
    classes: Classes,
) -> bool:
    """Return whether the phase with a change is within the caps and draws a sample."""
    try:
        changed = PhaseConfig.model_validate(config.model_dump(exclude_unset=True) | change)
    except ValidationError:
        return False
    available = {budget.source: budget.available for budget in budgets}
    named = {source: available[source] for source in changed.sources_of(tuple(available))}
    before = {unit.source: unit.before for budget in budgets for unit in budget.units}
    replanned = budgets_of(changed, named, classes, before)
    draws_samples = len(none_drawn(replanned, rows)) < len(drawable(replanned))
    return draws_samples and not is_beyond_caps(changed, replanned)


def most_tokens(config: PhaseConfig, budgets: Sequence[Budget]) -> int:
    """Return the most tokens of the phase at these shares."""
    if config.weighting == "unimax":
        return most_of(budgets)
    return min(math.floor(budget.most / budget.share) for budget in budgets if budget.share)


def nearest_weights(budgets: Sequence[Budget], total: int) -> dict[str, float]:
    """Return the weights at which sources over their caps give all they have, the others the rest.

    They sum to 1 in six digits. If all caps together allow `total`, no source is over its cap.
    """
    most: dict[str, int | None] = {budget.source: budget.most for budget in budgets}
    filled = water_fill({budget.source: budget.share for budget in budgets}, most, total)
    unit = 10**WEIGHT_DIGITS
    units = {source: math.floor(tokens * unit / total) for source, tokens in filled.items()}
    widest = max(budgets, key=lambda budget: (budget.most - filled[budget.source], budget.source))
    units[widest.source] += unit - sum(units.values())
    return {source: count / unit for source, count in units.items()}


def cap_fault(config: PhaseConfig, budgets: Sequence[Budget], proposals: Proposals) -> str:
    """Describe a phase that is beyond its caps: its demand, and feasible changes."""
    ways = []
    if "budgets" in proposals:
        ways.append(f"ask for at most {numbers(proposals['budgets'])}")
    if "tokens" in proposals:
        place = "" if config.one_epoch_of is None else " (instead of `one_epoch_of`)"
        shares = "" if config.weighting == "unimax" else " at these shares"
        ways.append(f"set `tokens`{place} to at most {proposals['tokens']:,}{shares}")
    if "weights" in proposals:
        ways.append(f"at {config.tokens:,} tokens give the weights {numbers(proposals['weights'])}")
    key = "warn_epochs" if config.weighting == "unimax" else "max_epochs"
    ways.append(f"raise `{key}` or the `epochs` of a source")
    if config.upsample is not None:
        ways.append("lower the highest weight of `upsample`")
    advice = "; or ".join(ways)
    return (
        f"phase {config.name!r} asks for {asked_for(config, budgets)}. "
        f"{advice[0].upper()}{advice[1:]}."
    )


def asked_for(config: PhaseConfig, budgets: Sequence[Budget]) -> str:
    """Describe the demand of a phase beyond its caps, and the supply."""
    total, most = sum(budget.planned for budget in budgets), most_of(budgets)
    if config.weighting == "unimax":
        caps = ", ".join(f"{budget.source} {budget.cap:g}" for budget in budgets)
        return (
            f"{config.tokens:,} tokens; within the caps on epochs ({caps}) its sources have "
            f"{most:,}"
        )
    asked = "; ".join(
        f"{unit.planned:,} tokens of {unit.source!r}, which has {unit.available:,}"
        f"{f', after {unit.before:,} of earlier phases' if unit.before else ''}: "
        f"{unit.epochs:,.1f} epochs, over its cap of {unit.cap:g}"
        for budget in budgets
        if budget.planned > budget.most
        for unit in [unit for unit in budget.units if unit.planned > unit.most]
        or [max(budget.units, key=lambda unit: unit.epochs)]  # less than a token beyond the cap
    )
    if most >= total or config.budgets is not None:
        return asked
    return f"{asked}. All its sources have {most:,} tokens within their caps, of {total:,}"


def numbers(named: Mapping[str, float]) -> str:
    """Return names and numbers as text: "web 3,000, books 0.25"."""
    return ", ".join(f"{name} {number:,}" for name, number in named.items())
