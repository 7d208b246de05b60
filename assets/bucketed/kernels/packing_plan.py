"""Packing of document segments into sequences of one length: the plan, and its assignment.

Purpose: sequences are planned on the histogram of lengths, so a plan costs the same for a thousand
documents and for a billion. Each sequence begins with the longest segment left. Next comes the
segment that fills it, else a pair that fills it (the most even pair, which saves short segments for
later), else the longest segment that fits. The composition is then repeated as long as its lengths
last. This is minimum bin slack (Gupta and Ho 1999) with a search of depth two.
Pairs are not searched while the segments left are longer than a third of a sequence on average:
they would use up the short ones, without which the long ones cannot be filled (documents of 1,096
tokens in the median: 0.04 % padding at 2,048 instead of 0.85 %, and best-fit-decreasing 0.12 %).
If the limit of segments is less than twice the mean, segments of mean length come first. Otherwise
too many short segments would be left over for their sequences (8,192 tokens, at most 8 documents:
24 % padding instead of 0.4 %).
Trade-off: best-fit-decreasing on the same histogram takes as long and wastes more: for 1e6 real
documents at 2,048 tokens it needs 95 sequences above the lower bound, this plan 6.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

LENGTH, FIRST, SEQUENCES, PIECES = 0, 1, 2, 3  # columns of a run; PIECES: segments
_SEARCH = 256  # lengths to try as the shorter segment of a pair: more find no better plan
_LEAST_MEAN = 3  # segments of a full sequence, of those left, from which on pairs are searched
_FIRST_RUNS = 1024

_places = types.Array(types.uint32, 1, "C", readonly=True)
_sizes = types.Array(types.int64, 1, "C", readonly=True)
_table = types.Array(types.int64, 2, "C", readonly=True)
_limits = types.UniTuple(types.int64, 4)


@njit(types.int64(types.int64[::1], types.int64), **ARRAY_KERNEL)
def _longest(below: NDArray[np.int64], length: int) -> int:
    """Return the longest length left, up to `length`, or 0 for none; shorten paths on the way."""
    # below[k] is k while segments of that length are left, then a shorter length.
    root = length
    while below[root] != root:
        root = below[root]
    while below[length] != root:
        below[length], length = root, below[length]
    return root


@njit(types.void(types.int64[::1], types.int64[::1], types.int64, types.int64), **ARRAY_KERNEL)
def _take(counts: NDArray[np.int64], below: NDArray[np.int64], length: int, number: int) -> None:
    """Remove `number` segments of a length in place."""
    counts[length] -= number
    if counts[length] == 0:
        below[length] = length - 1


@njit(types.int64(types.int64[::1], types.int64[::1], _limits), **ARRAY_KERNEL)
def _pick(
    counts: NDArray[np.int64], below: NDArray[np.int64], limits: tuple[int, int, int, int]
) -> int:
    """Return the length to add within `limits` (see `_compose`), or 0 for none."""
    space, segments, _, search = limits
    longest = _longest(below, space) if segments > 0 else 0
    # It fills the space; or no pair can, since neither is longer; or a pair is not allowed.
    if longest == space or 2 * longest < space or segments < 2:
        return longest
    # The most even pair first: short segments are kept for later.
    short = _longest(below, space // 2)
    for _ in range(search):
        if short == 0:
            break
        other = space - short
        # A pair of equal lengths needs two of them.
        if counts[other] > (1 if other == short else 0):
            return other  # the next call finds that the pair's shorter segment fills the rest
        short = _longest(below, short - 1)
    return longest


@njit(types.int64(types.int64[:, ::1], types.int64, types.int64), **ARRAY_KERNEL)
def _find_run(runs: NDArray[np.int64], end: int, length: int) -> int:
    """Return the index of the run of a length in runs[:end], or `end` if there is none."""
    for run in range(end):
        if runs[run, LENGTH] == length:
            return run
    return end


@njit(types.int64(types.int64[::1], types.int64[::1], types.int64[:, ::1]), **ARRAY_KERNEL)
def _repeat(counts: NDArray[np.int64], below: NDArray[np.int64], runs: NDArray[np.int64]) -> int:
    """Repeat a composition as long as its lengths last; return its number of sequences."""
    # One sequence is taken already; `more` is how often the rest has it again.
    more = counts[runs[0, LENGTH]] // runs[0, PIECES]
    for run in range(1, len(runs)):
        more = min(more, counts[runs[run, LENGTH]] // runs[run, PIECES])
    for run in range(len(runs)):
        runs[run, SEQUENCES] = more + 1
        if more > 0:
            _take(counts, below, runs[run, LENGTH], more * runs[run, PIECES])
    return more + 1


@njit(types.int64(types.int64[::1], types.int64[::1], types.int64[:, ::1], _limits), **ARRAY_KERNEL)
def _compose(
    counts: NDArray[np.int64],
    below: NDArray[np.int64],
    runs: NDArray[np.int64],
    limits: tuple[int, int, int, int],
) -> int:
    """Take the segments of one sequence and write their runs to `runs`; return their number.

    `limits` are the tokens and the segments that fit, the wanted number of segments, 0 for any, and
    the number of pairs to search.
    """
    space, segments, wanted, search = limits
    end, length = 0, _longest(below, space)
    while length > 0:
        run = _find_run(runs, end, length)
        if run == end:
            runs[run, LENGTH], runs[run, PIECES] = length, 0
            end += 1
        runs[run, PIECES] += 1
        _take(counts, below, length, 1)
        space, segments, wanted = space - length, segments - 1, wanted - 1
        # The mean of what is left to fill; the last two are left to `_pick`, which fills exactly.
        length = _longest(below, space // wanted) if wanted > 2 and segments > 0 else 0
        if length == 0:
            length = _pick(counts, below, (space, segments, wanted, search))
    return end


@njit(types.int64[:, ::1](_sizes, types.int64), **ARRAY_KERNEL)
def plan_sequences(histogram: NDArray[np.int64], max_segments: int) -> NDArray[np.int64]:
    """Plan sequences of at most `max_segments` segments; return their runs, int64 [m, 4].

    A run is (length, first sequence, sequences, segments in each). `histogram`, int64
    [sequence length + 1], counts the segments of each length. All segments are placed: the runs of
    a length together hold its count.
    """
    capacity = len(histogram) - 1
    counts, below = histogram.copy(), np.arange(len(histogram))
    number, tokens = 0, 0
    for length in range(1, len(counts)):
        number, tokens = number + counts[length], tokens + length * counts[length]
        if counts[length] == 0:
            below[length] = length - 1
    most_runs = 1  # of a sequence: one of distinct lengths 1, 2, 3, ... has the most
    while most_runs * (most_runs + 1) <= 2 * capacity:
        most_runs += 1
    runs = np.empty((_FIRST_RUNS + most_runs, 4), np.int64)
    end, sequences = 0, 0
    while number > 0:
        if len(runs) - end < most_runs:
            runs = np.concatenate((runs, np.empty_like(runs)))
        mean = -(-number * capacity // tokens)  # segments of a full sequence, of those left
        wanted = min(mean, max_segments) if 2 * mean > max_segments else 0
        search = _SEARCH if number * capacity >= _LEAST_MEAN * tokens else 0
        limits = (capacity, max_segments, wanted, search)
        made = runs[end : end + _compose(counts, below, runs[end:], limits)]
        times = _repeat(counts, below, made)
        for run in range(len(made)):
            made[run, FIRST] = sequences
            number -= times * made[run, PIECES]
            tokens -= times * made[run, PIECES] * made[run, LENGTH]
        end, sequences = end + len(made), sequences + times
    return runs[:end].copy()


@njit(types.uint32[::1](_table, _places, _sizes), **ARRAY_KERNEL)
def assign_sequences(
    runs: NDArray[np.int64], order: NDArray[np.uint32], starts: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Assign n segments to the sequences of a plan; return the sequence of each, uint32 [n].

    `order`, uint32 [n], are the segments sorted by length; those of length k begin at `starts[k]`,
    int64. The runs take them in this order.
    """
    sequence = np.empty(len(order), np.uint32)
    at = starts.copy()
    for run in runs:
        for number in range(run[SEQUENCES]):
            for _ in range(run[PIECES]):
                sequence[order[at[run[LENGTH]]]] = run[FIRST] + number
                at[run[LENGTH]] += 1
    return sequence
