"""Find documents that share a key, in sorted runs of keys on disk: the stage `band_index`.

A key is the hash of a text, of a field's value or of a band of a signature; documents with an equal
key are candidates. The index is a list of *segments*. A segment holds the keys of a range of parts
in ingest order, each with its row id, sorted by key; the first bits of the keys cut it into files,
which are built one at a time. The keys of a run become a new segment. It absorbs the segments
before it that are not much larger (as in Bentley and Saxe 1980, "Decomposable searching problems"),
so that the number of segments grows with the logarithm of the documents, and so does the number of
times that a key is rewritten.
A document is paired with the first and with the previous document of its key. So the pairs are
linear in the size of a bucket, connect all of it, and depend only on the documents and their ingest
order, not on the segments. Price: 16 bytes of disk per key.
"""

from collections.abc import Iterable

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.index.hash_prefixes import keys_with_prefix
from assets.deduped.index.row_ids import parts_of

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


def slice_of_prefix(keys: Words, prefix: int, prefix_bits: int) -> slice:
    """Return the slice of sorted keys that begin with a prefix."""
    first, last = np.array(keys_with_prefix(prefix, prefix_bits), np.uint64)
    start, stop = keys.searchsorted(first), keys.searchsorted(last, side="right")
    return slice(int(start), int(stop))


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


def live_pairs(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the pairs, uint64 [m, 2], of which both rows are in live parts: bool [m]."""
    return np.asarray(is_live[parts_of(pairs)].all(axis=1))


def unpaired_rows(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> Words:
    """Return the live row ids that were paired with a removed one: they need another search."""
    live = is_live[parts_of(pairs)]
    return np.unique(pairs[live & ~live[:, ::-1]])
