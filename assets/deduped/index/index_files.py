"""The files of the index of keys: mapped into memory, cut by hash prefix, freed of what is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assets.deduped.index.band_index import Entries, live_pairs, overlapping, slice_of_prefix
from assets.deduped.index.row_ids import parts_of, refs_of, slice_of_part
from resources.store.disk import map_array

Files = list[tuple[Path, int]]  # paths of a segment's files by prefix, and their rows


@dataclass(frozen=True)
class KeyFile:
    """The sorted keys of a signed part: its number in the ledger, their file, their count."""

    id: int
    path: Path
    count: int


def part_entries(part: KeyFile, prefix: int, prefix_bits: int) -> Entries:
    """The keys of a signed part that begin with a prefix; only they are read."""
    keys = map_array(part.path, np.uint64, (part.count,))
    rows = map_array(part.path, np.uint32, (part.count,), keys.nbytes)
    piece = slice_of_prefix(keys, prefix, prefix_bits)
    return keys[piece], refs_of(part.id, rows[piece])


def entries_of(
    refs: NDArray[np.uint64], parts: Sequence[KeyFile], prefix: int, prefix_bits: int
) -> Iterator[Entries]:
    """The keys with a prefix of some documents, uint64 refs ascending, part by part."""
    for part in parts:
        wanted = refs[slice_of_part(refs, part.id)]
        if len(wanted):
            keys, all_refs = part_entries(part, prefix, prefix_bits)
            is_wanted = np.isin(all_refs, wanted)
            yield keys[is_wanted], all_refs[is_wanted]


def read_runs(
    segments: Sequence[tuple[int, Files]], prefix: int, prefix_bits: int
) -> Iterator[Entries]:
    """The entries with a prefix, segment by segment, mapped from disk."""
    for bits, files in segments:
        for number in overlapping(prefix, prefix_bits, bits):
            yield cut(read_entries(*files[number]), prefix, prefix_bits)


def inherited_pairs(
    segments: Sequence[tuple[int, Files]], prefix: int, prefix_bits: int
) -> Iterator[NDArray[np.uint64]]:
    """Pairs of absorbed segments: each of their files goes to one file of the new segment."""
    for bits, files in segments:
        for number, (path, rows) in enumerate(files):
            if number << prefix_bits >> bits == prefix:
                yield read_pairs(path, rows)


def cut(entries: Entries, prefix: int, prefix_bits: int) -> Entries:
    """The entries whose keys begin with a prefix."""
    keys, refs = entries
    piece = slice_of_prefix(keys, prefix, prefix_bits)
    return keys[piece], refs[piece]


def live_entries(entries: Entries, is_live: NDArray[np.bool_]) -> Entries:
    """Entries of parts that are still there."""
    keys, refs = entries
    is_kept = is_live[parts_of(refs)]
    return keys[is_kept], refs[is_kept]


def live_rows(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pairs of parts that are still there."""
    return pairs[live_pairs(pairs, is_live)]


def read_entries(path: Path, rows: int) -> Entries:
    """A file of entries, mapped."""
    keys, refs = map_array(path, np.uint64, (2, rows))
    return keys, refs


def read_pairs(path: Path, rows: int) -> NDArray[np.uint64]:
    """A file of pairs, mapped, uint64 [rows, 2]."""
    return map_array(path, np.uint64, (rows, 2))
