"""What a training loop that is proved gets: batches, and a model whose weights are the evidence.

    def train(job: Training) -> Trained:
        ...  # resume from job.folder, train job.model() on job.batches until job.is_done(cursor)
        return model, cursor

A weight of the model stands for each sample, and every time that the sample is learned adds one to
it. These weights go through all that learning goes through: accumulation, the mean over ranks, the
step of the optimizer, the save, the kill and the load. In the end each is 1, unless its sample was
lost, or learned twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch  # noqa: TID253  whoever imports this module uses torch
from torch import nn  # noqa: TID253
from torch.nn import functional  # noqa: TID253

from corpus_loader.loader import CorpusLoader
from corpus_loader.prove.plan import EPOCHS, Job, Start
from corpus_loader.reader import LoaderOptions
from corpus_loader.torch_dataset import CorpusDataLoader, CorpusDataset
from corpus_loader.trainers.forms import IGNORED, Tensors, document_mask, next_token

LAST_EPOCH = EPOCHS + 2  # the last step reaches into the next epoch, and may be repeated
VOCABULARY, WIDTH, LENGTH = 64, 8, 256  # real ones would take the time of the proof
Trained = tuple[Any, int]  # the model, and the loader's cursor after the optimizer's last step


class Ledger(nn.Module):  # type: ignore[misc]
    """A weight for each sample: how many times it was learned."""

    def __init__(self, samples: int, scale: int) -> None:
        super().__init__()
        self.times = nn.Parameter(torch.zeros(samples))
        self.scale = scale  # trainers divide gradients by the ranks, and by accumulated batches

    def loss(self, logits: torch.Tensor, labels: torch.Tensor, samples: torch.Tensor) -> Any:
        """Return the mean loss of labels, int64 [rows, length].

        Its gradient adds one to the weight of each of `samples`, int64 [n], at a rate of 1.
        """
        summed = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
        times = self.times[samples].sum()
        is_learned = (labels != IGNORED).sum().clamp(min=1)
        return summed / is_learned + self.scale * (times.detach() - times)


class Output(NamedTuple):
    """What models of transformers give."""

    loss: torch.Tensor | None
    logits: torch.Tensor


class TinyModel(nn.Module):  # type: ignore[misc]
    """A language model of one head of attention, with a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self.tokens, self.logits = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.ledger = ledger

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of tokens."""
        return self.tokens

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor, **learned: Any) -> Output:
        """Return logits of tokens, int64 [rows, length], and the loss if `labels` are given."""
        heads = self.tokens(tokens)[:, None]
        seen = functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)
        logits = self.logits(seen[:, 0])
        return Output(self.ledger.loss(logits, **learned) if learned else None, logits)


class Training:
    """One rank of a start of a training; see the module's docstring.

    `note` is called for each batch that is given.
    """

    def __init__(self, job: Job, start: Start, rank: int, note: Callable[[], None]) -> None:
        self.job, self.start, self.rank, self.note = job, start, rank, note
        self.folder = job.folder
        left_out = job.epoch_samples - job.samples
        ends = range(job.epoch_samples, LAST_EPOCH * job.epoch_samples + 1, job.epoch_samples)
        skip = [(end - left_out, end) for end in ends if left_out]
        loader = CorpusLoader(
            job.request.store,
            job.request.phase,
            rank=rank,
            world_size=start.ranks,
            batch_size=start.batch_size,
            options=LoaderOptions(with_documents=True, skip=skip, **job.last),
        )
        self.batches = CorpusDataLoader(CorpusDataset(loader))

    def model(self) -> nn.Module:
        """Return a tiny model with a ledger, the same on all ranks."""
        torch.manual_seed(0)
        return TinyModel(self.ledger())

    def ledger(self) -> Ledger:
        """Return a ledger without samples."""
        return Ledger(LAST_EPOCH * self.job.samples, self.start.ranks * self.start.accumulate)

    def optimizer(self, model: Any) -> torch.optim.Optimizer:
        """Return an optimizer that learns a sample's count at a rate of 1."""
        others = [one for name, one in model.named_parameters() if not name.startswith("ledger.")]
        counts = {"params": [model.ledger.times], "lr": 1.0}
        return torch.optim.SGD([counts, {"params": others, "lr": 0.01}])

    def all_batches(self) -> Iterator[Tensors]:
        """Yield batches of one epoch after the other."""
        while True:
            yield from self.batches

    def form(self, batch: Tensors) -> dict[str, Any]:
        """Return the inputs of `model` for a batch of the loader."""
        batch = short(batch)
        tokens, mask = batch["tokens"] % VOCABULARY, document_mask(batch)
        return {"tokens": tokens, "mask": mask, **self.learned(batch)}

    def learned(self, batch: Tensors) -> dict[str, torch.Tensor]:
        """Return the labels of a batch, and its samples but for repeated ones; none of a trial."""
        if "positions" not in batch:
            return {}
        self.note()
        labels = next_token(batch)[1]
        labels = torch.where(labels == IGNORED, labels, labels % VOCABULARY)
        positions = batch["positions"][~batch["is_repeated"]]
        return {"labels": labels, "samples": self.numbers(positions)}

    def numbers(self, positions: Any) -> Any:
        """Number positions of the phase without those that are skipped."""
        job = self.job
        return positions - positions // job.epoch_samples * (job.epoch_samples - job.samples)

    def is_done(self, cursor: int) -> bool:
        """Return whether all epochs are trained that are to be."""
        return cursor >= EPOCHS * self.job.epoch_samples


def short(batch: Tensors) -> Tensors:
    """Return the first LENGTH tokens of the rows of a batch."""
    return {name: one[:, :LENGTH] if one.dim() == 2 else one for name, one in batch.items()}
