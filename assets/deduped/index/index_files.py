"""Files of the key index: map them into memory, cut them by hash prefix, drop removed parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assets.deduped.index.band_index import (
    Entries,
    Words,
    overlapping,
    parts_of,
    row_ids_of,
    slice_of_part,
)
from assets.deduped.index.ledger import Order, read_order
from resources.corpus import Corpus
from resources.exchange import keys_with_prefix
from resources.numbers_between import numbers_between
from resources.settings.named_files import read_named_file
from resources.store.mapped_files import map_array
from resources.store.published import PublishedArray, PublishedFile

Files = list[tuple[PublishedFile, int]]  # a segment's files by prefix, and their rows
MOST_LEDGER_BYTES = 256 << 20  # a part takes 80 to 120 bytes
SegmentFiles = tuple[int, Files]  # prefix bits of a segment, and its files of one kind


@dataclass(frozen=True)
class KeyFile:
    """The sorted keys of a signed part: the part's number in the ledger, their file and count."""

    id: int
    file: PublishedFile
    count: int


def part_entries(part: KeyFile, prefix: int, prefix_bits: int) -> Entries:
    """Return a copy of the keys of a signed part that begin with a prefix; only they are read.

    A process may map 65,530 files, and have a thousand open: so no more than one stays mapped.
    """
    keys = PublishedArray(part.file, np.uint64, part.count)
    rows = PublishedArray(part.file, np.uint32, part.count, 8 * part.count)
    place = slice_of_prefix(keys.mapped, prefix, prefix_bits)
    read = keys.read(place.start, place.stop), rows.read(place.start, place.stop)
    return read[0].copy(), row_ids_of(part.id, read[1])


def slice_of_prefix(keys: Words, prefix: int, prefix_bits: int) -> slice:
    """Return the slice of sorted keys that begin with a prefix."""
    first, last = np.array(keys_with_prefix(prefix, prefix_bits), np.uint64)
    start, stop = keys.searchsorted(first), keys.searchsorted(last, side="right")
    return slice(int(start), int(stop))


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
    for file, count in files_with_prefix(segments, prefix, prefix_bits):
        keys, row_ids = entry_arrays(file, count)
        place = slice_of_prefix(keys.mapped, prefix, prefix_bits)
        yield keys.read(place.start, place.stop), row_ids.read(place.start, place.stop)


def entries_of_keys(
    segments: Sequence[SegmentFiles], wanted: Words, prefix: int, prefix_bits: int
) -> Iterator[Entries]:
    """Yield the entries with some keys, ascending, segment by segment; only they are read.

    They are found in a file that is mapped and not checked. That is safe: of a sorted file, the
    entries beside a place prove that it is right, and they are checked.
    """
    if not segments:
        return
    # They are sorted: np.unique, which hashes them, took five times as long as all else here.
    distinct = wanted[np.diff(wanted, prepend=~wanted[:1]) != 0]
    for file, count in files_with_prefix(segments, prefix, prefix_bits):
        keys, row_ids = entry_arrays(file, count)
        starts = keys.mapped.searchsorted(distinct)
        stops = keys.mapped.searchsorted(distinct, side="right")
        keys.check(starts, stops)
        row_ids.check(starts, stops)
        rows = numbers_between(starts, stops)
        yield keys.mapped[rows], row_ids.mapped[rows]


def files_with_prefix(
    segments: Sequence[SegmentFiles], prefix: int, prefix_bits: int
) -> Iterator[tuple[PublishedFile, int]]:
    """Yield the files of segments that hold keys with a prefix, and their rows."""
    for bits, files in segments:
        for number in overlapping(prefix, prefix_bits, bits):
            yield files[number]


def inherited_pairs(
    segments: Sequence[SegmentFiles], prefix: int, prefix_bits: int
) -> Iterator[NDArray[np.uint64]]:
    """Yield pairs of absorbed segments; each of their files goes to one file of the new segment."""
    for bits, files in segments:
        for number, (file, rows) in enumerate(files):
            if number << prefix_bits >> bits == prefix:
                yield read_pairs(file, rows)


def live_entries(entries: Entries, is_live: NDArray[np.bool_]) -> Entries:
    """Return the entries of live parts; `is_live`, bool, is indexed by part."""
    keys, row_ids = entries
    is_kept = is_live[parts_of(row_ids)]
    return keys[is_kept], row_ids[is_kept]


def live_rows(pairs: NDArray[np.uint64], is_live: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the pairs, uint64 [m, 2], of which both rows are in live parts."""
    return pairs[is_live[parts_of(pairs)].all(axis=1)]


def entry_arrays(file: PublishedFile, rows: int) -> tuple[PublishedArray, PublishedArray]:
    """Return the keys and the row ids in a file of entries."""
    keys = PublishedArray(file, np.uint64, rows)
    return keys, PublishedArray(file, np.uint64, rows, 8 * rows)


def read_pairs(file: PublishedFile, rows: int) -> NDArray[np.uint64]:
    """Map a file of pairs into memory, uint64 [rows, 2]."""
    return map_array(file.checked(), np.uint64, (rows, 2))


def read_ledger(corpus: Corpus) -> Order:
    """Read the ingest order of the exported ledger that `dedup.ledger` names, if it names one."""
    name = corpus.settings.dedup.ledger
    if name is None:
        return {}
    return read_order(name, read_named_file(corpus.config.parent / name, MOST_LEDGER_BYTES))
