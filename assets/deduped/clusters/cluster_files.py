"""Decide clusters batch by batch, and carry over decisions of the last run.

Two batches are decided at a time; intermediate files go to a scratch folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from assets.deduped.clusters.candidate_files import (
    SignedFiles,
    Words,
    gather_batches,
    list_buffers,
    member_bytes,
    read_batch,
)
from assets.deduped.clusters.component_files import Components, split_pairs
from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA, decide
from assets.deduped.index.row_ids import rows_of, slice_of_part
from resources.settings.dedup import DedupConfig
from resources.store.published import PublishedFile

TABLE_SCHEMA = {"row": pl.UInt32, **{k: v for k, v in CLUSTER_SCHEMA.items() if k != "ref"}}
BATCHES_IN_MEMORY = 8  # memory over the members of a batch: two at a time, with working space


@dataclass(frozen=True)
class DecidedPart:
    """A part of the last run, its table, and the number of its rows that had a candidate."""

    name: str
    fingerprint: str
    table: PublishedFile
    candidates: int


@dataclass(frozen=True)
class Decided:
    """The last run: its digests, and its parts by ledger id; None and {} if unusable."""

    digests: PublishedFile | None
    parts: dict[int, DecidedPart]

    def read_digests(self) -> tuple[Words, Words]:
        """Read labels and digests of the components, as `digest_components` returned them."""
        if self.digests is None:
            return np.empty(0, np.uint64), np.empty((0, 2), np.uint64)
        table = np.fromfile(self.digests.checked(), np.uint64).reshape(3, -1)
        return table[0], np.ascontiguousarray(table[1:].T)


NOTHING_DECIDED = Decided(None, {})


def decide_batches(
    parts: Sequence[SignedFiles],
    pair_files: Sequence[Path],
    components: Components,
    config: DedupConfig,
    scratch: Path,
) -> list[pl.DataFrame]:
    """Decide every component that is not known; return a mapped frame per batch, sorted by ref."""
    to_decide = int((~components.is_known).sum())
    if to_decide == 0:
        return []
    text_bytes = sum(part.text_bytes for part in parts) / max(1, sum(p.entry.rows for p in parts))
    needed = to_decide * member_bytes(config, text_bytes) * BATCHES_IN_MEMORY
    batches = max(1, -(-needed // config.memory_bytes))
    numbers = np.array([part.entry.id for part in parts], np.int64)
    pairs = split_pairs(pair_files, numbers, components, batches, scratch, config.memory_bytes)
    members = gather_batches(parts, components, batches, config, scratch)
    with ThreadPoolExecutor(2) as pool:
        work = partial(decide_batch, config, scratch)
        return list(pool.map(work, range(batches), members, pairs))


def decide_batch(
    config: DedupConfig, scratch: Path, batch: int, member_files: list[Path], pairs: Path
) -> pl.DataFrame:
    """Decide one batch; map its decisions from a file."""
    if not member_files:
        return pl.DataFrame(schema=CLUSTER_SCHEMA)
    members = read_batch(member_files)
    shingles = list_buffers(members["shingles"]) if "shingles" in members.columns else None
    candidates = np.fromfile(pairs, np.uint64).reshape(-1, 2)
    path = scratch / f"decisions-{batch}.arrow"
    decide(members.drop("shingles", strict=False), candidates, config, shingles).write_ipc(path)
    return pl.read_ipc(path)


def rows_of_part(number: int, decisions: list[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield the decisions on documents of one part, with rows in place of row ids."""
    yield pl.DataFrame(schema=TABLE_SCHEMA)
    for frame in decisions:
        of_part = frame[slice_of_part(frame["ref"].to_numpy(), number)]
        rows = pl.Series(rows_of(of_part["ref"].to_numpy()))
        yield of_part.with_columns(row=rows).select(list(TABLE_SCHEMA))


def known_rows(members: Components, before: DecidedPart | None) -> Iterator[pl.DataFrame]:
    """Yield the rows of a part in the last run whose components have not changed."""
    if before is not None:
        rows = pl.Series(rows_of(members.row_ids[members.is_known]))
        table = pl.read_parquet(before.table.checked())
        yield table.filter(pl.col("row").is_in(rows.implode()))
