"""Shuffle a whole source into shards of a target size, in two streaming passes.

Every sequence of a source's bucket has a place in one seeded permutation of that bucket. Pass one
(scatter) sends each sequence of a part to its shard's pile; pass two (gather) reads one shard's
piles and puts the sequences in order. Memory: a part in the first pass, a shard in the second,
whatever the size of the source. A shuffle buffer of 10,000 samples leaves data stored by source
unmixed (batch mixture chi2/dof 471, where 1 is random); a whole permutation reaches 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.sequences import ROW_COLUMNS, copy_sequences
from assets.text.list_columns import as_numpy, list_series
from corpus_loader.permutation import derive_key, permute
from resources.reused_array import NewArray
from resources.settings.buckets import bucket_length
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
    sequences: Mapping[str, int], tokens: Mapping[str, int], names: Sequence[str]
) -> dict[str, BucketSize]:
    """Return the size of each of the buckets `names`, in this order, for `plan_bucket_shards`.

    In: the counts of `bucketed` by bucket name, tokens without padding; a bucket may be missing.
    """
    buckets = {}
    for name in names:
        count, length = sequences.get(name, 0), bucket_length(name)
        buckets[name] = BucketSize(count, tokens.get(name, 0) if length is None else count * length)
    return buckets


def common_length(plans: list[BucketShards]) -> int | None:
    """Return the stored tokens of every sequence; None if they differ, or without sequences."""
    lengths = {bucket_length(plan.name) for plan in plans if plan.num_sequences}
    return lengths.pop() if len(lengths) == 1 else None


def plan_bucket_shards(
    source: str,
    buckets: Mapping[str, BucketSize],
    token_bytes: int,
    config: ShardConfig,
    generation: int = 1,
) -> list[BucketShards]:
    """Plan the shards of each bucket, given by name in bucket order; an empty bucket gets none.

    Each generation has permutations of its own. Those of the first are as before there were others.
    """
    later = () if generation == 1 else (generation,)
    plans: list[BucketShards] = []
    first = 0
    for index, (name, size) in enumerate(buckets.items()):
        wanted = -(-size.tokens * token_bytes // config.target_bytes)
        num_shards = min(max(wanted, 1), size.sequences)
        key = derive_key(config.seed, "shard", source, name, *later)
        plans.append(BucketShards(index, name, size.sequences, first, num_shards, key))
        first += num_shards
    return plans


def count_shards(plans: list[BucketShards]) -> int:
    """Count the shards of all buckets."""
    return sum(plan.num_shards for plan in plans)


def scatter(indices: NDArray[np.int64], plans: list[BucketShards]) -> pl.DataFrame:
    """Give every sequence of a part its shard and its position in the bucket's permutation.

    In: the index of each row in its generation, which counts bucket after bucket; -1 for a row that
    is not of it. Out: shard UInt32, position UInt64 and row UInt32 of the others, sorted by the
    first two. Raises ValueError if an index is beyond the plans.
    """
    firsts = first_indices(plans)
    if len(indices) and not -1 <= indices.min() <= indices.max() < firsts[-1]:
        raise ValueError(f"an index is outside of a generation of {firsts[-1]} sequences")
    placed = [pl.DataFrame(schema={"shard": pl.UInt32, "position": pl.UInt64, "row": pl.UInt32})]
    for first, plan in zip(firsts, plans, strict=False):
        rows = np.flatnonzero((indices >= first) & (indices < first + plan.num_sequences))
        position = positions_of(plan, indices[rows] - first)
        shard = plan.first_shard + shard_of(position, plan)
        columns = {"shard": shard, "position": position, "row": rows.astype(np.uint32)}
        placed.append(pl.DataFrame(columns, schema=placed[0].schema))
    return pl.concat(placed).sort("shard", "position")


def first_indices(plans: Sequence[BucketShards]) -> list[int]:
    """Return the index of each bucket's first sequence, and the number of all."""
    firsts = [0]
    for plan in plans:
        firsts.append(firsts[-1] + plan.num_sequences)
    return firsts


