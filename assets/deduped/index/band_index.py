"""Find documents that share a key, in sorted runs of keys on disk: the stage `band_index`.

A key is the hash of a text, of a field's value or of a band of a signature; documents with an equal
key are candidates. A row id, uint64, has the number of a document's part in the ledger in its upper
32 bits and the row in the part below: row ids ascend in ingest order. The index is a list of
*segments*. A segment holds the keys of a range of parts in ingest order, each with its row id,
sorted by key; the first bits of the keys cut it into files, which are built one at a time. The keys
of a run become a new segment, which absorbs the segments before it that are not much larger.
A document is paired with the first and with the previous document of its key. So the pairs are
linear in the size of a bucket, connect all of it, and depend only on the documents and their ingest
order, not on the segments. Price: 16 bytes of disk per key.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

ROW_BITS = np.uint64(32)

RowIds = NDArray[np.uint64]


def row_ids_of(parts: int | NDArray[np.int64], rows: NDArray[np.generic]) -> RowIds:
    """Return the ids, uint64 [n], of rows [n] of one part, or of a part each, int64 [n]."""
    return (np.asarray(parts, np.uint64) << ROW_BITS) | rows.astype(np.uint64)


def parts_of(row_ids: RowIds) -> NDArray[np.int64]:
    """Return the part of each row id, int64 in the same shape."""
    return (row_ids >> ROW_BITS).astype(np.int64)


def rows_of(row_ids: RowIds) -> NDArray[np.uint32]:
    """Return the row in its part of each row id, uint32 in the same shape."""
    return row_ids.astype(np.uint32)  # keeps the lower half


def slice_of_part(row_ids: RowIds, part: int) -> slice:
    """Return the slice of a part among ascending row ids."""
    edges = np.array([part, part + 1], np.uint64) << ROW_BITS
    start, stop = np.searchsorted(row_ids, edges)
    return slice(int(start), int(stop))


Words = NDArray[np.uint64]
Entries = tuple[Words, Words]  # keys and row ids, sorted by key, then row id


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run of the index: the keys of the parts from `first` up to `stop` in the ledger's ids."""

    first: int
    stop: int
    prefix_bits: int
    entries: int


def overlapping(prefix: int, prefix_bits: int, other_bits: int) -> range:
    """Return the numbers of the files of a segment with `other_bits` that hold keys of a prefix."""
    if other_bits <= prefix_bits:
        only = prefix >> (prefix_bits - other_bits)
        return range(only, only + 1)
    width = other_bits - prefix_bits
    return range(prefix << width, (prefix + 1) << width)


def merge_runs(runs: Iterable[Entries], prefix_bits: int) -> Entries:
    """Merge runs whose row ids ascend from run to run; all keys share `prefix_bits` bits."""
    from assets.deduped.kernels.sorted_runs import sort_by_key

    in_order = list(runs)
    empty = np.empty(0, np.uint64)
    keys = np.concatenate([empty, *(keys for keys, _ in in_order)])
    row_ids = np.concatenate([empty, *(row_ids for _, row_ids in in_order)])
    merged: Entries = sort_by_key(keys, row_ids, prefix_bits)
    return merged


def candidate_pairs(
    wanted: Entries, runs: Iterable[Entries], is_live: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Pair each wanted row with the first and the previous live row of its key.

    Returns pairs of row ids (earlier, wanted), uint64 [m, 2], sorted, each once. `runs` come in
    ascending order of their row ids; `is_live`, bool, is indexed by part.
    """
    from assets.deduped.kernels.sorted_runs import NO_ROW_ID, find_earlier

    first = np.full(len(wanted[0]), NO_ROW_ID, np.uint64)
    last = np.full(len(wanted[0]), NO_ROW_ID, np.uint64)
    for run in runs:
        find_earlier(wanted, run, is_live, first, last)
    is_found, differs = first != NO_ROW_ID, (last != first)
    earlier = np.concatenate([first[is_found], last[differs]])
    later = np.concatenate([wanted[1][is_found], wanted[1][differs]])
    return sorted_pairs(np.stack([earlier, later], axis=1))


def sorted_pairs(pairs: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sort pairs, uint64 [m, 2], and keep each once."""
    ordered = pl.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1]}).sort("a", "b").to_numpy()
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[is_first])


def unpaired_rows(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> Words:
    """Return the live row ids that were paired with a removed one: they need another search."""
    live = is_live[parts_of(pairs)]
    return np.unique(pairs[live & ~live[:, ::-1]])
