"""Find the members of candidate components, and gather them from signed parts.

The first pass, one task, finds the components; the second publishes, per signed part, the members
to decide on, sorted by the batch of their component. A batch holds whole components, as many as fit
the memory. A component with the same members as in the last run is not gathered again: the last
decision still holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.component_files import (
    Components,
    batch_of,
    block_rows_of,
    find_components,
    split_pairs,
)
from assets.deduped.index.band_index import rows_of
from assets.deduped.index.ledger import LedgerEntry
from assets.text.list_columns import as_numpy
from corpus_loader.permutation import mix64
from resources.passes import PassFiles
from resources.settings.dedup import DedupConfig
from resources.store.disk import TEMPORARY_PREFIX
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedArray, PublishedFile
from resources.store.records import PartRecord, Stats
from resources.tasks import SIMULTANEOUS, Task

BLOCK_ROWS = 1 << 20
SALTS = np.array([0, 0x9E3779B97F4A7C15], np.uint64)  # make two hashes of one
FIXED_MEMBER_BYTES = 540  # of a member in a Polars frame, without its signature and shingles
WORKING_SPACE = 4  # memory that deciding takes, over the members of a batch

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SignedFiles:
    """A signed part: its ledger entry and its files."""

    entry: LedgerEntry
    signatures: PublishedFile
    documents: PublishedFile  # the filtered part that was signed
    text_bytes: int


@dataclass(frozen=True)
class PairInputs:
    """Inputs of the first pass: all pairs, and the digests of the last run, if there are any.

    `numbers`, int64 [p, 2], are id and rows of each part, ascending; `text_bytes` the mean length
    of a text.
    """

    numbers: NDArray[np.int64]
    pairs: Sequence[PublishedFile]
    digests: PublishedFile | None
    text_bytes: float
    config: DedupConfig


class BatchNumbers(msgspec.Struct, frozen=True):
    """Number of batches in which the members are decided; 0 if all are known."""

    batches: int


@dataclass(frozen=True)
class PartMembers:
    """The place of a part's members in the file of all members, and how many are to be decided."""

    files: PassFiles
    start: int
    stop: int
    to_decide: int

    @property
    def count(self) -> int:
        """Number of the part's documents with a candidate."""
        return self.stop - self.start

    def read(self) -> Components:
        """Read the part's members."""
        (file,) = self.files.read()
        count = file.bytes // 17  # two words and a flag
        row_ids, labels, is_known = (
            PublishedArray(file, dtype, count, offset * count).read(self.start, self.stop)
            for dtype, offset in ((np.uint64, 0), (np.uint64, 8), (np.bool_, 16))
        )
        return Components(row_ids, labels, is_known)


@dataclass(frozen=True)
class GatherInputs:
    """Inputs of the second pass over a signed part."""

    part: SignedFiles
    members: PartMembers
    batches: int
    config: DedupConfig


def find_members(task: Task[PairInputs]) -> list[PartRecord]:
    """First pass: find all components, and the pairs of each batch of those not known."""
    inputs, writer = task.payload, task.writer()
    block_rows = block_rows_of(inputs.config.memory_bytes)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=task.folder.folder) as folder:
        scratch, ids = Path(folder), inputs.numbers[:, 0]
        pairs = [file.checked() for file in inputs.pairs]
        part_rows = ids, inputs.numbers[:, 1]
        row_ids, labels = find_components(pairs, part_rows, scratch, block_rows)
        digests = digest_components(row_ids, labels, scratch)
        is_known = known_members(labels, digests, read_digests(inputs.digests))
        members = Components(row_ids, labels, is_known)
        of_parts = [members.of_part(number) for number in ids.tolist()]
        counts = np.array([len(part.row_ids) for part in of_parts], np.int64)
        to_decide = np.array([(~part.is_known).sum() for part in of_parts], np.int64)
        writer.write_arrays("counts", ids, counts, to_decide)
        writer.write_arrays("components", row_ids, labels, is_known)
        writer.write_arrays("digests", digests[0], digests[1][:, 0], digests[1][:, 1])
        batches = count_batches(int(to_decide.sum()), inputs)
        paths = [scratch / f"batch_{batch:06}.pairs" for batch in range(batches)]
        if paths:
            split_pairs(pairs, ids, members, paths, block_rows)
        for batch, path in enumerate(paths):
            kind = f"pairs-{batch}"
            writer.add_file(kind, path, writer.new_file(kind, "bin")[1], 0)
        return [writer.publish(Stats(numbers=BatchNumbers(batches)))]


