"""The loader as a dataset of torch, for DataLoader(batch_size=None) and StatefulDataLoader.

    dataset = CorpusDataset(CorpusLoader("store", batch_size=8))
    for batch in DataLoader(dataset, batch_size=None, num_workers=2):
        train(batch["tokens"])                     # int64 [8, 2048]
        state = dataset.state_at(batch["cursor"])  # to resume with any number of workers

Workers take batches in turn, and torch gives them back in turn: the order is the one without them.
They cost more than they give: a batch from another process takes six times as long (8 x 2,048
tokens, one worker), and reading is faster than any training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch  # noqa: TID253  whoever imports this module uses torch
from torch.utils.data import IterableDataset, get_worker_info  # noqa: TID253

from corpus_loader.batch import Batch, Documents
from corpus_loader.errors import CorpusError
from corpus_loader.loader import CorpusLoader

Tensors = dict[str, Any]


class CorpusDataset(IterableDataset[Tensors]):  # type: ignore[misc]
    """The batches of a loader as dictionaries of tensors; one epoch of the phase per iteration.

    Without workers the next iteration is the next epoch. With workers every iteration starts at
    this process's cursor: call `set_epoch` before each. persistent_workers=True is refused from the
    second iteration on: such a worker knows neither the dataset's current cursor nor which of its
    own batches were used.

    The dataset takes over the loader, and turns its uint16 or uint32 tokens into int64.
    """

    def __init__(self, loader: CorpusLoader) -> None:
        if loader.reader.dtype.kind == "u":  # torch has uint16 and uint32, but can do little
            loader.reader.dtype = np.dtype(np.int64)
        self.loader = loader
        self.taken = 0  # batches of this epoch that this worker has given
        self.worker: tuple[int, int] | None = None  # its number, and how many there are
        self.is_used = False  # in a worker: iterated before

    def __len__(self) -> int:
        """Batches of a whole epoch."""
        return len(self.loader)

    def __iter__(self) -> Iterator[Tensors]:
        """Yield the batches to the end of the epoch; in a worker, its share of them."""
        info = get_worker_info()
        if info is None:
            yield from map(to_tensors, self.loader)
            return
        self.check_worker(info.id, info.num_workers)
        end = self.loader.iteration_end()
        skip = info.id + self.taken * info.num_workers
        for batch in self.loader.batches(skip, info.num_workers):
            self.taken += 1
            yield to_tensors(batch)
        self.taken = 0
        self.loader.go_to(end)

    def check_worker(self, number: int, workers: int) -> None:
        """Refuse to go on from the state of another worker, or in one that stayed."""
        if self.is_used:
            raise CorpusError(
                "a worker of persistent_workers=True does not know which of its batches were used, "
                "nor of set_epoch or load_state_dict since it started. Use "
                "persistent_workers=False, and set_epoch before each epoch."
            )
        self.is_used = True
        if self.worker not in (None, (number, workers)):
            raise CorpusError(
                f"the state is of worker {self.worker}, this one is {(number, workers)} (number, "
                "and how many). Use as many, or the state of the last batch: "
                "dataset.state_at(batch['cursor'])."
            )
        self.worker = (number, workers)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; a dataset that is inside that epoch stays where it is."""
        self.loader.set_epoch(epoch)

    def state_at(self, cursor: int) -> dict[str, Any]:
        """Return the state after the batch with that cursor; valid for any number of workers."""
        return self.loader.state_at(int(cursor))

    def state_dict(self) -> dict[str, Any]:
        """The loader's state; of a worker also what it has given (StatefulDataLoader asks)."""
        state = self.loader.state_dict()
        return (
            state if self.worker is None else state | {"worker": self.worker, "taken": self.taken}
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state, with the next iteration."""
        own = {key: value for key, value in state.items() if key not in ("worker", "taken")}
        self.loader.load_state_dict(own)
        self.taken = state.get("taken", 0)
        self.worker = tuple(state["worker"]) if "worker" in state else None


def to_tensors(batch: Batch) -> Tensors:
    """The arrays of a batch, and of its documents, as tensors of the same memory."""
    tensors = {
        "tokens": torch.from_numpy(batch.tokens),
        "lengths": torch.from_numpy(batch.lengths),
        "positions": torch.from_numpy(batch.positions),
        "sources": torch.from_numpy(batch.sources.astype(np.int64)),
        "cursor": batch.cursor,
    }
    if batch.documents is not None:
        values = {field.name: getattr(batch.documents, field.name) for field in fields(Documents)}
        tensors |= {name: to_tensor(value) for name, value in values.items()}
    return tensors


def to_tensor(value: Any) -> Any:
    """An array as a tensor, uint32, with which torch can do little, as int64; a number as it is."""
    if not isinstance(value, np.ndarray):
        return value
    return torch.from_numpy(value.astype(np.int64) if value.dtype == np.uint32 else value)
