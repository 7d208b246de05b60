"""Files of shards in every chosen format.

    sharded/web/megatron-1f3a9c02/shard-00000.bin   one folder a format, as trainers read it
    sharded/web/megatron-1f3a9c02/manifest.json     its contents, for copies of the folder

The digits in a folder's name are those of the rows and their order, not of the list of formats:
when a format is added, the files of the others stay as they are, even while a trainer reads them.
Rows that are held out for validation have folders of their own, with an index of their own: who
opens a folder of training, or megatron-*, never sees one of them.

Names and bytes of a format's files depend on the rows and their order alone, so the files that are
good stay when formats are added or a file is lost.

    sharded/web/validation-megatron-1f3a9c02/shard-00007.bin
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from assets.sharded.formats import ShardSchema, format_identity, shard_format
from assets.sharded.sharded_records import RowCounts
from assets.tokenized.tokenized_records import TokenFacts
from resources.settings.buckets import VALIDATION, split_bucket
from resources.store.records import DamagedFileError, FileRecord, PartRecord, Stats, fingerprint_of
from resources.store.store import Partition, PartWriter, published_file

INDEX = "index"  # the part that comes after all shards
FOLDER_DIGITS = 8
MANIFEST_NAME = "manifest.json"


@dataclass(frozen=True)
class ShardSet:
    """Shards that belong together: `data` is the fingerprint of their rows and their order.

    split: "validation" for rows that are held out of training, which are apart; else "".
    """

    formats: tuple[str, ...]
    data: str
    schema: ShardSchema
    split: str = ""


@dataclass(frozen=True)
class ShardInputs:
    """Input of the task of one shard.

    bucketed, ledger        fingerprints of the bucketed source and of the ledger's part
    generation, num_parts   number of the generation, and of the bucketed parts with rows of it
    number, bucket          number of the shard, and the name of the bucket its rows are of
    text_bytes_per_token    mean of the source
    scattered, is_wanted    fingerprint of the first pass, and whether it scatters rows for it
    earlier                 the shard in the newest manifest, with the files that can be kept
    """

    shards: ShardSet
    bucketed: str
    ledger: str
    generation: int
    num_parts: int
    number: int
    bucket: str
    text_bytes_per_token: float
    scattered: str = ""
    is_wanted: bool = False
    earlier: PartRecord | None = None


class RemovedRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of shards that are no sequences of the source any more, and their tokens, by part."""

    removed_rows: dict[str, int] = {}
    removed_tokens: dict[str, int] = {}


def shard_name(number: int) -> str:
    """Return the name of the part of a shard."""
    return f"shard-{number:05d}"


def part_name(generation: int, number: int) -> str:
    """Return the name of the part of a shard of a source's generation."""
    return f"g{generation:04d}-{shard_name(number)}"


def part_fingerprint(data: str, formats: Sequence[str], name: str) -> str:
    """Return the fingerprint of a shard of these rows in these formats, or of the index."""
    return fingerprint_of(data, [*map(format_identity, formats)], name)


def split_of(bucket: str) -> str:
    """Return "validation" for a bucket of documents that are held out of training, else ""."""
    return VALIDATION if split_bucket(bucket)[1] == VALIDATION else ""


def kind_of(format_name: str, split: str) -> str:
    """Return what the kinds of the index files of a format and a split begin with."""
    return f"{split}-{format_name}" if split else format_name


def folder_of(format_name: str, shards: ShardSet) -> str:
    """Return the name of the folder of one format: another one for other code of a plug-in."""
    identity, data = format_identity(format_name), shards.data
    if identity != format_name:
        data = fingerprint_of(data, identity)
    return f"{kind_of(format_name, shards.split)}-{data[:FOLDER_DIGITS]}"


def shard_schema(
    tokens: TokenFacts,
    sequence_length: int | None,
    has_loss_mask: bool = False,
    has_loss_weights: bool = False,
) -> ShardSchema:
    """Return the schema of shards of these tokens; `sequence_length` None: lengths differ."""
    return ShardSchema(
        token_dtype=tokens.token_dtype,
        sequence_length=sequence_length,
        end_of_document_id=tokens.end_of_document_id,
        vocab_size=tokens.vocab_size,
        tokenizer_fingerprint=tokens.tokenizer_fingerprint,
        has_loss_mask=has_loss_mask,
        has_loss_weights=has_loss_weights,
    )


def add_shard(
    writer: PartWriter,
    shards: ShardSet,
    number: int,
    rows: pl.DataFrame,
    earlier: PartRecord | None = None,
) -> Stats[RowCounts]:
    """Write a shard (the columns of `gather`) in every format; return the counts of its rows.

    Formats that `earlier` has files of are kept as they are.
    """
    for name in shards.formats:
        if earlier is not None and (kept := files_of(earlier, name)):
            writer.keep_files(kept)
        else:
            write_format(writer, shards, name, number, rows)
    num_tokens = int(rows["num_tokens"].cast(pl.UInt64).sum())
    return Stats(
        rows_in=rows.height,
        rows_kept=rows.height,
        tokens=num_tokens,
        bytes=num_tokens * shards.schema.token_bytes,
        numbers=RowCounts(
            document_spans=int(rows["spans"].list.len().cast(pl.UInt64).sum()),
            stored_tokens=int(rows["tokens"].list.len().cast(pl.UInt64).sum()),
        ),
    )


def write_format(
    writer: PartWriter, shards: ShardSet, name: str, number: int, rows: pl.DataFrame
) -> None:
    """Write the files of a shard in one format."""
    form, folder = shard_format(name), folder_of(name, shards)
    suffixes = form.suffixes_of(shards.schema)
    files = [writer.new_file_in(folder, form.file_name(number, suffix)) for suffix in suffixes]
    form.write([temporary for temporary, _ in files], rows, shards.schema)
    for suffix, (temporary, final) in zip(suffixes, files, strict=True):
        writer.add_file(f"{name}.{suffix}", temporary, final, rows.height)


def files_of(record: PartRecord, format_name: str) -> list[FileRecord]:
    """Return a part's files of one format, of any split."""
    formats = (file.kind.partition(".")[0].rpartition("-")[2] for file in record.files)
    return [file for file, name in zip(record.files, formats, strict=True) if name == format_name]


def earlier_files(folder: Partition, shards: ShardSet) -> dict[str, PartRecord]:
    """Return the newest manifest's shards of the same rows, by name, with the files to keep.

    These are the files of the wanted formats, except formats of which a file is damaged.
    """
    manifest, kept = folder.newest_manifest(), dict[str, PartRecord]()
    formats = manifest.config.get("formats", ()) if manifest else ()
    for part in manifest.parts if manifest else ():
        if part.fingerprint == part_fingerprint(shards.data, formats, part.name):
            by_format = [files_of(part, name) for name in shards.formats]
            whole = [files for files in by_format if all(is_whole(folder, file) for file in files)]
            files = tuple(file for files in whole for file in files)
            kept[part.name] = msgspec.structs.replace(part, files=files)
    return kept


def is_whole(folder: Partition, file: FileRecord) -> bool:
    """Return whether a file is as published."""
    try:
        published_file(folder.folder / file.path, file).checked()
    except DamagedFileError:
        return False
    return True


def has_all_files(record: PartRecord | None, formats: Sequence[str]) -> bool:
    """Check that no format is left to write."""
    return record is not None and all(files_of(record, name) for name in formats)
