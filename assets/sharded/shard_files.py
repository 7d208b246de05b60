"""The files of shards in every chosen format, and what lies beside them.

    sharded/web/megatron-1f3a9c02/shard-00000.bin   one folder a format, as trainers read it
    sharded/web/megatron-1f3a9c02/manifest.json     what is in it, for who copies it elsewhere

The digits in a folder's name are those of the rows and their order alone, not of the list of
formats: for one more format the files of the others are taken over as they are, open or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import polars as pl

from assets.sharded.formats import FORMATS, ShardAbout, ShardFile
from resources.settings.shards import FormatName
from resources.store.records import FileRecord, PartRecord, Stats, fingerprint_of, to_json
from resources.store.store import PartWriter

INDEX = "index"  # the part that comes after all shards
FOLDER_DIGITS = 8
MANIFEST_NAME = "manifest.json"
ABOUT_TOKENS = (
    "token_dtype",
    "vocab_size",
    "end_of_document",
    "end_of_document_id",
    "begin_of_document_id",
    "tokenizer_fingerprint",
)


@dataclass(frozen=True)
class ShardSet:
    """Shards that belong together: `data` is the fingerprint of their rows and their order."""

    formats: tuple[FormatName, ...]
    data: str
    about: ShardAbout


def shard_name(number: int) -> str:
    """Name of the part of a shard."""
    return f"shard-{number:05d}"


def part_fingerprint(data: str, formats: Sequence[str], name: str) -> str:
    """Fingerprint of a shard of these rows in these formats, or of the index."""
    return fingerprint_of(data, formats, name)


def folder_of(shard_format: str, data: str) -> str:
    """Name of the folder of one format."""
    return f"{shard_format}-{data[:FOLDER_DIGITS]}"


def about_shards(tokens: Mapping[str, Any], sequence_length: int | None) -> ShardAbout:
    """What writers must know, from the `about` of a manifest of tokens."""
    return ShardAbout(
        token_dtype=tokens["token_dtype"],
        sequence_length=sequence_length,
        end_of_document_id=tokens["end_of_document_id"],
        vocab_size=tokens["vocab_size"],
        tokenizer_fingerprint=tokens["tokenizer_fingerprint"],
    )


def add_shard(
    writer: PartWriter,
    shards: ShardSet,
    number: int,
    rows: pl.DataFrame,
    earlier: PartRecord | None = None,
) -> Stats:
    """Write a shard (num_tokens, tokens, spans) in every format; returns the counts of its rows.

    Formats that `earlier` has files of are taken over.
    """
    for name in shards.formats:
        if earlier is not None and (there := files_of(earlier, name)):
            writer.keep_files(there)
            continue
        shard_format, folder = FORMATS[name], folder_of(name, shards.data)
        files = [
            writer.new_file_in(folder, shard_format.file_name(number, suffix))
            for suffix in shard_format.suffixes
        ]
        shard_format.write([temporary for temporary, _ in files], rows, shards.about)
        for suffix, (temporary, final) in zip(shard_format.suffixes, files, strict=True):
            writer.add_file(f"{name}.{suffix}", temporary, final, rows.height)
    num_tokens = int(rows["num_tokens"].cast(pl.UInt64).sum())
    return Stats(
        rows_in=rows.height,
        rows_kept=rows.height,
        tokens=num_tokens,
        bytes=num_tokens * shards.about.token_bytes,
        numbers={
            "document_spans": int(rows["spans"].list.len().cast(pl.UInt64).sum()),
            "stored_tokens": int(rows["tokens"].list.len().cast(pl.UInt64).sum()),
        },
    )


def publish_index(
    writer: PartWriter, shards: ShardSet, records: list[PartRecord], made_by: Mapping[str, Any]
) -> PartRecord:
    """Publish what readers want beside the shards, and each folder's manifest.json.

    `records` are all shards, in order; `made_by` is what the manifests say besides the files:
    stage, partition, fingerprint, code version, config, tokenizer.
    """
    for name in shards.formats:
        folder = folder_of(name, shards.data)
        files = [(record, file) for record in records for file in files_of(record, name)]
        contents = FORMATS[name].index([shard_file(*each) for each in files], shards.about)
        for file_name, content in contents.items():
            add_bytes(writer, f"{name}.{file_name}", folder, content)
        described = [describe_file(record, file) for record, file in files]
        described += [
            {"name": PurePath(file.path).name, "bytes": file.bytes, "sha256": file.sha256}
            for _, file in writer.pending
            if file.kind.startswith(f"{name}.")
        ]
        manifest = {
            "version": 1,
            "format": name,
            **made_by,
            "sequence_length": shards.about.sequence_length,
            "rows": sum(record.stats.rows_kept for record in records),
            "tokens": sum(record.stats.tokens for record in records),
            "stored_tokens": sum(record.stats.numbers["stored_tokens"] for record in records),
            "files": described,
        }
        add_bytes(writer, f"{name}.{MANIFEST_NAME}", folder, to_json(manifest))
    return writer.publish(Stats())


def add_bytes(writer: PartWriter, kind: str, folder: str, content: bytes) -> None:
    """Write a small file into a format's folder; `kind` is the format, a dot, the file's name."""
    temporary, final = writer.new_file_in(folder, kind.partition(".")[2])
    temporary.write_bytes(content)
    writer.add_file(kind, temporary, final, 0)


def files_of(record: PartRecord, shard_format: str) -> list[FileRecord]:
    """A part's files of one format."""
    return [file for file in record.files if file.kind.startswith(f"{shard_format}.")]


def shard_file(record: PartRecord, file: FileRecord) -> ShardFile:
    """A shard's file as the index of its format sees it."""
    name, tokens = PurePath(file.path).name, record.stats.numbers["stored_tokens"]
    return ShardFile(name, file.bytes, file.rows, tokens, file.sha256)


def describe_file(record: PartRecord, file: FileRecord) -> dict[str, Any]:
    """A shard's file as manifest.json has it; `tokens` are without padding."""
    return {
        "name": PurePath(file.path).name,
        "shard": record.name,
        "rows": file.rows,
        "tokens": record.stats.tokens,
        "stored_tokens": record.stats.numbers["stored_tokens"],
        "bytes": file.bytes,
        "sha256": file.sha256,
    }
