"""Gather the members of candidate components from signed parts into batches on disk.

Clusters are decided from the signatures of their members, which may not fit the memory. They are
read part by part, in ingest order, and appended to the batch of their component, so that a batch
holds whole components. A component with the same members as in the last run is not gathered again:
the last decision still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.component_files import Components
from assets.deduped.clusters.components import batch_of
from assets.deduped.index.ledger import LedgerEntry
from assets.deduped.index.row_ids import rows_of
from corpus_loader.permutation import mix64
from resources.settings.dedup import DedupConfig
from resources.store.published import PublishedFile

BLOCK_ROWS = 1 << 20
SALTS = np.array([0, 0x9E3779B97F4A7C15], np.uint64)  # make two hashes of one
FIXED_MEMBER_BYTES = 540  # of a member in a Polars frame, without its signature and shingles

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SignedFiles:
    """A signed part: its ledger entry and its files."""

    entry: LedgerEntry
    signatures: PublishedFile
    documents: PublishedFile  # the filtered part that was signed
    text_bytes: int


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


def gather_batches(
    parts: Sequence[SignedFiles],
    components: Components,
    batches: int,
    config: DedupConfig,
    scratch: Path,
) -> list[list[Path]]:
    """Return the files of each batch's members (see `read_members`), ascending by row id."""
    files: list[list[Path]] = [[] for _ in range(batches)]
    held: list[pl.DataFrame] = []
    flush_bytes = max(1 << 20, config.memory_bytes // 16)
    for members in members_of_parts(parts, components, config):
        held.append(members)
        if sum(frame.estimated_size() for frame in held) >= flush_bytes:
            flush(held, files, scratch)
    flush(held, files, scratch)
    return files


def members_of_parts(
    parts: Sequence[SignedFiles], components: Components, config: DedupConfig
) -> Iterator[pl.DataFrame]:
    """Yield the members to decide on, part by part; two parts are read at the same time."""

    def read(part: SignedFiles) -> pl.DataFrame | None:
        return read_members(part, components, config)

    with ThreadPoolExecutor(2) as pool:
        for start in range(0, len(parts), 2):
            for members in pool.map(read, parts[start : start + 2]):
                if members is not None:
                    yield members


def read_members(
    part: SignedFiles, components: Components, config: DedupConfig
) -> pl.DataFrame | None:
    """Read the members of one part whose component is not known; None if there are none.

    Returns the columns that `decide` reads, and `shingles` List(UInt64) if texts are compared.
    """
    of_part = components.of_part(part.entry.id)
    is_new = ~of_part.is_known
    row_ids, labels = of_part.row_ids[is_new], of_part.labels[is_new]
    if len(row_ids) == 0:
        return None
    rows = rows_of(row_ids)
    members = pl.read_ipc(part.signatures.checked())[rows].with_columns(
        ref=pl.Series(row_ids),
        component=pl.Series(labels),
        source=pl.lit(part.entry.source),
        generation=generations_of(part.entry, rows),
    )
    if not config.reads_candidates:
        return members
    documents = pl.read_parquet(part.documents.checked(), columns=["text"])
    texts = documents["text"][rows].fill_null("")
    members = members.hstack(text_facts(texts, members["num_words"], config))
    if not config.compares_shingles:
        return members
    from assets.deduped.minhash.minhash import shingle_sets

    values, offsets = shingle_sets(texts, config)
    return members.with_columns(shingles=list_series(values, offsets))


def generations_of(entry: LedgerEntry, rows: NDArray[np.uint32]) -> pl.Series:
    """Return the generation of each of a part's rows, UInt32."""
    stops, generations = np.array(entry.generations, np.int64).T
    return pl.Series(generations[np.searchsorted(stops, rows, side="right")], dtype=pl.UInt32)


def list_series(values: Words, offsets: NDArray[np.int64]) -> pl.Series:
    """Make a List(UInt64) series whose item i is values[offsets[i] : offsets[i + 1]]."""
    import pyarrow as pa

    array = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
    series = pl.from_arrow(array)
    assert isinstance(series, pl.Series)
    return series


def list_buffers(series: pl.Series) -> tuple[Words, NDArray[np.int64]]:
    """Return values and offsets, int64 [n + 1], of a List(UInt64): undo `list_series`."""
    array: Any = series.rechunk().to_arrow()
    offsets = array.offsets.to_numpy()
    return array.values.to_numpy(), offsets


def flush(held: list[pl.DataFrame], files: list[list[Path]], scratch: Path) -> None:
    """Write the held members to a new file of each batch that has any of them; hold no more."""
    if not held:
        return
    members = pl.concat(held)
    held.clear()
    batches = batch_of(members["component"].to_numpy(), len(files))
    for batch in np.unique(batches):
        path = scratch / f"members-{batch}-{len(files[batch])}.arrow"
        members.filter(pl.Series(batches == batch)).write_ipc(path, compression="uncompressed")
        files[batch].append(path)


def read_batch(files: Sequence[Path]) -> pl.DataFrame:
    """Read the members of one batch, and remove its files."""
    members = pl.concat([pl.read_ipc(path) for path in files], rechunk=True)
    for path in files:
        path.unlink()
    return members
