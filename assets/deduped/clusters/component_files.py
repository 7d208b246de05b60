"""Connected components of candidate pairs on disk, within a memory limit.

A component is all documents that any chain of candidate pairs connects. Documents are numbered in
ingest order and cut into ranges whose parents (4 bytes each) take a quarter of the memory. Usually
there is one range, and this is union-find over a stream of pairs.
With more ranges, there are two sweeps over them (node elimination: Dementiev, Sanders, Schultes and
Sibeyn 2004, "Engineering an External Memory Minimum Spanning Tree Algorithm"). Downwards, the pairs
whose larger document is in a range are linked; where that connects two documents of lower ranges, a
pair of those two is passed on. Upwards, a range reads the labels of the lower documents that it is
linked to. There are no rounds until nothing changes, and no worst case of long paths or large
stars: a passed pair represents at least one finished document.
Trade-off: with more than one range, pairs are written to disk once more, and parents take 4 bytes a
document.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assets.deduped.clusters.components import (
    Numbering,
    batch_of,
    number_documents,
    number_pairs,
    numbered_row_ids,
)
from assets.deduped.clusters.pair_files import (
    PAIR_BYTES,
    append_grouped,
    block_rows_of,
    check_pair_files,
    read_rows,
    unique_blocks,
)
from assets.deduped.index.row_ids import slice_of_part
from resources.store.store import StoreError

Pairs = NDArray[Any]


@dataclass(frozen=True)
class Membership:
    """Files of all documents that occur in a pair, and of the labels of their components."""

    row_ids: Path
    labels: Path

    def open(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Map the row ids, ascending, and the smallest of each one's component, uint64 [n]."""
        row_ids, labels = (_map_words(path) for path in (self.row_ids, self.labels))
        return row_ids, labels


@dataclass(frozen=True)
class Components:
    """All documents with a candidate (row ids ascending), and the labels of their components."""

    row_ids: NDArray[np.uint64]
    labels: NDArray[np.uint64]
    is_known: NDArray[np.bool_]  # if a member's component is as it was in the last run

    @property
    def count(self) -> int:
        """Number of documents with a candidate."""
        return len(self.row_ids)

    def of_part(self, number: int) -> Components:
        """Return those of one part."""
        place = slice_of_part(self.row_ids, number)
        return Components(self.row_ids[place], self.labels[place], self.is_known[place])


