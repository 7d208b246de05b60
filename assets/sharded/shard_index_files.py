"""Index files beside the shards: those that readers of a format want, and manifest.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import asdict

from assets.sharded.formats import ShardFile, shard_format
from assets.sharded.shard_files import MANIFEST_NAME, ShardSet, files_of, folder_of, kind_of
from assets.sharded.sharded_records import RowCounts
from assets.tokenized.tokenized_records import TokenFacts
from resources.settings.shards import FormatName
from resources.store.records import (
    FileRecord,
    PartRecord,
    Stats,
    as_json_object,
    numbers_of,
    to_json,
)
from resources.store.store import PartWriter

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
    name: FormatName,
    records: list[PartRecord],
    origin: ShardsOrigin,
    removed: Mapping[str, int] = NONE_REMOVED,
) -> None:
    """Write the index files and manifest.json of one format.

    `removed` counts the removed rows of shards that have some, by name.
    """
    folder, prefix = folder_of(name, shards), kind_of(name, shards.split)
    files = [shard_file(record, f) for record in records for f in files_of(record, name)]
    listed = [
        describe_file(record, f, removed.get(record.name, msgspec.UNSET))
        for record in records
        for f in files_of(record, name)
    ]
    for file_name, content in shard_format(name).index(files, shards.schema).items():
        add_bytes(writer, f"{prefix}.{file_name}", folder, content)
        listed.append(describe_index(writer.pending[-1][1]))
    manifest = FolderManifest(
        **asdict(origin),
        format=name,
        sequence_length=shards.schema.sequence_length,
        rows=sum(record.stats.rows_kept for record in records),
        tokens=sum(record.stats.tokens for record in records),
        stored_tokens=sum(stored_tokens(record) for record in records),
        files=listed,
        removed_rows=sum(removed.get(record.name, 0) for record in records) or msgspec.UNSET,
        split=shards.split or msgspec.UNSET,
    )
    add_bytes(writer, f"{prefix}.{MANIFEST_NAME}", folder, to_json(as_json_object(manifest)))


def add_bytes(writer: PartWriter, kind: str, folder: str, content: bytes) -> None:
    """Write a small file into a format's folder; `kind` ends with a dot and the file's name."""
    temporary, final = writer.new_file_in(folder, kind.partition(".")[2])
    temporary.write_bytes(content)
    writer.add_file(kind, temporary, final, 0)


def stored_tokens(record: PartRecord) -> int:
    """Return the tokens of a shard, padding included."""
    return numbers_of(record, RowCounts).stored_tokens


def shard_file(record: PartRecord, file: FileRecord) -> ShardFile:
    """Describe a shard's file for the index of its format."""
    name = PurePath(file.path).name
    return ShardFile(name, file.bytes, file.rows, stored_tokens(record), file.sha256)


def describe_file(
    record: PartRecord, file: FileRecord, removed_rows: int | msgspec.UnsetType
) -> FolderFile:
    """Describe a shard's file for manifest.json."""
    return FolderFile(
        name=PurePath(file.path).name,
        bytes=file.bytes,
        sha256=file.sha256,
        shard=record.name,
        rows=file.rows,
        tokens=record.stats.tokens,
        stored_tokens=stored_tokens(record),
        removed_rows=removed_rows,
    )


def describe_index(file: FileRecord) -> FolderFile:
    """Describe an index file for manifest.json."""
    return FolderFile(name=PurePath(file.path).name, bytes=file.bytes, sha256=file.sha256)
