"""Last pass of `sharded`: the part `index`, and the folder that shows all generations as one.

A source with one generation and no removed rows has its index files beside its shards. Otherwise
readers of a folder get one of their own: hard links to the shards of all generations under
consecutive numbers, and the index files over all of them.

    sharded/web/megatron-77aa01c2/shard-00000.bin   link to megatron-1f3a9c02/shard-00000.bin
    sharded/web/removed-77aa01c2.rows               u32 row numbers, shard after shard

Rows that are held out for validation have such folders of their own.

Megatron's .idx there leaves out the rows that are no sequences of the source any more. The files of
the other formats still hold them, and manifest.json says how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from assets.sharded.flat_files import runs
from assets.sharded.formats import shard_format
from assets.sharded.formats.flat_rows import FlatSpans, starts_of
from assets.sharded.formats.megatron import MEGATRON, write_places, write_spans
from assets.sharded.generation_files import LEDGER, PublishedLedger, ShardedSource, read_ledger
from assets.sharded.generations import ABSENT, REMOVED
from assets.sharded.plan_files import shards_of
from assets.sharded.shard_files import (
    FOLDER_DIGITS,
    RemovedRows,
    ShardSet,
    files_of,
    folder_of,
    kind_of,
    part_fingerprint,
    part_name,
    split_of,
)
from assets.sharded.shard_index_files import ShardsOrigin, add_index
from assets.sharded.sharded_records import RowCounts, ShardedNumbers
from assets.sharded.shuffle import rows_of_shards
from corpus_loader.flat import MappedFile, read_index, read_spans
from resources.settings.shards import FormatName
from resources.store.records import FileRecord, PartRecord, Stats, numbers_of
from resources.store.store import Partition, PartWriter, published_file
from resources.tasks import Task


@dataclass(frozen=True)
class IndexInputs:
    """Input of the task that writes a source's index files, when all its shards are published.

    `shards` has the fingerprint of the state of all generations, `ledger` is that of its part.
    """

    shards: ShardSet
    source: ShardedSource
    ledger: str
    origin: ShardsOrigin


@dataclass(frozen=True)
class RemovedOfShard:
    """Removed rows of a shard, uint32 ascending, and their tokens without padding."""

    rows: NDArray[np.uint32]
    tokens: int


def write_index(task: Task[IndexInputs]) -> list[PartRecord]:
    """Write the files beside the shards: readers' indexes, and a manifest.json per format."""
    inputs, folder, writer = task.payload, task.folder, task.writer()
    ledger = folder.find_part(LEDGER, inputs.ledger)
    assert ledger is not None, f"{task.title}: the ledger is not published"
    found = read_ledger(folder, ledger)
    records = list(shard_records(task, found))
    removed = {} if found.ledger.is_one else removed_rows(inputs.source, found)
    counts = {name: len(of_shard.rows) for name, of_shard in removed.items()}
    for split, of_split in by_split(records).items():
        shards = replace(inputs.shards, split=split)
        for name in shards.formats:
            listed = of_split
            if not found.ledger.is_one:
                listed = [
                    link_shard(writer, shards, name, (number, record), removed.get(record.name))
                    for number, record in enumerate(of_split)
                ]
            add_index(writer, shards, name, listed, inputs.origin, counts)
    if not removed:
        return [writer.publish(Stats())]
    in_order = [removed[record.name].rows for record in records if record.name in removed]
    add_removed(writer, inputs.shards.data, in_order)
    tokens = {name: of_shard.tokens for name, of_shard in removed.items()}
    return [writer.publish(Stats(numbers=RemovedRows(removed_rows=counts, removed_tokens=tokens)))]


def shard_records(task: Task[IndexInputs], found: PublishedLedger) -> Iterator[PartRecord]:
    """Yield the shards of all generations, in order."""
    source = task.payload.source
    for generation in found.ledger.generations:
        shards = source.shards(generation.data)
        for number, _ in shards_of(source, generation):
            name = part_name(generation.number, number)
            fingerprint = part_fingerprint(shards.data, shards.formats, name)
            record = task.folder.find_part(name, fingerprint)
            assert record is not None, f"{task.title}: {name} is not published"
            yield record


def by_split(records: list[PartRecord]) -> dict[str, list[PartRecord]]:
    """Return the shards of each split that has some, and those of training anyhow."""
    splits: dict[str, list[PartRecord]] = {"": []}
    for record in records:
        [bucket] = numbers_of(record, ShardedNumbers).shards
        splits.setdefault(split_of(bucket), []).append(record)
    return splits


