"""The samples at any positions of a phase: where they lie, and what is there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from corpus_loader.batch import Batch, find_documents
from corpus_loader.files import CorpusError, Files, LocalFiles
from corpus_loader.mixture import Mixture
from corpus_loader.shards import OpenShard, Shards

Dtype = Literal["stored", "int32", "int64"]


@dataclass(frozen=True)
class LoaderOptions:
    """What a loader does besides giving tokens.

    with_documents: batches have `documents` (see batch.py);
    dtype: of tokens; "stored" is uint16 or uint32, whichever the corpus has;
    drop_last: leave out the last step of an epoch where it is short;
    verify: check the sha256 of a file when it is first used (1.5 GB/s a core; sizes always are);
    cache, cache_bytes: where and how much of a remote corpus is kept on this machine.
    """

    with_documents: bool = False
    dtype: Dtype = "stored"
    drop_last: bool = False
    verify: bool = True
    cache: str | Path | None = None
    cache_bytes: int = 64 << 30

    def __post_init__(self) -> None:
        """Refuse a dtype in which ids may not fit."""
        if self.dtype not in get_args(Dtype):
            raise CorpusError(f"dtype is {self.dtype!r}; it must be one of {get_args(Dtype)}")


@dataclass(frozen=True)
class Lookup:
    """Where the samples at some positions lie: numbers of shards, and rows in these."""

    positions: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint16]
    shards: list[int]
    rows: list[int]

    def slice(self, first: int, stop: int) -> Lookup:
        """Some of them."""
        piece = slice(first, stop)
        return Lookup(
            self.positions[piece], self.sources[piece], self.shards[piece], self.rows[piece]
        )


class Reader:
    """Random access to the samples of a phase, in the order that a seed names."""

    def __init__(self, files: Files, mixture: Mixture, seed: int, options: LoaderOptions) -> None:
        self.mixture = mixture
        self.order = mixture.order(seed)
        self.with_documents = options.with_documents
        stored = mixture.token_dtype
        self.dtype = np.dtype(stored if options.dtype == "stored" else options.dtype)
        max_bytes = None if isinstance(files, LocalFiles) else options.cache_bytes
        self.shards = Shards(files, mixture, options.with_documents, max_bytes)
        shards = [len(source.shards) for source in mixture.sources]
        rows = [shard.rows for shard in self.shards.shards]
        self.first_row = np.cumsum([0, *rows], dtype=np.int64)
        self.first_shard = np.cumsum([0, *shards], dtype=np.int64)

    def look_up(self, positions: npt.NDArray[np.int64]) -> Lookup:
        """Which row of which shard stands at each position."""
        found = self.order.samples(positions)
        row = found.row + self.first_row[self.first_shard[found.source]]
        shard = np.searchsorted(self.first_row, row, side="right") - 1
        inside = row - self.first_row[shard]
        return Lookup(positions, found.source, shard.tolist(), inside.tolist())

    def read(self, found: Lookup, cursor: int) -> Batch:
        """Read samples as one batch; CorpusError if a file of them is missing or damaged."""
        opened = self.opened(found.shards)
        rows = [shard.row(row) for shard, row in zip(opened, found.rows, strict=True)]
        lengths = np.array([row.size for row in rows], np.int64)
        length = self.mixture.sequence_length or int(lengths.max(initial=0))
        documents = None
        if self.with_documents:
            spans = [shard.documents(row) for shard, row in zip(opened, found.rows, strict=True)]
            documents = find_documents(spans, length)
        return Batch(
            tokens=join_rows(rows, length, self.mixture.end_of_document_id, self.dtype),
            lengths=lengths,
            positions=found.positions,
            sources=found.sources,
            cursor=cursor,
            documents=documents,
        )

    def opened(self, shards: list[int]) -> list[OpenShard]:
        """The open shard of each sample."""
        most = self.shards.max_open
        groups = [self.shards.get(shards[i : i + most]) for i in range(0, len(shards), most)]
        return groups[0] if len(groups) == 1 else [shard for group in groups for shard in group]


def join_rows(
    rows: list[npt.NDArray[Any]], length: int, filler: int, dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Rows of up to `length` tokens as an array [rows, length], filled up at their ends."""
    tokens = np.empty((len(rows), length), dtype)
    if any(row.size < length for row in rows):
        filling = np.full(length, filler, dtype)
        rows = [part for row in rows for part in (row, filling[row.size :])]
    if rows:
        np.concatenate(rows, out=tokens.reshape(-1), casting="same_kind")
    return tokens
