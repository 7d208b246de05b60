"""Index files beside the shards: those that readers of a format want, and manifest.json.

Of a source they are the part `index`, made in the last pass of `sharded`. With one generation and
no removed rows it has its index files beside its shards. Otherwise readers of a folder get one of
their own: hard links to the shards of all generations under consecutive numbers, and the index
files over all of them.

    sharded/web/megatron-77aa01c2/shard-00000.bin   link to megatron-1f3a9c02/shard-00000.bin
    sharded/web/removed-77aa01c2.rows               u32 row numbers, shard after shard

Rows that are held out for validation have such folders of their own.

Megatron's .idx there leaves out the rows that are no sequences of the source any more. The files of
the other formats still hold them, and manifest.json says how many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from assets.sharded.formats import ShardFile, shard_format
from assets.sharded.formats.flat_rows import FlatSpans, starts_of
from assets.sharded.formats.megatron import MEGATRON, write_places, write_spans
from assets.sharded.generations import ABSENT, REMOVED
from assets.sharded.ledger_files import LEDGER, PublishedLedger, ShardedSource, read_ledger
from assets.sharded.shard_files import (
    FOLDER_DIGITS,
    MANIFEST_NAME,
    RemovedRows,
    ShardSet,
    files_of,
    folder_of,
    kind_of,
    part_fingerprint,
    part_name,
    split_of,
)
from assets.sharded.sharded_records import RowCounts, ShardedNumbers
from assets.sharded.shuffle import rows_of_shards
from assets.tokenized.tokenized_records import TokenFacts
from corpus_loader.flat import MappedFile, read_index, read_spans
from resources.store.records import (
    FileRecord,
    PartRecord,
    Stats,
    as_json_object,
    numbers_of,
    to_json,
)
from resources.store.store import Partition, PartWriter, published_file
from resources.tasks import Task

MANIFEST_VERSION = 1
NONE_REMOVED: Mapping[str, int] = MappingProxyType({})


class ShardsOrigin(TokenFacts, frozen=True, kw_only=True):
    """Stage, inputs and tokenizer of a set of shards, as every manifest.json gives them.

    `fingerprint` is that of the rows and their order, `config` the JSON of what decides them, and
    `mixture` the fingerprint of a phase's mixture, left out for the shards of a source.
    """

    stage: str
    partition: str
    fingerprint: str
    code_version: str
    config: dict[str, Any]
    mixture: str | msgspec.UnsetType = msgspec.UNSET


class FolderFile(msgspec.Struct, frozen=True, kw_only=True):
    """File of a format's folder, as manifest.json lists it.

    A file of a shard has the shard's name, rows and tokens, without and with padding, and the rows
    that are no sequences of the source any more, if there are any: in Megatron's they are not in
    the index, in others they are among the rows.
    """

    name: str
    bytes: int
    sha256: str
    shard: str | msgspec.UnsetType = msgspec.UNSET
    rows: int | msgspec.UnsetType = msgspec.UNSET
    tokens: int | msgspec.UnsetType = msgspec.UNSET
    stored_tokens: int | msgspec.UnsetType = msgspec.UNSET
    removed_rows: int | msgspec.UnsetType = msgspec.UNSET


class FolderManifest(ShardsOrigin, frozen=True, kw_only=True):
    """manifest.json of a format's folder; `tokens` are without padding, `stored_tokens` with.

    `removed_rows` is the sum of those of the shards, left out if there are none. `split` is there
    for rows that are held out of training: "validation".
    """

    version: int = MANIFEST_VERSION
    format: str
    sequence_length: int | None
    rows: int
    tokens: int
    stored_tokens: int
    files: list[FolderFile]
    removed_rows: int | msgspec.UnsetType = msgspec.UNSET
    split: str | msgspec.UnsetType = msgspec.UNSET


def publish_index(
    writer: PartWriter, shards: ShardSet, records: list[PartRecord], origin: ShardsOrigin
) -> PartRecord:
    """Publish the index files of every format's reader, and each folder's manifest.json.

    `records` are all shards, in order.
    """
    for name in shards.formats:
        add_index(writer, shards, name, records, origin)
    return writer.publish(Stats())


def add_index(
    writer: PartWriter,
    shards: ShardSet,
    name: str,
    records: list[PartRecord],
    origin: ShardsOrigin,
    removed: Mapping[str, int] = NONE_REMOVED,
) -> None:
    """Write the index files and manifest.json of a format; `removed`: removed rows by shard."""
    folder, prefix = folder_of(name, shards), kind_of(name, shards.split)
    listed = [each for record in records for each in files_in_folder(record, name, removed)]
    files = [
        ShardFile(
            PurePath(file.path).name,
            file.bytes,
            file.rows,
            numbers_of(record, RowCounts).stored_tokens,
            file.sha256,
        )
        for record in records
        for file in files_of(record, name)
    ]
    for file_name, content in shard_format(name).index(files, shards.schema).items():
        add_bytes(writer, f"{prefix}.{file_name}", folder, content)
        added = writer.pending[-1][1]
        listed.append(FolderFile(name=file_name, bytes=added.bytes, sha256=added.sha256))
    manifest = FolderManifest(
        **asdict(origin),
        format=name,
        sequence_length=shards.schema.sequence_length,
        rows=sum(record.stats.rows_kept for record in records),
        tokens=sum(record.stats.tokens for record in records),
        stored_tokens=sum(numbers_of(record, RowCounts).stored_tokens for record in records),
        files=listed,
        removed_rows=sum(removed.get(record.name, 0) for record in records) or msgspec.UNSET,
        split=shards.split or msgspec.UNSET,
    )
    add_bytes(writer, f"{prefix}.{MANIFEST_NAME}", folder, to_json(as_json_object(manifest)))


def files_in_folder(
    record: PartRecord, name: str, removed: Mapping[str, int]
) -> Iterator[FolderFile]:
    """Yield the files of a shard in one format."""
    for file in files_of(record, name):
        yield FolderFile(
            name=PurePath(file.path).name,
            bytes=file.bytes,
            sha256=file.sha256,
            shard=record.name,
            rows=file.rows,
            tokens=record.stats.tokens,
            stored_tokens=numbers_of(record, RowCounts).stored_tokens,
            removed_rows=removed.get(record.name, msgspec.UNSET),
        )


def add_bytes(writer: PartWriter, kind: str, folder: str, content: bytes) -> None:
    """Write a small file into a format's folder; `kind` ends with a dot and the file's name."""
    temporary, final = writer.new_file_in(folder, kind.partition(".")[2])
    temporary.write_bytes(content)
    writer.add_file(kind, temporary, final, 0)


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
    splits: dict[str, list[PartRecord]] = {"": []}  # those of training anyhow
    for record in records:
        [bucket] = numbers_of(record, ShardedNumbers).shards
        splits.setdefault(split_of(bucket), []).append(record)
    for split, of_split in splits.items():
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
    temporary, _ = writer.new_file("removed", "rows")
    content = np.concatenate(in_order).astype("<u4")
    content.tofile(temporary)
    name = f"removed-{inputs.shards.data[:FOLDER_DIGITS]}.rows"
    writer.add_file("removed", temporary, name, len(content))
    tokens = {name: of_shard.tokens for name, of_shard in removed.items()}
    return [writer.publish(Stats(numbers=RemovedRows(removed_rows=counts, removed_tokens=tokens)))]


def shard_records(task: Task[IndexInputs], found: PublishedLedger) -> Iterator[PartRecord]:
    """Yield the shards of all generations, in order."""
    source = task.payload.source
    for generation in found.ledger.generations:
        shards = source.shards(generation.data)
        for number, _ in source.numbered(generation):
            name = part_name(generation.number, number)
            fingerprint = part_fingerprint(shards.data, shards.formats, name)
            record = task.folder.find_part(name, fingerprint)
            assert record is not None, f"{task.title}: {name} is not published"
            yield record


def removed_rows(source: ShardedSource, found: PublishedLedger) -> dict[str, RemovedOfShard]:
    """Return the removed rows of every shard that has some, by the name of its part."""
    removed = {}
    for generation in found.ledger.generations:
        if not generation.removed:
            continue
        owned = found.files[generation.number].read()
        is_written, is_removed = owned.owners != ABSENT, owned.owners == REMOVED
        for shard in rows_of_shards(source.plans(generation), is_written, is_removed):
            tokens = int(owned.sequences.tokens[shard.indices].sum(dtype=np.int64))
            name = part_name(generation.number, shard.shard)
            removed[name] = RemovedOfShard(shard.rows, tokens)
    return removed


def link_shard(
    writer: PartWriter,
    shards: ShardSet,
    name: str,
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
    writer: PartWriter, shards: ShardSet, name: str, file: FileRecord, file_name: str
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
    those = spans.spans.take(taken)
    return FlatSpans(
        starts_of(counts).astype(np.uint64),
        those.starts,
        those.lengths,
        those.doc_ids,
        those.padded,
    )


def runs(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers first[i], first[i] + 1, ..., `count[i]` of them, for each i."""
    starts = starts_of(count)
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], count)
