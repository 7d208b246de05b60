"""The shards of a phase: opened when first used, checked once, a bounded number of them open."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus_loader.files import Files
from corpus_loader.flat import Index, MappedFile, Spans, SpansIndex, read_index, read_spans
from corpus_loader.mixture import Mixture, Shard

MOST_FILES = 8192  # open at a time, or a third of what the process may have (often 1,024)
OPENED_TOGETHER = 8  # hashing releases the GIL: the shards of a first batch, on as many cores


@dataclass(frozen=True)
class OpenShard:
    """The open files of a shard: index if rows differ in length, spans if documents are wanted.

    tokens are [rows, length], or all of them flat if there is an index; `held` keeps the files on
    this machine: close it when the shard is given up.
    """

    files: tuple[MappedFile, ...]
    tokens: npt.NDArray[Any]
    index: Index | None
    spans: SpansIndex | None
    held: ExitStack

    def row(self, row: int) -> npt.NDArray[Any]:
        """The tokens of a row."""
        if self.index is None:
            found: npt.NDArray[Any] = self.tokens[row]
            return found
        first = int(self.index.pointers[row]) // self.tokens.itemsize
        return self.tokens[first : first + int(self.index.lengths[row])]

    def documents(self, row: int) -> Spans:
        """The documents of a row."""
        assert self.spans is not None, "opened without documents"
        return self.spans.row(row)


def most_files() -> int:
    """Files that may be open at a time: as many as can be, for opening costs as much as 30 rows."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if allowed == resource.RLIM_INFINITY else min(MOST_FILES, allowed // 3)


class Shards:
    """The shards of a phase by number, over all its sources in order.

    `max_bytes` bounds the files that are open together, for those that lie in a bounded cache.
    """

    def __init__(
        self, files: Files, mixture: Mixture, with_documents: bool, max_bytes: int | None = None
    ) -> None:
        self.files = files
        self.mixture = mixture
        self.with_documents = with_documents
        self.shards = [shard for source in mixture.sources for shard in source.shards]
        files_each = 1 + with_documents + (mixture.sequence_length is None)
        self.max_open = most_files() // files_each
        largest = max(sum(file.bytes for file in shard.files.values()) for shard in self.shards)
        if max_bytes is not None:
            self.max_open = max(1, min(self.max_open, max_bytes // largest))
        self.opened: dict[int, OpenShard] = {}

    def __getstate__(self) -> dict[str, Any]:
        """A copy, also in another process, opens files of its own."""
        return self.__dict__ | {"opened": {}}

    def get(self, numbers: Sequence[int]) -> list[OpenShard]:
        """Shards, at most `max_open`; those that are not open are opened side by side.

        CorpusError if a file is not as it should be.
        """
        needed = set(numbers)
        missing = needed - self.opened.keys()
        if missing:
            self.open_together(sorted(missing), needed)
        for number in needed:
            for file in self.opened[number].files:
                file.check()
        return [self.opened[number] for number in numbers]

    def open_together(self, missing: list[int], needed: set[int]) -> None:
        """Open shards; the longest open that are not needed are closed if it would be too many."""
        too_many = max(0, len(self.opened) + len(missing) - self.max_open)
        for number in [other for other in self.opened if other not in needed][:too_many]:
            self.opened.pop(number).held.close()
        if len(missing) == 1:
            self.opened[missing[0]] = self.open(missing[0])
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(OPENED_TOGETHER) as pool:
            self.opened.update(zip(missing, pool.map(self.open, missing), strict=True))

    def open(self, number: int) -> OpenShard:
        """Open what is needed of a shard; CorpusError if a file is not as the mixture says."""
        shard, mixture = self.shards[number], self.mixture
        with ExitStack() as held:
            bin_file = self.map_file(held, shard, "bin")
            files, index, spans = [bin_file], None, None
            if mixture.sequence_length is None:
                files.append(self.map_file(held, shard, "idx"))
                index = read_index(files[-1], mixture.token_dtype, shard.rows)
            if self.with_documents:
                files.append(self.map_file(held, shard, "spans"))
                spans = read_spans(files[-1], shard.rows)
            tokens = np.frombuffer(bin_file.map, mixture.token_dtype)
            if mixture.sequence_length is not None:
                tokens = tokens.reshape(shard.rows, mixture.sequence_length)
            return OpenShard(tuple(files), tokens, index, spans, held.pop_all())

    def map_file(self, held: ExitStack, shard: Shard, suffix: str) -> MappedFile:
        """A file of a shard, checked and mapped."""
        file = shard.files[suffix]
        path = self.files.local_path(f"{shard.path}.{suffix}", file.bytes, file.sha256)
        return MappedFile(held.enter_context(path), file.bytes)
