"""The shards of a phase: opened when first used, checked once, a bounded number of them open."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from corpus_loader.flat import (
    REPAIR,
    Index,
    MappedFile,
    Mask,
    Spans,
    SpansIndex,
    read_index,
    read_mask,
    read_spans,
)
from corpus_loader.mixture import MASK_SUFFIX, FlatFile, Mixture, MixtureSource, RemovedFile, Shard
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import Files
from corpus_loader.places.threads import map_in_threads

MOST_FILES = 8192  # open at a time, or a third of what the process may have (often 1,024)
PROCESSES = 8  # that share a cache too small for all: each keeps so small a part of it open
TOKEN_FORMATS: dict[str, Literal["H", "I"]] = {"uint16": "H", "uint32": "I"}  # of memoryview
OPENED_TOGETHER = 8  # hashing releases the GIL: the shards of a first batch, on as many cores


@dataclass(frozen=True)
class OpenShard:
    """The open files of a shard: index if rows differ in length, spans if documents are wanted.

    mask: if the shard has one; if others of the mixture have, spans tell what is padding.
    tokens: of all rows, one after the other, and faster to slice than an array; `kept` keeps the
    files on this machine: close it when the shard is given up.
    """

    files: tuple[MappedFile, ...]
    tokens: memoryview
    index: Index | None
    spans: SpansIndex | None
    mask: Mask | None
    kept: ExitStack

    def row(self, row: int) -> memoryview:
        """The tokens of a row; CorpusError if the index points to where there are not so many."""
        assert self.index is not None, "rows of one length"
        return self.index.row(self.tokens, row)

    def documents(self, row: int) -> Spans:
        """The documents of a row."""
        assert self.spans is not None, "opened without documents"
        return self.spans.row(row)

    def learned(self, row: int, length: int) -> npt.NDArray[np.bool_]:
        """Flags of the learned ones of a row's `length` tokens: by the mask, or all but padding."""
        if self.mask is None:
            return self.documents(row).is_token(length)
        if self.index is None:
            return self.mask.tokens(row * length, length)
        return self.mask.tokens(int(self.index.pointers[row]) // self.tokens.itemsize, length)


def most_files() -> int:
    """Files that may be open at a time: as many as can be, for opening costs as much as 30 rows."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if allowed == resource.RLIM_INFINITY else min(MOST_FILES, allowed // 3)


class Shards:
    """The shards of a phase by number, over all its sources in order.

    `max_bytes` is the limit of the cache that holds the files, if one does: open files stay there.
    Opening a cached shard again costs as much as 50 rows; only downloads cost more.
    """

    def __init__(
        self, files: Files, mixture: Mixture, with_documents: bool, max_bytes: int | None = None
    ) -> None:
        self.files = files
        self.mixture = mixture
        self.shards = [shard for source in mixture.sources for shard in source.shards]
        self.suffixes = ["bin"]
        self.suffixes += ["idx"] if mixture.sequence_length is None else []
        self.suffixes += ["spans"] if with_documents else []
        self.has_masks = mixture.has_loss_mask
        self.max_open = most_files() // (len(self.suffixes) + self.has_masks)
        sizes = [
            sum(shard.files[end].bytes for end in self.suffixes_of(shard)) for shard in self.shards
        ]
        if max_bytes is not None and sum(sizes) > max_bytes:
            self.max_open = max(1, min(self.max_open, max_bytes // PROCESSES // max(sizes)))
        self.opened: dict[int, OpenShard] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A copy, also in another process, opens files of its own."""
        return self.__dict__ | {"opened": {}}

    def suffixes_of(self, shard: Shard) -> list[str]:
        """The files of a shard that are read."""
        if not self.has_masks:
            return self.suffixes
        other = MASK_SUFFIX if shard.has_loss_mask else "spans"
        return self.suffixes if other in self.suffixes else [*self.suffixes, other]

    def get(self, numbers: Iterable[int]) -> Mapping[int, OpenShard]:
        """Return open shards, at most `max_open`, by number; missing ones are opened side by side.

        Raises CorpusError if a file is not as the mixture says.
        """
        needed = set(numbers)
        for number in needed & self.opened.keys():
            if not all(file.is_unchanged() for file in self.opened[number].files):
                self.opened.pop(number).kept.close()  # what it is now is to be verified
        missing = needed - self.opened.keys()
        if missing:
            self.open_together(sorted(missing), needed)
        return {number: self.opened[number] for number in needed}

    def open_together(self, missing: list[int], needed: set[int]) -> None:
        """Open shards; the longest open that are not needed are closed if it would be too many.

        All of them are if a bounded cache is full: other processes may need the room.
        """
        idle = [other for other in self.opened if other not in needed]
        too_many = max(0, len(self.opened) + len(missing) - self.max_open)
        shards = [self.shards[number] for number in missing]
        wanted = [shard.files[end] for shard in shards for end in self.suffixes_of(shard)]
        if not self.files.has_room({file.sha256: file.bytes for file in wanted}):
            too_many = len(idle)
        for number in idle[:too_many]:
            self.opened.pop(number).kept.close()
        if len(missing) == 1:
            self.opened[missing[0]] = self.open(missing[0])
            return
        opened = map_in_threads(self.open, missing, OPENED_TOGETHER)
        self.opened.update(zip(missing, opened, strict=True))

    def open(self, number: int) -> OpenShard:
        """Open the needed files of a shard; CorpusError if one is not as the mixture says."""
        shard, mixture = self.shards[number], self.mixture
        with ExitStack() as kept:
            files = {
                suffix: map_file(self.files, kept, f"{shard.path}.{suffix}", shard.files[suffix])
                for suffix in self.suffixes_of(shard)
            }
            index, spans, mask = None, None, None
            if "idx" in files:
                index = read_index(files["idx"], mixture.token_dtype, shard.rows)
            if "spans" in files:
                spans = read_spans(files["spans"], shard.rows)
            if MASK_SUFFIX in files:
                mask = read_mask(files[MASK_SUFFIX])
            tokens = memoryview(files["bin"].map).cast(TOKEN_FORMATS[mixture.token_dtype])
            return OpenShard(tuple(files.values()), tokens, index, spans, mask, kept.pop_all())


@dataclass(frozen=True)
class LiveRows:
    """The live rows of a phase, numbered over all its shards without the removed ones.

    first_rows int64 [shards + 1]: number of each shard's first row if removed ones are counted;
    before int64 [removed], ascending: live rows before each removed row.
    """

    first_rows: npt.NDArray[np.int64]
    before: npt.NDArray[np.int64]

    def find(
        self, live: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return (shard, row in its files) of live rows; O(log n) each."""
        row = live + np.searchsorted(self.before, live, side="right")
        shard = np.searchsorted(self.first_rows, row, side="right") - 1
        return shard, row - self.first_rows[shard]


def find_live_rows(files: Files, mixture: Mixture) -> LiveRows:
    """Read the removed rows of a phase; CorpusError if a file of them is damaged."""
    shards = [shard for source in mixture.sources for shard in source.shards]
    first_rows = np.cumsum([0, *(shard.rows for shard in shards)], dtype=np.int64)
    listed = [rows for source in mixture.sources for rows in removed_rows(files, source)]
    numbers = [number for number, shard in enumerate(shards) if shard.removed]
    removed = [rows + first_rows[n] for n, rows in zip(numbers, listed, strict=True)]
    rows = np.concatenate([np.empty(0, np.int64), *removed])
    return LiveRows(first_rows, rows - np.arange(rows.size))


def removed_rows(files: Files, source: MixtureSource) -> list[npt.NDArray[np.uint32]]:
    """Read the removed rows of each shard of a source that has any; CorpusError if damaged."""
    shards = [shard for shard in source.shards if shard.removed]
    if source.removed is None or not shards:
        return []
    with ExitStack() as kept:
        file = map_file(files, kept, source.removed.path, source.removed)
        listed = [
            file.array(4 * shard.removed_from, "<u4", shard.removed).copy() for shard in shards
        ]
    for shard, rows in zip(shards, listed, strict=True):
        if not (rows[:-1] < rows[1:]).all() or rows[-1] >= shard.rows:
            raise CorpusError(
                f"{file.path} is damaged: the {shard.removed:,} rows that it removes from "
                f"{shard.path} are not ascending numbers below {shard.rows:,}. {REPAIR}"
            )
    return listed


def map_file(
    files: Files, kept: ExitStack, relative: str, file: FlatFile | RemovedFile
) -> MappedFile:
    """Map a file of the store, checked; a second time if another process found it damaged then."""
    for _ in range(2):
        path = files.local_path(relative, file.bytes, file.sha256)
        with suppress(FileNotFoundError):  # removed from the cache at this moment
            return MappedFile(kept.enter_context(path), file.bytes)
    raise CorpusError(f"{relative} is removed from the cache as often as it is there. Start again.")
