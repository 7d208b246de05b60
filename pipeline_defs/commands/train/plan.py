"""`corpus plan`: compare the demand of the phases with the available tokens, before `mixed` runs.

corpus plan                      every phase: tokens available and asked for, epochs, samples
corpus plan --phase general      one phase
corpus plan --json               the same as JSON

Tokens are counted in `sharded`, else in `tokenized`, else estimated from the bytes of `deduped`. If
all sources of a phase are sharded, the verdict is that of `mixed`. The exit code is 1 if a phase
would be refused. A phase whose sources have not reached `deduped` is "not built yet", which is no
refusal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import polars as pl
from cyclopts import Parameter
from msgspec import UNSET, UnsetType, to_builtins

from assets.bucketed.bucketed_records import LEAKAGE
from assets.bucketed.leakage import MOST_SHARE
from assets.deduped.deduped_records import DEDUPED
from assets.mixed.budgets import Budget, MixError
from assets.mixed.mixed_records import MIXED
from assets.mixed.phase_input_files import plan_from_shards, start_of
from assets.mixed.phase_source_files import phase_source
from assets.mixed.plan import PhasePlan, Proposals, plan_phase
from assets.mixed.samples import SourceRows
from assets.sharded.sharded_records import SHARDED
from assets.tokenized.tokenized_records import TOKENIZED
from pipeline_defs.commands.answers import nested, print_frame
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.corpus_tables import CorpusTables
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import check_name
from resources.settings.buckets import BucketConfig
from resources.settings.phases import PhaseConfig, ValidationPhase
from resources.store.records import Manifest
from resources.tasks import GLOBAL

NOT_BUILT = "not built yet"
WARNED_SHARE = 0.02  # of a source's documents left out
COUNTED_IN = (SHARDED, TOKENIZED, DEDUPED)  # the last stage first
BYTES_PER_TOKEN = 4.0  # of English with 32,000 tokens 4.3, of code 3.2; where nothing is tokenized


class SourceTotal(msgspec.Struct, frozen=True, kw_only=True):
    """Available and planned tokens of a source, over all phases."""

    available_tokens: int
    counted_in: str
    planned_tokens: int
    epochs: float


class SourceShare(SourceTotal, frozen=True, kw_only=True):
    """Tokens and samples that one phase draws from a source, and from its classes if it weighs any.

    The classes are named as they are drawn, "web/class-2". drawn_before: tokens of the phases that
    this one continues; they count in its epochs. weights_at: at each knot of a phase whose weights
    change, of which `weight` is the mean.
    """

    weight: float
    cap: float
    samples: int
    drawn_before: int | UnsetType = UNSET
    weights_at: tuple[float, ...] | UnsetType = UNSET
    classes: dict[str, SourceShare] | UnsetType = UNSET

    @property
    def units(self) -> dict[str, SourceShare]:
        """Its classes, by what is drawn; none if all is drawn alike."""
        return {} if self.classes is UNSET else self.classes


class PlannedPhase(msgspec.Struct, frozen=True):
    """Verdict on a phase, and its sources."""

    verdict: str
    tokens: int
    warnings: list[str]
    faults: list[str]
    feasible: Proposals
    notes: list[str]
    sources: dict[str, SourceShare]


class PlanReport(msgspec.Struct, frozen=True):
    """Planned phases, and the sources and warnings over all of them.

    leakage: the table of that name, by source, if documents are held out of training.
    """

    store: str
    phases: dict[str, PlannedPhase]
    sources: dict[str, SourceTotal]
    warnings: list[str]
    leakage: dict[str, dict[str, Any]] | UnsetType = UNSET


@dataclass(frozen=True)
class Available:
    """Tokens and samples of a source for a phase, by the `manifest` of its last stage."""

    manifest: Manifest
    tokens: int
    samples: int
    note: str = ""

    @property
    def stage(self) -> str:
        """Stage in which the tokens were counted."""
        return self.manifest.stage

    @property
    def rows(self) -> SourceRows:
        """Rows of the source, each of the mean length."""
        return SourceRows(round(self.tokens / max(1, self.samples)), {})


def available_for(
    corpus: Corpus, sources: Sequence[str], config: PhaseConfig, ratio: float
) -> dict[str, Available]:
    """Count what sources have for a phase, by the newest manifest of each one's last stage."""
    available = {}
    for source in sources:
        partitions = (corpus.store.partition(stage.name, source) for stage in COUNTED_IN)
        manifests = (partition.newest_manifest() for partition in partitions)
        if newest := next(filter(None, manifests), None):
            available[source] = counted(newest, config, corpus.settings.buckets, ratio)
    return available