@dataclass(frozen=True)
class Ranges:
    """Ranges of `size` document numbers each, and the folder of files between the sweeps."""

    numbering: Numbering
    size: int
    folder: Path
    block_rows: int

    @property
    def count(self) -> int:
        """Number of ranges: at least one."""
        return max(1, -(-self.numbering.num_documents // self.size))

    def low(self, index: int) -> int:
        """Return the first number of a range."""
        return index * self.size

    def path(self, kind: str, index: int) -> Path:
        """Return the file of a kind of a range."""
        return self.folder / f"{kind}_{index:06}"

    def append(self, kind: str, rows: Pairs, column: int) -> None:
        """Add rows, int64 [m, 2], to the files of the ranges of the numbers in their `column`."""
        if len(rows):
            append_grouped(rows, rows[:, column] // self.size, self.paths(kind))

    def paths(self, kind: str) -> list[Path]:
        """Return the files of a kind of all ranges."""
        return [self.path(kind, index) for index in range(self.count)]

    def take(self, kind: str, index: int) -> Iterator[Pairs]:
        """Yield rows, int64 [m, 2], of a range's file in blocks; remove it after the last."""
        path = self.path(kind, index)
        if path.exists():
            for start in range(0, path.stat().st_size // PAIR_BYTES, self.block_rows):
                yield read_rows(path, np.int64, start, self.block_rows)
            path.unlink()


def find_components(
    pair_files: Sequence[Path],
    part_rows: tuple[NDArray[np.int64], NDArray[np.int64]],
    scratch: Path,
    memory_bytes: int,
) -> Membership:
    """Find the connected components of all pairs; write them to files below `scratch`.

    pair_files: raw little-endian uint64 [m, 2], rows (a, b) of row ids with a < b, sorted, unique
    in their file. part_rows: ids of all parts, ascending, and the number of documents of each. The
    result depends neither on `memory_bytes` nor on the order of the files. Pairs of parts that are
    not among `part_rows` are passed over. Raises StoreError for a file that is truncated or names
    rows that a part does not have.
    """
    check_pair_files(pair_files)
    numbering = number_documents(*part_rows)
    dtype = np.uint32 if numbering.num_documents < 1 << 32 else np.int64
    with tempfile.TemporaryDirectory(dir=scratch, prefix="components-") as folder:
        size = max(1, memory_bytes // 4 // np.dtype(dtype).itemsize)
        ranges = Ranges(numbering, size, Path(folder), block_rows_of(memory_bytes))
        sweep_down(pair_files, ranges, dtype)
        unfinished = sweep_up(ranges)
        membership = Membership(scratch / "members.refs", scratch / "members.labels")
        unfinished.row_ids.replace(membership.row_ids)
        unfinished.labels.replace(membership.labels)
    return membership


def sweep_down(pair_files: Sequence[Path], ranges: Ranges, dtype: type[np.generic]) -> None:
    """Link each range, the highest first, and write its parents to a file."""
    from assets.deduped.kernels.union_find import link_pairs

    blocks = numbered_blocks(pair_files, ranges)
    if ranges.count > 1:
        for block in blocks:
            ranges.append("pairs", block, 1)
    for index in reversed(range(ranges.count)):
        low = ranges.low(index)
        high = min(low + ranges.size, ranges.numbering.num_documents)
        parents = np.arange(low, high, dtype=dtype)
        for block in blocks if ranges.count == 1 else ranges.take("pairs", index):
            ranges.append("pairs", link_pairs(block, low, parents), 1)
        for start in range(0, len(parents) if low else 0, ranges.block_rows):
            lower = parents[start : start + ranges.block_rows].astype(np.int64)
            asking = np.flatnonzero(lower < low)
            ranges.append("asked", np.column_stack([lower[asking], asking + start + low]), 0)
        np.save(ranges.path("parents", index).with_suffix(".npy"), parents)


def sweep_up(ranges: Ranges) -> Membership:
    """Turn parents into labels, the lowest range first; write the members of components."""
    from assets.deduped.kernels.union_find import resolve_labels

    unfinished = Membership(ranges.folder / "refs", ranges.folder / "labels")
    with unfinished.row_ids.open("wb") as row_ids, unfinished.labels.open("wb") as labels:
        for index in range(ranges.count):
            low, path = ranges.low(index), ranges.path("parents", index).with_suffix(".npy")
            parents = np.load(path)
            path.unlink()
            is_member = np.zeros(len(parents), np.bool_)
            for rows in ranges.take("answers", index):
                parents[rows[:, 1] - low] = rows[:, 0]
            resolve_labels(parents, low, is_member)
            for rows in ranges.take("asked", index):
                is_member[rows[:, 0] - low] = True
                rows[:, 0] = parents[rows[:, 0] - low]
                ranges.append("answers", rows, 1)
            for start in range(0, len(parents), ranges.block_rows):
                members = np.flatnonzero(is_member[start : start + ranges.block_rows]) + start
                numbered_row_ids(members + low, ranges.numbering).tofile(row_ids)
                numbered_row_ids(parents[members].astype(np.int64), ranges.numbering).tofile(labels)
    return unfinished


def split_pairs(
    pair_files: Sequence[Path],
    part_ids: NDArray[np.int64],
    members: Components,
    batches: int,
    scratch: Path,
    memory_bytes: int,
) -> list[Path]:
    """Write a file for each batch with the pairs of its components that are not known.

    `batch_of` gives the batch of a component. Pairs of other parts than `part_ids` are passed over.
    `pair_files` are those that `members` was found in by `find_components`; in all the files
    together each pair comes once. A batch without pairs has an empty file.
    """
    from assets.deduped.kernels.union_find import find_labels

    check_pair_files(pair_files)
    paths = [scratch / f"batch_{batch:06}.pairs" for batch in range(batches)]
    for path in paths:
        path.write_bytes(b"")
    position = 0
    for block in unique_blocks(pair_files, part_ids, block_rows_of(memory_bytes)):
        places = np.minimum(np.searchsorted(members.row_ids, block[:, 0]), len(members.row_ids) - 1)
        block = block[~members.is_known[places]]
        found, position = find_labels(block, members.row_ids, members.labels, position)
        append_grouped(block, batch_of(found, batches), paths)
    return paths


def numbered_blocks(pair_files: Sequence[Path], ranges: Ranges) -> Iterator[Pairs]:
    """Yield all pairs once, as numbers, int64 [m, 2].

    Raises StoreError for a pair of other documents.
    """
    for block in unique_blocks(pair_files, ranges.numbering.part_ids, ranges.block_rows):
        try:
            yield number_pairs(block, ranges.numbering)
        except ValueError as error:
            raise StoreError(
                f"Pairs of band_index[all] are of other documents: {error} "
                f"(in one of {len(pair_files)} files, {pair_files[0]} ...). "
                "Materialize `band_index` again."
            ) from error


def _map_words(path: Path) -> NDArray[np.uint64]:
    """Map a raw file of uint64; an empty file, which cannot be mapped, is an empty array."""
    if path.stat().st_size == 0:
        return np.empty(0, np.uint64)
    return np.memmap(path, np.uint64, mode="r")
