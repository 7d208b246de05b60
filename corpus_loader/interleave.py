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

Sources whose weights change over a phase (`ChangingInterleaving`) have exact counts, too, and any
position by itself. The weights are shares of tokens, given at some shares of the phase's tokens
(`knots`) and linear between them. After a share x of the tokens, source i has given ideally

    C_i(x) = n_i * (its weight, integrated to x) / (its weight, integrated to 1)

of its n_i samples, and the position of x is the sum of all C_i(x). The phase is cut into steps of
whole blocks, as many between each two knots. At the end of a step each source has its ideal number,
rounded down or up: its k-th sample may be drawn from the step on in which C_i passes k - 1, and
must be drawn before the first that ends with C_i at k or above. Steps take the samples that they
may, those that must come first before the others.

* At the end of every step, each source is within one sample of its ideal, whatever the weights, and
  exact at the end of the phase. For the ideal itself draws each sample between its two times, in
  parts, and fills every step. So whole samples can do so, too (the bounds of a transport problem
  are whole), and earliest deadline first finds a way if there is one.
* A block is within two samples of each source's share of its step, as above: a step is
  off by less than two, and is shared out to its blocks by halves.
* Within a step the share is constant. With two knots it is off the line by at most 1/8,192 of what
  the weight changes over the phase; in phases of up to 4,096 blocks, most blocks are steps.

All of it is computed in whole numbers, in 2^-20 of a sample. The price is a table of the steps when
a phase is opened: 2^16 entries at most (so for more than 16 sources steps are fewer), in 60 ms of
CPU. After that a position costs what it costs with constant weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

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


MOST_STEPS = 4096
LARGEST_TABLE = 1 << 16
UNIT = 1 << 20  # parts of a sample in which the ideal is counted
TICKS = 1 << 62  # from one knot to the next: far less than such a part each

Integers = npt.NDArray[np.object_]  # Python's own: products here have 200 bits


