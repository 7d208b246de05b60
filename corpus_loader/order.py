"""The order of a phase: map every position to a sample, computed and never stored.

    position -> block of `batch_samples` -> slot, permuted inside the block
             -> source and number of its sample                  (interleave.py)
             -> epoch of the source, and row of its shards, in an order of that epoch

Every position is computed by itself: resuming costs nothing, and any number of ranks sees the one
order, split. The permutation inside blocks is what makes each rank see the mix of the whole: with
sources in turn, rank 0 of 2 would get all of one of two sources (the worst relative error of the
mix that one of 8 ranks sees: 6 %, which is chance; without it 300 %). Speed: benchmarks/order.py.

Whole epochs of a source are permuted (`window_shards` None), or for readers that fetch whole
shards: shards in a permuted order, so many of them a window, and the samples of a window permuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from corpus_loader.interleave import (
    ChangingInterleaving,
    Int64s,
    Interleaving,
    check_weights,
    unique,
)
from corpus_loader.permutation import GOLDEN_GAMMA, derive_key, mix64, permute, permute_each

SEED_BITS = 53  # whole numbers that any JSON reader keeps
LARGEST_TABLE = 1 << 22  # entries of the tables of one look-up: 32 MB, whatever is asked for
LAST = np.iinfo(np.uint64).max
MOST_SOURCES = 1 << 16  # numbered by uint16
Indices = npt.NDArray[np.intp]
key_of = lru_cache(maxsize=4096)(derive_key)


def order_seed(seed: int, phase: str) -> int:
    """Derive the seed of a phase's order, so that phases with the same `seed` differ.

    Otherwise the second would begin with the very samples that the first began with.
    """
    return derive_key(seed, "phase", phase) >> (64 - SEED_BITS)


def as_positions(positions: npt.ArrayLike, samples: int) -> Int64s:
    """Return positions, int64 [n]; ValueError for one below 0, or in a phase without samples."""
    wanted = np.asarray(positions, np.int64).ravel()
    if wanted.size and (wanted.min() < 0 or samples == 0):
        raise ValueError(f"no sample at position {wanted.min()} of a phase of {samples} samples")
    return wanted


@dataclass(frozen=True)
class SourceShape:
    """A source in a phase: samples drawn, and the rows of each of its shards, in shard order.

    start: samples that earlier phases of the same order drew of it; this one goes on after them;
    weights: share of the tokens at each of the phase's knots, if it changes.
    """

    name: str
    samples: int
    shard_rows: tuple[int, ...]
    start: int = 0
    weights: tuple[float, ...] = ()

    @cached_property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(self.shard_rows)


@dataclass(frozen=True)
class Epochs:
    """The sources of a phase and the identity of the order of their epochs."""

    seed: int
    window_shards: int | None
    sources: tuple[SourceShape, ...]

    def rows(self, source: Indices, index: Int64s) -> tuple[Int64s, Int64s]:
        """Return (row, epoch) of the index-th sample of each source, over epochs."""
        sizes = np.array([shape.rows for shape in self.sources], np.int64)
        epoch, place = np.divmod(index, sizes[source])
        names, which = unique_pairs(source, epoch)
        if self.window_shards is not None:
            return self.windowed_rows(names, which, place), epoch
        keys = [key_of(self.seed, "sample", self.sources[s].name, e) for s, e in names]
        of = np.array([s for s, _ in names], np.intp)
        row = permute_each(place.astype(np.uint64), which, sizes[of], np.array(keys, np.uint64))
        return row.astype(np.int64), epoch

    def windowed_rows(self, names: list[tuple[int, int]], which: Indices, place: Int64s) -> Int64s:
        """`rows` where a window of shards is permuted at a time; `names` are (source, epoch)."""
        layouts = [self.windows(source, epoch) for source, epoch in names]
        window = np.empty_like(place)
        for number, layout in enumerate(layouts):
            mine = which == number
            window[mine] = np.searchsorted(layout.windows, place[mine], side="right") - 1
        pairs, group = unique_pairs(which, window)
        purposes = [(self.sources[source].name, epoch) for source, epoch in names]
        keys = [key_of(self.seed, "window", *purposes[n], w) for n, w in pairs]
        ends = [(layouts[n].windows[w], layouts[n].windows[w + 1]) for n, w in pairs]
        start, stop = np.array(ends, np.int64).reshape(-1, 2).T
        inside = (place - start[group]).astype(np.uint64)
        permuted = permute_each(inside, group, stop - start, np.array(keys, np.uint64))
        place = start[group] + permuted.astype(np.int64)
        for number, layout in enumerate(layouts):
            mine = which == number
            place[mine] = layout.rows(place[mine])
        return place

    def windows(self, source: int, epoch: int) -> Windows:
        """The order of a source's shards in an epoch."""
        assert self.window_shards is not None
        shape = self.sources[source]
        key = derive_key(self.seed, "shard", shape.name, epoch)
        return lay_out(shape.shard_rows, self.window_shards, key)


