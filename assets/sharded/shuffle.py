"""Shuffle a whole source into shards of a target size, in two streaming passes.

Every sequence of a source's bucket has a place in one seeded permutation of that bucket. Pass one
(scatter) sends each sequence of a part to its shard's pile; pass two (gather) reads one shard's
piles and puts them in order. Memory: a part in the first pass, a shard in the second, whatever the
size of the source. A shuffle buffer of 10,000 samples leaves data stored by source unmixed (batch
mixture chi2/dof 471, where 1 is random); a whole permutation reaches 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from corpus_loader.permutation import derive_key, permute
from resources.settings.buckets import BucketConfig, bucket_names, stored_length
from resources.settings.shards import ShardConfig


class BucketSize(NamedTuple):
    """Sequences of a bucket, and the tokens stored for them, padding included."""

    sequences: int
    tokens: int


@dataclass(frozen=True)
class BucketShards:
    """Shards of one bucket of one source: `num_shards` from shard number `first_shard` on.

    `bucket` is the bucket's index, `key` that of its permutation.
    """

    bucket: int
    name: str
    num_sequences: int
    first_shard: int
    num_shards: int
    key: int


def stored_buckets(
    sequences: Mapping[str, int], tokens: Mapping[str, int], bucketing: BucketConfig
) -> dict[str, BucketSize]:
    """Return the size of each bucket, by name in bucket order, for `plan_shards`.

    In: the counts of `bucketed` by bucket name, tokens without padding; a bucket may be missing.
    """
    buckets = {}
    for index, name in enumerate(bucket_names(bucketing)):
        count, length = sequences.get(name, 0), stored_length(bucketing, index)
        buckets[name] = BucketSize(count, tokens.get(name, 0) if length is None else count * length)
    return buckets


def common_length(plans: list[BucketShards], bucketing: BucketConfig) -> int | None:
    """Return the stored tokens of every sequence; None if they differ, or without sequences."""
    lengths = {stored_length(bucketing, plan.bucket) for plan in plans if plan.num_sequences}
    return lengths.pop() if len(lengths) == 1 else None


def plan_shards(
    source: str, buckets: Mapping[str, BucketSize], token_bytes: int, config: ShardConfig
) -> list[BucketShards]:
    """Plan the shards of each bucket, given by name in bucket order; an empty bucket gets none."""
    plans: list[BucketShards] = []
    first = 0
    for index, (name, size) in enumerate(buckets.items()):
        wanted = -(-size.tokens * token_bytes // config.target_bytes)
        num_shards = min(max(wanted, 1), size.sequences)
        key = derive_key(config.seed, "shard", source, name)
        plans.append(BucketShards(index, name, size.sequences, first, num_shards, key))
        first += num_shards
    return plans


def count_shards(plans: list[BucketShards]) -> int:
    """Count the shards of all buckets."""
    return sum(plan.num_shards for plan in plans)


def scatter(
    sequences: pl.DataFrame, first_rows: list[int], plans: list[BucketShards]
) -> pl.DataFrame:
    """Give every sequence its shard and its position in the bucket's permutation.

    In: a part sorted by `bucket`; `first_rows[b]` is the number of sequences of bucket b in earlier
    parts. Out: the same rows with shard UInt32 and position UInt64, sorted by both. Raises
    ValueError if a bucket has more sequences than its plan.
    """
    buckets = sequences["bucket"].to_numpy()
    positions = np.zeros(sequences.height, np.uint64)
    shards = np.zeros(sequences.height, np.uint32)
    for plan in plans:
        start, stop = np.searchsorted(buckets, [plan.bucket, plan.bucket + 1])
        if start == stop:
            continue
        indices = np.arange(stop - start) + first_rows[plan.bucket]
        position = permute(indices, size=plan.num_sequences, key=plan.key)
        positions[start:stop] = position
        shards[start:stop] = plan.first_shard + shard_of(position, plan)
    placed = sequences.with_columns(shard=pl.Series(shards), position=pl.Series(positions))
    return placed.sort("shard", "position")


def shard_of(
    position: np.ndarray[tuple[int], np.dtype[np.uint64]], plan: BucketShards
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Return the shard number inside the bucket: runs of positions, equal to within one."""
    edges = np.arange(1, plan.num_shards, dtype=np.uint64) * np.uint64(plan.num_sequences)
    starts = -(-edges.astype(np.int64) // plan.num_shards)
    return np.searchsorted(starts, position.astype(np.int64), side="right").astype(np.uint32)


def gather(piles: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the sequences of one shard's piles in permuted order, without the scatter's columns."""
    return pl.concat(piles).sort("position").select("num_tokens", "tokens", "spans")
