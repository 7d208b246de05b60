"""The loader for torch: a dataset, and a DataLoader that counts what the training loop took.

    batches = CorpusDataLoader(CorpusDataset(CorpusLoader("store", batch_size=8)), num_workers=2)
    for batch in batches:             # one epoch of the phase; the next iteration is the next
        train(batch["tokens"])        # int64 [8, 2048]
        state = batches.state_dict()  # to resume with any number of workers

Any other DataLoader with workers is refused: they read ahead of the training loop, and neither they
nor the dataset know how far the loop is.

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

QUEUE_SECONDS = 1.0  # for a worker to send what it has read ahead; torch waits 5 for its end
OF_THE_CORPUS = {  # options of torch's DataLoader
    "batch_size": "give it to CorpusLoader, which makes the batches",
    "sampler": "the phase has its order; CorpusLoader takes another seed",
    "batch_sampler": "the phase has its order; CorpusLoader takes another seed",
    "shuffle": "the samples are shuffled already; CorpusLoader takes another seed",
    "drop_last": "give it to LoaderOptions",
}


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
        self.is_counted = False  # by a CorpusDataLoader, whose workers start now
        # Cursor and is_done, which the main process writes for its workers (see `of_workers`).
        self.start_of_iteration = torch.zeros(2, dtype=torch.int64).share_memory_()

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Tensors]:
        """Yield the batches to the end of the epoch; in a worker, its share of them."""
        info = get_worker_info()
        if info is None:
            yield from self.loader.given(self.all_tensors)
        else:
            yield from self.share_of_worker(info.id, info.num_workers)

    def all_tensors(self) -> Iterator[tuple[int, int, Tensors]]:
        """Yield the batches to the end of the epoch, with the cursor after each and its samples."""
        for group in self.loader.groups():
            yield from zip(group.cursors, group.sizes, tensors_of(group), strict=True)

    def share_of_worker(self, number: int, workers: int) -> Iterator[Tensors]:
        """Yield every `workers`-th batch of the epoch."""
        if not self.is_counted:
            raise CorpusError(
                "the workers of this DataLoader read ahead, and it does not count what was used of "
                "their batches. Use CorpusDataLoader(dataset, num_workers=...), which takes the "
                "same options."
            )
        atexit.unregister(wait_for_queue)  # one that stays comes here again
        atexit.register(wait_for_queue)
        cursor, is_done = self.start_of_iteration.tolist()
        self.loader.go_to(cursor)
        self.loader.is_done = bool(is_done)
        yield from map(to_tensors, self.loader.batches(number, workers))

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; a dataset that is inside that epoch stays where it is."""
        refuse_accelerate(self)  # which calls this before it reads
        self.loader.set_epoch(epoch)

    def state_at(self, cursor: int | torch.Tensor) -> dict[str, Any]:
        """Return the state after the batch with that cursor; valid for any number of workers."""
        return self.loader.state_at(int(torch.as_tensor(cursor).max()))

    def state_dict(self) -> dict[str, Any]:
        """Return the state after the last batch that was yielded."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, with the next iteration, or the next batch of this one."""
        self.loader.load_state_dict(state)


class CorpusDataLoader(DataLoader[Tensors]):  # type: ignore[misc]
    """DataLoader of a CorpusDataset that counts what the training loop took.

    Its state is exact with any number of workers and batches read ahead, and can be loaded with any
    other number. Every iteration goes on where the one before was left: at its last batch, or in
    the next epoch. One that begins takes over: an iteration before it raises CorpusError if it is
    read on. `options` are those of torch's DataLoader.

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
        iteration = loader.begin()
        while is_moved:
            end, moves, is_moved = loader.iteration_end(), loader.moves, False
            for batch in self._stats.timed(self.of_workers(), rows_of):
                loader.go_to(int(batch["cursor"][0]))
                yield batch
                loader.check_newest(iteration)
                if is_moved := loader.moves != moves:
                    break
        loader.go_to(end)

    def of_workers(self) -> Iterator[Tensors]:
        """Return the batches from where the loader is, as torch's DataLoader gives them."""
        dataset, loader = self.dataset, self.dataset.loader
        # Workers read it at the first batch of an iteration. One that stays and is late, and still
        # in the iteration before, may read it too early: torch drops what it gives.
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


def refuse_accelerate(dataset: CorpusDataset) -> None:
    """Raise CorpusError if Accelerate reads a dataset: it reads ahead, and splits batches again."""
    module = sys.modules.get("accelerate.state")
    prepared: Any = None if module is None else module.GradientState().active_dataloader
    own = None if prepared is None else prepared.dataset
    if own is dataset or getattr(own, "dataset", None) is dataset:
        raise CorpusError(
            "Accelerate's `prepare` would split batches that are split already, and read ahead. "
            "Leave the loader out of it: every rank reads its own samples if CorpusLoader has "
            "rank=accelerator.process_index and world_size=accelerator.num_processes."
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
    if batch.loss_weights is not None:
        tensors["loss_weights"] = torch.from_numpy(batch.loss_weights)
    if batch.documents is not None:  # their loss_mask has that of the batch in it
        values = {field.name: getattr(batch.documents, field.name) for field in fields(Documents)}
        tensors |= {name: to_tensor(value) for name, value in values.items()}
    return tensors


def to_tensor(value: Any) -> torch.Tensor:
    """An array or number as a tensor; uint32, with which torch can do little, as int64."""
    if not isinstance(value, np.ndarray):
        return torch.tensor(value)
    return torch.from_numpy(value.astype(np.int64) if value.dtype == np.uint32 else value)
