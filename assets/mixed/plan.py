"""Plan a phase: budgets, warnings, faults, and feasible changes if it is refused.

Nothing is raised here except by `accepted`: a plan carries its faults, so that `corpus plan` can
show them before anything runs. Every proposal is tested: it is laid over the config and planned
again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypedDict

from pydantic import ValidationError

from assets.mixed.budgets import (
    NO_CLASSES,
    NOTHING,
    Budget,
    Classes,
    MixError,
    budgets_of,
    drawable,
    sizes_of,
    tokens_of,
    water_fill,
)
from assets.mixed.length_curve import on_curve
from assets.mixed.samples import (
    BATCH,
    SourceRows,
    bucket_notes,
    none_drawn,
    num_lengths,
    padding_share,
    rest_warnings,
)
from corpus_loader.interleave import as_written
from resources.settings.phases import SUM_TOLERANCE, PhaseConfig, ValidationPhase

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
    available = {budget.source: budget.available for budget in budgets}
    before = {unit.source: unit.before for budget in budgets for unit in budget.units}
    try:
        changed = PhaseConfig.model_validate(config.model_dump(exclude_unset=True) | change)
        named = {source: available[source] for source in changed.sources_of(tuple(available))}
        replanned = budgets_of(changed, named, on_curve(changed, named, classes), before)
    except (ValidationError, MixError):
        return False
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
    if config.lengths is not None:
        ways.append("lower the share of that length in `lengths`")
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


NOTHING_HELD = (
    "no document is held out: the corpus is small for the share of `holdout`, which decides on "
    "documents as they come. Raise it before more documents come, or leave it out"
)


@dataclass(frozen=True)
class PhasePlan:
    """Budgets of a phase; one with `faults` is refused, and `feasible` has changes to it.

    `notes` are for `corpus plan` alone; `warnings` are in the mixture too.
    """

    phase: str
    budgets: tuple[Budget, ...]
    warnings: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    feasible: Proposals = field(default_factory=Proposals)
    notes: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens of the phase."""
        return sum(budget.planned for budget in self.budgets)

    @property
    def units(self) -> tuple[Budget, ...]:
        """Budgets of all that is drawn by itself: sources, and classes of sources."""
        return tuple(unit for budget in self.budgets for unit in budget.units)

    @property
    def verdict(self) -> str:
        """Verdict on the phase: ok, warning or refused."""
        return "refused" if self.faults else "warning" if self.warnings else "ok"

    def accepted(self) -> PhasePlan:
        """Return the plan itself; MixError if the phase is refused."""
        if self.faults:
            raise MixError("\n".join(self.faults))
        return self


def plan_phase(
    config: PhaseConfig,
    available: Mapping[str, int],
    rows: Mapping[str, SourceRows] | None = None,
    classes: Classes = NO_CLASSES,
    before: Mapping[str, int] = NOTHING,
) -> PhasePlan:
    """Plan a phase from the `available` tokens of its sources (as `sources_of` gives them).

    A source that the phase names must have tokens; one that `weighting` finds is left out. Warnings
    that depend on samples are given for the sources whose `rows` are known, by what is drawn by
    itself: the classes of the sources that have some here, else the source. `before` has the tokens
    that earlier phases drew of these.
    """
    sizes = sizes_of(available, classes)
    empty = [source for source, tokens in sizes.items() if tokens == 0]
    filled = {source: tokens for source, tokens in available.items() if sizes[source]}
    if isinstance(config, ValidationPhase):
        return plan_validation(config, filled, empty)
    is_named = config.weighting is None or config.sources is not None
    if (empty and (is_named or not filled)) or config.one_epoch_of in empty:
        return PhasePlan(config.name, (), faults=(empty_fault(config, empty),))
    try:
        budgets = budgets_of(config, filled, on_curve(config, filled, classes), before)
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    drawn = {unit.source for unit in drawable(budgets)}
    seen = {name: of for name, of in (rows or {}).items() if name in drawn}
    warnings = [f"{source!r} has no tokens: left out" for source in empty]
    warnings += [*weights_warning(config), *epoch_warnings(config, budgets)]
    warnings += sample_warnings(config, budgets, seen)
    notes = tuple(bucket_notes(config, budgets, seen))
    plan = PhasePlan(config.name, budgets, tuple(warnings), notes=notes)
    if is_beyond_caps(config, budgets):
        proposals = proposals_of(config, budgets, seen, classes)
        return replace(plan, faults=(cap_fault(config, budgets, proposals),), feasible=proposals)
    if len(none_drawn(budgets, seen)) == len(drawable(budgets)):
        fault = (
            f"phase {plan.phase!r} draws no sample: {plan.tokens:,} tokens are less than half of "
            "the first of any source. Ask for more tokens."
        )
        return replace(plan, faults=(fault,))
    return plan


