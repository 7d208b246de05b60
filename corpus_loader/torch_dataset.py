"""The loader for torch: a dataset, and a DataLoader that counts what the training loop took.

    batches = CorpusDataLoader(CorpusDataset(CorpusLoader("store", batch_size=8)), num_workers=2)
    for batch in batches:             # one epoch of the phase; the next iteration is the next
        train(batch["tokens"])        # int64 [8, 2048]
        state = batches.state_dict()  # to resume with any number of workers

Any other DataLoader over a CorpusDataset reads ahead of the training loop with its workers, and the
dataset does not know how far the loop is. So it refuses to guess: `state_dict` raises, and so does
a second iteration from the same position. The batch knows: dataset.state_at(batch["cursor"]).

Workers take batches in turn, and torch gives them back in turn: the order is the one without them.
They cost more than they give: a batch from another process takes six times as long (8 x 2,048
tokens, one worker), and reading is faster than any training.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch  # noqa: TID253  whoever imports this module uses torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info  # noqa: TID253

from corpus_loader.batch import Batch, Documents, Group
from corpus_loader.loader import CorpusLoader, LoaderStats, check_whole
from corpus_loader.places.errors import CorpusError

Tensors = dict[str, torch.Tensor]

LOADED = -1  # instead of a seed in `used`: workers loaded the state of another epoch's end
MOVED = -3  # the main process has gone elsewhere meanwhile
AHEAD = -2  # Accelerate iterates in this process, some batches ahead
QUEUE_SECONDS = 1.0  # for a worker to send what it has read ahead; torch waits 5 for its end
OF_THE_CORPUS = {  # options of torch's DataLoader
    "batch_size": "give it to CorpusLoader, which makes the batches",
    "sampler": "the phase has its order; CorpusLoader takes another seed",
    "batch_sampler": "the phase has its order; CorpusLoader takes another seed",
    "shuffle": "the samples are shuffled already; CorpusLoader takes another seed",
    "drop_last": "give it to LoaderOptions",
}
OTHER_WAYS = (
    "Use CorpusDataLoader, which counts them; or go on after a batch with "
    "dataset.load_state_dict(dataset.state_at(batch['cursor'])), and call dataset.set_epoch(epoch) "
    "before each epoch."
)


class CorpusDataset(IterableDataset[Tensors]):  # type: ignore[misc]
    """The batches of a loader as dictionaries of tensors; one epoch of the phase per iteration.

    Every tensor has a row per sample, except for those of documents. The dataset takes over the
    loader, and turns its uint16 or uint32 tokens into int64.
    """

    def __init__(self, loader: CorpusLoader) -> None:
        if not isinstance(loader, CorpusLoader):
            raise CorpusError(f"loader is {loader!r:.100}; it must be a CorpusLoader")
        if loader.reader.dtype.kind == "u":  # torch has uint16 and uint32, but can do little
            loader.reader.dtype = np.dtype(np.int64)
        self.loader = loader
        self.taken = 0  # batches of this epoch that this worker has given
        self.worker: tuple[int, int] | None = None  # its number, and how many there are
        self.is_ended = False  # in a worker: the state that it loaded leaves it nothing to give
        self.is_used = False  # in a worker: iterated before
        self.is_counted = False  # by a CorpusDataLoader
        self.is_ahead = False  # Accelerate reads ahead in this process
        self.is_dispatched = False  # Accelerate distributes the batches of this process
        # Cursor and is_done, which the main process writes for workers that stay (see `start`).
        self.start_of_iteration = torch.zeros(2, dtype=torch.int64).share_memory_()
        self.used = torch.zeros(1, dtype=torch.int64).share_memory_()  # see `free_position`

    def __len__(self) -> int:
        """Batches of a whole epoch; of all ranks if Accelerate distributes them."""
        return len(self.loader) * (self.loader.split.world_size if self.is_dispatched else 1)

    def __iter__(self) -> Iterator[Tensors]:
        """Yield the batches to the end of the epoch; in a worker, its share of them."""
        info = get_worker_info()
        if info is None and not self.is_ahead:
            self.check_worker(0, 0)
            yield from self.loader.given(self.all_tensors)
        elif info is None:
            self.use_position(AHEAD)
            moves = self.loader.moves
            for batch in self.loader.batches(of_all_ranks=self.is_dispatched):
                refuse_move(is_moved=self.loader.moves != moves)
                yield to_tensors(batch)
        else:
            yield from self.share_of_worker(info.id, info.num_workers, info.seed - info.id)

    def all_tensors(self) -> Iterator[tuple[int, int, Tensors]]:
        """Yield the batches to the end of the epoch, with the cursor after each and its samples."""
        for group in self.loader.groups():
            yield from zip(group.cursors, group.sizes, tensors_of(group), strict=True)

    def share_of_worker(self, number: int, workers: int, seed: int) -> Iterator[Tensors]:
        """Yield every `workers`-th batch of the epoch; `seed` is that of all workers."""
        if not self.is_counted and (self.is_used or is_worker_that_stays()):
            raise CorpusError(
                "persistent_workers is True: a worker that stays does not know which of its "
                "batches were used, nor of set_epoch or load_state_dict since it started. Use "
                "CorpusDataLoader, which tells it, or set persistent_workers=False."
            )
        if self.is_used:
            cursor, is_done = self.start_of_iteration.tolist()
            self.taken = 0
            self.loader.go_to(cursor)
            self.loader.is_done = bool(is_done)
        else:
            atexit.register(wait_for_queue)
        self.is_used = True
        self.check_worker(number, workers)
        if not self.is_counted:
            self.use_position(seed)
        self.worker = (number, workers)
        end = self.loader.iteration_end()
        skip = number + self.taken * workers
        for batch in self.loader.batches(skip, workers, self.is_dispatched):
            refuse_move(is_moved=not self.is_counted and int(self.used) == MOVED)
            self.taken += 1
            yield to_tensors(batch)
        self.taken = 0
        self.loader.go_to(end)

    def check_worker(self, number: int, workers: int) -> None:
        """Refuse to go on from the state of another worker."""
        if self.worker not in (None, (number, workers)):
            raise CorpusError(
                f"the state is of worker {self.worker}, this one is {(number, workers)} (number, "
                "and how many). Use as many, or the state of the last batch: "
                "dataset.state_at(batch['cursor'])."
            )

    def free_position(self) -> None:
        """Let an iteration begin: the main process has moved.

        `used` is the seed of the iteration whose workers began at this position; 0: none did. They
        write it, to shared memory. A late worker of an iteration before writes to the old one, in
        which those that still give batches find MOVED.
        """
        self.used.fill_(MOVED)
        self.used = torch.zeros(1, dtype=torch.int64).share_memory_()

    def use_position(self, seed: int) -> None:
        """Refuse a second iteration from one position: torch would give the same batches again.

        Validation is read again on purpose.
        """
        used, is_again = int(self.used), self.loader.mixture.is_validation
        if self.is_ended:
            return
        if not is_again and self.worker is None and used != 0 and (used != seed or seed == AHEAD):
            raise CorpusError(
                "an earlier iteration began at this position too, and it is not known how many of "
                f"its batches were used. {OTHER_WAYS}"
            )
        self.used.fill_(seed)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; a dataset that is inside that epoch stays where it is."""
        self.look_for_accelerate(epoch)
        before, was_done = self.loader.cursor, self.loader.is_done
        self.loader.set_epoch(epoch)
        if was_done or self.loader.cursor != before:
            self.free_position()

    def look_for_accelerate(self, epoch: int) -> None:
        """Find out whether Accelerate iterates, which calls `set_epoch` first, and in which way."""
        module = sys.modules.get("accelerate.state")
        prepared: Any = None if module is None else module.GradientState().active_dataloader
        dataset = None if prepared is None else prepared.dataset
        if dataset is not self and getattr(dataset, "dataset", None) is not self:
            return
        check_prepared(prepared, self.loader)
        if epoch < self.loader.epoch and self.loader.is_loaded:
            raise CorpusError(
                f"the state is of epoch {self.loader.epoch}, and Accelerate begins with {epoch}. "
                "Call set_epoch(dataset.loader.epoch) of the loader that `prepare` returned."
            )
        self.is_dispatched = is_dispatcher(prepared)
        self.is_ahead = not hasattr(prepared.base_dataloader, "state_dict")
        if self.is_dispatched and self.loader.split.world_size == 1:
            ranks = prepared.state.num_processes
            self.loader.split = replace(self.loader.split, world_size=ranks)

    def state_at(self, cursor: int | torch.Tensor) -> dict[str, Any]:
        """Return the state after the batch with that cursor; valid for any number of workers."""
        return self.loader.state_at(int(torch.as_tensor(cursor).max()))

    def state_dict(self) -> dict[str, Any]:
        """The loader's state; of a worker also what it has given (StatefulDataLoader asks).

        Raises CorpusError if the batches come from workers and are not counted.
        """
        state, info = self.loader.state_dict(), get_worker_info()
        if info is not None:
            return state | {"worker": (info.id, info.num_workers), "taken": self.taken}
        if self.is_ahead or int(self.used) != 0:
            raise CorpusError(
                f"batches are read ahead, and the dataset does not know how many of them were used "
                f"since position {self.loader.cursor:,}. {OTHER_WAYS}"
            )
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, with the next iteration.

        One in the middle goes on from there, or raises if its workers read ahead uncounted.
        """
        own = {key: value for key, value in state.items() if key not in ("worker", "taken")}
        info, before = get_worker_info(), self.loader.cursor
        self.loader.load_state_dict(own)
        self.taken = state.get("taken", 0)
        self.worker = tuple(state["worker"]) if "worker" in state else None
        if info is None:
            self.is_ahead = False
            self.free_position()
            return
        self.check_worker(info.id, info.num_workers)
        cursor, split = self.loader.cursor, self.loader.split
        self.is_ended = info.id + self.taken * info.num_workers >= split.steps_left(cursor)
        # torchdata asks the workers of a finished state, and then starts others at the position of
        # the main process. That must be in the next epoch, or they would repeat this one.
        if self.is_ended and before != split.epoch_end(cursor):
            self.used.fill_(LOADED)


class CorpusDataLoader(DataLoader[Tensors]):  # type: ignore[misc]
    """DataLoader of a CorpusDataset that counts what the training loop took.

    Its state is exact with any number of workers and batches read ahead, and can be loaded with any
    other number. Every iteration goes on where the one before was left: at its last batch, or in
    the next epoch. `options` are those of torch's DataLoader; with persistent_workers=True only one
    iteration at a time.

    Raises CorpusError for the options that decide on batches or their order.
    """

    def __init__(self, dataset: CorpusDataset, num_workers: int = 0, **options: Any) -> None:
        if not isinstance(dataset, CorpusDataset):
            raise CorpusError(f"dataset is {dataset!r:.100}; it must be a CorpusDataset")
        check_whole("num_workers", num_workers)
        for name, instead in OF_THE_CORPUS.items():
            if given := options.pop(name, None):
                raise CorpusError(f"{name} is {given!r:.100}: {instead}")
        options = {"collate_fn": as_it_is} | options  # torch's looks at every tensor: 5 us
        super().__init__(dataset, batch_size=None, num_workers=num_workers, **options)
        self._stats = LoaderStats()

    def __iter__(self) -> Iterator[Tensors]:
        """Yield the batches up to the end of the epoch."""
        dataset: CorpusDataset = self.dataset
        if self.num_workers == 0 and self.collate_fn is as_it_is and not self.pin_memory:
            yield from self._stats.timed(iter(dataset), rows_of)  # torch would do no more
            return
        loader, is_moved = dataset.loader, True
        loader.begin()
        while is_moved:
            end, moves, is_moved = loader.iteration_end(), loader.moves, False
            for batch in self._stats.timed(self.of_workers(), rows_of):
                loader.go_to(int(batch["cursor"][0]))
                yield batch
                if is_moved := loader.moves != moves:
                    break
        loader.go_to(end)

    def of_workers(self) -> Iterator[Tensors]:
        """Return the batches from where the loader is, as torch's DataLoader gives them."""
        dataset, loader = self.dataset, self.dataset.loader
        # For workers that stay, which read it at the first batch of an iteration. One that is late,
        # and still in the iteration before, may read it too early: torch drops what it gives.
        dataset.start_of_iteration.copy_(torch.tensor([loader.cursor, int(loader.is_done)]))
        dataset.is_counted = True  # as the workers that start now are told
        try:
            batches: Iterator[Tensors] = super().__iter__()
        finally:
            dataset.is_counted = False
        return batches

    def stats(self) -> LoaderStats:
        """Return the batches that were yielded so far, and the time that they took."""
        return replace(self._stats)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; inside that epoch, stay there."""
        self.dataset.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch that was yielded."""
        state: dict[str, Any] = self.dataset.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, with the next iteration, or the next batch of this one."""
        self.dataset.load_state_dict(state)


def refuse_move(*, is_moved: bool) -> None:
    """Raise CorpusError if a dataset was moved while batches are read ahead of it."""
    if is_moved:
        raise CorpusError(
            "load_state_dict or set_epoch was called in the middle of an iteration, whose batches "
            "are read ahead: they are not from there. Begin another iteration after such a call, "
            "or use CorpusDataLoader."
        )


def wait_for_queue() -> None:
    """Let the thread of a worker's queue end before the interpreter does.

    A spawned worker that is left in the middle of an epoch ends while that thread still shares
    tensors. The end of an interpreter kills a thread inside torch's C++, which aborts the process
    ("terminate called without an active exception"): 2 of 150 workers of torch 2.13 on a busy
    machine, none of 300 that waited. Forked workers end without these calls.
    """
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(QUEUE_SECONDS)


def is_worker_that_stays() -> bool:
    """Look for persistent_workers in the worker's loop, of torch or torchdata, which calls this.

    Nothing else tells a dataset before its second iteration, which may be days later.
    """
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_name != "_worker_loop":
        frame = frame.f_back
    return bool(frame.f_locals.get("persistent_workers", False))


def is_dispatcher(prepared: Any) -> bool:
    """Check that a loader of Accelerate reads in one process for all ranks."""
    return isinstance(prepared, sys.modules["accelerate.data_loader"].DataLoaderDispatcher)


def check_prepared(prepared: Any, loader: CorpusLoader) -> None:
    """Refuse the ways of Accelerate to split batches that would give ranks the wrong samples."""
    faults = []
    if is_dispatcher(prepared):
        ranks, split = prepared.state.num_processes, loader.split
        if split.world_size not in (1, ranks):
            faults.append(f"there are {ranks} processes, and world_size is {split.world_size}")
        if loader.reader.with_documents:
            faults.append("it cuts tensors by rows, and cu_seqlens has none (with_documents)")
        if hasattr(prepared.base_dataloader, "state_dict"):
            faults.append("its state counts a step too many (use_stateful_dataloader)")
        if split.last == "short":
            why = "drop_last is False"
            if loader.mixture.is_validation:
                why = "its last ones are short in validation"
            faults.append(f"it needs full batches, and {why} (use LoaderOptions(pad_last=True))")
        if loader.mixture.sequence_length is None:
            faults.append("it needs rows of one length, and those of the phase differ")
    elif type(prepared.dataset).__name__ == "IterableDatasetShard":
        faults.append("dispatch_batches=False would split batches that are split already")
    if faults:
        raise CorpusError(
            f"Accelerate cannot distribute these batches: {'; '.join(faults)}. Leave the loader "
            "out of `prepare`: every rank reads its own samples if CorpusLoader has the rank and "
            "the world_size (accelerator.process_index, accelerator.num_processes)."
        )


def as_it_is(batch: Tensors) -> Tensors:
    """Return a batch, which is one of tensors already."""
    return batch


def rows_of(batch: Tensors) -> int:
    """Return the number of samples of a batch."""
    return int(batch["tokens"].size(0))  # len of a tensor takes 0.5 us


def tensors_of(group: Group) -> Iterator[Tensors]:
    """Yield the batches of a group as `to_tensors` does, split as tensors: in half of the time."""
    if group.together.documents is not None or len(group.sizes) == 1:
        yield from map(to_tensors, group.batches())
        return
    together = to_tensors(group.together)
    together["cursor"] = torch.from_numpy(np.repeat(np.array(group.cursors), group.sizes))
    columns = [tensor.split(group.sizes) for tensor in together.values()]
    for batch in zip(*columns, strict=True):
        yield dict(zip(together, batch, strict=True))


def to_tensors(batch: Batch) -> Tensors:
    """The arrays of a batch, and of its documents, as tensors of the same memory."""
    tensors = {
        "tokens": torch.from_numpy(batch.tokens),
        "lengths": torch.from_numpy(batch.lengths),
        "positions": torch.from_numpy(batch.positions),
        "sources": torch.from_numpy(batch.sources.astype(np.int64)),
        "is_repeated": torch.from_numpy(batch.is_repeated),
        # For every row: who distributes a batch cuts all its tensors by rows.
        "cursor": torch.full((len(batch.tokens),), batch.cursor, dtype=torch.int64),
    }
    if batch.loss_mask is not None:
        tensors["loss_mask"] = torch.from_numpy(batch.loss_mask)
    if batch.documents is not None:  # their loss_mask has that of the batch in it
        values = {field.name: getattr(batch.documents, field.name) for field in fields(Documents)}
        tensors |= {name: to_tensor(value) for name, value in values.items()}
    return tensors


def to_tensor(value: Any) -> torch.Tensor:
    """An array or number as a tensor; uint32, with which torch can do little, as int64."""
    if not isinstance(value, np.ndarray):
        return torch.tensor(value)
    return torch.from_numpy(value.astype(np.int64) if value.dtype == np.uint32 else value)
