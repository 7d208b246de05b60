"""Caches of nodes that only count."""

from __future__ import annotations

import numpy as np

from assets.mixed.simulated_reads import Job, NodeCache, Reads, largest_deviation


def test_a_full_cache_gives_up_what_was_not_used_for_longest() -> None:
    cache = NodeCache([10, 10, 10], max_bytes=20)
    for shards in ([0, 1], [0, 2], [1], [0]):
        cache.take(shards)

    assert (cache.reads, cache.hits) == (6, 1)  # 0 again; then 1 was gone, then 0
    assert (cache.downloaded_bytes, cache.most_step_bytes) == (50, 20)


def test_ranks_of_a_node_share_a_download() -> None:
    reads = Reads(Job(4, 1, ranks_per_node=2), [5, 7], 100, np.array([0.5, 0.5]))
    reads.take(np.array([0, 0, 0, 1, 1, 1, 0, 0]), np.array([0, 1, 0, 1, 1, 1, 1, 1]))

    assert [cache.downloaded_bytes for cache in reads.caches] == [12, 12]
    assert (reads.of_first_rank, reads.steps, reads.samples) == ({0, 1}, 2, 8)
    assert reads.cache_hits == 1 / 5
    assert reads.deviation == 0.5


def test_the_first_worker_reads_every_second_step_of_two() -> None:
    reads = Reads(Job(1, 1, ranks_per_node=1, workers=2), [1, 1, 1], 100, np.ones(1))
    reads.take(np.array([0, 1, 2]), np.array([0, 0, 0]))

    assert (reads.of_first_rank, reads.of_first_worker) == ({0, 1, 2}, {0, 2})


def test_a_step_of_the_planned_shares_does_not_deviate() -> None:
    steps = np.array([[0, 1, 0, 1], [1, 1, 0, 1]])

    assert largest_deviation(steps[:1], np.array([0.5, 0.5])) == 0
    assert largest_deviation(steps, np.array([0.5, 0.5])) == 0.25
