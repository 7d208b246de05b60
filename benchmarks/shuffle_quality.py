"""How well a corpus is shuffled: the permutation of `sharded` and `mixed` next to what others do.

    python benchmarks/shuffle_quality.py [--samples 1e6] [--sources 8] [--batch 512] [--seeds 3]

Worst case: samples stored source after source. An order says for each position which stored sample
stands there. Measured, each 1 where the order is random:

* displacement: mean distance between stored and new position, over a third of the samples
* retention: of two neighbours in the order, how often they were stored within 64 of each other,
  over how often chance puts them there
* batch mix: chi2/dof of the sources in every batch against their shares
* residues: chi2/dof of (stored mod 16, position mod 16): a fixed pattern of strides shows here
* differences: chi2/dof of the differences of neighbours in 64 bins, as n - |d| of n x n pairs have
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, permute

Order = NDArray[np.int64]
NEAR = 64
SHARD_SAMPLES = 4096
RESIDUES = 16
BINS = 64


def as_stored(size: int, seed: int) -> Order:
    """No shuffle."""
    return np.arange(size)


def shards_only(size: int, seed: int) -> Order:
    """Shards in random order, samples inside as stored: a reader that shuffles file names."""
    shards = np.split(np.arange(size), range(SHARD_SAMPLES, size, SHARD_SAMPLES))
    return np.concatenate([shards[i] for i in np.random.default_rng(seed).permutation(len(shards))])


def through_buffer(stored: Order, buffer_size: int, seed: int) -> Order:
    """A shuffle buffer: for every sample that comes in, a random one of the buffer goes out."""
    places = np.random.default_rng(seed).integers(0, buffer_size, len(stored)).tolist()
    waiting, coming = stored[:buffer_size].tolist(), stored[buffer_size:].tolist()
    order = []
    for sample, place in zip(coming, places, strict=False):
        order.append(waiting[place])
        waiting[place] = sample
    rest = np.random.default_rng(seed + 1).permutation(waiting)
    return np.concatenate([np.array(order, np.int64), rest])


def feistel(size: int, seed: int) -> Order:
    """What `sharded` does: sample i goes to permute(i)."""
    order = np.empty(size, np.int64)
    order[permute(np.arange(size), size=size, key=derive_key(seed, "shard"))] = np.arange(size)
    return order


METHODS: dict[str, Callable[[int, int], Order]] = {
    "as stored": as_stored,
    "shards only": shards_only,
    "buffer of 10,000": lambda n, seed: through_buffer(as_stored(n, seed), 10_000, seed),
    "shards, buffer of 10,000": lambda n, seed: through_buffer(shards_only(n, seed), 10_000, seed),
    "numpy permutation": lambda n, seed: np.random.default_rng(seed).permutation(n),
    "Tokenmill": feistel,
}


def displacement(order: Order) -> float:
    """Mean distance from the stored position, over that of a random order."""
    return float(np.abs(order - np.arange(len(order))).mean() / (len(order) / 3))


def retention(order: Order) -> float:
    """Share of neighbours that were stored within NEAR of each other, over the expected share."""
    size = len(order)
    expected = (2 * NEAR * size - NEAR * (NEAR + 1)) / (size * (size - 1))
    return float((np.abs(np.diff(order)) <= NEAR).mean() / expected)


def batch_mix(order: Order, sources: int, batch: int) -> float:
    """chi2 of the sources in every batch over the degrees of freedom."""
    source = order * sources // len(order)
    batches = len(order) // batch
    cells = np.arange(batches * batch) // batch * sources + source[: batches * batch]
    counts = np.bincount(cells, minlength=batches * sources).reshape(batches, sources)
    expected = batch * np.bincount(source, minlength=sources) / len(order)
    return float(((counts - expected) ** 2 / expected).sum() / (batches * (sources - 1)))


def residues(order: Order) -> float:
    """chi2/dof of stored and new position modulo RESIDUES, as a table of independent ones."""
    cells = order % RESIDUES * RESIDUES + np.arange(len(order)) % RESIDUES
    counts = np.bincount(cells, minlength=RESIDUES**2)
    expected = len(order) / RESIDUES**2
    return float(((counts - expected) ** 2 / expected).sum() / (RESIDUES - 1) ** 2)


def differences(order: Order) -> float:
    """chi2/dof of the differences of neighbours, in bins of equal expectation."""
    size = len(order)
    # P(d <= x) for two of `size`: triangular, so bins are cut where its inverse says.
    share = np.linspace(0, 1, BINS + 1)[1:-1]
    upper = np.where(share < 0.5, np.sqrt(2 * share) - 1, 1 - np.sqrt(2 * (1 - share)))
    counts = np.bincount(np.searchsorted(upper * size, np.diff(order)), minlength=BINS)
    expected = (size - 1) / BINS
    return float(((counts - expected) ** 2 / expected).sum() / (BINS - 1))


def main() -> None:
    """Print a row per method: means over the seeds, and the time of the first."""
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=float, default=1e6)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    size = int(options.samples)
    columns = ("displacement", "retention", "batch mix", "residues", "differences", "CPU s")
    sys.stdout.write(f"| order | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}\n")
    for name, method in METHODS.items():
        rows = []
        for seed in range(options.seeds):
            start = time.process_time()
            order = method(size, seed)
            spent = time.process_time() - start
            mix = batch_mix(order, options.sources, options.batch)
            tests = (displacement(order), retention(order), mix, residues(order))
            rows.append((*tests, differences(order), spent))
        means = np.mean(rows, axis=0)
        sys.stdout.write(f"| {name} | {' | '.join(f'{mean:.4g}' for mean in means)} |\n")


if __name__ == "__main__":
    main()
