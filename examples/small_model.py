"""A language model of two layers, for the examples: what matters in them is around it."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class SmallModel(nn.Module):
    """Embeddings, one hidden layer, and logits of the next token."""

    def __init__(self, vocabulary: int, width: int = 32) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.hidden = nn.Linear(width, width)
        self.logits = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [rows, length, vocabulary] of tokens, int64 [rows, length]."""
        logits: Tensor = self.logits(functional.gelu(self.hidden(self.tokens(tokens))))
        return logits


def loss_of(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss in nats of the labels, int64 [rows, length], that are not ignored (-100)."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
