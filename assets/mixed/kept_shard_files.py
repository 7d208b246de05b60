"""Shards that `sharded` has rewritten, as long as a tag or `keep_manifests` keeps a state of them.

A phase that continues an older mixture is drawn from them. What must not be trained on any more is
not drawn: a takedown, and documents that were held out later, are told by the ledgers of both
states.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assets.mixed.budgets import MixError
from assets.mixed.phase_source_files import PhaseShard, phase_source, tokenizer_of
from assets.sharded.generation_files import LEDGER, Ledger, read_ledger
from assets.sharded.shard_files import split_of
from assets.sharded.sharded_records import SHARDED
from corpus_loader.mixture import Shard
from resources.settings.phases import PhaseConfig
from resources.store.records import Manifest
from resources.store.store import Partition, Store, newest_first
from resources.takedown_gate import Forbidden, forbidden_in

Kept = Manifest[Any, Any]


def kept_shards(
    root: Path, config: PhaseConfig, source: str, wanted: tuple[Shard, ...]
) -> dict[str, PhaseShard]:
    """Return shards by path, from the newest kept state of a source that has all that are wanted.

    Raises MixError if there is none, or if they must not be drawn any more.
    """
    folder = Store(root).partition(SHARDED.name, source)
    now = folder.newest_manifest()
    for then in newest_first(folder):
        there = {shard.path: shard for shard in phase_source(then, config).shards}
        if has_all(there, wanted):
            if now is not None and (fault := fault_of(folder, now, then)):
                raise MixError(fault)
            return there
    raise MixError("no kept state has them: a tag of before would have kept them (`corpus tag`)")


def has_all(there: dict[str, PhaseShard], wanted: tuple[Shard, ...]) -> bool:
    """Return whether all shards are there as they were."""
    return all(
        shard.path in there and there[shard.path].record().files == shard.files for shard in wanted
    )


def fault_of(folder: Partition, now: Kept, then: Kept) -> str:
    """Return why the shards of an older state must not be drawn with today's, "" if they may."""
    if now.fingerprint == then.fingerprint:
        return ""
    if tokenizer_of(now) != tokenizer_of(then):
        return "the tokenizer is another now"
    today, before = ledger_of(folder, now), ledger_of(folder, then)
    if today is None or before is None:
        return "a state of them has no ledger, which tells of takedowns"
    if {*(today.takedowns or ())} - {*(before.takedowns or ())}:
        return "documents of the source were taken down since"
    if holds_out(today) and not holds_out(before):
        return "documents of the source were held out for validation since"
    return ""


def forbidden_shards(store: Store, manifest: Kept) -> Forbidden | None:
    """Return the takedowns that mean a document in the shards of a state of `sharded`."""
    ledger = ledger_of(store.partition(SHARDED.name, manifest.partition), manifest)
    obeyed = (ledger.takedowns if ledger else None) or ()
    return forbidden_in(store, SHARDED.name, manifest, obeyed)


def ledger_of(folder: Partition, manifest: Kept) -> Ledger | None:
    """Return the ledger of a state of `sharded`, None if it has none."""
    part = next((part for part in manifest.parts if part.name == LEDGER), None)
    return None if part is None else read_ledger(folder, part).ledger


def holds_out(ledger: Ledger) -> bool:
    """Return whether a generation has sequences that are held out."""
    return any(split_of(name) for each in ledger.generations for name in each.sequences)