def removed_rows(source: ShardedSource, found: PublishedLedger) -> dict[str, RemovedOfShard]:
    """Return the removed rows of every shard that has some, by the name of its part."""
    removed = {}
    for generation in found.ledger.generations:
        if not generation.removed:
            continue
        held = found.files[generation.number].read()
        is_written, is_removed = held.holders != ABSENT, held.holders == REMOVED
        for shard in rows_of_shards(source.plans(generation), is_written, is_removed):
            tokens = int(held.sequences.tokens[shard.indices].sum(dtype=np.int64))
            name = part_name(generation.number, shard.shard)
            removed[name] = RemovedOfShard(shard.rows, tokens)
    return removed


def add_removed(writer: PartWriter, state: str, rows: list[NDArray[np.uint32]]) -> None:
    """Write the removed rows of all shards, in their order."""
    temporary, _ = writer.new_file("removed", "rows")
    content = np.concatenate(rows).astype("<u4")
    content.tofile(temporary)
    writer.add_file("removed", temporary, f"removed-{state[:FOLDER_DIGITS]}.rows", len(content))


def link_shard(
    writer: PartWriter,
    shards: ShardSet,
    name: FormatName,
    shard: tuple[int, PartRecord],
    removed: RemovedOfShard | None,
) -> PartRecord:
    """Link the files of a shard in one format; return its record with the files as linked."""
    (number, record), form = shard, shard_format(name)
    files = {file.kind.partition(".")[2]: file for file in files_of(record, name)}
    suffixes = form.suffixes_of(shards.schema)
    names = {suffix: form.file_name(number, suffix) for suffix in suffixes}
    if removed is not None and name == MEGATRON.name:
        return without_rows(writer, shards, (record, files, names), removed)
    linked = [link(writer, shards, name, files[suffix], names[suffix]) for suffix in suffixes]
    return msgspec.structs.replace(record, files=tuple(linked))


def link(
    writer: PartWriter, shards: ShardSet, name: FormatName, file: FileRecord, file_name: str
) -> FileRecord:
    """Link a file of a shard; its record is listed as a file of the format."""
    final = f"{folder_of(name, shards)}/{file_name}"
    return writer.link_file(f"{kind_of(name, shards.split)}.{file_name}", file, final)


def without_rows(
    writer: PartWriter,
    shards: ShardSet,
    shard: tuple[PartRecord, dict[str, FileRecord], dict[str, str]],
    removed: RemovedOfShard,
) -> PartRecord:
    """Link .bin of a shard (and .loss); write .idx and .spans without its removed rows."""
    record, files, names = shard
    rows, folder = files["idx"].rows, writer.partition
    places = read_index(mapped(folder, files["idx"]), shards.schema.token_dtype, rows)
    spans = read_spans(mapped(folder, files["spans"]), rows)
    stays = np.delete(np.arange(rows), removed.rows)
    lengths = places.lengths[stays]
    whole = ("bin", *MEGATRON.mask_suffixes) if shards.schema.has_loss_mask else ("bin",)
    linked = [link(writer, shards, "megatron", files[each], names[each]) for each in whole]
    target, prefix = folder_of("megatron", shards), kind_of("megatron", shards.split)
    for suffix in ("idx", "spans"):
        temporary, final = writer.new_file_in(target, names[suffix])
        if suffix == "idx":
            write_places(temporary, lengths, places.pointers[stays], shards.schema)
        else:
            write_spans(temporary, spans_of_rows(spans, stays))
        writer.add_file(f"{prefix}.{names[suffix]}", temporary, final, len(stays))
        linked.append(writer.pending[-1][1])
    numbers = RowCounts(
        document_spans=int(np.diff(spans.first)[stays].sum()),
        stored_tokens=int(lengths.sum(dtype=np.int64)),
    )
    stats = Stats(
        len(stays), len(stays), tokens=record.stats.tokens - removed.tokens, numbers=numbers
    )
    return msgspec.structs.replace(record, files=tuple(linked), stats=stats)


def mapped(folder: Partition, file: FileRecord) -> MappedFile:
    """Map a published file."""
    return MappedFile(published_file(folder.folder / file.path, file).checked(), file.bytes)


def spans_of_rows(spans: Any, rows: NDArray[np.int64]) -> FlatSpans:
    """Return the spans of some rows of a shard."""
    first = spans.first.astype(np.int64)
    counts = np.diff(first)[rows]
    taken = runs(first[rows], counts)
    stored = spans.spans
    return FlatSpans(
        starts_of(counts).astype(np.uint64),
        stored.starts[taken],
        stored.lengths[taken],
        stored.doc_ids[taken],
    )
