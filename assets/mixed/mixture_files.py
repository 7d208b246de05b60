"""The mixture of a phase: what is drawn of each source, and what names the order of it all.

It is a description: the order is computed from it (corpus_loader/order.py), never stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from assets.mixed.budgets import Budget
from assets.mixed.phase_source_files import PhaseSource, row_lengths, same_or_none, source_order
from assets.mixed.plan import PhasePlan
from assets.mixed.report import Drawn, shares_over_position
from assets.mixed.samples import nearest_equal_samples, nearest_samples
from corpus_loader.epochs import SourceShape
from corpus_loader.mixture import VERSION
from corpus_loader.order import PhaseOrder, order_seed
from resources.settings.phases import PhaseConfig
from resources.store.records import FileRecord, Manifest, fingerprint_of, required_file
from resources.store.store import Store


def mixture_of(
    root: Path,
    config: PhaseConfig,
    plan: PhasePlan,
    sources: list[PhaseSource],
    tokens: Mapping[str, Any],
) -> dict[str, Any]:
    """What mixture.json says; `sources` are those of the plan's budgets, `tokens` ABOUT_TOKENS."""
    entries = [
        source_entry(root, config, source, budget)
        for source, budget in zip(sources, plan.budgets, strict=True)
    ]
    return {
        "version": VERSION,
        "phase": config.name,
        "seed": order_seed(config.seed, config.name),
        "epoch_samples": sum(entry["samples"] for entry in entries),
        "tokens": sum(entry["realised_tokens"] for entry in entries),
        "batch_samples": config.batch_samples,
        "window_shards": config.window_shards,
        "sequence_length": same_or_none(source.sequence_length for source in sources),
        "fingerprint": order_fingerprint(config, tokens["tokenizer_fingerprint"], entries),
        "sources": entries,
        "warnings": list(plan.warnings),
        **tokens,
    }


def order_fingerprint(config: PhaseConfig, tokenizer: str, entries: list[dict[str, Any]]) -> str:
    """Names the data and the order of a phase: a saved position means the same under it only."""
    drawn = [
        (
            entry["name"],
            entry["samples"],
            [(s["rows"], s["files"] or s["path"]) for s in entry["shards"]],
        )
        for entry in entries
        if entry["samples"]
    ]
    seed = order_seed(config.seed, config.name)
    return fingerprint_of(seed, config.batch_samples, config.window_shards, tokenizer, drawn)


def source_entry(
    root: Path, config: PhaseConfig, source: PhaseSource, budget: Budget
) -> dict[str, Any]:
    """What the mixture says of one source: the plan, what comes of it, and its shards."""
    samples, tokens = count_samples(root, config, source, budget.planned)
    return {
        "name": source.name,
        "weight": budget.weight,
        "planned_tokens": budget.planned,
        "realised_tokens": tokens,
        "available_tokens": source.tokens,
        "epochs": round(tokens / source.tokens, 6),
        "samples": samples,
        "rows": source.rows,
        "shards": [shard.entry() for shard in source.shards],
    }


def count_samples(
    root: Path, config: PhaseConfig, source: PhaseSource, planned: int
) -> tuple[int, int]:
    """(samples, tokens) that come nearest to the plan, counted in the order of the phase."""
    length = source.equal_length
    if length is not None:
        return nearest_equal_samples(planned, length)
    order = source_order(config, source)
    lengths = row_lengths(root, source)
    return nearest_samples(planned, lengths, lambda draws: order.rows(draws)[0])


def phase_order(mixture: Mapping[str, Any]) -> PhaseOrder:
    """The order that a mixture describes."""
    shapes = [
        SourceShape(
            source["name"], source["samples"], tuple(shard["rows"] for shard in source["shards"])
        )
        for source in mixture["sources"]
    ]
    return PhaseOrder(
        mixture["seed"], mixture["batch_samples"], mixture["window_shards"], tuple(shapes)
    )


def read_mixture(store: Store, manifest: Manifest) -> dict[str, Any]:
    """The mixture of a phase that is materialized."""
    path = store.path_of(manifest, required_file(manifest, manifest.parts[0], "mixture"))
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def mixture_files(mixture: Mapping[str, Any]) -> Iterator[tuple[str, FileRecord]]:
    """(path in the store, record) of the flat files that a mixture names."""
    for source in mixture["sources"]:
        for shard in source["shards"]:
            for suffix, said in shard["files"].items():
                path = f"{shard['path']}.{suffix}"
                yield path, FileRecord(suffix, path, 0, said["bytes"], said["sha256"], "")


def realised(mixture: Mapping[str, Any]) -> Drawn:
    """What is drawn of a mixture's sources, and how over the phase."""
    order = phase_order(mixture)
    sources = mixture["sources"]
    shares = shares_over_position(
        lambda positions: order.samples(positions).source,
        len(order),
        [source["realised_tokens"] / max(1, source["samples"]) for source in sources],
        order.batch_samples,
    )
    tokens = {source["name"]: source["realised_tokens"] for source in sources}
    return Drawn(tokens, shares, is_estimated=mixture["sequence_length"] is None)
