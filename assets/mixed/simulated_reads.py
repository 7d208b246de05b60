"""Reads of a training job without reading: shards of every step, and what a cache of them costs.

A shard is downloaded whole by the node whose cache does not have it. The cache of a node is shared
by its ranks, and gives up what was not used for longest: the policy of
corpus_loader/places/cache.py, without its rule that a shard in use stays.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Job:
    """Ranks of a training job, samples of a rank's batch, ranks of a node, workers of a rank."""

    world_size: int
    batch_size: int
    ranks_per_node: int
    workers: int = 1

    @property
    def step_samples(self) -> int:
        """Samples of a step, over all ranks."""
        return self.world_size * self.batch_size

    @property
    def num_nodes(self) -> int:
        """Nodes, of which the last may have fewer ranks."""
        return -(-self.world_size // self.ranks_per_node)

    def by_node(self, shards: Int64s) -> Iterator[Int64s]:
        """Yield the distinct shards of a step, int64 [step_samples], by node, ascending."""
        size = self.ranks_per_node * self.batch_size
        for start in range(0, len(shards), size):
            yield np.unique(shards[start : start + size])


@dataclass
class NodeCache:
    """A cache of shards; `max_bytes` is its limit, beyond which one step's shards may go."""

    sizes: Sequence[int]
    max_bytes: int
    reads: int = 0
    hits: int = 0
    downloaded_bytes: int = 0
    most_step_bytes: int = 0  # of shards that one step was the first to need

    def __post_init__(self) -> None:
        """Begin with an empty cache."""
        self._held: OrderedDict[int, int] = OrderedDict()
        self._bytes = 0

    def take(self, shards: Iterable[int]) -> None:
        """Read the shards of a step."""
        before = self.downloaded_bytes
        for shard in shards:
            self.reads += 1
            if shard in self._held:
                self.hits += 1
                self._held.move_to_end(shard)
                continue
            size = self.sizes[shard]
            self.downloaded_bytes += size
            self._held[shard] = size
            self._bytes += size
            while self._bytes > self.max_bytes and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1]
        self.most_step_bytes = max(self.most_step_bytes, self.downloaded_bytes - before)


class Reads:
    """Steps of a job, taken one after the other; its nodes begin with empty caches."""

    def __init__(
        self, job: Job, sizes: Sequence[int], cache_bytes: int, shares: npt.NDArray[np.float64]
    ) -> None:
        self.job = job
        self.shares = shares
        self.caches = [NodeCache(sizes, cache_bytes) for _ in range(job.num_nodes)]
        self.endless = [NodeCache(sizes, sum(sizes)) for _ in range(job.num_nodes)]
        self.drawn = np.zeros(len(shares), np.int64)  # samples of each source
        self.deviation = 0.0
        self.of_first_rank: set[int] = set()
        self.of_first_worker: set[int] = set()
        self.steps = 0

    @property
    def samples(self) -> int:
        """Samples of all steps."""
        return int(self.drawn.sum())

    @property
    def cache_hits(self) -> float:
        """Share of the reads of a shard that a cache answers, 0 to 1."""
        reads = sum(cache.reads for cache in self.caches)
        return sum(cache.hits for cache in self.caches) / reads if reads else 0.0

    def take(
        self, shards: Int64s, sources: Int64s, shares: npt.NDArray[np.float64] | None = None
    ) -> None:
        """Take whole steps: shard and source of every sample of all ranks, int64 [samples].

        shares: float64 [steps, sources], those planned for each step if they change.
        """
        shape = (-1, self.job.step_samples)
        self.drawn += np.bincount(sources, minlength=len(self.drawn))
        planned = self.shares if shares is None else shares
        self.deviation = max(self.deviation, largest_deviation(sources.reshape(shape), planned))
        for step in shards.reshape(shape):
            own = set(step[: self.job.batch_size].tolist())
            self.of_first_rank |= own
            if self.steps % self.job.workers == 0:
                self.of_first_worker |= own
            self.steps += 1
            for node, read in enumerate(self.job.by_node(step)):
                self.caches[node].take(read.tolist())
                self.endless[node].take(read.tolist())


def largest_deviation(sources: Int64s, shares: npt.NDArray[np.float64]) -> float:
    """Return the largest distance of a source's share in a step from its planned share.

    sources: int64 [steps, step_samples]; shares: float64 [sources] or [steps, sources], each
    summing to 1.
    """
    worst = 0.0
    planned = np.broadcast_to(shares, (len(sources), shares.shape[-1]))
    for step, wanted in zip(sources, planned, strict=True):
        found = np.bincount(step, minlength=wanted.size) / step.size
        worst = max(worst, float(np.abs(found - wanted).max()))
    return worst
