"""Lightning on a corpus: exact resume with any number of ranks.

    batches = LightningBatches(CorpusDataLoader(CorpusDataset(loader)), form=next_token)
    trainer = Trainer(max_steps=1000, callbacks=[batches.callback()])
    trainer.fit(module, train_dataloaders=batches, ckpt_path="last")

Lightning reads a batch ahead, so that a loader's own count would be one too far. The callback
counts the batches whose training step has ended, and keeps the place of the last whole step of the
optimizer: what was accumulated for the next one is read again, and a checkpoint says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from lightning.pytorch import Callback

from corpus_loader.torch_dataset import CorpusDataLoader
from corpus_loader.trainers.forms import Tensors


class LightningBatches:
    """Batches of a corpus for Lightning: an epoch of the phase for each iteration."""

    def __init__(
        self, corpus: CorpusDataLoader, form: Callable[[Tensors], Any] = lambda batch: batch
    ) -> None:
        self.corpus = corpus
        self.form = form
        self.ahead: deque[int] = deque()  # cursors of batches that were given and not used

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches to the end of the epoch."""
        self.ahead.clear()
        for batch in self.corpus:
            self.ahead.append(int(batch["cursor"][0]))
            yield self.form(batch)

    def callback(self) -> CorpusCallback:
        """Return the callback that saves and loads the place in the corpus."""
        return CorpusCallback(self)


class CorpusCallback(Callback):  # type: ignore[misc]
    """The place in a corpus, in every checkpoint."""

    def __init__(self, batches: LightningBatches) -> None:
        self.batches = batches
        self.saved = batches.corpus.dataset.loader.cursor
        self.steps = self.accumulated = 0  # steps of the optimizer, and batches since the last

    def on_train_start(self, trainer: Any, *others: Any, **named: Any) -> None:
        """Count steps from those of the checkpoint."""
        self.steps, self.accumulated = trainer.global_step, 0

    def on_train_batch_end(self, trainer: Any, *others: Any, **named: Any) -> None:
        """Count a batch, and keep its place if the optimizer took a step."""
        used = self.batches.ahead.popleft()
        self.accumulated += 1
        if trainer.global_step != self.steps:
            self.saved, self.steps, self.accumulated = used, trainer.global_step, 0

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        """Take the batches that are read again out of what Lightning counted.

        It steps after every so many batches of its own count: the first step after a resume would
        else be of fewer.
        """
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counts in (progress["total"], progress["current"]):
            for name in ("ready", "started", "processed", "completed"):
                counts[name] = max(0, counts[name] - self.accumulated)

    def state_dict(self) -> dict[str, Any]:
        """Return the loader's state after the last whole step."""
        state: dict[str, Any] = self.batches.corpus.dataset.state_at(self.saved)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue after that step."""
        self.batches.corpus.load_state_dict(state_dict)
        self.saved = self.batches.corpus.dataset.loader.cursor
