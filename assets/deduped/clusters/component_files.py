"""Connected components of candidate pairs that lie on disk, within a memory limit.

Purpose: which documents hang together by any chain of candidate pairs. Documents are numbered in
ingest order and cut into ranges whose parents (4 bytes each) take a quarter of the memory; usually
there is one range, and this is union-find over a stream of pairs.
With more, two sweeps over the ranges (node elimination: Dementiev, Sanders, Schultes and Sibeyn
2004, "Engineering an External Memory Minimum Spanning Tree Algorithm"). Downwards: the pairs whose
larger document is in a range are linked; where that connects two documents of lower ranges, a pair
of those two is passed on. Upwards: a range asks for the labels of the lower documents that it hangs
on. No rounds until nothing changes, and no worst case of long paths or large stars: a passed pair
stands for at least one document that is done with.
Price, of 37 million pairs (12 million without repeats) among 10 million documents: 1.6 to 2.2 CPU
seconds, and 125 MB of memory with one range; 2.2 s and 15 MB with ten ranges.
Trade-off: with more than one range, pairs lie on disk once more, and parents 4 bytes a document.
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
    numbered_refs,
)
from assets.deduped.clusters.pair_files import (
    PAIR_BYTES,
    append_grouped,
    block_rows_of,
    check_pair_files,
    read_rows,
    unique_blocks,
)
from resources.store.store import StoreError

Pairs = NDArray[Any]


@dataclass(frozen=True)
class Membership:
    """Where every document that occurs in a pair, and the label of its component, lie on disk."""

    refs: Path
    labels: Path

    def open(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """The refs, ascending, and the smallest ref of each one's component: mapped, uint64 [n]."""
        refs, labels = (_map_words(path) for path in (self.refs, self.labels))
        return refs, labels


@dataclass(frozen=True)
class Components:
    """Every document with a candidate (refs ascending), and the label of its component."""

    refs: NDArray[np.uint64]
    labels: NDArray[np.uint64]
    is_known: NDArray[np.bool_]  # whether a member's component is as it was in the last run


@dataclass(frozen=True)
class Ranges:
    """The documents, cut into ranges of `size` numbers; files between the sweeps in `folder`."""

    numbering: Numbering
    size: int
    folder: Path
    block_rows: int

    @property
    def count(self) -> int:
        """Ranges: at least one."""
        return max(1, -(-self.numbering.num_documents // self.size))

    def low(self, index: int) -> int:
        """First number of a range."""
        return index * self.size

    def path(self, kind: str, index: int) -> Path:
        """The file of a kind that belongs to a range."""
        return self.folder / f"{kind}_{index:06}"

    def append(self, kind: str, rows: Pairs, column: int) -> None:
        """Add rows, int64 [m, 2], to the files of the ranges that their `column` lies in."""
        if len(rows):
            append_grouped(rows, rows[:, column] // self.size, self.paths(kind))

    def paths(self, kind: str) -> list[Path]:
        """The files of a kind, of all ranges."""
        return [self.path(kind, index) for index in range(self.count)]

    def take(self, kind: str, index: int) -> Iterator[Pairs]:
        """Rows, int64 [m, 2], of a range's file in blocks; the file is removed after the last."""
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
    """The connected components of all pairs, in files below `scratch`.

    pair_files: raw little-endian uint64 [m, 2], rows (a, b) of refs with a < b, sorted, unique in
    their file. part_rows: ids of all parts, ascending, and the documents of each. The result does
    not depend on `memory_bytes` nor on the order of the files. Raises StoreError for a file that is
    truncated or names rows that a part does not have; pairs of parts that are not among
    `part_rows` are passed over.
    """
    check_pair_files(pair_files)
    numbering = number_documents(*part_rows)
    kind = np.uint32 if numbering.num_documents < 1 << 32 else np.int64
    with tempfile.TemporaryDirectory(dir=scratch, prefix="components-") as folder:
        size = max(1, memory_bytes // 4 // np.dtype(kind).itemsize)
        ranges = Ranges(numbering, size, Path(folder), block_rows_of(memory_bytes))
        sweep_down(pair_files, ranges, kind)
        unfinished = sweep_up(ranges)
        membership = Membership(scratch / "members.refs", scratch / "members.labels")
        unfinished.refs.replace(membership.refs)
        unfinished.labels.replace(membership.labels)
    return membership


def sweep_down(pair_files: Sequence[Path], ranges: Ranges, kind: type[np.generic]) -> None:
    """Link each range, the highest first, and leave its parents in a file of their own."""
    from assets.deduped.kernels.union_find import link_pairs

    blocks = numbered_blocks(pair_files, ranges)
    if ranges.count > 1:
        for block in blocks:
            ranges.append("pairs", block, 1)
    for index in reversed(range(ranges.count)):
        low = ranges.low(index)
        high = min(low + ranges.size, ranges.numbering.num_documents)
        parents = np.arange(low, high, dtype=kind)
        for block in blocks if ranges.count == 1 else ranges.take("pairs", index):
            ranges.append("pairs", link_pairs(block, low, parents), 1)
        for start in range(0, len(parents) if low else 0, ranges.block_rows):
            lower = parents[start : start + ranges.block_rows].astype(np.int64)
            asking = np.flatnonzero(lower < low)
            ranges.append("asked", np.column_stack([lower[asking], asking + start + low]), 0)
        np.save(ranges.path("parents", index).with_suffix(".npy"), parents)


def sweep_up(ranges: Ranges) -> Membership:
    """Turn parents into labels, the lowest range first, and write down who is in a component."""
    from assets.deduped.kernels.union_find import resolve_labels

    unfinished = Membership(ranges.folder / "refs", ranges.folder / "labels")
    with unfinished.refs.open("wb") as refs, unfinished.labels.open("wb") as labels:
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
                numbered_refs(members + low, ranges.numbering).tofile(refs)
                numbered_refs(parents[members].astype(np.int64), ranges.numbering).tofile(labels)
    return unfinished


def split_pairs(
    pair_files: Sequence[Path],
    part_ids: NDArray[np.int64],
    members: Components,
    batches: int,
    scratch: Path,
    memory_bytes: int,
) -> list[Path]:
    """A file for each batch below `scratch`, with the pairs of its components (see `batch_of`) that
    are not known.

    Pairs of other parts than `part_ids` are passed over, as by `find_components`. Files are as
    those of `find_components`, of whose pairs `membership` must be; in all of them together each
    pair comes once. A batch without pairs has an empty file.
    """
    from assets.deduped.kernels.union_find import find_labels

    check_pair_files(pair_files)
    paths = [scratch / f"batch_{batch:06}.pairs" for batch in range(batches)]
    for path in paths:
        path.write_bytes(b"")
    position = 0
    for block in unique_blocks(pair_files, part_ids, block_rows_of(memory_bytes)):
        places = np.minimum(np.searchsorted(members.refs, block[:, 0]), len(members.refs) - 1)
        block = block[~members.is_known[places]]
        found, position = find_labels(block, members.refs, members.labels, position)
        append_grouped(block, batch_of(found, batches), paths)
    return paths


def numbered_blocks(pair_files: Sequence[Path], ranges: Ranges) -> Iterator[Pairs]:
    """All pairs once, as numbers, int64 [m, 2]; StoreError for a pair of other documents."""
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
    """A raw file of uint64, mapped; an empty file cannot be."""
    if path.stat().st_size == 0:
        return np.empty(0, np.uint64)
    return np.memmap(path, np.uint64, mode="r")
