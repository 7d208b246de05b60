"""Stage `band_index`: which documents share a key, found in sorted runs on disk.

Purpose: a key stands for a text, a field's value or a band of a signature; documents with an equal
key are candidates. The index is a list of *segments*, each all (key, ref) of a range of parts in
ingest order, sorted by key and cut by the key's first bits into files that are built one at a time.
A new night's keys become a segment of their own, which absorbs those before it that are not much
larger (as in Bentley and Saxe 1980, "Decomposable searching problems"): the number of segments
grows with the logarithm of the documents, and so does how often an entry is rewritten.
A document is paired with the first and with the previous one of its key: pairs are linear in the
size of a bucket, connect all of it, and depend on the documents and their ingest order alone, not
on how the segments came about. Price: 16 bytes and about 60 ns per key.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from assets.deduped.index.hash_prefixes import keys_with_prefix
from assets.deduped.index.row_ids import parts_of

Words = NDArray[np.uint64]
Entries = tuple[Words, Words]  # keys and refs, sorted by key, then ref


class Segment(BaseModel):
    """A run of the index: the keys of the parts from `first` up to `stop` in the ledger's ids."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: int
    stop: int
    prefix_bits: int
    entries: int


def absorbed_from(live_entries: Sequence[int], new_entries: int) -> int:
    """Number of segments that stay: those after them go into the new segment.

    `live_entries` counts each segment's entries, oldest first. One with at most twice as many as
    what comes after it is absorbed, so that sizes at least halve from one segment to the next.
    """
    staying = len(live_entries)
    while staying and live_entries[staying - 1] <= 2 * new_entries:
        staying -= 1
        new_entries += live_entries[staying]
    return staying


def overlapping(prefix: int, prefix_bits: int, other_bits: int) -> range:
    """Files of a segment with `other_bits` that hold keys of a prefix."""
    if other_bits <= prefix_bits:
        only = prefix >> (prefix_bits - other_bits)
        return range(only, only + 1)
    width = other_bits - prefix_bits
    return range(prefix << width, (prefix + 1) << width)


def slice_of_prefix(keys: Words, prefix: int, prefix_bits: int) -> slice:
    """The entries of sorted keys that begin with a prefix."""
    first, last = np.array(keys_with_prefix(prefix, prefix_bits), np.uint64)
    start, stop = keys.searchsorted(first), keys.searchsorted(last, side="right")
    return slice(int(start), int(stop))


def merge_runs(runs: Iterable[Entries], prefix_bits: int) -> Entries:
    """One run of runs whose refs ascend from run to run; all keys share `prefix_bits` bits."""
    from assets.deduped.kernels.sorted_runs import sort_by_key

    held = list(runs)
    empty = np.empty(0, np.uint64)
    keys = np.concatenate([empty, *(keys for keys, _ in held)])
    refs = np.concatenate([empty, *(refs for _, refs in held)])
    merged: Entries = sort_by_key(keys, refs, prefix_bits)
    return merged


def candidate_pairs(
    wanted: Entries, runs: Iterable[Entries], is_live: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Pairs (earlier, wanted), uint64 [m, 2], with the first and the previous live one of the key.

    `runs` come in ascending order of their refs; `is_live` is indexed by part. Sorted, each once.
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
    """Pairs, uint64 [m, 2], in order, each once."""
    ordered = pl.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1]}).sort("a", "b").to_numpy()
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return np.ascontiguousarray(ordered[is_first])


def live_pairs(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether both ends of each pair are in live parts, bool [m]."""
    return np.asarray(is_live[parts_of(pairs)].all(axis=1))


def bereft(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> Words:
    """Live documents that were paired with one that is gone: they must look again."""
    live = is_live[parts_of(pairs)]
    return np.unique(pairs[live & ~live[:, ::-1]])