@dataclass(frozen=True)
class Windows:
    """The shards of an epoch, in its order: offsets and first rows, and offsets of windows."""

    starts: Int64s
    first_rows: Int64s
    windows: Int64s

    def rows(self, place: Int64s) -> Int64s:
        """Rows of the source at places of the epoch."""
        shard = np.searchsorted(self.starts, place, side="right") - 1
        rows: Int64s = self.first_rows[shard] + place - self.starts[shard]
        return rows


@lru_cache(maxsize=64)
def lay_out(shard_rows: tuple[int, ...], window_shards: int, key: int) -> Windows:
    """Put shards in the order that `key` names. Memory: 24 bytes a shard."""
    sizes = np.array(shard_rows, np.int64)
    order = permute(np.arange(sizes.size), size=sizes.size, key=key)
    starts = np.cumsum(sizes[order]) - sizes[order]
    windows = np.append(starts[::window_shards], sizes.sum())
    return Windows(starts, (np.cumsum(sizes) - sizes)[order], windows)


def unique_pairs(first: Indices, second: Int64s) -> tuple[list[tuple[int, int]], Indices]:
    """Return the distinct pairs, ascending, and the number of each element's pair."""
    least = int(second.min(initial=0))
    width = int(second.max(initial=0)) - least + 1
    names, which = unique(first * width + (second - least))
    numbers, rest = np.divmod(names, width)
    return list(zip(numbers.tolist(), (rest + least).tolist(), strict=True)), which


@dataclass(frozen=True)
class Samples:
    """The samples at some positions, in the order of the positions.

    source uint16 [n]: index into the phase's sources; row int64 [n]: over all shards of the source;
    epoch int64 [n]: completed passes through that source.
    """

    source: npt.NDArray[np.uint16]
    row: Int64s
    epoch: Int64s


@dataclass(frozen=True)
class SourceOrder:
    """The order of one source of a phase by itself."""

    seed: int
    window_shards: int | None
    source: SourceShape

    def rows(self, index: npt.ArrayLike) -> tuple[Int64s, Int64s]:
        """Return (row over all shards, epoch) of the source's index-th samples, over epochs."""
        wanted = np.asarray(index, np.int64)
        only = np.zeros(wanted.size, np.intp)
        return Epochs(self.seed, self.window_shards, (self.source,)).rows(only, wanted)


