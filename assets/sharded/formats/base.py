"""What a shard format is, and what its writers share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from assets.sharded.formats.flat_rows import FlatRows, flat_rows
from resources.store.store import StoreError


class FormatError(StoreError):
    """A format cannot hold these rows; the message says why, and what to change."""


def too_large(name: str, size: str, limit: str) -> FormatError:
    """A shard beyond a format's limit. Shards have equal numbers of rows, not of bytes."""
    return FormatError(
        f"{name}: a shard of {size}, but {limit}. Its rows are uneven: halve `target_bytes`, give "
        "long documents a bucket of their own (`buckets.edges`), or leave this format out."
    )


@dataclass(frozen=True)
class ShardAbout:
    """What is the same for all shards of a source."""

    token_dtype: str  # "uint16" | "uint32"
    sequence_length: int | None  # tokens of every row, padding included; None: varies
    end_of_document_id: int
    vocab_size: int
    tokenizer_fingerprint: str

    @property
    def token_bytes(self) -> int:
        """Bytes of a token id."""
        return np.dtype(self.token_dtype).itemsize


@dataclass(frozen=True)
class ShardFile:
    """One file of one shard, as it lies in the format's folder; `tokens` with padding."""

    name: str
    bytes: int
    rows: int
    tokens: int
    sha256: str


@dataclass(frozen=True)
class ShardFormat:
    """A format: the files of a shard, how they are written, and what lies beside them.

    `write` gets a path per suffix (temporary, but ending in the file's final name), the shard's
    rows and what is the same for all shards; it raises FormatError for rows that the format cannot
    hold. `index` gets the files of all shards and suffixes, in shard order, and gives names and
    contents: nothing if the format needs none.
    """

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[list[Path], pl.DataFrame, ShardAbout], None]
    index: Callable[[list[ShardFile], ShardAbout], dict[str, bytes]] = lambda files, about: {}
    file_name: Callable[[int, str], str] = lambda number, suffix: f"shard-{number:05d}.{suffix}"


def rows_of(shard: pl.DataFrame, about: ShardAbout, name: str) -> FlatRows:
    """The tokens of a shard; FormatError if they are not what `about` says, or a row is empty."""
    rows = flat_rows(shard["tokens"])
    if rows.content.dtype != about.token_dtype:
        raise FormatError(
            f"{name}: the shard has {rows.content.dtype} ids, its source {about.token_dtype}. "
            "Materialize `bucketed` and what follows again."
        )
    wanted = (
        rows.lengths > 0 if about.sequence_length is None else rows.lengths == about.sequence_length
    )
    if not wanted.all():
        row = int(np.argmin(wanted))
        raise FormatError(
            f"{name}: row {row} of the shard has {rows.lengths[row]} tokens, where "
            f"{about.sequence_length or 'one or more'} are promised. "
            "Materialize `bucketed` and what follows again."
        )
    return rows


def with_suffix(files: list[ShardFile], suffix: str) -> list[ShardFile]:
    """The files of one suffix, in shard order."""
    return [file for file in files if file.name.endswith(f".{suffix}")]


def state_of(files: list[ShardFile]) -> str:
    """32 hex digits that change with any of the files: for readers that cache by a state."""
    content = "".join(f"{file.name}\0{file.sha256}\n" for file in files)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
