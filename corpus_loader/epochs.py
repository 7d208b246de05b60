"""Map a source's n-th sample to its row: every epoch of a source has an order of its own.

Whole epochs are permuted (`window_shards` None), or for readers that fetch whole shards: shards in
a permuted order, so many of them a window, and the samples of a window permuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from corpus_loader.interleave import Int64s, unique
from corpus_loader.permutation import derive_key, permute, permute_each

Indices = npt.NDArray[np.intp]
key_of = lru_cache(maxsize=4096)(derive_key)


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
