"""Lightning on a corpus: exact resume with any number of ranks.

    batches = LightningBatches(CorpusDataLoader(CorpusDataset(loader)), form=next_token)
    trainer = Trainer(max_steps=1000, callbacks=[batches.callback()])
    trainer.fit(module, train_dataloaders=batches, ckpt_path="last")

Lightning reads a batch ahead, so that a loader's own count would be one too far. The callback
counts the batches whose training step has ended, and keeps the place of the last whole step of the
optimizer: what was accumulated for the next one is read again.
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
        self.used = self.saved = batches.corpus.dataset.loader.cursor
        self.steps = 0

    def on_train_batch_end(self, trainer: Any, *others: Any, **named: Any) -> None:
        """Count a batch, and keep its place if the optimizer took a step."""
        self.used = self.batches.ahead.popleft()
        if trainer.global_step != self.steps:
            self.saved, self.steps = self.used, trainer.global_step

    def state_dict(self) -> dict[str, Any]:
        """Return the loader's state after the last whole step."""
        state: dict[str, Any] = self.batches.corpus.dataset.state_at(self.saved)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue after that step."""
        self.batches.corpus.load_state_dict(state_dict)
        self.used = self.saved = self.batches.corpus.dataset.loader.cursor
