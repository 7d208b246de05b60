"""The order of a phase whose batches are of one bucket each, computed and never stored.

    position -> block of `batch_samples` -> bucket, and number of its block
                                                                (weighted_round_robin.py)
             -> position in the order of that bucket by itself                  (order.py)
             -> row of its shards -> row of all shards of the source

The blocks of the buckets take turns, so that every prefix of blocks has each bucket within
`LARGEST_ERROR` blocks of its share. What a bucket has beyond whole blocks comes after all
blocks, the shortest bucket first: so every row is drawn, the blocks stay aligned, and only batches
at the edges of these rests hold two lengths.

A source's samples are shared out to its buckets by their rows, each to within
`LARGEST_ERROR` samples of its share, and exactly in whole epochs. Each bucket of a source has
epochs of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from corpus_loader.interleave import Int64s, unique
from corpus_loader.order import (
    SEED_BITS,
    Indices,
    PhaseOrder,
    Samples,
    SourceOrder,
    SourceShape,
    as_positions,
)
from corpus_loader.permutation import derive_key
from corpus_loader.weighted_round_robin import Turns

FIRST_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class BucketedSource:
    """A source in a phase, with the bucket of each of its shards."""

    shape: SourceShape
    shard_buckets: tuple[str, ...]

    @cached_property
    def buckets(self) -> list[str]:
        """Buckets that have rows, the shortest first."""
        shards = zip(self.shard_buckets, self.shape.shard_rows, strict=True)
        return by_length(bucket for bucket, rows in shards if rows)

    @cached_property
    def turns(self) -> Turns:
        """The turns of the buckets in an epoch of the source."""
        return Turns([sum(self.rows_of(bucket)) for bucket in self.buckets])

    def shards_of(self, bucket: str) -> list[int]:
        """Return the numbers of a bucket's shards."""
        return [number for number, name in enumerate(self.shard_buckets) if name == bucket]

    def rows_of(self, bucket: str) -> tuple[int, ...]:
        """Return the rows of each shard of a bucket."""
        return tuple(self.shape.shard_rows[number] for number in self.shards_of(bucket))

    def first_rows_of(self, bucket: str) -> list[int]:
        """Return the first row of each shard of a bucket, over all shards of the source."""
        first: list[int] = (np.cumsum(self.shape.shard_rows) - self.shape.shard_rows).tolist()
        return [first[number] for number in self.shards_of(bucket)]

    @cached_property
    def samples(self) -> dict[str, int]:
        """Samples that a phase draws of each bucket."""
        if not self.shape.samples:
            return {}
        epochs, rest = divmod(self.shape.samples, self.shape.rows)
        some = self.turns.before(rest)
        return {
            bucket: epochs * sum(self.rows_of(bucket)) + some[number]
            for number, bucket in enumerate(self.buckets)
        }

    def shape_of(self, bucket: str) -> SourceShape:
        """Return one bucket of the source as a source by itself."""
        return SourceShape(self.shape.name, self.samples.get(bucket, 0), self.rows_of(bucket))


