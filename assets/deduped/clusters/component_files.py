"""Connected components of candidate pairs on disk, within a memory limit.

A component is all documents that any chain of candidate pairs connects. Documents are numbered in
ingest order, and union-find over a stream of pairs keeps their parents, 4 bytes each, in a mapped
file: the system writes out what the memory has no room for.
Files of pairs are sorted and read together in bounded blocks. Bands of an index find the same pairs
many times (three of four in eight files): all copies of a pair come in one block, and one stays.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assets.deduped.index.band_index import (
    RowIds,
    parts_of,
    row_ids_of,
    rows_of,
    slice_of_part,
    sorted_pairs,
)
from corpus_loader.permutation import mix64
from resources.store.store import StoreError

PAIR_BYTES = 16
BLOCK_SHARE = 256  # a block, and its copies while it is merged, numbered, linked and grouped
LARGEST_BLOCK = 1 << 20  # pairs, or documents

Pairs = NDArray[np.uint64]
Integers = NDArray[np.int64]


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


def number_pairs(pairs: Pairs, edges: Integers) -> Integers:
    """Return pairs of row ids, uint64 [m, 2], as pairs of numbers, int64 [m, 2].

    `edges` is as of `number_documents`. Raises ValueError, with the pair, for a row that its part
    lacks and for a pair out of order.
    """
    parts = parts_of(pairs)
    numbers = edges[parts] + rows_of(pairs)
    is_wrong = (pairs[:, 0] >= pairs[:, 1]) | (numbers >= edges[parts + 1]).any(axis=1)
    if is_wrong.any():
        pair = pairs[is_wrong][0]
        named = " and ".join(
            f"part {part} row {row}"
            for part, row in zip(parts_of(pair), rows_of(pair), strict=True)
        )
        raise ValueError(f"{named} are no pair of two documents in their order")
    return np.asarray(numbers)


def numbered_row_ids(numbers: Integers, edges: Integers) -> RowIds:
    """Return the row ids, uint64 [n], of numbers, int64 [n]: undo `number_pairs`."""
    parts = np.searchsorted(edges, numbers, side="right") - 1
    return row_ids_of(parts, numbers - edges[parts])


def batch_of(labels: RowIds, batches: int) -> Integers:
    """Return the batch, int64 [n] in [0, batches), of each component by a hash of its label."""
    return (mix64(labels) % np.uint64(batches)).astype(np.int64)


def find_components(
    pair_files: Sequence[Path], part_rows: tuple[Integers, Integers], scratch: Path, block_rows: int
) -> tuple[RowIds, RowIds]:
    """Find the connected components of all pairs.

    pair_files: raw little-endian uint64 [m, 2], rows (a, b) of row ids with a < b, sorted, unique
    in their file. part_rows: ids of all parts, and the number of documents of each.
    Returns the row ids of all documents in a pair, ascending, and the label of each one's
    component, mapped from files below `scratch`. The result depends neither on `block_rows` nor on
    the order of the files. Pairs of parts that are not among `part_rows` are passed over. Raises
    StoreError for a file that is truncated or names rows that a part does not have.
    """
    from assets.deduped.kernels.union_find import link_pairs, resolve_labels

    edges = number_documents(*part_rows)
    count = int(edges[-1])
    members = scratch / "members.refs", scratch / "members.labels"
    with tempfile.TemporaryDirectory(dir=scratch, prefix="components-") as folder:
        dtype = np.uint32 if count < 1 << 32 else np.int64
        parents = _new_array(Path(folder) / "parents", dtype, count)
        is_member = _new_array(Path(folder) / "is_member", np.bool_, count)
        for start in range(0, count, LARGEST_BLOCK):
            stop = min(count, start + LARGEST_BLOCK)
            parents[start:stop] = np.arange(start, stop)
        for block in _numbered_blocks(pair_files, edges, block_rows):
            link_pairs(block, parents)
        resolve_labels(parents, is_member)
        with members[0].open("wb") as row_ids, members[1].open("wb") as labels:
            for start in range(0, count, LARGEST_BLOCK):
                found = np.flatnonzero(is_member[start : start + LARGEST_BLOCK]) + start
                numbered_row_ids(found, edges).tofile(row_ids)
                numbered_row_ids(parents[found].astype(np.int64), edges).tofile(labels)
    return _map_words(members[0]), _map_words(members[1])


def split_pairs(
    pair_files: Sequence[Path],
    part_ids: Integers,
    members: Components,
    paths: Sequence[Path],
    block_rows: int,
) -> None:
    """Write a file for each batch with the pairs of its components that are not known.

    `paths` are those files; `batch_of` gives the batch of a component. Pairs of other parts than
    `part_ids` are passed over. `pair_files` are those that `members` was found in by
    `find_components`; in all the files together each pair comes once. A batch without pairs has an
    empty file.
    """
    for path in paths:
        path.write_bytes(b"")
    for block in unique_blocks(pair_files, part_ids, block_rows):
        places = np.searchsorted(members.row_ids, block[:, 0])
        places = np.minimum(places, len(members.row_ids) - 1)
        if (members.row_ids[places] != block[:, 0]).any():
            raise ValueError(
                "a pair is of no component: pass the pairs that the components were made of"
            )
        is_undecided = ~members.is_known[places]
        batches = batch_of(members.labels[places[is_undecided]], len(paths))
        order = np.argsort(batches, kind="stable")
        ends = np.searchsorted(batches[order], np.arange(len(paths) - 1), side="right")
        grouped = np.split(block[is_undecided][order], ends)
        for path, rows in zip(paths, grouped, strict=True):
            if len(rows):
                with path.open("ab") as file:
                    rows.tofile(file)


def unique_blocks(
    pair_files: Sequence[Path], part_ids: Integers, block_rows: int
) -> Iterator[Pairs]:
    """Yield all pairs of sorted files, each once and in order, in blocks, uint64 [m, 2].

    Pairs of other parts than `part_ids` are passed over: the index keeps those of removed parts
    until it is written again. A block takes from every file the pairs up to the last one that all
    files have been read to, so that the copies of a pair come in one block. Raises StoreError for a
    file that does not hold whole pairs.
    """
    is_live = np.zeros(int(part_ids.max(initial=-1)) + 2, np.bool_)
    is_live[part_ids] = True
    step = max(1, block_rows // max(1, len(pair_files)))
    left = {path: count_pairs(path) for path in pair_files}
    positions = dict.fromkeys(left, 0)
    while left := {path: rows for path, rows in left.items() if positions[path] < rows}:
        runs = {
            path: np.fromfile(path, np.uint64, 2 * step, offset=positions[path] * PAIR_BYTES)
            for path in left
        }
        pairs = {path: run.reshape(-1, 2) for path, run in runs.items()}
        unread = [path for path, run in pairs.items() if positions[path] + len(run) < left[path]]
        if unread:
            last = min((pairs[path][-1] for path in unread), key=lambda pair: pair.tolist())
            pairs = {path: run[: rows_up_to(run, last)] for path, run in pairs.items()}
        for path, run in pairs.items():
            positions[path] += len(run)
        block = sorted_pairs(np.concatenate(list(pairs.values())))
        parts = np.minimum(parts_of(block), len(is_live) - 1)
        yield block[is_live[parts].all(axis=1)]


def rows_up_to(pairs: Pairs, last: NDArray[np.uint64]) -> int:
    """Count the sorted pairs, uint64 [m, 2], up to and including the pair `last`, uint64 [2]."""
    start, stop = (pairs[:, 0].searchsorted(last[0], side) for side in ("left", "right"))
    return int(start + pairs[start:stop, 1].searchsorted(last[1], "right"))


def block_rows_of(memory_bytes: int) -> int:
    """Return the number of pairs to hold at once."""
    return max(1, min(LARGEST_BLOCK, memory_bytes // BLOCK_SHARE))


def count_pairs(path: Path) -> int:
    """Count the pairs of a file; StoreError if they are not whole."""
    pairs, rest = divmod(path.stat().st_size, PAIR_BYTES)
    if rest:
        raise StoreError(
            f"{path} is truncated: {path.stat().st_size:,} bytes are not a whole number of pairs "
            f"of {PAIR_BYTES} bytes. Materialize `band_index` again."
        )
    return pairs


def _numbered_blocks(
    pair_files: Sequence[Path], edges: Integers, block_rows: int
) -> Iterator[Integers]:
    """Yield all pairs once, as numbers, int64 [m, 2].

    Raises StoreError for a pair of other documents.
    """
    for block in unique_blocks(pair_files, np.flatnonzero(np.diff(edges)), block_rows):
        try:
            yield number_pairs(block, edges)
        except ValueError as error:
            raise StoreError(
                f"Pairs of band_index[all] are of other documents: {error} "
                f"(in one of {len(pair_files)} files, {pair_files[0]} ...). "
                "Materialize `band_index` again."
            ) from error


def _new_array(path: Path, dtype: type[np.generic], count: int) -> NDArray[Any]:
    """Map a new file of `count` zeros; one of none could not be mapped."""
    return np.asarray(np.memmap(path, dtype, "w+", shape=max(1, count)))[:count]


def _map_words(path: Path) -> RowIds:
    """Map a raw file of uint64; an empty file, which cannot be mapped, is an empty array."""
    if path.stat().st_size == 0:
        return np.empty(0, np.uint64)
    return np.memmap(path, np.uint64, mode="r")
