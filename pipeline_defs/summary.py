"""The corpus in numbers: what `corpus summary` prints, from manifests and run reports."""

from __future__ import annotations

from typing import Any

from resources.corpus import Corpus
from resources.run_reports import read_report
from resources.store.records import Manifest
from resources.tasks import GLOBAL

SOURCE_STAGES = (
    "raw",
    "filtered",
    "signatures",
    "repeated",
    "deduped",
    "tokenized",
    "bucketed",
    "sharded",
)
GLOBAL_STAGES = (
    "classifier",
    "band_index",
    "duplicates",
    "substrings",
    "evaluation",
    "tokenizer",
)
MIX_KEYS = ("weight", "planned_tokens", "realised_tokens", "epochs")


def summarize(corpus: Corpus) -> dict[str, Any]:
    """What `corpus summary --json` prints; stages that are not materialized are left out."""
    settings = corpus.settings
    return {
        "store": str(corpus.store.root),
        "sources": {
            name: stages_of(corpus, name, SOURCE_STAGES) for name in settings.source_names()
        },
        "global": stages_of(corpus, GLOBAL, GLOBAL_STAGES),
        "phases": {name: mix_of(corpus, name) for name in settings.phase_names()},
    }


def stages_of(corpus: Corpus, partition: str, stages: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of one partition, stage by stage."""
    found: dict[str, Any] = {}
    for stage in stages:
        manifest = corpus.store.partition(stage, partition).newest_manifest()
        if manifest is not None:
            found[stage] = stage_numbers(corpus, manifest)
    return found


def stage_numbers(corpus: Corpus, manifest: Manifest) -> dict[str, Any]:
    """Rows, tokens and bytes of a manifest, and what the last run did for it."""
    stats = manifest.stats
    report = read_report(corpus.store.root, manifest.stage, manifest.partition)
    numbers: dict[str, Any] = {
        "rows_in": stats.rows_in,
        "rows_kept": stats.rows_kept,
        "rejected": stats.rejected,
        "duplicates": stats.duplicates,
        "quarantined": stats.quarantined,
        "tokens": stats.tokens,
        "bytes": stats.bytes,
        "parts_computed": report.parts_computed,
        "parts_reused": report.parts_reused,
        "seconds": report.seconds,
        "mb_per_second": report.mb_per_second,
        "fingerprint": manifest.fingerprint,
    }
    if manifest.stage == "sharded":
        numbers["shards"] = len(manifest.parts)
    return numbers


def mix_of(corpus: Corpus, phase: str) -> dict[str, Any]:
    """Planned and realised tokens per source of a phase; empty if it is not materialized."""
    manifest = corpus.store.partition("mixed", phase).newest_manifest()
    if manifest is None:
        return {}
    mix = manifest.parts[0].stats.numbers["mix"]
    return {source: {key: numbers[key] for key in MIX_KEYS} for source, numbers in mix.items()}
