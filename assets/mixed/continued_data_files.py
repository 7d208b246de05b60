"""Start and shards of a phase that continues an older mixture, by tag or fingerprint.

The order of a source is of its shards. So the sources of the older mixture are drawn from its
shards alone, also if `sharded` has rewritten them since, as long as a tag or `keep_manifests` keeps
a state that has them; newer ones of these sources are left out, and rows that were removed since
are drawn. What must not be trained on any more is not drawn: a takedown, and documents that were
held out later, are told by the ledgers of both states.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assets.mixed.budgets import MixError
from assets.mixed.phase_source_files import (
    ListedRows,
    PhaseShard,
    PhaseSource,
    PhaseStart,
    phase_source,
    tokenizer_of,
)
from assets.sharded.ledger_files import LEDGER, Ledger, read_ledger
from assets.sharded.shard_files import split_of
from assets.sharded.sharded_records import SHARDED
from corpus_loader.find_mixture import find_mixture
from corpus_loader.mixture import Mixture, RemovedFile, Shard
from corpus_loader.order import PhaseOrder
from corpus_loader.places.errors import CorpusError
from resources.settings.phases import Continued, PhaseConfig
from resources.store.disk import xxh3_of
from resources.store.loader_files import StoreFiles
from resources.store.records import FileRecord, Manifest
from resources.store.store import Partition, Store, newest_first
from resources.takedowns import Forbidden, forbidden_in

Kept = Manifest[Any, Any]


def start_in_mixture(
    root: Path, config: PhaseConfig, sources: Iterable[str], continued: Continued
) -> PhaseStart:
    """Return the start of a phase that goes on in the mixture that `data` names.

    In: the names of the phase's sources. Raises MixError if there is none, it has another kind of
    order, or does not know what was drawn of one of them.
    """
    try:
        mixture = find_mixture(StoreFiles(root), continued.phase, continued.data)
    except CorpusError as error:
        raise MixError(f"phase {config.name!r}, `continues`: {error}") from error
    order = mixture.order(mixture.seed)
    if not isinstance(order, PhaseOrder) or mixture.window_shards != config.window_shards:
        raise MixError(
            f"phase {config.name!r} continues {named(continued)}, which has window_shards "
            f"{mixture.window_shards} and one_bucket_batches {mixture.one_bucket_batches}: other "
            "orders of its sources. Give the same window_shards, and no one_bucket_batches."
        )
    known = {source.name.partition("/")[0] for source in mixture.sources}
    if mixture.order_phase and (unknown := sorted(set(sources) - known)):
        raise MixError(
            f"phase {config.name!r} continues {named(continued)}, which continues another itself "
            f"and does not say what that drew of {unknown}. Leave them out, or name the mixture "
            "that drew of them."
        )
    try:
        stop = len(order) if continued.at is None else continued.at
        starts = order.starts_after(stop).tolist()
    except ValueError as error:
        raise MixError(f"phase {config.name!r} continues {named(continued)}: {error}") from error
    return PhaseStart(
        mixture.order_phase or mixture.phase,
        mixture.seed,
        dict(zip((source.name for source in mixture.sources), starts, strict=True)),
        mixture=mixture,
    )


def continued_source(
    root: Path, config: PhaseConfig, source: PhaseSource, start: PhaseStart
) -> PhaseSource:
    """Return a source with the shards that a phase draws from, by where it begins.

    Raises MixError if it continues a mixture whose shards are not there as they were.
    """
    if start.mixture is None:
        return source
    classes = tuple(as_it_was(root, config, each, start.mixture) for each in source.classes)
    if classes:
        return replace(source, shards=sum((each.shards for each in classes), ()), classes=classes)
    return as_it_was(root, config, source, start.mixture)


def as_it_was(
    root: Path, config: PhaseConfig, source: PhaseSource, mixture: Mixture
) -> PhaseSource:
    """Return a source of a phase, or a class of one, with the shards that a mixture draws from.

    One that the mixture does not have keeps all of its shards. Raises MixError if a shard of the
    mixture is gone, or must not be drawn any more.
    """
    found = next((each for each in mixture.sources if each.name == source.name), None)
    if found is None:
        name = source.name.partition("/")[0]
        of_source = [s.name for s in mixture.sources if s.name.partition("/")[0] == name]
        if of_source:
            raise MixError(
                f"phase {config.name!r} draws {source.name!r}, where phase {mixture.phase!r} drew "
                f"{', '.join(of_source)}: give both the same `upsample`, or none."
            )
        return source
    there = {shard.path: shard for shard in source.shards}
    if not has_all(there, found.shards):
        name = source.name.partition("/")[0]
        try:
            there = kept_shards(root, config, name, found.shards)
        except MixError as error:
            raise MixError(
                f"phase {config.name!r} continues a mixture of {mixture.phase!r} whose shards of "
                f"{source.name!r} were rewritten since, and {error}. Leave the source out of this "
                "phase, or take `data` out of `continues`: it then goes on by today's order, in "
                "which some rows were drawn already."
            ) from error
    listed = None if found.removed is None else list_of(root, found.removed)
    shards = (drawn_before(there[then.path], then, listed) for then in found.shards)
    return replace(source, shards=tuple(shards))


def list_of(root: Path, removed: RemovedFile) -> FileRecord:
    """Return the record of a mixture's list of removed rows; MixError if the list is gone."""
    try:
        with StoreFiles(root).local_path(removed.path, removed.bytes, removed.sha256) as path:
            return FileRecord("", removed.path, 0, removed.bytes, removed.sha256, xxh3_of(path))
    except CorpusError as error:
        raise MixError(str(error)) from error


def drawn_before(now: PhaseShard, then: Shard, listed: FileRecord | None) -> PhaseShard:
    """Return a shard with the rows that a mixture draws of it."""
    removed = None
    if then.removed:
        assert listed is not None, "a mixture with removed rows names their file"
        removed = ListedRows(listed, then.removed_from, then.removed, 0)
    return replace(now, rows=then.live_rows, tokens=then.tokens, removed=removed)


def differences(newest: Sequence[PhaseSource], drawn: Sequence[PhaseSource]) -> list[str]:
    """Return a warning for each source that has changed since the mixture that is continued."""
    warnings = []
    for now, then in zip(newest, drawn, strict=True):
        live = {shard.path: shard.rows for shard in now.shards}
        rewritten = sum(shard.rows for shard in then.shards if shard.path not in live)
        still = sum(live.get(shard.path, 0) for shard in then.shards)
        newer, gone = now.rows - still, then.rows - rewritten - still
        if newer or gone or rewritten:
            warning = (
                f"{now.name!r} is drawn as in the mixture that is continued: without {newer:,} "
                f"rows of newer shards, and with {gone:,} rows that were removed since"
            )
            if rewritten:
                warning += (
                    f" and {rewritten:,} of shards that were rewritten since, of which some may be "
                    "removed now"
                )
            warnings.append(warning)
    return warnings


def named(continued: Continued) -> str:
    """Name an older mixture: "'general' of v1"."""
    return f"{continued.phase!r} of {continued.data}"


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
    raise MixError("no kept state has them: `corpus states tag` would have kept them")


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
