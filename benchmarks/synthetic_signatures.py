"""Signed parts as the stage `signatures` publishes them, of as many documents as one likes.

Purpose: to measure the index and clustering past what real text there is. A quarter of the
documents is in clusters of the sizes 2 and more, of which size k has a share of k^-2.5 (mean 4.5,
half of them pairs, the largest of up to 5,000), which lie anywhere in the corpus: more copies than
in the documents of docs/dedup.md (11 % in clusters, 93 % of them pairs), as in a crawl. Two in five
members are exact copies (of those: 27 % of the pairs); the others share 70 to 100 % of their
signature values with the first member. Parts have 100,000 documents.
Trade-off: values are hashes and no minima, so that a document costs 0.4 microseconds and no text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import gcd

import numpy as np
import polars as pl
import pyarrow as pa
from dedup_stages import publish
from numba import njit, uint32, uint64
from numpy.typing import NDArray

from assets.deduped.kernels.sorted_runs import sort_by_key
from assets.text.kernels.hashing import join
from resources.corpus import Corpus
from resources.settings.dedup import DedupConfig
from resources.store.records import PartRecord, Stats, fingerprint_of
from resources.tasks import Plan, Task

PART_DOCUMENTS = 100_000
SOURCES = tuple(f"synthetic-{number}" for number in range(4))
CLUSTERED, EXPONENT, LARGEST = 0.25, 2.5, 5000
EXACT, LEAST_SHARE = 0.4, 0.7
TEXT_BYTES = 3000  # of a document, as far as plans ask
_STEP, _FIRST = 0.6180339887, 12345  # positions of neighbours lie far apart

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Layout:
    """Where the clusters are among `total` positions: first come the documents without copies."""

    total: int
    singles: int
    starts: NDArray[np.int64]  # first position of each cluster

    def positions(self, first: int, stop: int) -> NDArray[np.int64]:
        """Positions of the documents with these numbers: a bijection that scatters clusters."""
        step = int(self.total * _STEP) | 1
        while gcd(step, self.total) > 1:
            step += 2
        return (np.arange(first, stop) * step + _FIRST) % self.total


def layout(total: int, *, seed: int = 1) -> Layout:
    """Clusters of Zipf-like sizes over a quarter of `total` documents."""
    sizes = np.arange(2, min(LARGEST, max(3, total // 50)))
    shares = sizes**-EXPONENT / (sizes**-EXPONENT).sum()
    wanted = int(total * CLUSTERED)
    count = int(wanted / (sizes * shares).sum() * 1.5) + 1
    drawn = np.random.default_rng(seed).choice(sizes, count, p=shares)
    ends = np.cumsum(drawn)
    used = ends[ends <= wanted]
    singles = total - (int(used[-1]) if len(used) else 0)
    starts = np.concatenate([[0], used[:-1]]) if len(used) else np.empty(0, np.int64)
    return Layout(total, singles, starts + singles)


@njit("float64(uint64)", cache=True, forceinline=True)
def _unit(value: int) -> float:
    """A hash as a number from 0 to 1."""
    return (value >> uint64(11)) / 9007199254740992.0


@njit(cache=True)
def make_documents(
    positions: NDArray[np.int64], singles: int, starts: NDArray[np.int64], bands: int, rows: int
) -> tuple[Words, NDArray[np.uint32], Words]:
    """(text hashes [n, 2], signatures [n, bands * rows], keys [n, 1 + bands]) at positions."""
    count, num_values = len(positions), bands * rows
    hashes = np.empty((count, 2), np.uint64)
    values = np.empty((count, num_values), np.uint32)
    keys = np.empty((count, 1 + bands), np.uint64)
    for i in range(count):
        own = first = positions[i]
        if own >= singles:
            first = starts[np.searchsorted(starts, own, side="right") - 1]
        draw, degree = _unit(join(uint64(own), uint64(1))), _unit(join(uint64(own), uint64(2)))
        is_exact = own == first or draw < EXACT
        share = 1.0 if is_exact else LEAST_SHARE + (1.0 - LEAST_SHARE) * degree
        text = first if is_exact else own
        hashes[i, 0], hashes[i, 1] = join(uint64(text), uint64(3)), join(uint64(text), uint64(4))
        keys[i, 0] = join(hashes[i, 0], uint64(5))
        for band in range(bands):
            key = uint64(band)
            for k in range(band * rows, (band + 1) * rows):
                is_shared = is_exact or _unit(join(uint64(own), uint64(k + 1000))) < share
                value = join(uint64(first if is_shared else own), uint64(k + 10))
                values[i, k] = uint32(value >> uint64(32))
                key = join(key, uint64(values[i, k]))
            keys[i, 1 + band] = key
    return hashes, values, keys


def part_tables(
    where: Layout, first: int, stop: int, config: DedupConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `signatures` and `keys` of the documents with these numbers."""
    positions = where.positions(first, stop)
    made = make_documents(positions, where.singles, where.starts, config.bands, config.rows)
    hashes, values, keys = made
    count = stop - first
    numbers = np.arange(first, stop, dtype=np.uint64)
    ids = pl.Series(numbers).cast(pl.String).str.zfill(32)
    digests = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(hashes)])
    facts = pl.DataFrame(
        {
            "doc_id": ids,
            "num_chars": pl.Series(positions % 5000 + 500, dtype=pl.UInt32),
            "num_words": pl.Series(positions % 5000 // 6 + 80, dtype=pl.UInt32),
            "text_hash": pl.Series(digests.cast(pa.large_binary())),
            "group": pl.zeros(count, pl.UInt64, eager=True),
            "quality": pl.Series([None], dtype=pl.Float64).extend_constant(None, count - 1),
            "date": pl.Series([None], dtype=pl.Int64).extend_constant(None, count - 1),
            "signature": pl.Series(values, dtype=pl.Array(pl.UInt32, config.num_values)),
        }
    )
    of_row = np.repeat(np.arange(count, dtype=np.uint64), keys.shape[1])
    sorted_keys, sorted_rows = sort_by_key(keys.ravel(), of_row, 0)
    return facts, pl.DataFrame({"key": sorted_keys, "row": sorted_rows.astype(np.uint32)})


def publish_documents(corpus: Corpus, where: Layout, documents: int) -> None:
    """Publish the first `documents` documents as filtered and signed parts of all sources.

    Parts that are published are left as they are: call it again with more documents for a night.
    """
    from assets.deduped.deduped_records import SignaturesProvenance
    from assets.deduped.signatures_asset import STAGE as SIGNATURES
    from assets.filtered.asset import STAGE as FILTERED
    from assets.filtered.filtered_records import FilteredProvenance

    config = corpus.settings.dedup
    firsts = range(0, documents, PART_DOCUMENTS)
    spans = [(first, min(first + PART_DOCUMENTS, documents)) for first in firsts]
    for number, source in enumerate(SOURCES):
        own = spans[number :: len(SOURCES)]
        texts = [part_task(corpus, "filtered", source, span) for span in own]
        filtering = Plan(texts, {}, FilteredProvenance(""))
        filtered = publish(corpus, FILTERED, source, filtering, publish_texts)
        about = SignaturesProvenance(filtered.fingerprint)
        tasks = [part_task(corpus, "signatures", source, span) for span in own]
        signed = Plan(tasks, config.signing(), about)
        publish(corpus, SIGNATURES, source, signed, partial(sign, where=where, config=config))


def part_task(corpus: Corpus, stage: str, source: str, span: tuple[int, int]) -> Task:
    """The task that publishes the documents with these numbers."""
    name = f"{span[0]:012d}"
    fingerprint = fingerprint_of("synthetic", stage, span)
    return Task(corpus.store.root, stage, source, name, fingerprint, 0, {"span": span})


def part_stats(task: Task) -> Stats:
    """What a part says of its documents."""
    first, stop = task.payload["span"]
    count, size = stop - first, (stop - first) * TEXT_BYTES
    return Stats(count, count, bytes=size, text_bytes=size)


def publish_texts(task: Task) -> list[PartRecord]:
    """A filtered part without rows: nobody reads the texts."""
    writer = task.writer()
    writer.write_parquet("documents", pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String}))
    return [writer.publish(part_stats(task))]


def sign(task: Task, *, where: Layout, config: DedupConfig) -> list[PartRecord]:
    """A signed part."""
    facts, keys = part_tables(where, *task.payload["span"], config)
    writer = task.writer()
    writer.write_arrow("signatures", facts)
    writer.write_arrays("keys", keys["key"].to_numpy(), keys["row"].to_numpy())
    return [writer.publish(part_stats(task))]