def count_batches(to_decide: int, inputs: PairInputs) -> int:
    """Return the number of batches, so that SIMULTANEOUS of them fit the memory."""
    of_members = to_decide * member_bytes(inputs.config, inputs.text_bytes)
    return -(-of_members * WORKING_SPACE * SIMULTANEOUS // inputs.config.memory_bytes)


def read_digests(file: PublishedFile | None) -> tuple[Words, Words]:
    """Read labels and digests of the components, as `digest_components` returned them."""
    if file is None:
        return np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    table = np.fromfile(file.checked(), np.uint64).reshape(3, -1)
    return table[0], np.ascontiguousarray(table[1:].T)


def digest_components(row_ids: Words, labels: Words, scratch: Path) -> tuple[Words, Words]:
    """Digest the members of each component.

    Returns labels, uint64 [c] ascending, and digests, uint64 [c, 2]: sums of two hashes of each
    member, equal for equal members in any order. The sums are kept in a file below `scratch`, 16
    bytes a member.
    """
    if len(row_ids) == 0:
        return np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
    sums = np.memmap(scratch / "digests", np.uint64, "w+", shape=(len(row_ids), 2))
    for start in range(0, len(row_ids), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        places = np.searchsorted(row_ids, labels[block])
        for column in range(2):
            np.add.at(sums[:, column], places, mix64(row_ids[block] ^ SALTS[column]))
    is_label = np.flatnonzero(row_ids == labels)
    return np.asarray(row_ids[is_label]), np.asarray(sums[is_label])


def known_members(
    labels: Words, now: tuple[Words, Words], before: tuple[Words, Words]
) -> NDArray[np.bool_]:
    """Mark the members, bool [n], whose component has the digest that it had in the last run.

    `now` and `before` are as `digest_components` returns them.
    """
    if len(before[0]) == 0 or len(labels) == 0:
        return np.zeros(len(labels), np.bool_)
    places = np.minimum(np.searchsorted(before[0], now[0]), len(before[0]) - 1)
    is_same = (before[0][places] == now[0]) & (before[1][places] == now[1]).all(axis=1)
    known = np.empty(len(labels), np.bool_)
    for start in range(0, len(labels), BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        known[block] = is_same[np.searchsorted(now[0], labels[block])]
    return known


def member_bytes(config: DedupConfig, text_bytes: float) -> int:
    """Return the bytes of a member in memory; `text_bytes` is the mean length of a text."""
    # 8 bytes a shingle, twice: one begins at every fifth byte, a word, or at every byte.
    per_byte = 3 if config.shingle == "words" else 16
    shingles = per_byte * text_bytes if config.compares_shingles else 0
    return FIXED_MEMBER_BYTES + 4 * config.num_values + int(shingles)


def gather_members(task: Task[GatherInputs]) -> list[PartRecord]:
    """Second pass: gather the members of a part whose component is not known, sorted by batch."""
    inputs, members = task.payload, task.payload.members.read()
    row_ids, labels = members.row_ids[~members.is_known], members.labels[~members.is_known]
    batches = batch_of(labels, inputs.batches).astype(np.uint32)
    order = np.argsort(batches, kind="stable")
    gathered = read_members(inputs.part, row_ids[order], inputs.config)
    writer = task.writer()
    writer.write_arrow("members", gathered.with_columns(batch=pl.Series(batches[order])))
    return [writer.publish(Stats())]


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
