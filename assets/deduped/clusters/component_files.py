"""Connected components of candidate pairs on disk, within a memory limit.

A component is all documents that any chain of candidate pairs connects. Bands of an index find the
same pairs many times (three of four in eight files), so tasks merge them first: each takes those of
one range of documents from all files, in bounded blocks. One task links what is left, in a
twentieth of the time. Documents are numbered in ingest order, and union-find keeps their parents, 4
bytes each, in a mapped file: the system writes out what the memory has no room for. Pairs are then
sorted by the hash of their component, by ranges again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.index.band_index import (
    RowIds,
    parts_of,
    row_ids_of,
    slice_of_part,
    sorted_pairs,
)
from corpus_loader.permutation import mix64
from resources.store.mapped_files import map_array
from resources.store.published import PublishedArray, PublishedFile
from resources.store.store import StoreError

PAIR_BYTES = 16
PAIR: Any = np.dtype((np.uint64, 2))
BLOCK_SHARE = 256  # a block, and its copies while it is merged, numbered, linked and grouped
LARGEST_BLOCK = 1 << 20  # pairs, or documents
AT_ONCE = 64  # tasks of a machine that merge pairs
RANGE_SHARE = 16  # of the memory: the pairs of a range, of which splitting holds copies
MOST_RANGES = 1024
END = (1 << 64) - 1  # after all row ids

Pairs = NDArray[np.uint64]
Integers = NDArray[np.int64]
Run = tuple[Path, int, int]  # a sorted file of pairs, and the first and the stop of those to read


@dataclass(frozen=True)
class Found:
    """All documents in a pair, by ascending row ids, and their components.

    places       the number of each one's component, int64
    labels       the label of each one's component: the smallest row id in it
    components   the label of each component, ascending
    """

    row_ids: RowIds
    places: Integers
    labels: RowIds
    components: RowIds


@dataclass(frozen=True)
class Components:
    """All documents with a candidate (row ids ascending), and the labels of their components.

    The label of a component is the smallest row id in it.
    """

    row_ids: RowIds
    labels: RowIds
    is_known: NDArray[np.bool_]  # if a member's component is as it was in the last run

    def of_part(self, number: int) -> Components:
        """Return those of one part."""
        place = slice_of_part(self.row_ids, number)
        return Components(self.row_ids[place], self.labels[place], self.is_known[place])


def number_documents(part_ids: Integers, rows: Integers) -> Integers:
    """Number the documents of parts with these ids, int64 [p], and row counts, int64 [p].

    Returns int64 [largest id + 2]: the first number of each part by its id, and the number of all
    documents. Documents are numbered in the order of their row ids.
    """
    by_id = np.zeros(int(part_ids.max(initial=-1)) + 1, np.int64)
    by_id[part_ids] = rows
    return np.concatenate([[0], np.cumsum(by_id)])


def numbered_row_ids(numbers: Integers, edges: Integers) -> RowIds:
    """Return the row ids, uint64 [n], of numbers, int64 [n]: as the kernels number them."""
    parts = np.searchsorted(edges, numbers, side="right") - 1
    return row_ids_of(parts, numbers - edges[parts])


def range_borders(files: Sequence[PublishedFile], memory_bytes: int) -> list[tuple[int, int]]:
    """Cut the row ids into ranges that the first rows of as many pairs are in.

    The pairs of any one file are a sample of all: they are of keys that begin alike. What a range
    holds fits a share of the memory.
    """
    num_bytes = sum(file.bytes for file in files)
    number = min(MOST_RANGES, -(-num_bytes * RANGE_SHARE // memory_bytes))
    cuts: list[int] = []
    if number > 1:
        largest = max(files, key=lambda file: file.bytes)
        first_rows = map_array(largest.brought(), np.uint64, (largest.bytes // PAIR_BYTES, 2))[:, 0]
        cuts = first_rows[np.arange(1, number) * len(first_rows) // number].tolist()
    return list(pairwise(sorted({0, *cuts, END})))


def pairs_between(file: PublishedFile, first: int, stop: int) -> Run:
    """Find the pairs of a sorted file whose first row id is from `first` up to `stop`."""
    words = PublishedArray(file, np.uint64, file.bytes // 8)
    run = words.mapped[::2].searchsorted(np.array([first, stop], np.uint64))
    words.check(run[:1] * 2, run[1:] * 2)
    return file.brought(), int(run[0]), int(run[1])


def find_components(
    blocks: Iterable[Pairs], part_rows: tuple[Integers, Integers], scratch: Path
) -> Found:
    """Find the connected components of all pairs, which may come in any order and more than once.

    part_rows: ids of all parts, and the number of documents of each; pairs of other parts are
    passed over. Results are mapped from files below `scratch`.
    """
    from assets.deduped.kernels.union_find import number_components

    edges = number_documents(*part_rows)
    count = int(edges[-1])
    paths = [scratch / f"members.{kind}" for kind in ("refs", "places", "labels")]
    with tempfile.TemporaryDirectory(dir=scratch, prefix="components-") as folder:
        dtype = np.uint32 if count < 1 << 32 else np.int64
        parents = new_array(Path(folder) / "parents", dtype, count)
        is_member = new_array(Path(folder) / "is_member", np.bool_, count)
        for start in range(0, count, LARGEST_BLOCK):
            stop = min(count, start + LARGEST_BLOCK)
            parents[start:stop] = np.arange(start, stop)
        for block in blocks:
            _link(block, edges, parents)
        labels = np.full(number_components(parents, is_member), END, np.uint64)
        with ExitStack() as opened:
            files = [opened.enter_context(path.open("wb")) for path in paths]
            for start in range(0, count, LARGEST_BLOCK):
                found = np.flatnonzero(is_member[start : start + LARGEST_BLOCK]) + start
                row_ids, places = numbered_row_ids(found, edges), parents[found].astype(np.int64)
                np.minimum.at(labels, places, row_ids)
                for file, array in zip(files, (row_ids, places, labels[places]), strict=True):
                    array.tofile(file)
    all_ids, of_members, labels_of_members = map(_map_words, paths)
    return Found(all_ids, of_members.view(np.int64), labels_of_members, labels)


def _link(pairs: Pairs, edges: Integers, parents: NDArray[Any]) -> None:
    """Join the ends of pairs; raise StoreError, with the pair, if they are of other documents."""
    from assets.deduped.kernels.union_find import link_pairs

    if (place := link_pairs(pairs, edges, parents)) < len(pairs):
        ends = (f"part {end >> 32} row {end % (1 << 32)}" for end in pairs[place].tolist())
        raise StoreError(
            f"Pairs of band_index[all] are of other documents: {' and '.join(ends)} are no pair of "
            "two documents in their order. Materialize `band_index` again."
        )


def undecided_pairs(pairs: Pairs, members: Components) -> pl.DataFrame:
    """Return the pairs of components that are not known, sorted by the hash of their label.

    `members` has at least the first rows of the pairs. Columns, UInt64: hash, earlier, later.
    """
    places = np.minimum(members.row_ids.searchsorted(pairs[:, 0]), len(members.row_ids) - 1)
    if (members.row_ids[places] != pairs[:, 0]).any():
        raise ValueError(
            "a pair is of no component: pass the pairs that the components were made of"
        )
    is_undecided = ~members.is_known[places]
    hashes, (earlier, later) = mix64(members.labels[places[is_undecided]]), pairs[is_undecided].T
    columns = {"hash": hashes, "earlier": earlier, "later": later}
    return pl.DataFrame(columns, {name: pl.UInt64 for name in columns}).sort("hash")


def unique_blocks(runs: Sequence[Run], block_rows: int) -> Iterator[Pairs]:
    """Yield the pairs of sorted runs, each once and in order, in blocks, uint64 [m, 2].

    A block takes from every run the pairs up to the last one that all runs have been read to, so
    that the copies of a pair come in one block.
    """
    step = max(1, block_rows // max(1, len(runs)))
    left = {path: stop for path, _, stop in runs}
    at = {path: start for path, start, _ in runs}
    while left := {path: stop for path, stop in left.items() if at[path] < stop}:
        pairs = {  # read, not mapped: of more files than can be
            path: np.fromfile(path, PAIR, min(step, stop - at[path]), offset=PAIR_BYTES * at[path])
            for path, stop in left.items()
        }
        unread = [path for path, run in pairs.items() if at[path] + len(run) < left[path]]
        if unread:
            last = min((pairs[path][-1] for path in unread), key=lambda pair: pair.tolist())
            pairs = {path: run[: rows_up_to(run, last)] for path, run in pairs.items()}
        for path, run in pairs.items():
            at[path] += len(run)
        yield sorted_pairs(np.concatenate(list(pairs.values())))


def live_pairs(pairs: Pairs, part_ids: Integers) -> Pairs:
    """Return the pairs of two parts with these ids.

    The index keeps those of removed parts until it is written again.
    """
    is_live = np.zeros(int(part_ids.max(initial=-1)) + 2, np.bool_)
    is_live[part_ids] = True
    return pairs[is_live[np.minimum(parts_of(pairs), len(is_live) - 1)].all(axis=1)]


def rows_up_to(pairs: Pairs, last: NDArray[np.uint64]) -> int:
    """Count the sorted pairs, uint64 [m, 2], up to and including the pair `last`, uint64 [2]."""
    start, stop = (pairs[:, 0].searchsorted(last[0], side) for side in ("left", "right"))
    return int(start + pairs[start:stop, 1].searchsorted(last[1], "right"))


def block_rows_of(memory_bytes: int) -> int:
    """Return the number of pairs that a task that merges them holds at once."""
    return max(1, min(LARGEST_BLOCK, memory_bytes // (BLOCK_SHARE * AT_ONCE)))


def new_array(path: Path, dtype: type[np.generic], count: int) -> NDArray[Any]:
    """Map a new file of `count` zeros that has its room: on a full disk a map ends its process."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, count) * np.dtype(dtype).itemsize)
    return np.asarray(np.memmap(path, dtype, "r+"))[:count]


def _map_words(path: Path) -> NDArray[np.uint64]:
    """Map a raw file of uint64."""
    return map_array(path, np.uint64, (path.stat().st_size // 8,))
