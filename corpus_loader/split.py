"""The split of a phase's positions over steps and ranks: arithmetic on a cursor, nothing stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from corpus_loader.places.errors import CorpusError

Last = Literal["drop", "pad", "short"]


@dataclass(frozen=True)
class Skipped:
    """Positions that are left out: ranges [first, stop), ascending, with positions between them.

    The others are numbered without gaps: `number` and `positions` convert between the two.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    def number(self, position: int) -> int:
        """Return how many positions before one are not left out."""
        out = sum(min(position, stop) - first for first, stop in self.ranges if first < position)
        return position - out

    def positions(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the positions with these numbers, int64 [n]."""
        if not self.ranges:
            return numbers
        first, stop = np.array(self.ranges, np.int64).T
        out = np.concatenate([[0], np.cumsum(stop - first)])
        before = np.searchsorted(first - out[:-1], numbers, side="right")
        return numbers + np.asarray(out[before], np.int64)


RANGES = "it takes ranges of positions, (first, stop) with 0 <= first < stop"


def skipped(ranges: Iterable[tuple[int, int]]) -> Skipped:
    """Return ranges [first, stop) of positions in order, joined where they meet.

    Raises CorpusError for one that is empty or negative, or not two whole numbers.
    """
    if not isinstance(ranges, Iterable):
        raise CorpusError(f"skip is {ranges!r:.100}; {RANGES}")
    joined: list[tuple[int, int]] = []
    for first, stop in sorted(map(checked_range, ranges)):
        if joined and first <= joined[-1][1]:
            first, stop = joined[-1][0], max(stop, joined.pop()[1])
        joined.append((first, stop))
    return Skipped(tuple(joined))


def checked_range(given: tuple[int, int]) -> tuple[int, int]:
    """Return a range of positions; CorpusError if it is none."""
    is_pair = isinstance(given, tuple | list) and len(given) == 2
    if is_pair and all(isinstance(end, Integral) and not isinstance(end, bool) for end in given):
        first, stop = map(int, given)
        if 0 <= first < stop:
            return first, stop
    raise CorpusError(f"skip has {given!r:.100}; {RANGES}")


class Steps(NamedTuple):
    """Steps one after the other: positions int64 [samples of all], and of each step the rest.

    sizes: samples; cursors: of all ranks after the step; repeated: of its samples, the last ones
    that only fill it up.
    """

    positions: npt.NDArray[np.int64]
    sizes: list[int]
    cursors: list[int]
    repeated: list[int]


@dataclass(frozen=True)
class Split:
    """An epoch of `epoch_samples` samples, split into steps and these over ranks.

    A step takes the next world_size x batch_size samples after the cursor; rank r the r-th part.
    `last` says what becomes of the rest at the end of an epoch: "drop" leaves it out; "pad" and
    "short" split it evenly. "pad" fills every rank's batch up with repeated samples, "short" only
    one that would be empty: the mean loss of no rows is NaN. Repeated are the last samples of the
    epoch, whose shards are open. `skipped` positions are in no step: an epoch has as many fewer
    samples. No step crosses a multiple of `aligned_samples` of the epoch if steps divide them: from
    a cursor inside of a step, the first step is the rest of that one, split evenly; a rank that
    would get nothing gets one repeated sample. Raises CorpusError for an impossible split;
    `takes_few`: not for fewer samples than ranks.
    """

    epoch_samples: int
    rank: int
    world_size: int
    batch_size: int
    last: Last
    skipped: Skipped = Skipped()
    aligned_samples: int | None = None
    takes_few: bool = False

    def __post_init__(self) -> None:
        """Refuse an impossible split."""
        if self.batch_size < 1 or self.world_size < 1:
            raise CorpusError(
                f"batch_size is {self.batch_size} and world_size {self.world_size}; both must be 1 "
                "or more"
            )
        if not 0 <= self.rank < self.world_size:
            raise CorpusError(
                f"rank is {self.rank} of world_size {self.world_size}; it must be 0 to "
                f"{self.world_size - 1}"
            )
        is_dropped = self.last == "drop"
        least = self.step_samples if is_dropped else self.world_size
        if self.epoch_samples < (1 if self.takes_few else least):
            raise CorpusError(
                f"the phase has {self.epoch_samples:,} samples; {self.world_size:,} ranks"
                + (f" with batches of {self.batch_size:,} and drop_last" if is_dropped else "")
                + f" need {least:,}. Use fewer ranks,"
                + (" smaller batches, LoaderOptions(pad_last=True)," if is_dropped else "")
                + " or give the phase more tokens."
            )

    @property
    def step_samples(self) -> int:
        """Samples of a full step, over all ranks."""
        return self.world_size * self.batch_size

    def __len__(self) -> int:
        """Steps of a whole epoch."""
        return self.steps_left(0)

    def steps_left(self, cursor: int) -> int:
        """Steps from the cursor to its epoch's end."""
        begin, now, stop = self.numbers(cursor)
        start = self.first_step(begin, now, stop)
        full, rest = divmod(stop - start, self.step_samples)
        return full if self.last == "drop" or not rest else full + 1

    def steps(self, cursor: int, which: range) -> Steps:
        """Return the steps with these numbers, from 0 at the cursor to `steps_left`.

        The cursor after the last step is the epoch's end, whatever was dropped.
        """
        begin, now, end = self.numbers(cursor)
        number = np.arange(which.start, which.stop, which.step)
        size = min(self.step_samples, end - begin)  # of int64, whatever was asked for
        start = self.first_step(begin, now, end) + number * size
        stop = np.minimum(start + size, end)
        start = np.maximum(start, now)
        first, own_stop = (
            start + (stop - start) * rank // self.world_size for rank in (self.rank, self.rank + 1)
        )
        least = self.batch_size if self.last == "pad" else 1
        sizes = np.maximum(own_stop - first, least)
        repeated = sizes - (own_stop - first)

        numbers = np.repeat(first - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
        if repeated.any():
            beyond = numbers - np.repeat(own_stop, sizes)
            numbers = np.where(beyond < 0, numbers, end - 1 - beyond % (end - begin))
        cursors = self.skipped.positions(stop)
        cursors[number == self.steps_left(cursor) - 1] = self.epoch_end(cursor)
        positions = self.skipped.positions(numbers)
        return Steps(positions, sizes.tolist(), cursors.tolist(), repeated.tolist())

    def first_step(self, begin: int, now: int, end: int) -> int:
        """Return the start of the step that contains a number of an epoch from `begin` to `end`."""
        aligned = self.aligned_samples
        if aligned is None or aligned % self.step_samples or now == end:
            return now
        return now - (now - begin) % self.step_samples

    def numbers(self, cursor: int) -> tuple[int, int, int]:
        """Return the numbers of the start of the cursor's epoch, of the cursor, and of the end."""
        end = self.epoch_end(cursor)
        begin, now, stop = map(self.skipped.number, (end - self.epoch_samples, cursor, end))
        return begin, now, stop

    def epoch_end(self, cursor: int) -> int:
        """Return the end of the epoch that contains the cursor."""
        return (cursor // self.epoch_samples + 1) * self.epoch_samples
