"""The tokenizer of a corpus: a byte-level BPE, trained on a sample of it or loaded from a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from corpus_loader.permutation import derive_key, mix64

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END_OF_DOCUMENT = "<|endoftext|>"
UINT16_VOCABULARY = 1 << 16
NUM_BYTES = 256  # tokens that byte-level BPE starts from


class TokenizerError(ValueError):
    """The tokenizer cannot be used as configured."""


class TokenizerConfig(BaseModel):
    """One tokenizer for the whole corpus: trained on a sample of it, or loaded from a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str | None = Field(
        default=None,
        description="tokenizer.json to load, relative to pipeline.yaml; default: train one",
    )
    vocab_size: int = Field(
        default=32_000, ge=260, le=1 << 24, description="entries to train, special tokens included"
    )
    min_frequency: int = Field(
        default=2, ge=1, description="how often a pair must occur to be merged"
    )
    special_tokens: tuple[str, ...] = Field(
        default=(END_OF_DOCUMENT,), description="ids 0, 1, ... of a trained tokenizer"
    )
    end_of_document: str = Field(
        default=END_OF_DOCUMENT, description="the special token appended to every document"
    )
    sample_bytes: int = Field(
        default=10_000_000,
        ge=1,
        description="UTF-8 bytes of the seeded sample that a training reads",
    )
    seed: int = Field(default=0, ge=0, description="which documents the sample takes")

    @model_validator(mode="after")
    def check_special_tokens(self) -> Self:
        """A trained tokenizer has its end token, every special token once, and room for bytes."""
        if self.path is not None:
            return self
        tokens = self.special_tokens
        if len(set(tokens)) < len(tokens) or "" in tokens:
            raise ValueError(f"special_tokens must differ and not be empty, got {list(tokens)}")
        if self.end_of_document not in tokens:
            raise ValueError(
                f"end_of_document {self.end_of_document!r} is not among special_tokens "
                f"{list(tokens)}; add it there"
            )
        if self.vocab_size < NUM_BYTES + len(tokens):
            raise ValueError(
                f"vocab_size {self.vocab_size} has no room for {NUM_BYTES} bytes and "
                f"{len(tokens)} special tokens"
            )
        return self


def is_sampled(doc_ids: pl.Series, share: float, seed: int) -> pl.Series:
    """Boolean per document: whether the seeded sample of that share of all documents takes it.

    Depends on the document alone, so that the sample does not change with order or partition, and
    needs one pass; the sample's size comes out near the wanted share.
    """
    head = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    keys = mix64(head.to_numpy() ^ np.uint64(derive_key(seed, "tokenizer sample")))
    return pl.Series("is_sampled", keys.astype(np.float64) < share * 2.0**64)


def train_bpe(texts: Iterable[list[str]], config: TokenizerConfig) -> str:
    """Train byte-level BPE (GPT-2's split) and return its canonical tokenizer.json."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocab_size,
        min_frequency=config.min_frequency,
        special_tokens=list(config.special_tokens),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return canonical_json(tokenizer.to_str())


def canonical_json(tokenizer_json: str) -> str:
    """The same tokenizer with sorted keys and no layout: what the fingerprint is taken of."""
    try:
        content = json.loads(tokenizer_json)
    except json.JSONDecodeError as error:
        raise TokenizerError(
            f"not a tokenizer.json: it is no JSON ({error}). Check tokenizer.path."
        ) from None
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def tokenizer_fingerprint(tokenizer_json: str) -> str:
    """sha256 (hex) of the canonical JSON."""
    return hashlib.sha256(canonical_json(tokenizer_json).encode()).hexdigest()


def read_tokenizer(tokenizer_json: str, end_of_document: str) -> tuple[Tokenizer, int]:
    """(tokenizer, id of the end-of-document token); TokenizerError if either is missing.

    Truncation and padding, which a file may ask for, are off: a document keeps all its tokens.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(tokenizer_json)
    except Exception as error:  # the package raises bare Exception for every kind of bad file
        raise TokenizerError(
            f"not a tokenizer.json that `tokenizers` can read: {error}. Check tokenizer.path."
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    added = tokenizer.get_added_tokens_decoder()
    special = {token.content: token_id for token_id, token in added.items() if token.special}
    if end_of_document not in special:  # any other token can be spelled by a document's text
        raise TokenizerError(
            f"the tokenizer has no special token {end_of_document!r} for tokenizer.end_of_document."
            f" Name one of its special tokens there, {list(special)}, or add it to the file."
        )
    return tokenizer, special[end_of_document]


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """The largest id plus one: more than the number of entries where ids have gaps."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values())) + 1


def token_dtype(vocab_size: int) -> pl.DataType:
    """UInt16 where every id fits, else UInt32."""
    return pl.UInt16() if vocab_size <= UINT16_VOCABULARY else pl.UInt32()
