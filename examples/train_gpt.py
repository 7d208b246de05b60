"""A GPT that trains on a corpus through the loader, with document masks, on a GPU if there is one.

    pip install --find-links dist 'tokenmill-loader[torch]'  # after `make wheels`
    python examples/train_gpt.py corpus_store --steps 20 --batch-size 1

On a GPU it computes in bfloat16, and documents are kept apart by FlexAttention, which skips the
blocks of a mask that nobody sees; on a CPU by a dense mask. Of 124 million parameters:

    python examples/train_gpt.py corpus_store --width 768 --heads 12 --layers 12 --batch-size 32

Each report says how long the training waited for the loader. To compare, --fixed-batch trains on
one batch that stays on the device.

Each sequence may hold several documents (`bucketed` packs them). A token attends to the tokens of
its own document alone, positions begin anew with each, and no token is asked to predict the first
token of the next: what the model sees of a document is the same as if it stood alone.

With --validate-every, the loss on the documents that are held out of training (`holdout`) is
measured by source: the mean over all of its tokens.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from corpus_loader import Batch, CorpusLoader, LoaderOptions

CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclass(frozen=True)
class Shape:
    """Sizes of the model; a context of `length` tokens."""

    vocabulary: int
    length: int
    width: int = 64
    heads: int = 4
    layers: int = 2


class Block(nn.Module):
    """Attention and a feed-forward layer, each normalised before and added to its input."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.before_attention = nn.LayerNorm(shape.width)
        self.to_heads = nn.Linear(shape.width, 3 * shape.width)
        self.from_heads = nn.Linear(shape.width, shape.width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(shape.width),
            nn.Linear(shape.width, 4 * shape.width),
            nn.GELU(),
            nn.Linear(4 * shape.width, shape.width),
        )

    def forward(self, hidden: Tensor, mask: Tensor | BlockMask) -> Tensor:
        """Hidden [batch, length, width]; the mask is that of `SmallGPT.forward`."""
        batch, length, width = hidden.shape
        split = self.to_heads(self.before_attention(hidden)).view(batch, length, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        if isinstance(mask, BlockMask):
            attended = compiled(flex_attention)(query, key, value, block_mask=mask)
        else:
            attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        hidden = hidden + self.from_heads(attended.transpose(1, 2).reshape(batch, length, width))
        return hidden + self.feed_forward(hidden)


class SmallGPT(nn.Module):
    """Token and position embeddings, blocks, and the token embeddings again as the output."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.width)
        self.positions = nn.Embedding(shape.length, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last_norm = nn.LayerNorm(shape.width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Logits [batch, length, vocabulary] of tokens and positions, int64 [batch, length]."""
        mask = document_blocks(positions) if tokens.is_cuda else document_mask(positions)
        hidden = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return self.last_norm(hidden) @ self.tokens.weight.T


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function of FlexAttention, which then makes no tensor of length x length."""
    return torch.compile(function)


def document_of(positions: Tensor) -> Tensor:
    """Number of each token's document in its sequence: positions are 0 where one begins."""
    return (positions == 0).cumsum(1)


def document_mask(positions: Tensor) -> Tensor:
    """Who sees whom, bool [batch, 1, length, length]: earlier tokens of the same document."""
    document = document_of(positions)
    return torch.tril(document[:, :, None] == document[:, None, :])[:, None]


def document_blocks(positions: Tensor) -> BlockMask:
    """The same for FlexAttention: blocks of 128 x 128, without those that nobody sees."""
    document = document_of(positions)

    def is_seen(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (document[row, query] == document[row, key]) & (query >= key)

    batch, length = positions.shape
    return compiled(create_block_mask)(
        is_seen, batch, None, length, length, device=positions.device
    )


def on_device(array: np.ndarray, device: torch.device) -> Tensor:
    """Move an array to a device; to a GPU from pinned memory, without waiting for it."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor


def tensors(batch: Batch, device: torch.device = CPU) -> tuple[Tensor, Tensor, Tensor]:
    """(tokens, positions, labels) of a batch, int64; a label of -100 is not learned."""
    assert batch.documents is not None
    tokens = on_device(batch.tokens.astype("int32"), device).long()
    positions = on_device(batch.documents.position_ids.astype("int32"), device).long()
    is_learned = on_device(batch.documents.loss_mask, device)
    labels = torch.full_like(tokens, -100)
    labels[:, :-1] = torch.where(is_learned[:, 1:], tokens[:, 1:], -100)
    return tokens, positions, labels


@dataclass
class Training:
    """A run that can be saved after any step and continued: model, optimiser, place in the data."""

    loader: CorpusLoader
    model: SmallGPT
    optimizer: torch.optim.Optimizer

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.tokens.weight.device

    def batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Batches on the device, of one epoch after the other."""
        while True:
            for batch in self.loader:
                yield tensors(batch, self.device)

    def run(
        self, steps: int, batches: Iterator[tuple[Tensor, Tensor, Tensor]] | None = None
    ) -> list[float]:
        """Train for so many steps; the loss of each, in nats a token.

        Losses stay on the device until the end: to read one waits for the step to be computed, and
        the next batch is read and moved meanwhile.
        """
        losses = torch.zeros(steps, device=self.device)
        for step, batch in zip(range(steps), batches or self.batches(), strict=False):
            losses[step] = self.step(*batch)
        return losses.tolist()

    def step(self, tokens: Tensor, positions: Tensor, labels: Tensor) -> Tensor:
        """One step of the optimiser."""
        with torch.autocast("cuda", torch.bfloat16, enabled=tokens.is_cuda):
            logits = self.model(tokens, positions)
            loss = functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def save(self, folder: Path) -> None:
        """Write a checkpoint: the loader's part of it is a line of JSON."""
        weights = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(weights, folder / "weights.pt")
        (folder / "loader.json").write_text(json.dumps(self.loader.state_dict()))

    def load(self, folder: Path) -> None:
        """Continue from a checkpoint."""
        weights = torch.load(folder / "weights.pt", self.device, weights_only=True)
        self.model.load_state_dict(weights["model"])
        self.optimizer.load_state_dict(weights["optimizer"])
        self.loader.load_state_dict(json.loads((folder / "loader.json").read_text()))


def start(
    loader: CorpusLoader,
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
    **sizes: int,
) -> Training:
    """A new training: the same weights every time."""
    torch.manual_seed(0)
    mixture = loader.mixture
    if mixture.sequence_length is None:
        raise ValueError("the example wants sequences of one length: `buckets: {mode: pack}`")
    shape = Shape(mixture.vocab_size, mixture.sequence_length, **sizes)
    model = SmallGPT(shape).to(device, dtype)
    rate = 3e-3 * min(1.0, 64 / shape.width)
    return Training(loader, model, torch.optim.AdamW(model.parameters(), rate))


def unigram_entropy(loader: CorpusLoader, batches: int) -> float:
    """Entropy of the token frequencies in the first batches, in nats: no context beats nothing."""
    counts: Counter[int] = Counter()
    for _, batch in zip(range(batches), loader, strict=False):
        _, _, labels = tensors(batch)
        counts.update(labels[labels >= 0].tolist())
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values())


@torch.no_grad()
def losses_by_source(model: SmallGPT, loader: CorpusLoader) -> dict[str, float]:
    """Mean loss on each source that a loader of validation reads, in nats a token.

    With several ranks, add up `sums` over them before dividing: their last batches differ in size.
    """
    device = model.tokens.weight.device
    sums = torch.zeros(len(loader.sources), 2, dtype=torch.float64, device=device)  # loss, tokens
    for batch in loader:
        tokens, positions, labels = tensors(batch, device)
        with torch.autocast("cuda", torch.bfloat16, enabled=tokens.is_cuda):
            logits = model(tokens, positions).flatten(0, 1)
            losses = functional.cross_entropy(logits, labels.flatten(), reduction="none")
        of_rows = losses.double().view_as(labels).sum(1), (labels >= 0).sum(1).double()
        sources = on_device(batch.sources.astype("int64"), device)
        sums.index_add_(0, sources, torch.stack(of_rows, 1))
    return {name: float(sums[i, 0] / sums[i, 1]) for i, name in enumerate(loader.sources)}


def open_validation(options: argparse.Namespace) -> CorpusLoader:
    """The loader of what is held out, of all sources or of one."""
    return CorpusLoader(
        options.store,
        batch_size=options.batch_size,
        options=LoaderOptions(with_documents=True),
        split="validation",
        source=options.source,
    )


def open_loader(options: argparse.Namespace) -> CorpusLoader:
    """The loader that the command line asks for."""
    with_documents = LoaderOptions(with_documents=True)
    size = options.batch_size
    return CorpusLoader(options.store, options.phase, batch_size=size, options=with_documents)


def main() -> None:
    """Train and say how the loss fell."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("store", help="folder of the corpus")
    parser.add_argument("--phase", default="general")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--validate-every", type=int, help="steps; needs `holdout` in the corpus")
    parser.add_argument("--source", help="validate on this source alone")
    parser.add_argument("--device", type=torch.device, default=DEVICE)
    for size in ("width", "heads", "layers"):
        parser.add_argument(f"--{size}", type=int, default=getattr(Shape, size))
    parser.add_argument("--fixed-batch", action="store_true", help="train on one batch, to compare")
    options = parser.parse_args()
    entropy = unigram_entropy(open_loader(options), batches=20)
    sizes = {size: getattr(options, size) for size in ("width", "heads", "layers")}
    training = start(open_loader(options), device=options.device, **sizes)
    parameters = sum(each.numel() for each in training.model.parameters())
    sys.stdout.write(f"{parameters / 1e6:.1f} million parameters on {options.device}\n")
    validation = open_validation(options) if options.validate_every else None
    batches = repeat(next(training.batches())) if options.fixed_batch else training.batches()
    every = options.validate_every or 20
    for first in range(0, options.steps, every):
        began, waited = time.perf_counter(), training.loader.stats().wait_seconds
        losses = training.run(min(every, options.steps - first), batches)
        seconds = time.perf_counter() - began
        waited = training.loader.stats().wait_seconds - waited
        mean = sum(losses) / len(losses)
        tokens = len(losses) * options.batch_size * training.loader.mixture.sequence_length
        sys.stdout.write(
            f"step {first + len(losses)}: loss {mean:.3f} (unigrams {entropy:.3f}), "
            f"{tokens / seconds:,.0f} tokens/s, waited {waited / seconds:.2%} for the loader\n"
        )
        if validation is not None:
            for source, loss in losses_by_source(training.model, validation).items():
                sys.stdout.write(f"  held out of {source}: loss {loss:.3f}\n")


if __name__ == "__main__":
    main()