def positions_of(plan: BucketShards, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the positions of some sequences of a bucket in its permutation."""
    if not len(indices):
        return np.empty(0, np.uint64)
    return permute(indices, size=plan.num_sequences, key=plan.key)


def shard_starts(plan: BucketShards) -> NDArray[np.int64]:
    """Return the first position of each shard of a bucket: runs equal to within one."""
    edges = np.arange(plan.num_shards, dtype=np.int64) * plan.num_sequences
    return -(-edges // max(1, plan.num_shards))


def shard_of(position: NDArray[np.uint64], plan: BucketShards) -> NDArray[np.uint32]:
    """Return the shard number inside the bucket."""
    found = np.searchsorted(shard_starts(plan)[1:], position.astype(np.int64), side="right")
    return found.astype(np.uint32)


class ShardRows(NamedTuple):
    """Rows of a shard: its number, and row numbers in its files with their indices, ascending."""

    shard: int
    rows: NDArray[np.uint32]
    indices: NDArray[np.int64]


def rows_of_shards(
    plans: Sequence[BucketShards], is_written: NDArray[np.bool_], is_wanted: NDArray[np.bool_]
) -> Iterator[ShardRows]:
    """Yield the wanted rows of each shard that has some.

    `is_written` and `is_wanted`, bool [sequences], are by index; a sequence that was not written
    has no row, and those behind it move up.
    """
    firsts = first_indices(plans)
    for first, plan in zip(firsts, plans, strict=False):
        place = slice(first, first + plan.num_sequences)
        wanted = np.flatnonzero(is_wanted[place])
        if not len(wanted):
            continue
        positions = positions_of(plan, np.arange(plan.num_sequences)).astype(np.int64)
        is_row = np.zeros(plan.num_sequences, np.bool_)
        is_row[positions[is_written[place]]] = True
        rows_before: NDArray[np.int64] = np.cumsum(is_row) - is_row
        wanted = wanted[np.argsort(positions[wanted])]
        shards = shard_of(positions[wanted].astype(np.uint64), plan)
        rows: NDArray[np.int64] = (
            rows_before[positions[wanted]] - rows_before[shard_starts(plan)[shards]]
        )
        for shard in np.unique(shards).tolist():
            these = shards == shard
            number = plan.first_shard + shard
            yield ShardRows(number, rows[these].astype(np.uint32), first + wanted[these])


class Pile(NamedTuple):
    """Rows of one bucketed part that belong to one shard.

    Row `rows[i]`, int64 [n], of `sequences` has the place `positions[i]`, uint64 [n], in the order
    of the bucket. `documents` are the tables that have the tokens; None if the sequences do.
    """

    sequences: pl.DataFrame
    rows: NDArray[np.int64]
    positions: NDArray[np.uint64]
    documents: Iterable[pl.DataFrame] | None = None

    def lengths(self) -> NDArray[np.int64]:
        """Return the tokens of each row with padding."""
        if self.documents is not None:
            stored = self.sequences["stored_tokens"].to_numpy()[self.rows]
            return stored.astype(np.int64)
        offsets = as_numpy(self.sequences["tokens"].rechunk().to_arrow().offsets)
        lengths: NDArray[np.int64] = offsets[self.rows + 1] - offsets[self.rows]
        return lengths

    def token_type(self) -> np.dtype[Any]:
        """Return the type of the tokens."""
        table = self.sequences if self.documents is None else next(iter(self.documents))
        is_wide = table.schema["tokens"] == pl.List(pl.UInt32)
        return np.dtype(np.uint32 if is_wide else np.uint16)

    def copy(self, places: NDArray[np.int64], target: NDArray[Any]) -> None:
        """Copy the tokens of each row to its place, int64 [n], in `target`."""
        from assets.bucketed.kernels.copy_tokens import copy_pieces

        if self.documents is not None:
            copy_sequences(self.sequences, self.rows, self.documents, places, target)
        else:
            tokens = self.sequences["tokens"].rechunk().to_arrow()
            starts = as_numpy(tokens.offsets)[self.rows]
            copy_pieces(as_numpy(tokens.values), starts, self.lengths(), places, target)


def gather(piles: Sequence[Pile], padding: int = 0, new_array: NewArray = np.empty) -> pl.DataFrame:
    """Put the sequences of one shard's piles in order: the columns ROW_COLUMNS.

    loss_mask only if the piles have it. Tokens are copied once, from where the piles have them, to
    a `new_array`; `padding` fills sequences up.
    """
    order = np.argsort(np.concatenate([pile.positions for pile in piles]))
    lengths = np.concatenate([pile.lengths() for pile in piles])
    ends = np.cumsum(lengths[order])
    places = np.empty_like(lengths)
    places[order] = ends - lengths[order]
    tokens = new_array(int(lengths.sum()), piles[0].token_type())
    tokens.fill(padding)
    first = 0
    for pile in piles:
        pile.copy(places[first : (first := first + len(pile.rows))], tokens)
    stored = set(piles[0].sequences.columns) - {"tokens"}
    names = [name for name in ROW_COLUMNS if name in stored]
    others = pl.concat([pile.sequences[pile.rows, names] for pile in piles])
    offset = np.concatenate(([0], ends))
    return others[order].insert_column(1, list_series(tokens, offset).alias("tokens"))
