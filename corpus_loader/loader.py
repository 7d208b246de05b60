"""The loader of a training job: the samples of a phase in their one order, split over ranks.

    loader = CorpusLoader("store", phase="general", rank=rank, world_size=world, batch_size=8)
    for batch in loader:                # one epoch of the phase; the next iteration is the next
        train(batch.tokens)             # uint16 [8, 2048]
    state = loader.state_dict()         # 100 bytes, the same on every rank

A step takes the next batch_size x world_size samples after the cursor, rank r the r-th part of
them. The cursor is all that a state holds, besides the identity of the corpus and the order: a run
continues at the exact sample with any world size, batch size and number of workers. Every rank
takes the same number of steps, and no batch is empty: the last step of an epoch, if it is short, is
left out (`drop_last`), or filled up with repeated samples that are marked (`pad_last`).

There are no processes, no shared memory, nothing on disk, and threads only while files are hashed
(files.py). Batches are arrays of their own, which stay as they are: reused buffers were no faster
below 32 MB a batch. Small batches are slices of two megabytes that are read together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from numbers import Integral
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from corpus_loader.batch import Batch, Documents, Group
from corpus_loader.find_mixture import (
    VALIDATION,
    Asked,
    Part,
    check_takedowns,
    find_part,
    mixtures,
)
from corpus_loader.mixture import Mixture
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.remote import open_files
from corpus_loader.places.stage_names import MIXED
from corpus_loader.reader import LoaderOptions, Reader, check_data
from corpus_loader.split import Split, Steps

STATE_VERSION = 1
BatchType = TypeVar("BatchType")
LARGEST = 1 << 62  # a cursor beyond it does not fit the arithmetic of positions
LOOK_UP_SAMPLES = 32_768  # of the order at a time: 0.2 us each, 2 us where few are looked up
GROWTH = 64  # of look-ups: the first is of one batch, and a small one takes 0.4 ms
READ_BYTES = 2 << 20  # at a time: of one megabyte, a sample takes a tenth longer


@dataclass
class LoaderStats:
    """Work of a loader in this process since it was opened, and the time that it took.

    batches, samples: given to the training loop; wait_seconds: time in which the loop waited for
    them, the first one of each iteration too; used_seconds: time from a batch to the request of the
    next, which is the training's.
    """

    batches: int = 0
    samples: int = 0
    wait_seconds: float = 0.0
    used_seconds: float = 0.0

    @property
    def samples_per_second(self) -> float:
        """Samples per second of both; 0 before the first batch."""
        seconds = self.wait_seconds + self.used_seconds
        return self.samples / seconds if seconds else 0.0

    @property
    def wait_share(self) -> float:
        """Share of the time in which the training waited, 0 to 1."""
        seconds = self.wait_seconds + self.used_seconds
        return self.wait_seconds / seconds if seconds else 0.0

    def timed(
        self, batches: Iterator[BatchType], samples_of: Callable[[BatchType], int]
    ) -> Iterator[BatchType]:
        """Yield batches, and count them and their times."""
        asked = time.perf_counter()
        for batch in batches:
            given = time.perf_counter()
            self.wait_seconds += given - asked
            self.batches += 1
            self.samples += samples_of(batch)
            yield batch
            asked = time.perf_counter()
            self.used_seconds += asked - given


class CorpusLoader:
    """The samples of a phase, for one rank of `world_size`; see the module's docstring.

    `path` is a store's folder or its URL; `batch_size` counts samples of this rank; `seed` names
    another order than the phase's own; `data` names a tag, as `LoaderOptions.data` does.

    `split="validation"` reads what `holdout` keeps out of training instead of a phase, of all
    sources or of one `source`: every iteration begins at the first sample, in the same order, and
    leaves none out. The last step is split evenly over the ranks, and a rank that would get nothing
    gets a sample that is marked as repeated; with `pad_last` every batch is full.

    Raises CorpusError for what the corpus does not have, and while reading for a file that is
    missing or damaged.
    """

    def __init__(  # noqa: PLR0913  what a training job has to say
        self,
        path: str | Path,
        phase: str = "general",
        rank: int = 0,
        world_size: int = 1,
        batch_size: int = 8,
        seed: int | None = None,
        options: LoaderOptions | None = None,
        data: str | None = None,
        split: Part = "train",
        source: str | None = None,
    ) -> None:
        check_types(path, phase, seed, options)
        check_data(data)
        for name, count in (("rank", rank), ("world_size", world_size), ("batch_size", batch_size)):
            check_whole(name, count)
        options = options or LoaderOptions()
        files = self.files = open_files(path, options.verify, options.cache, options.cache_bytes)
        self.mixture = find_part(files, Asked(phase, split, source, seed), data or options.data)
        check_takedowns(files, self.mixture, options.accept_takedown)
        self.source = source
        self.seed = self.mixture.seed_of(seed)
        self.reader = Reader(files, self.mixture, self.seed, options)
        self.split = Split(
            len(self.reader.order),
            rank,
            world_size,
            batch_size,
            options.last_of(split),
            options.skipped,
            self.mixture.aligned_samples,
            takes_few=split == VALIDATION,
        )
        self.cursor = 0  # samples of all ranks that were yielded
        self.is_loaded = False  # the cursor is that of a state
        self.is_done = False  # nothing is left of the epoch that the next iteration is for
        self.moves = 0  # calls of load_state_dict and set_epoch that moved it
        self.iterations = 0  # that have begun: only the last one goes on
        self.first_look_up = 1  # batches of the next iteration to look up together at first
        self._stats = LoaderStats()

    def __len__(self) -> int:
        """Batches of the whole epoch that contains the next batch, for each rank."""
        return self.split.steps_left(self.epoch * self.split.epoch_samples)

    @property
    def sources(self) -> list[str]:
        """Names of the phase's sources: `Batch.sources` indexes this list."""
        return [source.name for source in self.mixture.sources]

    @property
    def loss_weights(self) -> npt.NDArray[np.float32]:
        """Factor of the loss of each source's tokens, float32 [sources]: index `Batch.sources`."""
        return np.array([source.loss_weight for source in self.mixture.sources], np.float32)

    @property
    def epoch(self) -> int:
        """The epoch of the phase that contains the next batch, from 0."""
        return self.cursor // self.split.epoch_samples

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; a loader that is inside that epoch stays where it is.

        So does one that loaded the state of that epoch's end: the next iteration gives nothing. In
        the middle of an iteration, its next batch is the first of that epoch.
        """
        check_whole("epoch", epoch)
        if not 0 <= epoch < LARGEST // self.split.epoch_samples:
            raise CorpusError(f"epoch is {epoch}; it must be 0 or more, and not beyond counting")
        start = epoch * self.split.epoch_samples
        self.is_done = self.is_loaded and self.cursor == start + self.split.epoch_samples
        if epoch != self.epoch and not self.is_done:
            self.go_to(start)
            self.moves += 1

    def begin(self) -> int:
        """Begin an iteration, and return its number; of validation at the first sample.

        It goes on from where a state was loaded, and takes over from an iteration before it.
        """
        if self.mixture.is_validation and not self.is_loaded:
            self.go_to(0)
        self.iterations += 1
        return self.iterations

    def check_newest(self, iteration: int) -> None:
        """Raise CorpusError if an iteration has begun after this one, which would repeat it."""
        if iteration != self.iterations:
            raise CorpusError(
                "another iteration of this loader has begun, and goes on from where this one was: "
                "both would give the same batches. Read on with that one, or open a loader for each"
            )

    def iteration_end(self) -> int:
        """Return the cursor after an iteration that starts now."""
        return self.cursor if self.is_done else self.split.epoch_end(self.cursor)

    def go_to(self, cursor: int) -> None:
        """Start the next iteration there."""
        self.cursor, self.is_loaded, self.is_done = cursor, False, False

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches up to the end of the epoch; then the loader is in the next.

        The iteration that began last takes over: one before it raises CorpusError if it is read on.
        """
        return self.given(
            lambda: chain.from_iterable(
                zip(group.cursors, group.sizes, group.batches(), strict=True)
                for group in self.groups()
            )
        )

    def given(
        self, batches_from_here: Callable[[], Iterator[tuple[int, int, BatchType]]]
    ) -> Iterator[BatchType]:
        """Yield the batches of an iteration, each after the loader has gone to its cursor.

        They come with their cursor and their number of samples. If the loader is moved meanwhile,
        they come from there on.
        """
        iteration, is_moved = self.begin(), True
        while is_moved:
            end, moves, is_moved = self.iteration_end(), self.moves, False
            for cursor, _, batch in self._stats.timed(batches_from_here(), itemgetter(1)):
                self.go_to(cursor)
                yield batch
                self.check_newest(iteration)
                if is_moved := self.moves != moves:
                    break
        self.go_to(end)

    def stats(self) -> LoaderStats:
        """Return the batches of `iter(loader)` so far in this process, and their times."""
        return replace(self._stats)

    def batches(self, skip: int = 0, every: int = 1) -> Iterator[Batch]:
        """Yield every `every`-th batch after the first `skip`, without moving the loader."""
        for group in self.groups(skip, every):
            yield from group.batches()

    def groups(self, skip: int = 0, every: int = 1) -> Iterator[Group]:
        """Yield `batches` as they are read: small ones together."""
        if self.is_done:
            return
        cursor, at_once = self.cursor, self.steps_at_once()
        which = range(skip, self.split.steps_left(cursor), every)
        count, self.first_look_up = self.first_look_up, 1
        while which:
            steps = self.split.steps(cursor, which[:count])
            yield from self.read(steps, at_once)
            which = which[count:]
            count = min(GROWTH * count, max(1, LOOK_UP_SAMPLES // self.split.batch_size))
        self.first_look_up = count  # the next epoch most often goes on from here
        self.reader.checks.finish()

    def read(self, steps: Steps, at_once: int) -> Iterator[Group]:
        """Look the steps up, and read so many batches together."""
        lookup = self.reader.look_up(steps.positions)
        start = 0
        for part in (slice(i, i + at_once) for i in range(0, len(steps.sizes), at_once)):
            sizes, cursors = steps.sizes[part], steps.cursors[part]
            stop = start + sum(sizes)
            together = self.reader.read(lookup.slice(start, stop), cursors[-1])
            for repeated, end in zip(steps.repeated[part], accumulate(sizes), strict=True):
                if repeated:
                    together.mark_repeated(repeated, end)
            yield Group(together, sizes, cursors)
            start = stop

    def steps_at_once(self) -> int:
        """Return the number of batches to read together: about READ_BYTES of equal rows."""
        length = self.mixture.sequence_length
        if length is None:
            return 1
        token_bytes = self.reader.dtype.itemsize
        if self.reader.with_documents:
            token_bytes += Documents.BYTES_PER_TOKEN
        return max(1, READ_BYTES // (length * token_bytes * self.split.batch_size))

    def samples(self, positions: npt.ArrayLike) -> Batch:
        """Read the samples at any positions of the phase, as one batch.

        Raises CorpusError for what are no whole numbers from 0 on.
        """
        lookup = self.reader.look_up(checked_positions(positions))
        return self.reader.read(lookup, self.cursor)

    def state_dict(self) -> dict[str, Any]:
        """Return the loader's state: the same on every rank, and valid for any other split."""
        return self.state_at(self.cursor)

    def state_at(self, cursor: int) -> dict[str, Any]:
        """Return the state after the batch with that cursor: for code that reads ahead."""
        data = self.mixture.fingerprint
        state = {"version": STATE_VERSION, "cursor": cursor, "seed": self.seed, "data": data}
        return state if self.source is None else state | {"source": self.source}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, with the next iteration, or the next batch of this one.

        Raises CorpusError for the state of another corpus, mixture or seed.
        """
        self.cursor = check_state(state, self.state_dict(), self.mixture_with)
        self.is_loaded, self.is_done = True, False
        self.moves += 1

    def mixture_with(self, data: str) -> Mixture | None:
        """Return the mixture of another phase of the corpus that has this fingerprint, if any."""
        for phase in self.files.names(MIXED):
            if phase != self.mixture.phase:
                with suppress(CorpusError):  # of a phase that is not mixed, or cannot be read
                    for mixture in mixtures(self.files, phase):
                        if mixture.fingerprint == data:
                            return mixture
        return None


def check_types(path: object, phase: object, seed: object, options: object) -> None:
    """Raise CorpusError for an argument of another type than CorpusLoader takes."""
    expected: tuple[tuple[str, object, Any, str], ...] = (
        ("path", path, str | os.PathLike, "a folder or a URL"),
        ("phase", phase, str, "the name of a phase"),
        ("options", options, LoaderOptions | None, "LoaderOptions"),
    )
    for name, value, kind, what in expected:
        if not isinstance(value, kind):
            raise CorpusError(f"{name} is {value!r:.100}; it must be {what}")
    if seed is not None:
        check_whole("seed", seed)


def check_whole(name: str, value: object) -> None:
    """Raise CorpusError for what is no whole number."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise CorpusError(f"{name} is {value!r:.100}; it must be a whole number")


def checked_positions(positions: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return positions as int64 [n]; CorpusError for what are none."""
    try:
        given = np.asarray(positions).ravel()
    except ValueError:  # of rows of different lengths
        given = np.array([None])
    if given.size == 0 or (given.dtype.kind in "iu" and given.min() >= 0 and given.max() < LARGEST):
        return given.astype(np.int64)
    raise CorpusError(f"positions are {positions!r:.100}; they must be whole numbers from 0 on")


def check_state(
    state: Mapping[str, Any], own: Mapping[str, Any], mixture_with: Callable[[str], Mixture | None]
) -> int:
    """Return the cursor of a state; CorpusError if it is not of the corpus and order of `own`.

    `mixture_with` finds the mixture of another phase by its fingerprint.
    """
    if not isinstance(state, Mapping):
        raise CorpusError(f"a state is what state_dict() returns, not {state!r:.100}")
    then, now = state.get("source"), own.get("source")
    if then != now:
        raise CorpusError(
            f"the state is of the source {then!r}, the loader's is {now!r} (None: all). Open it "
            f"with source={then!r}, or start without the state."
        )
    if set(state) != set(own) or state["version"] != STATE_VERSION:
        raise CorpusError(
            f"not a state of this loader: {dict(state)!r:.200}. It needs the keys "
            f"{sorted(own)}, version {STATE_VERSION}."
        )
    if state["data"] != own["data"]:
        raise other_mixture(state["data"], own["data"], mixture_with(state["data"]))
    if state["seed"] != own["seed"]:
        raise CorpusError(
            f"the state is of another order ({state['seed']}) than the loader's ({own['seed']}). "
            "Open the loader with the seed that it had when the state was taken."
        )
    cursor = state["cursor"]
    if (
        isinstance(cursor, bool)
        or not isinstance(cursor, Integral)
        or not (0 <= int(cursor) < LARGEST)
    ):
        raise CorpusError(f"the state's cursor is {cursor!r}; it must be a whole number from 0 on")
    return int(cursor)


def other_mixture(then: str, now: str, other: Mixture | None) -> CorpusError:
    """Return the error of a state of another mixture, which `other` is if the corpus has it."""
    if other is not None:
        key = "split" if other.is_validation else "phase"
        return CorpusError(
            f"the state is of the phase {other.phase!r}: open the loader with "
            f"{key}={other.phase!r}, or start this phase without a state."
        )
    return CorpusError(
        f"the state is of a mixture with fingerprint {then}, this one has {now}: other data, or "
        f"another order. Open the loader with LoaderOptions(data={then!r}), or start without the "
        "state."
    )