@dataclass(frozen=True)
class PhaseOrder:
    """The order of a phase; with `is_fixed` every epoch is the first one again.

    knots: shares of its tokens at which the sources have their weights; none if these are constant.
    Raises ValueError for a phase that draws samples of a source without rows, has more than 65,536
    sources, or no weight of one of them at a knot.
    """

    seed: int
    batch_samples: int
    window_shards: int | None
    sources: tuple[SourceShape, ...]
    knots: tuple[float, ...] = ()
    is_fixed: bool = False

    def __post_init__(self) -> None:
        """Refuse an impossible order."""
        for name in ("batch_samples", "window_shards"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be 1 or more")
        if len(self.sources) > MOST_SOURCES:
            raise ValueError(f"{len(self.sources):,} sources; there can be {MOST_SOURCES:,}")
        empty = [source.name for source in self.sources if source.samples > 0 and source.rows == 0]
        if empty:
            raise ValueError(f"samples are drawn of {empty}, which have no rows")
        for source in self.sources:
            if source.start < 0:
                raise ValueError(f"{source.name!r} starts at {source.start}; it must be 0 or more")
            if self.knots and source.samples:
                check_weights(source.weights, self.knots)

    def __len__(self) -> int:
        """Samples of one epoch of the phase."""
        return self.interleaving.total

    @cached_property
    def drawn(self) -> Indices:
        """The sources that are drawn from."""
        return np.flatnonzero([source.samples > 0 for source in self.sources])

    @cached_property
    def counts(self) -> Int64s:
        """Samples drawn of each source in an epoch of the phase."""
        return np.array([source.samples for source in self.sources], np.int64)

    @cached_property
    def starts(self) -> Int64s:
        """Samples of each source that earlier phases drew."""
        return np.array([source.start for source in self.sources], np.int64)

    @cached_property
    def interleaving(self) -> Interleaving:
        """The interleaving of the drawn sources in an epoch of the phase."""
        counts = self.counts[self.drawn].tolist()
        if not self.knots:
            return Interleaving(counts, self.batch_samples)
        weights = [self.sources[number].weights for number in self.drawn]
        return ChangingInterleaving(counts, self.batch_samples, self.knots, weights)

    @cached_property
    def epochs(self) -> Epochs:
        """The rows of each epoch of each source."""
        return Epochs(self.seed, self.window_shards, self.sources)

    def samples(self, positions: npt.ArrayLike) -> Samples:
        """Return the samples at positions; position p is p mod N of the phase's epoch p // N.

        Raises ValueError for a position below 0, and for any if the phase has no samples.
        """
        wanted = as_positions(positions, len(self))
        if wanted.size == 0:
            return Samples(np.empty(0, np.uint16), wanted, wanted)
        least, largest = int(wanted.min()), int(wanted.max())
        blocks = min(wanted.size, (largest - least) // self.batch_samples + 2)
        table = max(blocks * max(self.batch_samples, len(self.sources)), wanted.size)
        if wanted.size > 1 and table > LARGEST_TABLE:
            halves = [self.samples(half) for half in np.array_split(wanted, 2)]
            columns = zip(*((half.source, half.row, half.epoch) for half in halves), strict=True)
            return Samples(*map(np.concatenate, columns))
        return self.look_up(wanted)

    def starts_after(self, position: int) -> Int64s:
        """Return the `start` of each source in a phase that goes on from a position: int64 [n].

        Raises ValueError for a position inside a block, whose samples are permuted: those before it
        are not the first ones of their sources.
        """
        if position < 0 or len(self) == 0:
            raise ValueError(f"no position {position} in a phase of {len(self)} samples")
        epoch, place = divmod(position, len(self))
        block, slot = divmod(place, self.batch_samples)
        if slot:
            first = position - slot
            stop = min(first + self.batch_samples, (epoch + 1) * len(self))
            raise ValueError(
                f"position {position:,} is inside a block of {self.batch_samples:,} samples. Give "
                f"{first:,}, and {slot:,} samples are drawn again; or {stop:,}, and "
                f"{stop - position:,} are passed over"
            )
        _, before = self.interleaving.blocks(np.array([block], np.int64))
        starts = self.starts + epoch * self.counts
        starts[self.drawn] += np.diff(before[0])
        return starts

    def look_up(self, positions: Int64s) -> Samples:
        """`samples` in one go."""
        epoch, place = np.divmod(positions, len(self))
        if self.is_fixed:
            epoch = np.zeros_like(epoch)
        block, slot = np.divmod(place, self.batch_samples)
        which, index = self.interleaving.lookup(block, self.permuted_slots(epoch, block, slot))
        source = self.drawn[which]
        number = self.starts[source] + (epoch * self.counts[source] + index)
        row, source_epoch = self.epochs.rows(source, number.astype(np.int64))
        return Samples(source.astype(np.uint16), row, source_epoch)

    def permuted_slots(self, epoch: Int64s, block: Int64s, slot: Int64s) -> Int64s:
        """Return the slots from before their block was permuted, by the ranks of keyed hashes."""
        full_blocks = self.interleaving.full_blocks
        names, which = unique_pairs(epoch, block)
        bases = [key_of(self.seed, "block", e) for e, _ in names]
        numbers = np.array([b for _, b in names], np.uint64)
        keys = mix64(np.array(bases, np.uint64) + numbers * np.uint64(GOLDEN_GAMMA))
        slots = np.arange(min(self.batch_samples, len(self)), dtype=np.uint64)
        hashes = mix64(slots * np.uint64(GOLDEN_GAMMA) + keys[:, None])
        rest = len(self) - full_blocks * self.batch_samples
        hashes[np.ix_(numbers == full_blocks, slots >= rest)] = LAST  # slots that are not there
        permuted: Int64s = np.argsort(hashes, axis=1)[which, slot]
        return permuted
