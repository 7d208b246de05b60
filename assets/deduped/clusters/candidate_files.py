"""Find the members of candidate components, and gather them from signed parts.

Four passes: merge the pairs of each range of documents; link them to components, which is one task;
sort the pairs of each range by a hash of their component; publish, per signed part, the members to
decide on, sorted so too: components are decided by prefixes of the hash. A component with the same
members as in the last run is not gathered again: the last decision still holds.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.component_files import (
    Components,
    Found,
    find_components,
    live_pairs,
    pairs_between,
    undecided_pairs,
    unique_blocks,
)
from assets.deduped.index.band_index import row_ids_of, rows_of
from assets.deduped.index.ledger import LedgerEntry
from assets.text.list_columns import as_numpy
from corpus_loader.permutation import mix64
from resources.exchange import Made
from resources.passes import PassFiles
from resources.settings.dedup import DedupConfig
from resources.store.disk import TEMPORARY_PREFIX
from resources.store.mapped_files import map_array, map_arrow
from resources.store.published import PublishedArray, PublishedFile
from resources.store.records import PartRecord, Stats
from resources.tasks import Task

BLOCK_ROWS = 1 << 20
SALTS = np.array([0, 0x9E3779B97F4A7C15], np.uint64)  # make two hashes of one
FIXED_MEMBER_BYTES = 540  # of a member in a Polars frame, without its signature and shingles
WORKING_SPACE = 4  # memory that deciding takes, over the members that are decided at once

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SignedFiles:
    """A signed part: its ledger entry and its files."""

    entry: LedgerEntry
    signatures: PublishedFile
    documents: PublishedFile  # the filtered part that was signed
    text_bytes: int


@dataclass(frozen=True)
class RangeInputs:
    """Inputs of the first pass: all pairs, and the row ids of the range, `first` up to `stop`."""

    pairs: PassFiles
    first: int
    stop: int
    block_rows: int


@dataclass(frozen=True)
class PairInputs:
    """Inputs of the second pass: merged pairs, and the digests of the last run, if there are any.

    `numbers`, int64 [p, 2], are id and rows of each part, ascending.
    """

    numbers: NDArray[np.int64]
    pairs: PassFiles
    digests: PublishedFile | None


def members_between(files: PassFiles, first: int, stop: int) -> Components:
    """Read the members with row ids from `first` up to `stop`."""
    (file,) = files.read()
    count = file.bytes // 17  # two words and a flag
    kinds = ((np.uint64, 0), (np.uint64, 8), (np.bool_, 16))
    arrays = [PublishedArray(file, dtype, count, offset * count) for dtype, offset in kinds]
    edges = np.array([first, stop], np.uint64)
    start, end = arrays[0].mapped.searchsorted(edges).tolist()
    return Components(*(array.read(start, end) for array in arrays))


def members_of_part(files: PassFiles, number: int) -> Components:
    """Read the members of a part."""
    first, stop = row_ids_of(np.array([number, number + 1]), np.zeros(2, np.int64)).tolist()
    return members_between(files, first, stop)


@dataclass(frozen=True)
class SplitInputs:
    """Inputs of the third pass over a range: its merged pairs, all members, and ids of parts."""

    pairs: PublishedFile
    counts: PublishedFile
    members: PassFiles


@dataclass(frozen=True)
class GatherInputs:
    """Inputs of the fourth pass over a signed part."""

    part: SignedFiles
    members: PassFiles
    config: DedupConfig


def merge_pairs(task: Task[RangeInputs]) -> list[PartRecord]:
    """First pass: merge the pairs of a range from all files; each is kept once."""
    inputs, writer = task.payload, task.writer()
    runs = [pairs_between(file, inputs.first, inputs.stop) for file in inputs.pairs.read()]
    temporary, final = writer.new_file("merged", "bin")
    with temporary.open("wb") as file:
        for block in unique_blocks(runs, inputs.block_rows):
            block.tofile(file)
    writer.add_file("merged", temporary, final, 0)
    return [writer.publish(Stats())]


def find_members(task: Task[PairInputs]) -> list[PartRecord]:
    """Second pass: find all components, and which of them the last run decided."""
    inputs, writer = task.payload, task.writer()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=task.folder.folder) as folder:
        scratch, ids = Path(folder), inputs.numbers[:, 0]
        files = inputs.pairs.read()
        merged = (map_array(file.checked(), np.uint64, (file.bytes // 16, 2)) for file in files)
        found = find_components(merged, (ids, inputs.numbers[:, 1]), scratch)
        digests = digest_components(found)
        now, before = (found.components, digests), read_digests(inputs.digests)
        is_known = known_components(now, before)[found.places]
        members = Components(found.row_ids, found.labels, is_known)
        of_parts = [members.of_part(number) for number in ids.tolist()]
        counts = np.array([len(part.row_ids) for part in of_parts], np.int64)
        to_decide = np.array([(~part.is_known).sum() for part in of_parts], np.int64)
        writer.write_arrays("counts", ids, counts, to_decide)
        writer.write_arrays("components", found.row_ids, found.labels, is_known)
        writer.write_arrays("digests", found.components, digests[:, 0], digests[:, 1])
        return [writer.publish(Stats())]


def split_range(inputs: SplitInputs) -> Made:
    """Third pass: sort the pairs of a range by the hash of their component."""
    parts, number, _ = np.fromfile(inputs.counts.checked(), np.int64).reshape(3, -1)
    pairs = np.fromfile(inputs.pairs.checked(), np.uint64).reshape(-1, 2)
    pairs = live_pairs(pairs, parts[number > 0])
    first, last = pairs[[0, -1], 0].tolist() if len(pairs) else (0, 0)
    return Made({"pairs": undecided_pairs(pairs, members_between(inputs.members, first, last + 1))})


def read_digests(file: PublishedFile | None) -> tuple[Words, Words]:
    """Read the labels and the digests of the components of the last run."""
    if file is None:
        return np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    table = np.fromfile(file.checked(), np.uint64).reshape(3, -1)
    return table[0], np.ascontiguousarray(table[1:].T)


def digest_components(found: Found) -> Words:
    """Digest the members of each component.

    Returns uint64 [c, 2]: sums of two hashes of each member, equal for equal members in any order.
    """
    sums = np.zeros((len(found.components), 2), np.uint64)
    for start in range(0, len(found.row_ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        for column in range(2):
            hashes = mix64(found.row_ids[block] ^ SALTS[column])
            np.add.at(sums[:, column], found.places[block], hashes)
    return sums


def known_components(now: tuple[Words, Words], before: tuple[Words, Words]) -> NDArray[np.bool_]:
    """Mark the components, bool [c], with the digest that they had in the last run.

    `now` and `before` are labels, ascending, and digests, as of `digest_components`.
    """
    if len(before[0]) == 0:
        return np.zeros(len(now[0]), np.bool_)
    places = np.minimum(np.searchsorted(before[0], now[0]), len(before[0]) - 1)
    return np.asarray((before[0][places] == now[0]) & (before[1][places] == now[1]).all(axis=1))


def member_bytes(config: DedupConfig, text_bytes: float) -> int:
    """Return the bytes of a member in memory; `text_bytes` is the mean length of a text."""
    # 8 bytes a shingle, twice: one begins at every fifth byte, a word, or at every byte.
    per_byte = 3 if config.shingle == "words" else 16
    shingles = per_byte * text_bytes if config.compares_shingles else 0
    return FIXED_MEMBER_BYTES + 4 * config.num_values + int(shingles)


def gather_members(inputs: GatherInputs) -> Made:
    """Fourth pass: gather the members of a part to decide on, by the hash of their component."""
    members = members_of_part(inputs.members, inputs.part.entry.id)
    row_ids, hashes = members.row_ids[~members.is_known], mix64(members.labels[~members.is_known])
    order = np.argsort(hashes)
    gathered = read_members(inputs.part, row_ids[order], inputs.config)
    return Made({"members": gathered.with_columns(hash=pl.Series(hashes[order]))})


def read_members(part: SignedFiles, row_ids: Words, config: DedupConfig) -> pl.DataFrame:
    """Read members of one part.

    Returns the columns that `decide` reads, and `shingles` List(UInt64) if texts are compared.
    """
    rows = rows_of(row_ids)
    members = map_arrow(part.signatures.checked())[rows].with_columns(
        ref=pl.Series(row_ids),
        source=pl.lit(part.entry.source),
        generation=generations_of(part.entry, rows),
    )
    if not config.reads_candidates:
        return members
    texts = read_texts(part.documents.checked(), members["doc_id"], rows)
    return members.hstack(text_facts(texts, members["num_words"], config))


def read_texts(documents: Path, doc_ids: pl.Series, rows: NDArray[np.uint32]) -> pl.Series:
    """Read the texts of the documents with these ids, which are in these rows of a file.

    They are asked for by id: Polars then skips the pages of texts without one of them.
    """
    wanted = pl.col("doc_id").is_in(doc_ids.implode())
    in_file_order = pl.scan_parquet(documents).filter(wanted).select("text").collect()["text"]
    return in_file_order[rows.argsort().argsort()].fill_null("")


def generations_of(entry: LedgerEntry, rows: NDArray[np.uint32]) -> pl.Series:
    """Return the generation of each of a part's rows, UInt32."""
    stops, generations = np.array(entry.generations, np.int64).T
    return pl.Series(generations[np.searchsorted(stops, rows, side="right")], dtype=pl.UInt32)


def list_buffers(series: pl.Series) -> tuple[Words, NDArray[np.int64]]:
    """Return values and offsets, int64 [n + 1], of a List(UInt64): undo `list_series`."""
    array: Any = series.rechunk().to_arrow()
    return as_numpy(array.values), as_numpy(array.offsets)
