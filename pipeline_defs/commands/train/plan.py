"""`corpus plan`: what the phases ask for and whether it is there, before anything of `mixed` runs.

corpus plan                      every phase: tokens available and asked for, epochs, samples
corpus plan --phase general      one phase
corpus plan --json               for programs
corpus plan --plot plan.svg      the same as a picture, and what was drawn where it is mixed

Tokens are counted in the last stage that a source has reached: exactly from `tokenized` on, before
that estimated from the bytes of `deduped`. Where all sources of a phase are sharded the verdict is
the one of `mixed`. Exit code 1 if a phase would be refused; one whose sources have not come as far
as `deduped` is "not built yet", which is no refusal.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assets.mixed.mixture_files import read_mixture, realised
from assets.mixed.phase_plan_files import plan_from_shards
from assets.mixed.plan import PhasePlan, plan_phase
from assets.mixed.report import Drawn
from pipeline_defs.commands.train.plan_counts import Available, available_for, bytes_per_token
from pipeline_defs.commands.train.plan_show import plot, show
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.phases import PhaseConfig
from resources.store.records import to_json

NOT_BUILT = "not built yet"


def add_arguments(parser: ArgumentParser) -> None:
    """The options of `corpus plan`."""
    parser.add_argument("--phase", help="one phase only (default: all)")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--plot", type=Path, help="write a picture (SVG) here")


def run(options: Namespace) -> int:
    """Print the plan; 1 if a phase would be refused."""
    corpus = load_corpus()
    phases = corpus.settings.phase_names()
    if options.phase is not None and options.phase not in phases:
        raise UsageError(unknown_name("phase", options.phase, phases))
    found = plan_corpus(corpus, phases if options.phase is None else [options.phase])
    if options.plot:
        mixed = mixed_phases(corpus, found["phases"])
        options.plot.write_text(plot(found, mixed), encoding="utf-8")
    if options.json:
        sys.stdout.write(to_json(found).decode())
    else:
        show(found)
    return int(any(phase["verdict"] == "refused" for phase in found["phases"].values()))


def mixed_phases(corpus: Corpus, names: Iterable[str]) -> dict[str, Drawn]:
    """What was drawn in the phases that are mixed already, perhaps under another plan."""
    manifests = {name: corpus.store.partition("mixed", name).newest_manifest() for name in names}
    return {
        name: realised(read_mixture(corpus.store, manifest))
        for name, manifest in manifests.items()
        if manifest is not None
    }


def plan_corpus(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """What `corpus plan --json` prints: `phases`, and `sources` and `warnings` over all these."""
    ratio = bytes_per_token(corpus)
    phases: dict[str, Any] = {}
    asked: dict[str, int] = {}
    for name in names:
        plan, phases[name] = plan_one(corpus, name, ratio)
        for budget in plan.budgets:
            asked[budget.source] = asked.get(budget.source, 0) + budget.planned
    everything = PhaseConfig(name="all", weighting="natural")
    whole = available_for(corpus, list(asked), everything, ratio)
    sources: dict[str, dict[str, Any]] = {
        source: {
            "available_tokens": whole[source].tokens,
            "counted_in": whole[source].stage,
            "planned_tokens": tokens,
            "epochs": round(tokens / max(1, whole[source].tokens), 6),
        }
        for source, tokens in asked.items()
    }
    often = min(corpus.settings.phase(name).warn_epochs for name in names)
    return {
        "store": str(corpus.store.root),
        "phases": phases,
        "sources": sources,
        "warnings": [
            f"{source!r} is gone through {numbers['epochs']:.1f} times over all phases"
            for source, numbers in sources.items()
            if len(names) > 1 and numbers["epochs"] > often
        ],
    }


def plan_one(corpus: Corpus, name: str, ratio: float) -> tuple[PhasePlan, dict[str, Any]]:
    """A phase's plan, and what is printed of it."""
    config = corpus.settings.phase(name)
    wanted = config.sources_of(tuple(corpus.settings.source_names()))
    found = available_for(corpus, wanted, config, ratio)
    if missing := [source for source in wanted if source not in found]:
        plan = PhasePlan(name, ())
        note = f"{', '.join(missing)}: nothing to count yet. Build as far as `deduped`"
        return plan, described(plan, found) | {"verdict": NOT_BUILT, "notes": [note]}
    plan = plan_found(corpus, config, found)
    return plan, described(plan, found)


def plan_found(corpus: Corpus, config: PhaseConfig, found: Mapping[str, Available]) -> PhasePlan:
    """The plan of a phase: that of `mixed` if all is sharded, else from what is known so far."""
    if all(each.stage == "sharded" for each in found.values()):
        manifests = [each.manifest for each in found.values()]
        return plan_from_shards(corpus.store.root, config, manifests)
    available = {source: each.tokens for source, each in found.items()}
    return plan_phase(config, available, {source: each.rows for source, each in found.items()})


def described(plan: PhasePlan, found: Mapping[str, Available]) -> dict[str, Any]:
    """One phase: its verdict, and its sources."""
    notes = sorted({each.note for each in found.values() if each.note})
    return {
        "verdict": plan.verdict,
        "tokens": plan.tokens,
        "warnings": list(plan.warnings),
        "faults": list(plan.faults),
        "feasible": dict(plan.feasible),
        "notes": notes,
        "sources": {
            budget.source: {
                "weight": budget.weight,
                "available_tokens": budget.available,
                "counted_in": found[budget.source].stage,
                "planned_tokens": budget.planned,
                "epochs": round(budget.epochs, 6),
                "cap": budget.cap,
                "samples": round(budget.planned * found[budget.source].samples / budget.available),
            }
            for budget in plan.budgets
        },
    }