def plan_validation(
    config: ValidationPhase, available: Mapping[str, int], empty: Sequence[str]
) -> PhasePlan:
    """Plan the phase of what is held out, of the sources that have any; the others are noted."""
    if not available:
        return PhasePlan(config.name, (), warnings=(NOTHING_HELD,))
    notes = tuple(f"no document of {source!r} is held out" for source in empty)
    return PhasePlan(config.name, budgets_of(config, available), notes=notes)


def empty_fault(config: PhaseConfig, empty: Sequence[str]) -> str:
    """Describe sources without tokens."""
    where = f" in buckets {', '.join(config.buckets)}" if config.buckets else ""
    where += " in classes with a weight" if config.draws_classes else ""
    return (
        f"phase {config.name!r} asks for tokens of {empty}, which have none{where} after filtering "
        "and deduplication. Set their weight to 0, or look at `corpus summary` for why."
    )


def sample_warnings(
    config: PhaseConfig, budgets: Sequence[Budget], rows: Mapping[str, SourceRows]
) -> list[str]:
    """Warn of sources that give no sample, and of sequences that do not fit one batch."""
    warnings = [
        f"{budget.source!r} gives no sample: its {budget.planned:,} tokens are less than half of "
        "its first. Raise its weight, or the phase's tokens."
        for budget in none_drawn(budgets, rows)
    ]
    warnings += rest_warnings(config, budgets, rows)
    count = num_lengths(rows)
    if count > 1 and not config.one_bucket_batches:
        warnings.append(
            f"phase {config.name!r} draws sequences of {count} lengths: a batch of {BATCH} would "
            f"be about {padding_share(budgets, rows):.0%} padding; set `one_bucket_batches: true`, "
            "or give `buckets:` to a phase per length"
        )
    return warnings


def weights_warning(config: PhaseConfig) -> list[str]:
    """Warn of weights that do not sum to one."""
    named = {f"the weights at {knot:g}": given for knot, given in (config.weights_at or {}).items()}
    warnings = []
    for name, given in {"the weights": config.weights or {}, **named}.items():
        weights = {source: as_written(weight) for source, weight in given.items()}
        total = sum(weights.values(), Fraction())
        if weights and abs(total - 1) > SUM_TOLERANCE:
            shares = ", ".join(f"{source} {float(w / total):.4g}" for source, w in weights.items())
            warnings.append(f"{name} sum to {float(total):g}, not 1; normalised to {shares}")
    return warnings


def epoch_warnings(config: PhaseConfig, budgets: Sequence[Budget]) -> list[str]:
    """Warn of sources that are repeated more often than is useful."""
    return [
        f"{unit.source!r} is repeated {unit.epochs:,.1f} times; more than "
        f"{config.warn_epochs:g} epochs teach little new. Lower its weight or the phase's tokens."
        for unit in drawable(budgets)
        if unit.before + unit.planned > tokens_of(config.warn_epochs, unit.available)
    ]
