"""Build one file of the key index, and find the candidate pairs of its new keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assets.deduped.deduped_records import BandIndexNumbers
from assets.deduped.index.band_index import (
    Entries,
    candidate_pairs,
    merge_runs,
    sorted_pairs,
    unpaired_rows,
)
from assets.deduped.index.index_files import (
    Files,
    KeyFile,
    SegmentFiles,
    entries_of_keys,
    entries_of_rows,
    inherited_pairs,
    live_entries,
    live_rows,
    part_entries,
    read_pairs,
    read_runs,
)
from resources.store.mapped_files import map_array
from resources.store.records import PartRecord, Stats
from resources.tasks import Task

UNPAIRED = "refs"  # kind of the file with the rows that lost the row that they were paired with


@dataclass(frozen=True)
class SearchInputs:
    """Inputs of the search for unpaired rows: all pairs, and the live parts, bool by number."""

    is_live: NDArray[np.bool_]
    pairs: Files


@dataclass(frozen=True)
class PrefixInputs:
    """Inputs of one file of the new segment: of all of them, the keys with one prefix.

    `search` finds the rows of `kept` parts that lost the row that they were paired with.
    """

    is_live: NDArray[np.bool_]
    prefix: int
    prefix_bits: int
    added: Sequence[KeyFile]
    kept: Sequence[KeyFile]
    staying: Sequence[SegmentFiles]
    absorbed: Sequence[SegmentFiles]
    absorbed_pairs: Sequence[SegmentFiles]
    search: Task[SearchInputs] | None

    @property
    def place(self) -> tuple[int, int]:
        """The prefix and its number of bits."""
        return self.prefix, self.prefix_bits


def find_unpaired(task: Task[SearchInputs]) -> list[PartRecord]:
    """Find the rows that were paired with a row that is gone: they look for another."""
    empty = np.empty(0, np.uint64)
    row_ids = [
        unpaired_rows(read_pairs(file, rows), task.payload.is_live)
        for file, rows in task.payload.pairs
    ]
    unpaired = np.unique(np.concatenate([empty, *row_ids]))
    writer = task.writer()
    writer.write_arrays(UNPAIRED, unpaired)
    return [writer.publish(Stats(len(unpaired), len(unpaired)))]


def index_prefix(task: Task[PrefixInputs]) -> list[PartRecord]:
    """Build one file of a segment, and find the pairs of the rows that look for one."""
    inputs, place, is_live = task.payload, task.payload.place, task.payload.is_live
    added = merge_runs((part_entries(part, *place) for part in inputs.added), inputs.prefix_bits)
    absorbed = [live_entries(run, is_live) for run in read_runs(inputs.absorbed, *place)]
    merged = merge_runs([*absorbed, added], inputs.prefix_bits) if absorbed else added
    pairs = [live_rows(p, is_live) for p in inherited_pairs(inputs.absorbed_pairs, *place)]
    for wanted in (added, *unpaired_of(inputs)):
        staying = entries_of_keys(inputs.staying, wanted[0], *place)
        pairs.append(candidate_pairs(wanted, [*staying, merged], is_live))
    all_pairs = sorted_pairs(np.concatenate(pairs)) if len(pairs) > 1 else pairs[0]
    writer = task.writer()
    writer.write_arrays("entries", *merged)
    writer.write_arrays("pairs", all_pairs)
    num_keys = len(merged[0])
    return [writer.publish(Stats(num_keys, num_keys, numbers=BandIndexNumbers(len(all_pairs))))]


def unpaired_of(inputs: PrefixInputs) -> Iterator[Entries]:
    """Yield the keys with the prefix of the rows that the search found, part by part."""
    if inputs.search is not None:
        file, count = inputs.search.published_file(UNPAIRED)
        row_ids = map_array(file.checked(), np.uint64, (count,))
        yield from entries_of_rows(row_ids, inputs.kept, *inputs.place)
