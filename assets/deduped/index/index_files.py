"""Files of the key index: map them into memory, cut them by hash prefix, drop removed parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assets.deduped.index.band_index import Entries, live_pairs, overlapping, slice_of_prefix
from assets.deduped.index.row_ids import parts_of, row_ids_of, slice_of_part
from resources.store.disk import map_array

Files = list[tuple[Path, int]]  # paths of a segment's files by prefix, and their rows
SegmentFiles = tuple[int, Files]  # prefix bits of a segment, and its files of one kind


@dataclass(frozen=True)
class KeyFile:
    """The sorted keys of a signed part: the part's number in the ledger, their file and count."""

    id: int
    path: Path
    count: int


def part_entries(part: KeyFile, prefix: int, prefix_bits: int) -> Entries:
    """Return the keys of a signed part that begin with a prefix; only they are read."""
    keys = map_array(part.path, np.uint64, (part.count,))
    rows = map_array(part.path, np.uint32, (part.count,), keys.nbytes)
    with_prefix = slice_of_prefix(keys, prefix, prefix_bits)
    return keys[with_prefix], row_ids_of(part.id, rows[with_prefix])


def entries_of_rows(
    row_ids: NDArray[np.uint64], parts: Sequence[KeyFile], prefix: int, prefix_bits: int
) -> Iterator[Entries]:
    """Yield the keys with a prefix of some rows, uint64 [n] ascending, part by part."""
    for part in parts:
        wanted = row_ids[slice_of_part(row_ids, part.id)]
        if len(wanted):
            keys, part_row_ids = part_entries(part, prefix, prefix_bits)
            is_wanted = np.isin(part_row_ids, wanted)
            yield keys[is_wanted], part_row_ids[is_wanted]


def read_runs(segments: Sequence[SegmentFiles], prefix: int, prefix_bits: int) -> Iterator[Entries]:
    """Yield the entries with a prefix, segment by segment, mapped from disk."""
    for bits, files in segments:
        for number in overlapping(prefix, prefix_bits, bits):
            yield cut(read_entries(*files[number]), prefix, prefix_bits)


def inherited_pairs(
    segments: Sequence[SegmentFiles], prefix: int, prefix_bits: int
) -> Iterator[NDArray[np.uint64]]:
    """Yield pairs of absorbed segments; each of their files goes to one file of the new segment."""
    for bits, files in segments:
        for number, (path, rows) in enumerate(files):
            if number << prefix_bits >> bits == prefix:
                yield read_pairs(path, rows)


def cut(entries: Entries, prefix: int, prefix_bits: int) -> Entries:
    """Return the entries whose keys begin with a prefix."""
    keys, row_ids = entries
    with_prefix = slice_of_prefix(keys, prefix, prefix_bits)
    return keys[with_prefix], row_ids[with_prefix]


def live_entries(entries: Entries, is_live: NDArray[np.bool_]) -> Entries:
    """Return the entries of live parts; `is_live`, bool, is indexed by part."""
    keys, row_ids = entries
    is_kept = is_live[parts_of(row_ids)]
    return keys[is_kept], row_ids[is_kept]


def live_rows(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the pairs, uint64 [m, 2], of which both rows are in live parts."""
    return pairs[live_pairs(pairs, is_live)]


def read_entries(path: Path, rows: int) -> Entries:
    """Map a file of entries into memory."""
    keys, row_ids = map_array(path, np.uint64, (2, rows))
    return keys, row_ids


def read_pairs(path: Path, rows: int) -> NDArray[np.uint64]:
    """Map a file of pairs into memory, uint64 [rows, 2]."""
    return map_array(path, np.uint64, (rows, 2))
