"""Sources of a phase, what is there of each, and the phase with other shares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from assets.mixed.mixture_swarm import Domains, domains_of
from pipeline_defs.commands.train.plan import (
    NOT_BUILT,
    available_for,
    bytes_per_token,
    plan_available,
    plan_one,
)
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.phases import SHARES, PhaseConfig

OF_SHARES = frozenset((*SHARES, "fitted", "sources", "exponent", "one_epoch_of"))

Phase = Annotated[
    str | None, Parameter(help="Phase whose weights are looked for (default: first).")
]
Refit = Annotated[
    tuple[str, ...],
    Parameter(help="A source that changed: the ratio of the others stays. May be repeated."),
]


@dataclass(frozen=True)
class PhaseDomains:
    """A phase of so many tokens, its domains, and the weight and tokens of each source now."""

    config: PhaseConfig
    tokens: int
    domains: Domains
    now: dict[str, float]
    available: dict[str, int]


def with_shares(config: PhaseConfig, tokens: int, **shares: Any) -> dict[str, Any]:
    """Return a phase as pipeline.yaml has it, with other shares and another length."""
    given = config.model_dump(exclude_unset=True)
    kept = {key: value for key, value in given.items() if key not in OF_SHARES}
    return kept | {"tokens": tokens} | shares


def phase_domains(corpus: Corpus, name: str | None, refit: Collection[str]) -> PhaseDomains:
    """Return the domains of a phase: all its sources, or those of `refit` and the group of others.

    Limits are those of `corpus plan` at the phase's length. Raises UsageError if nothing is built,
    or if the sources have fewer tokens than the phase asks for.
    """
    name = name or corpus.settings.phases[0].name
    check_name("phase", name, [phase.name for phase in corpus.settings.phases])
    ratio = bytes_per_token(corpus)
    plan, told = plan_one(corpus, name, ratio)
    if not plan.budgets:
        why = told.notes if told.verdict == NOT_BUILT else told.faults
        raise UsageError("\n".join(f"phase {name!r}: {line}" for line in why))
    now = {budget.source: budget.weight for budget in plan.budgets}
    for source in refit:
        check_name("source of the phase", source, now)
    config = corpus.settings.phase(name)
    as_they_are = with_shares(config, plan.tokens, weighting="natural", sources=tuple(now))
    natural = PhaseConfig.model_validate(as_they_are)
    available = available_for(corpus, tuple(now), natural, ratio)
    budgets = plan_available(corpus, natural, available).budgets
    shares = {budget.source: budget.weight for budget in budgets}
    most = {budget.source: min(1.0, budget.most / plan.tokens) for budget in budgets}
    kept = {source: weight for source, weight in now.items() if refit and source not in refit}
    try:
        domains = domains_of(shares, most, kept)
    except ValueError as error:
        raise UsageError(f"phase {name!r}: {error}. Lower its `tokens`, or raise caps") from None
    tokens = {budget.source: budget.available for budget in budgets}
    return PhaseDomains(config, plan.tokens, domains, now, tokens)
