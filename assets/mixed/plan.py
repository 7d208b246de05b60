"""Plan a phase: budgets, warnings, faults, and feasible changes if it is refused.

Nothing is raised here except by `accepted`: a plan carries its faults, so that `corpus plan` can
show them before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from assets.mixed.advice import Proposals, cap_fault, is_beyond_caps, proposals_of
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
)
from assets.mixed.samples import (
    BATCH,
    SourceRows,
    bucket_notes,
    none_drawn,
    num_lengths,
    padding_share,
    rest_warnings,
)
from corpus_loader.changing_weights import as_written
from resources.settings.phases import PhaseConfig, ValidationPhase

SUM_TOLERANCE = Fraction(1, 10**6)  # 0.333333 three times counts as 1
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
        if not filled:
            return PhasePlan(config.name, (), warnings=(NOTHING_HELD,))
        notes = tuple(f"no document of {source!r} is held out" for source in empty)
        return PhasePlan(config.name, budgets_of(config, filled), notes=notes)
    is_named = config.weighting is None or config.sources is not None
    if (empty and (is_named or not filled)) or config.one_epoch_of in empty:
        return PhasePlan(config.name, (), faults=(empty_fault(config, empty),))
    budgets = budgets_of(config, filled, classes, before)
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


def empty_fault(config: PhaseConfig, empty: Sequence[str]) -> str:
    """Describe sources without tokens."""
    where = f" in buckets {', '.join(config.buckets)}" if config.buckets else ""
    where += " in classes with a weight" if config.upsample else ""
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
