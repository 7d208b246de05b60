"""Shard format: its definition, and the functions that its writers share."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from assets.sharded.formats.flat_rows import FlatRows, flat_rows
from resources.settings.shards import MASK_FORMATS
from resources.store.store import StoreError

MAX_BYTES = (1 << 32) - 1  # of a file with a table of 32-bit offsets


class FormatError(StoreError):
    """Error of rows that a format cannot hold; the message gives the reason and what to change."""


def too_large(name: str, size: str, limit: str) -> FormatError:
    """Return the error of a shard beyond a format's limit, with what to change.

    Shards have equal numbers of rows, not of bytes.
    """
    return FormatError(
        f"{name}: a shard of {size}, but {limit}. Its rows are uneven: halve `target_bytes`, give "
        "long documents a bucket of their own (`buckets.edges`), or leave this format out."
    )


@dataclass(frozen=True)
class ShardSchema:
    """Properties that all shards of a source share."""

    token_dtype: str  # "uint16" | "uint32"
    sequence_length: int | None  # of every row, padding included; None: varies
    end_of_document_id: int
    vocab_size: int
    tokenizer_fingerprint: str
    has_loss_mask: bool = False  # every token has a flag whether it is learned
    has_loss_weights: bool = False  # in its place a weight, in hundredths

    @property
    def token_bytes(self) -> int:
        """Bytes of a token id."""
        return np.dtype(self.token_dtype).itemsize


@dataclass(frozen=True)
class ShardFile:
    """File of one shard in the format's folder; `tokens` include padding."""

    name: str
    bytes: int
    rows: int
    tokens: int
    sha256: str


@dataclass(frozen=True)
class ShardFormat:
    """Format: the files of a shard, the function that writes them, and its index files.

    `write` takes a path per suffix (temporary, but ending in the file's final name), the shard's
    rows and the schema; it raises FormatError for rows that the format cannot hold. `index` takes
    the files of all shards and suffixes, in shard order, and returns index files: names and
    contents, none if the format needs none. `mask_suffixes` and `weight_suffixes` are those of the
    files that follow if rows have loss masks, or weights in their place.
    """

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[list[Path], pl.DataFrame, ShardSchema], None]
    index: Callable[[list[ShardFile], ShardSchema], dict[str, bytes]] = lambda files, schema: {}
    file_name: Callable[[int, str], str] = lambda number, suffix: f"shard-{number:05d}.{suffix}"
    mask_suffixes: tuple[str, ...] = ()
    weight_suffixes: tuple[str, ...] = ()

    def suffixes_of(self, schema: ShardSchema) -> tuple[str, ...]:
        """Return the suffixes of the files of a shard; FormatError for masks without a place."""
        if not schema.has_loss_mask:
            return self.suffixes
        if self.name not in MASK_FORMATS:
            raise FormatError(
                f"{self.name} has no place for loss masks: its shards would teach all tokens. "
                f"Choose from {', '.join(MASK_FORMATS)}, or leave out sources of `kind: chat`."
            )
        further = self.weight_suffixes if schema.has_loss_weights else self.mask_suffixes
        return self.suffixes + further


def rows_of(shard: pl.DataFrame, schema: ShardSchema, name: str) -> FlatRows:
    """Return the tokens of a shard; FormatError if one row is empty or differs from the schema."""
    rows, length = flat_rows(shard["tokens"]), schema.sequence_length
    if rows.content.dtype != schema.token_dtype:
        raise FormatError(
            f"{name}: the shard has {rows.content.dtype} ids, its source {schema.token_dtype}. "
            "Materialize `bucketed` and what follows again."
        )
    is_good = rows.lengths > 0 if length is None else rows.lengths == length
    if not is_good.all():
        row = int(np.argmin(is_good))
        raise FormatError(
            f"{name}: row {row} of the shard has {rows.lengths[row]} tokens, where "
            f"{length or 'one or more'} are promised. "
            "Materialize `bucketed` and what follows again."
        )
    return rows


def with_suffix(files: list[ShardFile], suffix: str) -> list[ShardFile]:
    """Return the files of one suffix, in shard order."""
    return [file for file in files if file.name.endswith(f".{suffix}")]


def state_of(files: list[ShardFile]) -> str:
    """Hash the names and contents of files to 32 hex digits, for readers that cache by a state."""
    content = "".join(f"{file.name}\0{file.sha256}\n" for file in files)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def write_records(path: Path, name: str, records: FlatRows, config: bytes = b"") -> None:
    """Write the layout that MDS and litdata share: a table of 32-bit offsets, then the records.

    That is u32 records, u32 offset[records + 1] from the file's start, the config, the records.
    Raises FormatError if the offsets do not reach the end of the file.
    """
    first = 4 * (len(records.starts) + 1) + len(config)
    size = first + int(records.starts[-1])
    if size > MAX_BYTES:
        raise too_large(name, f"{size:,} bytes", "its offsets end at 4 GiB")
    with open(path, "wb") as file:
        file.write(struct.pack("<I", len(records.starts) - 1))
        (records.starts + first).astype("<u4").tofile(file)
        file.write(config)
        records.content.tofile(file)
