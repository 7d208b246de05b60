"""`corpus plan`: compare the demand of the phases with the available tokens, before `mixed` runs.

corpus plan                      every phase: tokens available and asked for, epochs, samples
corpus plan --phase general      one phase
corpus plan --json               the same as JSON
corpus plan --plot plan.svg      the same as a picture, with the realised mix of mixed phases

Tokens are counted in the last stage that a source has reached: exactly from `tokenized` on, before
that estimated from the bytes of `deduped`. If all sources of a phase are sharded, the verdict is
that of `mixed`. The exit code is 1 if a phase would be refused. A phase whose sources have not
reached `deduped` is "not built yet", which is no refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import UNSET

from assets.bucketed.bucketed_records import BUCKETED, LEAKAGE
from assets.mixed.budgets import Budget, MixError
from assets.mixed.mixed_records import MIXED
from assets.mixed.mixture_files import read_mixture, realised
from assets.mixed.phase_input_files import plan_from_shards, start_of
from assets.mixed.plan import PhasePlan, plan_phase
from assets.mixed.report import Drawn
from assets.sharded.sharded_records import SHARDED
from pipeline_defs.commands.terminal.options import Json
from pipeline_defs.commands.terminal.output import print_json
from pipeline_defs.commands.train.plan_counts import Available, available_for, bytes_per_token
from pipeline_defs.commands.train.plan_show import (
    PlannedPhase,
    PlanReport,
    SourceLeakage,
    SourceShare,
    SourceTotal,
    show,
    to_svg,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.phases import PhaseConfig, ValidationPhase
from resources.tasks import GLOBAL

NOT_BUILT = "not built yet"
WARNED_SHARE = 0.02  # of a source's documents left out
WITH_BUCKETS = (BUCKETED.name, SHARDED.name)


def plan(
    *,
    phase: Annotated[str | None, Parameter(help="One phase only (default: all).")] = None,
    json: Json = False,
    plot: Annotated[Path | None, Parameter(help="Write a picture (SVG) to this file.")] = None,
) -> int:
    """Print the plan; return 1 if a phase would be refused."""
    corpus = load_corpus()
    phases = corpus.settings.phase_names()
    if phase is not None and phase not in phases:
        raise UsageError(unknown_name("phase", phase, phases))
    report = plan_corpus(corpus, phases if phase is None else [phase])
    if plot:
        plot.write_text(to_svg(report, mixed_phases(corpus, report.phases)), encoding="utf-8")
    if json:
        print_json(report)
    else:
        show(report)
    return int(any(planned.verdict == "refused" for planned in report.phases.values()))


def mixed_phases(corpus: Corpus, names: Iterable[str]) -> dict[str, Drawn]:
    """Read the realised mix of the phases that are mixed already, perhaps under another plan."""
    manifests = {name: corpus.store.newest_or_none(MIXED, name) for name in names}
    return {
        name: realised(read_mixture(corpus.store, manifest))
        for name, manifest in manifests.items()
        if manifest is not None
    }


def plan_corpus(corpus: Corpus, names: Sequence[str]) -> PlanReport:
    """Plan some phases, and sum up their demand on each source."""
    ratio = bytes_per_token(corpus)
    phases: dict[str, PlannedPhase] = {}
    asked: dict[str, int] = {}
    for name in names:
        budgets, phases[name] = plan_one(corpus, name, ratio)
        if isinstance(corpus.settings.phase(name), ValidationPhase):
            continue  # it repeats nothing of what is trained on
        for budget in budgets.budgets:
            asked[budget.source] = asked.get(budget.source, 0) + budget.planned
    everything = PhaseConfig(name="all", weighting="natural")
    whole = available_for(corpus, list(asked), everything, ratio)
    sources = {
        source: SourceTotal(
            available_tokens=whole[source].tokens,
            counted_in=whole[source].stage,
            planned_tokens=tokens,
            epochs=round(tokens / max(1, whole[source].tokens), 6),
        )
        for source, tokens in asked.items()
    }
    often = min(corpus.settings.phase(name).warn_epochs for name in names)
    warnings = [
        f"{source!r} is gone through {total.epochs:.1f} times over all phases"
        for source, total in sources.items()
        if len(names) > 1 and total.epochs > often
    ]
    leakage = leakage_of(corpus)
    warnings += [
        f"{source!r}: {of.left_out / of.documents:.1%} of its training documents are left out for "
        f"what they share with held-out ones (more than {WARNED_SHARE:.0%}). Hold out less, or "
        "remove more copies with `dedup`"
        for source, of in leakage.items()
        if of.left_out > WARNED_SHARE * of.documents
    ]
    return PlanReport(str(corpus.store), phases, sources, warnings, leakage or UNSET)


def leakage_of(corpus: Corpus) -> dict[str, SourceLeakage]:
    """Return what each source has in common with held-out documents; {} where none are."""
    manifest = corpus.store.newest_or_none(LEAKAGE, GLOBAL) if corpus.settings.holds_out else None
    if manifest is None:
        return {}
    numbers = manifest.stats.numbers
    return {
        source: SourceLeakage(
            documents, numbers.left_out.get(source, 0), numbers.worst.get(source, 0) / 1e6
        )
        for source, documents in numbers.documents.items()
    }


def plan_one(corpus: Corpus, name: str, ratio: float) -> tuple[PhasePlan, PlannedPhase]:
    """Plan a phase; return the budgets, and their report."""
    config = corpus.settings.phase(name)
    wanted = config.sources_of(tuple(corpus.settings.source_names()))
    available = available_for(corpus, wanted, config, ratio)
    if note := missing_counts(config, wanted, available):
        budgets = PhasePlan(name, ())
        planned = described(budgets, available)
        return budgets, msgspec.structs.replace(planned, verdict=NOT_BUILT, notes=[note])
    budgets = plan_available(corpus, config, available)
    return budgets, described(budgets, available)


def missing_counts(
    config: PhaseConfig, wanted: Sequence[str], available: Mapping[str, Available]
) -> str:
    """Say which sources cannot be counted yet, and how far to build them; "" if all can."""
    if missing := [source for source in wanted if source not in available]:
        return f"{', '.join(missing)}: nothing to count yet. Build as far as `deduped`"
    early = [source for source in wanted if available[source].stage not in WITH_BUCKETS]
    if early and isinstance(config, ValidationPhase):
        return f"{', '.join(early)}: what is held out is counted in `bucketed`. Build as far"
    return ""


def plan_available(
    corpus: Corpus, config: PhaseConfig, available: Mapping[str, Available]
) -> PhasePlan:
    """Plan a phase: as `mixed` does if all sources are sharded, else from the counts so far."""
    earlier = unsharded_before(corpus, config)
    if all(of_source.stage == SHARDED.name for of_source in available.values()) and not earlier:
        manifests = [of_source.manifest for of_source in available.values()]
        try:
            start = start_of(corpus, config, MIXED.code_version)
        except MixError as error:
            return PhasePlan(config.name, (), faults=(str(error),))
        return plan_from_shards(corpus.store.root, config, manifests, start)
    tokens = {source: of_source.tokens for source, of_source in available.items()}
    rows = {source: of_source.rows for source, of_source in available.items()}
    try:
        classes = {source: found.classes(config) for source, found in available.items()}
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    found = plan_phase(config, tokens, rows, {s: of for s, of in classes.items() if of})
    if config.continues is None:
        return found
    note = (
        f"what {config.continues.phase!r} draws is not counted in the epochs before all its "
        "sources, and those of this phase, are sharded"
    )
    return replace(found, notes=(*found.notes, note))


def unsharded_before(corpus: Corpus, config: PhaseConfig) -> list[str]:
    """Return the sources of the phases that a phase continues that are not sharded."""
    every = tuple(corpus.settings.source_names())
    missing = []
    while config.continues is not None:
        config = corpus.settings.phase(config.continues.phase)
        missing += [s for s in config.sources_of(every) if not has_shards(corpus, s)]
    return missing


def has_shards(corpus: Corpus, source: str) -> bool:
    """Return whether a source is sharded."""
    return corpus.store.partition(SHARDED.name, source).newest_manifest() is not None


def described(budgets: PhasePlan, available: Mapping[str, Available]) -> PlannedPhase:
    """Describe a planned phase: its verdict, and its sources."""
    return PlannedPhase(
        verdict=budgets.verdict,
        tokens=budgets.tokens,
        warnings=list(budgets.warnings),
        faults=list(budgets.faults),
        feasible=budgets.feasible,
        notes=[
            *sorted({of_source.note for of_source in available.values() if of_source.note}),
            *budgets.notes,
        ],
        sources={
            budget.source: described_share(budget, available[budget.source])
            for budget in budgets.budgets
        },
    )


def described_share(budget: Budget, of_source: Available) -> SourceShare:
    """Describe the tokens and samples of a source, and of each of its classes."""
    classes = {unit.source: described_share(unit, of_source) for unit in budget.classes}
    return SourceShare(
        weight=budget.weight,
        weights_at=tuple(map(float, budget.shares_at)) or UNSET,
        available_tokens=budget.available,
        counted_in=of_source.stage,
        planned_tokens=budget.planned,
        drawn_before=budget.before or UNSET,
        epochs=round(budget.epochs, 6),
        cap=budget.cap,
        samples=round(budget.planned * of_source.samples / of_source.tokens),
        classes=classes or UNSET,
    )
