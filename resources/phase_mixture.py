"""The mixture of a phase: what is drawn of each source, and what names the order of it all.

It is a description: the order is computed from it (corpus_loader/order.py), never stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assets.transforms.mix_budgets import Budget
from assets.transforms.mix_plan import PhasePlan
from assets.transforms.mix_report import Shares, shares_over_position
from assets.transforms.mix_samples import nearest_equal_samples, nearest_samples
from assets.transforms.mixed import MixError, PhaseConfig
from corpus_loader.mixture import VERSION
from corpus_loader.order import PhaseOrder, SourceOrder, SourceShape
from corpus_loader.permutation import derive_key
from resources.corpus import required_file
from resources.phase_sources import PhaseSource, row_lengths, same_or_none
from resources.records import Manifest, fingerprint_of
from resources.store import Store

SEED_BITS = 53  # whole numbers that any JSON reader keeps


def mixture_of(
    root: Path, config: PhaseConfig, plan: PhasePlan, sources: list[PhaseSource]
) -> dict[str, Any]:
    """What mixture.json says, but for the tokenizer; `sources` are those of the plan's budgets.

    Raises MixError if not a single sample would be drawn.
    """
    entries = [
        source_entry(root, config, source, budget)
        for source, budget in zip(sources, plan.budgets, strict=True)
    ]
    num_samples = sum(entry["samples"] for entry in entries)
    if num_samples == 0:
        raise MixError(
            f"phase {config.name!r} draws no sample: {plan.tokens:,} tokens are less than half of "
            "the first of any source. Raise `tokens`."
        )
    return {
        "version": VERSION,
        "phase": config.name,
        "seed": order_seed(config),
        "epoch_samples": num_samples,
        "tokens": sum(entry["realised_tokens"] for entry in entries),
        "batch_samples": config.batch_samples,
        "window_shards": config.window_shards,
        "sequence_length": same_or_none(source.sequence_length for source in sources),
        "fingerprint": order_fingerprint(config, entries),
        "sources": entries,
        "warnings": [*plan.warnings, *none_drawn(entries)],
    }


def order_seed(config: PhaseConfig) -> int:
    """The seed of a phase's order: of its own also where two phases have the same `seed`.

    Else the second would begin with the very samples that the first began with.
    """
    return derive_key(config.seed, "phase", config.name) >> (64 - SEED_BITS)


def order_fingerprint(config: PhaseConfig, entries: list[dict[str, Any]]) -> str:
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
    return fingerprint_of(order_seed(config), config.batch_samples, config.window_shards, drawn)


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
    length = source.sequence_length
    if length is not None and source.tokens == source.rows * length:
        return nearest_equal_samples(planned, length)
    shape = SourceShape(source.name, 1, tuple(shard.rows for shard in source.shards))
    order = SourceOrder(order_seed(config), config.window_shards, shape)
    lengths = row_lengths(root, source)
    return nearest_samples(planned, lengths, lambda draws: order.rows(draws)[0])


def none_drawn(entries: list[dict[str, Any]]) -> list[str]:
    """Said of sources whose budget is less than half a sample."""
    return [
        f"{entry['name']!r} gives no sample: its {entry['planned_tokens']:,} tokens are less than "
        "half of its first. Raise its weight, or the phase's tokens."
        for entry in entries
        if not entry["samples"]
    ]


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


def realised(mixture: Mapping[str, Any]) -> tuple[list[str], list[int], Shares]:
    """(names, tokens, shares over the phase) of a mixture's sources, as they are drawn."""
    order = phase_order(mixture)
    sources = mixture["sources"]
    shares = shares_over_position(
        lambda positions: order.samples(positions).source,
        len(order),
        [source["realised_tokens"] / max(1, source["samples"]) for source in sources],
        order.batch_samples,
    )
    names = [source["name"] for source in sources]
    return names, [source["realised_tokens"] for source in sources], shares