@dataclass(frozen=True)
class BucketedSourceOrder:
    """The order in which a phase of one-bucket batches counts the samples of one source.

    After any number of samples, each bucket has given as many as the phase draws of it.
    """

    seed: int
    window_shards: int | None
    source: BucketedSource

    def rows(self, index: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return (row over all shards, epoch) of the source's index-th samples, over epochs."""
        source = self.source
        epoch, place = np.divmod(np.asarray(index, np.int64), source.shape.rows)
        which, number = source.turns.lookup(place)
        row = np.empty_like(place)
        for at, bucket in enumerate(source.buckets):
            mine, shape = np.flatnonzero(which == at), source.shape_of(bucket)
            if not mine.size:
                continue
            order = SourceOrder(bucket_seed(self.seed, bucket), self.window_shards, shape)
            inside = order.rows(epoch[mine] * shape.rows + number[mine])[0]
            row[mine] = RowsOfShards.of([source], bucket).find(inside)
        return row, epoch


@dataclass(frozen=True)
class RowsOfShards:
    """Rows of a bucket's shards, source after source, as rows of all shards of their source."""

    starts: Int64s
    first_rows: Int64s

    @classmethod
    def of(cls, sources: Iterable[BucketedSource], bucket: str) -> RowsOfShards:
        """Return those of a bucket."""
        both = [(source.rows_of(bucket), source.first_rows_of(bucket)) for source in sources]
        rows = np.array([count for counts, _ in both for count in counts], np.int64)
        first_rows = np.array([first for _, firsts in both for first in firsts], np.int64)
        return cls(np.cumsum(rows) - rows, first_rows)

    def find(self, row: Int64s) -> Int64s:
        """Return rows of sources for rows of the bucket, numbered over all its shards."""
        shard = np.searchsorted(self.starts, row, side="right") - 1
        found: Int64s = self.first_rows[shard] + row - self.starts[shard]
        return found


@dataclass(frozen=True)
class BucketOrder:
    """One bucket of a phase: its order by itself, its shards, and their first row by source."""

    order: PhaseOrder
    rows: RowsOfShards
    first_rows: Int64s

    def samples(self, positions: Int64s) -> Samples:
        """Return the samples at positions of the bucket's order, with rows of their sources."""
        found = self.order.samples(positions)
        row = self.rows.find(self.first_rows[found.source] + found.row)
        return Samples(found.source, row, found.epoch)


@dataclass(frozen=True)
class OneBucketOrder:
    """The order of a phase whose blocks of `batch_samples` are of one bucket each.

    Raises ValueError for a phase that draws samples of a source without rows.
    """

    seed: int
    batch_samples: int
    window_shards: int | None
    bucketed: tuple[BucketedSource, ...]

    def __post_init__(self) -> None:
        """Refuse an impossible order."""
        PhaseOrder(self.seed, self.batch_samples, self.window_shards, self.sources)

    def __len__(self) -> int:
        """Samples of one epoch of the phase."""
        return sum(source.samples for source in self.sources)

    @property
    def sources(self) -> tuple[SourceShape, ...]:
        """The sources of the phase."""
        return tuple(source.shape for source in self.bucketed)

    @cached_property
    def buckets(self) -> list[str]:
        """Buckets that samples are drawn of, the shortest first."""
        drawn = [source.samples.items() for source in self.bucketed]
        return by_length(bucket for source in drawn for bucket, count in source if count)

    @cached_property
    def orders(self) -> list[BucketOrder]:
        """The order of each bucket by itself."""
        return [self.bucket_order(bucket) for bucket in self.buckets]

    @cached_property
    def blocks(self) -> Turns:
        """The turns of the buckets' whole blocks."""
        return Turns([len(each.order) // self.batch_samples for each in self.orders])

    @cached_property
    def rests(self) -> Int64s:
        """Offsets [buckets + 1] of the rests after the blocks."""
        rests = [len(each.order) % self.batch_samples for each in self.orders]
        return np.cumsum([0, *rests], dtype=np.int64)

    def bucket_order(self, bucket: str) -> BucketOrder:
        """Return the order of one bucket by itself."""
        shapes = tuple(source.shape_of(bucket) for source in self.bucketed)
        first_rows = np.cumsum([0, *(shape.rows for shape in shapes)], dtype=np.int64)
        return BucketOrder(
            PhaseOrder(
                bucket_seed(self.seed, bucket), self.batch_samples, self.window_shards, shapes
            ),
            RowsOfShards.of(self.bucketed, bucket),
            first_rows,
        )

    def samples(self, positions: npt.ArrayLike) -> Samples:
        """Return the samples at positions; position p is p mod N of the phase's epoch p // N.

        Raises ValueError for a position below 0, and for any if the phase has no samples.
        """
        wanted = as_positions(positions, len(self))
        if wanted.size == 0:
            return Samples(np.empty(0, np.uint16), wanted, wanted)
        epoch, place = np.divmod(wanted, len(self))
        which, inside = self.lookup(place)
        source, row = np.empty(wanted.size, np.uint16), np.empty_like(place)
        source_epoch = np.empty_like(place)
        for number, bucket in enumerate(self.orders):
            mine = np.flatnonzero(which == number)
            found = bucket.samples(epoch[mine] * len(bucket.order) + inside[mine])
            source[mine], row[mine], source_epoch[mine] = found.source, found.row, found.epoch
        return Samples(source, row, source_epoch)

    def lookup(self, place: Int64s) -> tuple[Indices, Int64s]:
        """Return (bucket, position in its order) of places in an epoch of the phase."""
        size, whole = self.batch_samples, self.blocks.total * self.batch_samples
        which, inside = np.empty(place.size, np.intp), np.empty_like(place)
        blocks, rests = np.flatnonzero(place < whole), np.flatnonzero(place >= whole)
        if blocks.size:
            block, slot = np.divmod(place[blocks], size)
            names, at = unique(block)
            bucket, number = self.blocks.lookup(names)
            which[blocks], inside[blocks] = bucket[at], number[at] * size + slot
        bucket = np.searchsorted(self.rests, place[rests] - whole, side="right") - 1
        ends = np.array([len(each.order) for each in self.orders], np.int64)
        which[rests] = bucket
        inside[rests] = ends[bucket] - (self.rests[bucket + 1] - (place[rests] - whole))
        return which, inside


def by_length(buckets: Iterable[str]) -> list[str]:
    """Return distinct buckets by the first number of their names, the shortest tokens of a row."""
    first = {bucket: FIRST_NUMBER.search(bucket) for bucket in buckets}
    return sorted(first, key=lambda name: (int(found[0]) if (found := first[name]) else 0, name))


def bucket_seed(seed: int, bucket: str) -> int:
    """Derive the seed of a bucket, so that buckets with as many rows are permuted differently."""
    return derive_key(seed, "bucket", bucket) >> (64 - SEED_BITS)
