"""The order of a phase: its speed, and how well the mix holds, next to two other ways.

    python benchmarks/order.py

CPU time of one core. "floors" is a tree of two-way floors over the sources (Huffman), and "greedy"
takes the source that is furthest behind (Megatron's blend); neither permutes inside a batch.
Deviations are in samples from a source's share of an aligned batch of 512; rank bias is the worst
relative error of the mix that one of 8 ranks sees.
"""

import heapq
import time

import numpy as np
import numpy.typing as npt

from corpus_loader.order import PhaseOrder, SourceShape

BATCH = 512
BLOCK = 32_768
RANKS = 8
WEB_LIKE = (0.67, 0.15, 0.045, 0.045, 0.045, 0.025, 0.02)


def counts_of(sources: int, samples: int) -> list[int]:
    """Samples per source: a web-like mix for 7, else a skewed one."""
    weights = np.array(WEB_LIKE)
    if sources != len(WEB_LIKE):
        weights = np.random.default_rng(0).dirichlet(np.full(sources, 0.7))
    return [max(1, int(count)) for count in weights * samples]


def order_of(counts: list[int], window: int | None = None) -> PhaseOrder:
    """A phase that takes every row of its sources once."""
    shapes = [SourceShape(f"s{i}", n, (n // 2, n - n // 2)) for i, n in enumerate(counts)]
    return PhaseOrder(0, BATCH, window, tuple(shapes))


def seconds(order: PhaseOrder, size: int, repeats: int) -> float:
    """CPU seconds to look up `size` positions in a row, in the middle of the phase."""
    start = len(order) // 2
    order.samples(np.arange(start, start + size))
    begin = time.process_time()
    for number in range(repeats):
        order.samples(np.arange(start, start + size) + number * size)
    return (time.process_time() - begin) / repeats


def print_speed() -> None:
    """Positions per second, and what a small call and a first call cost."""
    print(
        f"{'sources':>8}{'samples':>10}{'M/s':>8}{'512: ms':>9}{'first call, 1 position: ms':>28}"
    )
    for sources in (1, 7, 50, 500):
        for samples in (10**6, 10**9, 10**12):
            counts = counts_of(sources, samples)
            begin = time.process_time()
            order_of(counts).samples([samples // 3])
            first = time.process_time() - begin
            order = order_of(counts)
            speed = BLOCK / seconds(order, BLOCK, 8) / 1e6
            small = seconds(order, BATCH, 30) * 1e3
            print(f"{sources:>8}{samples:>10.0e}{speed:>8.2f}{small:>9.2f}{first * 1e3:>28.1f}")


def print_mix() -> None:
    """How well the mix holds in aligned batches, over the phase, and on each rank."""
    print(f"\n{'sources':>8} {'way':<8}{'batch: worst':>14}{'prefix: worst':>15}{'rank bias':>11}")
    for sources in (2, 7, 50, 500):
        counts = counts_of(sources, 500_000)
        ways = {
            "here": order_of(counts).samples(np.arange(sum(counts))).source.astype(np.int64),
            "floors": floors(counts),
            "greedy": greedy(counts),
        }
        for name, source in ways.items():
            worst = deviations(source, counts)
            print(f"{sources:>8} {name:<8}{worst[0]:>14.2f}{worst[1]:>15.2f}{worst[2]:>11.1%}")


def deviations(source: npt.NDArray[np.int64], counts: list[int]) -> tuple[float, float, float]:
    """Worst of an aligned batch, of a prefix of batches, and of a rank (sources over 1 %)."""
    share = np.array(counts) / sum(counts)
    batches = source[: source.size // BATCH * BATCH].reshape(-1, BATCH)
    names = batches + np.arange(len(batches))[:, None] * share.size
    table = np.bincount(names.ravel(), minlength=len(batches) * share.size)
    off = table.reshape(-1, share.size) - BATCH * share
    large = share > 0.01
    ranks = [np.bincount(source[rank::RANKS], minlength=share.size) for rank in range(RANKS)]
    bias = [np.abs(rank / rank.sum() / share - 1)[large].max(initial=0) for rank in ranks]
    return float(np.abs(off).max()), float(np.abs(np.cumsum(off, 0)).max()), float(max(bias))


def floors(counts: list[int]) -> npt.NDArray[np.int64]:
    """A Huffman tree of two-way floors: the first j samples of a node give its left j x a // n."""
    heap: list[tuple[int, int, object]] = [(n, i, i) for i, n in enumerate(counts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        a, b = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a[0] + b[0], len(counts) + a[1], (a, b)))
    source = np.empty(sum(counts), np.int64)
    stack = [(heap[0], np.arange(source.size))]
    while stack:
        (total, _, inner), places = stack.pop()
        if not isinstance(inner, tuple):
            source[places] = inner
            continue
        left, right = inner
        taken = np.arange(total + 1) * left[0] // total
        is_left = np.diff(taken) > 0
        stack += [(left, places[is_left]), (right, places[~is_left])]
    return source


def greedy(counts: list[int]) -> npt.NDArray[np.int64]:
    """Each sample from the source that is furthest behind its share."""
    share = np.array(counts) / sum(counts)
    taken = np.zeros(share.size)
    source = np.empty(sum(counts), np.int64)
    for position in range(source.size):
        source[position] = chosen = np.argmax(share * max(position, 1) - taken)
        taken[chosen] += 1
    return source


def print_shuffle() -> None:
    """Mixture of batches over 8 shards of one source, as chi2 / degrees of freedom (1: chance)."""
    for window, name in ((None, "whole epochs"), (64, "windows of 64 of 256 shards")):
        shape = SourceShape("web", 1_000_000, (1_000_000 // 256,) * 256)
        order = PhaseOrder(0, BATCH, window, (shape,))
        part = order.samples(np.arange(BATCH * 1900)).row // (shape.rows // 8 + 1)
        table = np.array([np.bincount(batch, minlength=8) for batch in part.reshape(-1, BATCH)])
        chi2 = ((table - BATCH / 8) ** 2 / (BATCH / 8)).sum() / (7 * len(table))
        print(f"chi2/dof of batches, {name}: {chi2:.3f}")


if __name__ == "__main__":
    print_speed()
    print_mix()
    print_shuffle()
