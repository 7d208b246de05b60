"""`corpus plan`: what the phases ask for and whether it is there, before anything of `mixed` runs.

corpus plan                      every phase: tokens available and asked for, epochs, samples
corpus plan --phase general      one phase
corpus plan --json               for programs
corpus plan --plot plan.svg      the same as a picture, and what was drawn where it is mixed

Tokens are counted in the last stage that a source has reached: exactly from `tokenized` on, before
that estimated from the bytes of `deduped`. Exit code 1 if a phase would be refused.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assets.transforms.bucketed import BucketConfig
from assets.transforms.mix_plan import PhasePlan, plan_phase
from assets.transforms.mixed import PhaseConfig
from assets.transforms.replay import UsageError, unknown_name
from pipeline_defs.plan_show import Realised, plot, show
from resources.corpus import Corpus, load_corpus
from resources.phase_mixture import read_mixture, realised
from resources.phase_sources import phase_source
from resources.records import Manifest, to_json

STAGES = ("sharded", "bucketed", "tokenized", "deduped")
BYTES_PER_TOKEN = 4.0  # of English with 32,000 tokens 4.3, of code 3.2; where nothing is tokenized


@dataclass(frozen=True)
class Available:
    """What a source has for a phase: tokens, samples (0: not known yet), counted in which stage."""

    tokens: int
    samples: int
    stage: str
    note: str = ""


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


def mixed_phases(corpus: Corpus, names: Iterable[str]) -> dict[str, Realised]:
    """What was drawn in the phases that are mixed already, perhaps under another plan."""
    manifests = {name: corpus.store.partition("mixed", name).newest_manifest() for name in names}
    return {
        name: realised(read_mixture(corpus.store, manifest))
        for name, manifest in manifests.items()
        if manifest is not None
    }


def plan_corpus(corpus: Corpus, names: Sequence[str]) -> dict[str, Any]:
    """What `corpus plan --json` prints: `phases`, and `sources` and `warnings` over all these."""
    every = tuple(corpus.settings.source_names())
    ratio = bytes_per_token(corpus)
    phases: dict[str, Any] = {}
    asked: dict[str, int] = {}
    for name in names:
        config = corpus.settings.phase(name)
        found = {
            source: available_for(corpus, source, config, ratio)
            for source in config.sources_of(every)
        }
        plan = plan_phase(config, {source: each.tokens for source, each in found.items()})
        phases[name] = described(plan, found)
        for budget in plan.budgets:
            asked[budget.source] = asked.get(budget.source, 0) + budget.planned
    everything = PhaseConfig(name="all", weighting="natural")
    whole = {source: available_for(corpus, source, everything, ratio) for source in asked}
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


def described(plan: PhasePlan, found: dict[str, Available]) -> dict[str, Any]:
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


def available_for(corpus: Corpus, source: str, config: PhaseConfig, ratio: float) -> Available:
    """What a source has for a phase, by the newest manifest of the last stage that it reached."""
    for stage in STAGES:
        manifest = corpus.store.partition(stage, source).newest_manifest()
        if manifest is not None:
            return counted(manifest, config, corpus.settings.buckets, ratio)
    return Available(0, 0, "", f"{source} is not built: it counts as empty")


def counted(
    manifest: Manifest, config: PhaseConfig, buckets: BucketConfig, ratio: float
) -> Available:
    """The tokens and samples of a manifest that a phase may draw from."""
    stage, source, stats = manifest.stage, manifest.partition, manifest.stats
    if stage == "sharded":
        found = phase_source(manifest, config.buckets)
        return Available(found.tokens, found.rows, stage)
    if stage == "bucketed":
        tokens, rows = (stats.extra.get(f"bucket_{of}", {}) for of in ("tokens", "sequences"))
        wanted = tokens if config.buckets is None else config.buckets
        num_tokens, num_rows = (
            sum(each.get(name, 0) for name in wanted) for each in (tokens, rows)
        )
        return Available(num_tokens, num_rows, stage)
    note = "" if config.buckets is None else f"{source} has no buckets yet: counted whole. "
    num_tokens = stats.tokens
    if stage == "deduped":
        num_tokens = round(stats.bytes / ratio)
        note += f"{source} is not tokenized: estimated at {ratio:.2f} bytes a token"
    length = buckets.sequence_length
    rows = stats.rows_kept if buckets.mode == "buckets" else -(-num_tokens // length)
    return Available(num_tokens, rows, stage, note)


def bytes_per_token(corpus: Corpus) -> float:
    """Bytes of text a token, over the sources that are tokenized."""
    folders = [corpus.store.partition("tokenized", name) for name in corpus.settings.source_names()]
    manifests = [folder.newest_manifest() for folder in folders]
    stats = [manifest.stats for manifest in manifests if manifest is not None]
    tokens = sum(each.tokens for each in stats)
    return sum(each.text_bytes for each in stats) / tokens if tokens else BYTES_PER_TOKEN