class Ideal:
    """The curves C_i of a phase, in parts of a sample.

    counts: samples of each source, 1 or more; weights: of each source at each of the knots.
    """

    def __init__(
        self, counts: Sequence[int], knots: Sequence[float], weights: Sequence[Sequence[float]]
    ) -> None:
        gaps = whole([after - before for before, after in pairwise(map(as_written, knots))])
        self.num_gaps = len(gaps)
        self.divisors = np.empty(len(counts), object)
        self.terms = np.empty((3, len(gaps), len(counts)), object)  # C = a + b z + c z^2
        for source, (count, given) in enumerate(zip(counts, weights, strict=True)):
            ends = list(pairwise(whole([as_written(weight) for weight in given])))
            areas = [gap * (left + right) for gap, (left, right) in zip(gaps, ends, strict=True)]
            self.divisors[source] = sum(areas) * TICKS**2
            for number, (gap, (left, right)) in enumerate(zip(gaps, ends, strict=True)):
                self.terms[:, number, source] = [
                    UNIT * count * sum(areas[:number]) * TICKS**2,
                    UNIT * count * gap * 2 * left * TICKS,
                    UNIT * count * gap * (right - left),
                ]

    @cached_property
    def totals(self) -> list[tuple[int, int, int]]:
        """The terms of the sum of all sources, for the share of a gap from 0 to 1."""
        scaled = [self.terms[0], self.terms[1] * TICKS, self.terms[2] * TICKS**2]
        sums = np.array([term // self.divisors for term in scaled]).sum(axis=2)
        return [(int(a), int(b), int(c)) for a, b, c in sums.T]

    def after(self, gap: npt.NDArray[np.intp], tick: Integers) -> Integers:
        """Return what each source has given at ticks of gaps: [ticks, sources]."""
        a, b, c = self.terms[:, gap]
        z = tick[:, None]
        found: Integers = (a + z * (b + z * c)) // self.divisors
        return found

    def position(self, gap: int, share: Fraction) -> Fraction:
        """Return the position that belongs to a share of a gap, 0 to 1."""
        a, b, c = self.totals[gap]
        return (a + share * (b + share * c)) / UNIT

    def found(self, position: int) -> tuple[int, int]:
        """Return the (gap, tick) of a position: where its parabola reaches it."""
        wanted = position * UNIT
        starts = [a for a, _, _ in self.totals]
        gap = max(number for number, start in enumerate(starts) if start <= wanted)
        a, b, c = self.totals[gap]
        beyond = 2 * (wanted - a)
        slope = b + math.isqrt(max(0, b * b + 2 * c * beyond))
        return gap, min(TICKS, TICKS * beyond // slope) if slope else 0


class ChangingInterleaving(Interleaving):
    """The counts of a phase's sources (each 1 or more) with weights that change over it."""

    def __init__(
        self,
        counts: Sequence[int],
        block_size: int,
        knots: Sequence[float],
        weights: Sequence[Sequence[float]],
    ) -> None:
        super().__init__(counts, block_size)
        ideal = Ideal(counts, knots, weights)
        self.step_blocks = self.borders_of(ideal)
        ends = {*(self.step_blocks * block_size).tolist(), self.total}
        self.ends = np.array(sorted(ends), np.int64)
        places = [ideal.found(end) for end in self.ends[:-1].tolist()]
        places += [(ideal.num_gaps - 1, TICKS)]
        gap, tick = zip(*places, strict=True)
        curves = ideal.after(np.array(gap, np.intp), np.array(tick, object))
        rounded = by_deadline(curves, self.ends)
        self.ideal = curves.astype(np.float64) / UNIT
        self.upto_end = np.pad(np.cumsum(rounded, axis=1), ((0, 0), (1, 0)))

    def borders_of(self, ideal: Ideal) -> Int64s:
        """Return the first block of every step, ascending, and the number of whole blocks."""
        most = min(MOST_STEPS, max(1, LARGEST_TABLE // self.upto.size))
        steps = max(1, most // ideal.num_gaps)
        shares = [Fraction(step, steps) for step in range(steps)]
        places = (ideal.position(gap, x) for gap in range(ideal.num_gaps) for x in shares)
        blocks = {round(place / self.block_size) for place in places}
        inside = (block for block in blocks if 0 < block < self.full_blocks)
        return np.array(sorted({0, *inside, self.full_blocks}), np.int64)

    def stretch_of(self, block: Int64s) -> tuple[Int64s, Int64s]:
        """Return (first, stop) of the whole blocks that each block shares its step with."""
        number = np.searchsorted(self.step_blocks, block, side="right")
        stop = self.step_blocks[np.minimum(number, self.step_blocks.size - 1)]
        return self.step_blocks[number - 1], stop

    def before(self, position: Int64s) -> Int64s:
        """[positions, sources + 1]: samples of the sources up to each, at the ends of steps."""
        found: Int64s = self.upto_end[np.searchsorted(self.ends, position)]
        return found


def by_deadline(ideal: Integers, ends: Int64s) -> Int64s:
    """Round the ideal at the ends of steps, so that no source goes back and rows sum to `ends`.

    ideal: [ends, sources], in parts of a sample.
    """
    low = (ideal // UNIT).astype(np.int64)
    high = (-(-ideal // UNIT)).astype(np.int64)
    passes = np.diff(low, axis=0, append=low[-1:] + 1) > 0
    nexts = np.arange(1, len(ends) + 1)[:, None]
    due = np.where(passes, nexts, len(ends))  # the end by which the next sample must be drawn
    due = np.minimum.accumulate(due[::-1])[::-1]
    drawn: Int64s = low.copy()
    for number in range(1, len(ends)):
        row = np.maximum(low[number], drawn[number - 1])
        missing = int(ends[number]) - int(row.sum())
        may = np.flatnonzero(row < high[number])
        first = np.argsort(due[number, may], kind="stable")[:missing]
        row[may[first]] += 1
        drawn[number] = row
    return drawn


def as_written(number: float) -> Fraction:
    """Return the number as people wrote it: 0.1 is a tenth."""
    return Fraction(repr(float(number)))


def whole(numbers: Sequence[Fraction]) -> list[int]:
    """Return whole numbers in the same proportions."""
    scale = math.lcm(*(number.denominator for number in numbers))
    return [int(number * scale) for number in numbers]


def check_weights(weights: Sequence[float], knots: Sequence[float]) -> None:
    """Raise ValueError for weights of a source that cannot be those at knots from 0 to 1."""
    is_ascending = list(knots) == sorted({*knots, 0.0, 1.0})
    if not is_ascending or len(weights) != len(knots) or min(weights) < 0 or max(weights) <= 0:
        raise ValueError(f"weights {list(weights)} at {list(knots)}")