def counted(
    manifest: Manifest, config: PhaseConfig, buckets: BucketConfig, ratio: float
) -> Available:
    """Count the tokens and samples of a manifest that a phase may draw from."""
    stage, source, stats = manifest.stage, manifest.partition, manifest.stats
    if stage == SHARDED.name:
        shards = phase_source(manifest, config)
        return Available(manifest, shards.tokens, shards.rows)
    note = "" if config.buckets is None else f"{source} has no buckets yet: counted whole. "
    if config.draws_classes:
        note += f"{source} has no classes yet: its epochs are those of the whole. "
    num_tokens = stats.tokens
    if stage == DEDUPED.name:
        num_tokens = round(stats.bytes / ratio)
        note += f"{source} is not tokenized: estimated at {ratio:.2f} bytes a token"
    length = buckets.sequence_length
    num_rows = stats.rows_kept if buckets.mode == "buckets" else -(-num_tokens // length)
    return Available(manifest, num_tokens, num_rows, note.strip())


def bytes_per_token(corpus: Corpus) -> float:
    """Return the bytes of text per token, over the sources that are tokenized."""
    names = corpus.settings.source_names()
    manifests = [corpus.store.newest_or_none(TOKENIZED, name) for name in names]
    stats = [manifest.stats for manifest in manifests if manifest is not None]
    tokens = sum(of_source.tokens for of_source in stats)
    return sum(of_source.text_bytes for of_source in stats) / tokens if tokens else BYTES_PER_TOKEN


def plan(
    *,
    phase: Annotated[str | None, Parameter(help="One phase only (default: all).")] = None,
    json: Json = False,
) -> int:
    """Print the plan; return 1 if a phase would be refused."""
    corpus = load_corpus()
    phases = corpus.settings.phase_names()
    if phase is not None:
        check_name("phase", phase, phases)
    report = plan_corpus(corpus, phases if phase is None else [phase])
    if json:
        print_json(report)
    else:
        show(report)
    return int(any(planned.verdict == "refused" for planned in report.phases.values()))


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
        f"{source!r}: {of['left_out'] / of['documents']:.1%} of its training documents are left "
        f"out for what they share with held-out ones (more than {WARNED_SHARE:.0%}). Hold out "
        "less, or remove more copies with `dedup`"
        for source, of in leakage.items()
        if of["left_out"] > WARNED_SHARE * of["documents"]
    ]
    return PlanReport(str(corpus.store), phases, sources, warnings, leakage or UNSET)


def leakage_of(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """Return what each source has in common with held-out documents; {} where none are."""
    key = (LEAKAGE.name, GLOBAL)
    found = corpus.store.newest_or_none(*key) if corpus.settings.holds_out else None
    table = CorpusTables(corpus, {key: found} if found else {})["leakage"]
    return dict(nested(table, "source"))


def plan_one(corpus: Corpus, name: str, ratio: float) -> tuple[PhasePlan, PlannedPhase]:
    """Plan a phase; return the budgets, and their report."""
    config = corpus.settings.phase(name)
    wanted = config.sources_of(tuple(corpus.settings.source_names()))
    available = available_for(corpus, wanted, config, ratio)
    note = ""
    if missing := [source for source in wanted if source not in available]:
        note = f"{', '.join(missing)}: nothing to count yet. Build as far as `deduped`"
    elif isinstance(config, ValidationPhase):
        early = [source for source in wanted if available[source].stage != SHARDED.name]
        if early:
            note = f"{', '.join(early)}: what is held out is counted in `sharded`. Build as far"
    budgets = PhasePlan(name, ()) if note else plan_available(corpus, config, available)
    planned = described(budgets, available)
    if note:
        planned = msgspec.structs.replace(planned, verdict=NOT_BUILT, notes=[note])
    return budgets, planned


def plan_available(
    corpus: Corpus, config: PhaseConfig, available: Mapping[str, Available]
) -> PhasePlan:
    """Plan a phase: as `mixed` does if all sources are sharded, else from the counts so far."""
    every, before, earlier = tuple(corpus.settings.source_names()), set[str](), config
    while earlier.continues is not None:
        earlier = corpus.settings.phase(earlier.continues.phase)
        before |= {*earlier.sources_of(every)}
    sharded = {s for s in before if corpus.store.partition(SHARDED.name, s).newest_manifest()}
    try:
        if before == sharded and all(of.stage == SHARDED.name for of in available.values()):
            manifests = [of_source.manifest for of_source in available.values()]
            start = start_of(corpus, config, MIXED.code_version)
            return plan_from_shards(corpus.store.root, config, manifests, start)
    except MixError as error:
        return PhasePlan(config.name, (), faults=(str(error),))
    tokens = {source: of_source.tokens for source, of_source in available.items()}
    rows = {source: of_source.rows for source, of_source in available.items()}
    found = plan_phase(config, tokens, rows)
    if config.continues is None:
        return found
    note = (
        f"what {config.continues.phase!r} draws is not counted in the epochs before all its "
        "sources, and those of this phase, are sharded"
    )
    return replace(found, notes=(*found.notes, note))


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


def show(report: PlanReport) -> None:
    """Print the plan for people."""
    planned = {name: phase for name, phase in report.phases.items() if phase.sources}
    rows = []
    for name, phase in planned.items():
        for source, share in phase.sources.items():
            drawn = {source: share, **share.units}.items()
            rows += [{"phase": name, "source": unit} | told(of_unit) for unit, of_unit in drawn]
        rows.append({"phase": name, "source": GLOBAL, "planned_tokens": phase.tokens})
    print_frame("phases", pl.DataFrame(rows, infer_schema_length=None))
    if len(planned) > 1:
        totals = [{"source": name} | told(of) for name, of in report.sources.items()]
        print_frame("all phases", pl.DataFrame(totals))
    for name, phase in report.phases.items():
        say(f"{name}: {phase.verdict}")
        say(*(f"  {text}" for text in (*phase.faults, *phase.warnings, *phase.notes)))
    for source, leaked in (report.leakage or {}).items():
        say(
            f"{source}: worst overlap of a training document with a held-out one: "
            f"{leaked['worst']:.1%} of its 13-grams; left out for more than {MOST_SHARE:.0%}: "
            f"{leaked['left_out']:,} of {leaked['documents']:,} documents"
        )
    say(*report.warnings)


def told(share: SourceTotal) -> dict[str, Any]:
    """Return the numbers of a source in a row of their own."""
    return {name: of for name, of in to_builtins(share).items() if name != "classes"}
