"""Training of a byte-level BPE with `tokenizers`.

The trainer counts in integers and breaks ties by id, so the result is the same bytes for any number
of threads and any order of the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Texts = Iterable[Sequence[str] | pl.Series]  # a batch at a time


def empty_tokenizer() -> Tokenizer:
    """Make a byte-level BPE (GPT-2's split) that has learned nothing yet."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def train_with_tokenizers(
    batches: Texts, special_tokens: Sequence[str], vocab_size: int, min_frequency: int
) -> str:
    """Train on the texts and return the tokenizer.json."""
    from tokenizers import pre_tokenizers, trainers

    tokenizer = empty_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        special_tokens=list(special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((list(batch) for batch in batches), trainer)
    return tokenizer.to_str()
