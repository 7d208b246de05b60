"""Map every position of a phase to a source and the number of its sample: exact, nothing stored.

The phase is cut into blocks (a block is a global batch), and these into stretches of as many blocks
as give the rarest source a sample. The samples of the first sources, up to each, in the first t
positions are t times their share, rounded; the counts of a stretch are the differences of these.
So at the ends of stretches every source is within one sample of its share, and exact at the end;
and no count is negative: it is more than its share less two, and its share is one or more.

In a stretch of several blocks the samples, source after source, are shared out by halves: of the
first x samples the left half of the blocks gets x times its share of the blocks, rounded down. A
split of m blocks is off by at most (m - 1) / m of a sample, and the error from above is halved
below, which sums to less than 1.4; the error of the stretch is divided by its blocks. Together: a
block is within 2 samples of the share of each source, whatever the weights, and a source's samples
come in their order, block after block.

A tree of two-way floors over the sources, the usual way, is off by up to 3.4 (the sum of the
reciprocal Fibonacci numbers, for the worst weights).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
INT64_MAX = 2**63 - 1


class Interleaving:
    """The counts of a phase's sources (each 1 or more), laid out in blocks of `block_size`."""

    def __init__(self, counts: Sequence[int], block_size: int) -> None:
        self.total = sum(counts)
        self.block_size = block_size
        self.full_blocks = self.total // block_size
        wanted = -(-self.total // (block_size * min(counts, default=1)))
        self.stretch_blocks = max(1, min(wanted, self.full_blocks))
        self.stretches = max(1, self.full_blocks // self.stretch_blocks)
        self.upto = np.cumsum(np.array(counts, np.int64))

    def lookup(self, block: Int64s, slot: Int64s) -> tuple[Int64s, Int64s]:
        """Return (source, number of its sample) for slots of blocks; the last block may be shorter.

        A block's slots come source by source: permute them within the block.
        """
        names, which = unique(block)
        edges, before = self.blocks(names)
        flat = (edges[:, 1:-1] + np.arange(names.size)[:, None] * self.block_size).ravel()
        passed = np.searchsorted(flat, slot + which * self.block_size, side="right")
        source: Int64s = passed - which * (self.upto.size - 1)
        return source, (np.diff(before) - edges[:, :-1])[which, source] + slot

    def blocks(self, block: Int64s) -> tuple[Int64s, Int64s]:
        """Return two [blocks, sources + 1]: offsets of sources in a block, and samples before it.

        Both count the samples of all sources up to each.
        """
        first, stop = self.stretch_of(block)
        is_rest = block == self.full_blocks  # the shorter block at the end: a stretch of its own
        first, stop = np.where(is_rest, block, first), np.where(is_rest, block + 1, stop)
        before = self.before(first * self.block_size)
        edges = self.before(np.minimum(stop * self.block_size, self.total)) - before
        return share_out(edges, before, block - first, stop - first)

    def stretch_of(self, block: Int64s) -> tuple[Int64s, Int64s]:
        """Return (first, stop) of the whole blocks that each block shares its stretch with."""
        stretch = np.minimum(block // self.stretch_blocks, self.stretches - 1)
        first = stretch * self.stretch_blocks
        stop = np.where(stretch < self.stretches - 1, first + self.stretch_blocks, self.full_blocks)
        return first, stop

    def before(self, position: Int64s) -> Int64s:
        """[positions, sources + 1]: samples of the sources up to each in the first positions."""
        places, which = unique(position)
        shares = exact(places, 2 * self.total**2 + self.total)[:, None] * self.upto
        rounded = (2 * shares + self.total) // (2 * self.total)
        return np.pad(rounded.astype(np.int64), ((0, 0), (1, 0)))[which]

    def planned(self, position: Int64s) -> npt.NDArray[np.float64]:
        """[positions, sources]: samples of each source in its share of the first positions."""
        return position[:, None] * (np.diff(self.upto, prepend=0) / self.total)


def share_out(
    edges: Int64s, before: Int64s, block: Int64s, blocks: Int64s
) -> tuple[Int64s, Int64s]:
    """Halve stretches of `blocks` blocks until one is left: (edges, before) of that block."""
    while (largest := int(blocks.max())) > 1:
        left_blocks = blocks // 2
        product = exact(edges, int(edges.max()) * largest) * left_blocks[:, None]
        left = (product // blocks[:, None]).astype(np.int64)
        is_left = block < left_blocks
        before = np.where(is_left[:, None], before, before + left)
        edges = np.where(is_left[:, None], left, edges - left)
        block = np.where(is_left, block, block - left_blocks)
        blocks = np.where(is_left, left_blocks, blocks - left_blocks)
    return edges, before


def unique(values: Int64s) -> tuple[Int64s, Int64s]:
    """Return the distinct values, ascending, and the number of each element's value.

    Dense values take a table instead of np.unique's sort.
    """
    least = int(values.min())
    width = int(values.max()) - least + 1
    if width > 4 * values.size:
        names, which = np.unique(values, return_inverse=True)
        return names, which
    is_there = np.zeros(width, bool)
    is_there[values - least] = True
    names = np.flatnonzero(is_there)
    rank = np.cumsum(is_there) - 1
    return names + least, rank.take(values - least)


def exact(values: Int64s, largest: int) -> npt.NDArray:
    """Values for products up to `largest`: Python's own integers where int64 ends."""
    return values if largest <= INT64_MAX else values.astype(object)
