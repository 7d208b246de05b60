"""The split of a phase's positions over steps and ranks: arithmetic on a cursor, nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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


def skipped(ranges: Iterable[tuple[int, int]]) -> Skipped:
    """Return ranges [first, stop) of positions in order, joined where they meet.

    Raises CorpusError for one that is empty or negative, or not two whole numbers.
    """
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
    raise CorpusError(
        f"skip has {given!r}; it takes ranges of positions, (first, stop) with 0 <= first < stop"
    )


class Step(NamedTuple):
    """A step of one rank: the positions numbered [first, stop), the cursor of all ranks after it.

    repeated: numbers that fill up the last step of an epoch, after the others; skipped: positions
    that have no number.
    """

    first: int
    stop: int
    cursor: int
    repeated: tuple[int, ...] = ()
    skipped: Skipped = Skipped()

    @property
    def samples(self) -> int:
        """Number of samples, repeated ones too."""
        return self.stop - self.first + len(self.repeated)

    def positions(self) -> npt.NDArray[np.int64]:
        """Return the positions, int64 [samples]."""
        own = np.arange(self.first, self.stop, dtype=np.int64)
        numbers = np.append(own, self.repeated).astype(np.int64) if self.repeated else own
        return self.skipped.positions(numbers)


class Steps(NamedTuple):
    """Steps one after the other: positions int64 [samples of all], and of each step the rest.

    sizes: samples; cursors: of all ranks after the step; repeated: samples at its end that are.
    """

    positions: npt.NDArray[np.int64]
    sizes: list[int]
    cursors: list[int]
    repeated: list[int]


def join_steps(steps: Sequence[Step]) -> Steps:
    """Join steps, column by column: step by step it takes three times as long."""
    firsts, stops, cursors, repeated, _ = zip(*steps, strict=True)
    first = np.array(firsts, np.int64)
    sizes = np.array(stops, np.int64) - first
    counts = list(map(len, repeated))
    if any(counts) or (sizes != sizes[0]).any():
        positions = np.concatenate([step.positions() for step in steps])
    else:
        numbers = (first[:, None] + np.arange(sizes[0])).ravel()
        positions = steps[0].skipped.positions(numbers)
    return Steps(positions, (sizes + counts).tolist(), list(cursors), counts)


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

    def steps(self, cursor: int, skip: int = 0, every: int = 1) -> Iterator[Step]:
        """Yield every `every`-th step after the first `skip`, from the cursor to its epoch's end.

        The cursor after the last step is the epoch's end, whatever was dropped.
        """
        size, is_dropped = self.step_samples, self.last == "drop"
        least = self.batch_size if self.last == "pad" else 1
        begin, now, end = self.numbers(cursor)
        epoch_end, first_step = self.epoch_end(cursor), self.first_step(begin, now, end)
        for step_start in range(first_step + skip * size, end, every * size):
            if now <= step_start <= end - 2 * size:  # full and not the last: a third of the time
                first = step_start + self.batch_size * self.rank
                after = self.cursor_at(step_start + size)
                yield Step._make((first, first + self.batch_size, after, (), self.skipped))
                continue
            if step_start + size > end and is_dropped:
                return
            start = max(step_start, now)
            left = min(step_start + size, end) - start
            first = start + left * self.rank // self.world_size
            stop = start + left * (self.rank + 1) // self.world_size
            is_last = end - start - left < (size if is_dropped else 1)
            missing = range(least - (stop - first))
            repeated = tuple(end - 1 - number % (end - begin) for number in missing)
            after = epoch_end if is_last else self.cursor_at(start + left)
            yield Step(first, stop, after, repeated, self.skipped)

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

    def cursor_at(self, number: int) -> int:
        """Return the position with that number."""
        if not self.skipped.ranges:
            return number
        return int(self.skipped.positions(np.array([number], np.int64))[0])

    def steps_of_all_ranks(self, cursor: int) -> Iterator[Step]:
        """Yield the steps from the cursor to its epoch's end, each rank's in turn."""
        ranks = (replace(self, rank=rank).steps(cursor) for rank in range(self.world_size))
        for step in zip(*ranks, strict=True):
            yield from step

    def epoch_end(self, cursor: int) -> int:
        """Return the end of the epoch that contains the cursor."""
        return (cursor // self.epoch_samples + 1) * self.epoch_samples
