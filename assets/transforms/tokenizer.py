"""The tokenizer of a corpus: a byte-level BPE, trained on a sample of it or loaded from a file."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assets.transforms.bpe_training import Texts, train_equal, train_with_tokenizers
from corpus_loader.permutation import derive_key, mix64

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    begin_of_document: str | None = Field(
        default=None, description="a special token put before every document; default: none"
    )
    end_of_document: str = Field(
        default=END_OF_DOCUMENT, description="the special token appended to every document"
    )
    sample_bytes: int = Field(
        default=10_000_000,
        ge=1,
        lt=1 << 31,  # `tokenizers` counts pairs in 32 bits
        description="UTF-8 bytes of the seeded sample that a training reads",
    )
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        default=None,
        min_length=1,
        description="share of the sample by source; default: by bytes; sources not named give none",
    )
    seed: int = Field(default=0, ge=0, description="which documents the sample takes")
    trainer: Literal["auto", "tokenizers"] = Field(
        default="auto",
        description="auto: the fast trainer, where a probe proves it equal to `tokenizers`",
    )
    offsets: bool = Field(
        default=False, description="also store the byte where each token of a document starts"
    )

    @model_validator(mode="after")
    def check_special_tokens(self) -> Self:
        """A trained tokenizer has its end token, every special token once, and room for bytes."""
        if self.path is not None:
            return self
        tokens = self.special_tokens
        if len(set(tokens)) < len(tokens) or "" in tokens:
            raise ValueError(f"special_tokens must differ and not be empty, got {list(tokens)}")
        wanted = {"end_of_document": self.end_of_document}
        if self.begin_of_document is not None:
            wanted["begin_of_document"] = self.begin_of_document
        for key, token in wanted.items():
            if token not in tokens:
                raise ValueError(
                    f"{key} {token!r} is not among special_tokens {list(tokens)}; add it there"
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


def sample_quotas(available: Mapping[str, int], config: TokenizerConfig) -> dict[str, int]:
    """Bytes that the sample takes of each source, in the order of `available` (bytes there are).

    Shares are the weights, without them the bytes; a source not named gives none. One with less
    than its share gives all, and the others share the rest: sum = min(sample_bytes, what there is).
    """
    weights: Mapping[str, float] = config.weights or available
    quotas = dict.fromkeys(available, 0)
    left, open_sources = config.sample_bytes, [s for s in available if weights.get(s, 0) > 0]
    while open_sources:
        total = sum(weights[source] for source in open_sources)
        wanted = {source: left * weights[source] / total for source in open_sources}
        short = [source for source in open_sources if available[source] <= wanted[source]]
        if not short:
            return quotas | {source: int(size) for source, size in wanted.items()}
        quotas |= {source: available[source] for source in short}
        left -= sum(available[source] for source in short)
        open_sources = [source for source in open_sources if source not in short]
    return quotas


def train_bpe(batches: Texts, config: TokenizerConfig) -> str:
    """Train byte-level BPE (GPT-2's split) and return its canonical tokenizer.json."""
    train = train_equal if config.trainer == "auto" else train_with_tokenizers
    return canonical_json(
        train(batches, config.special_tokens, config.vocab_size, config.min_frequency)
    )


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
    return tokenizer, special_token_id(tokenizer, end_of_document, "end_of_document")


def special_token_id(tokenizer: Tokenizer, token: str, key: str) -> int:
    """Id of a special token that the config names under `key`; TokenizerError if there is none."""
    added = tokenizer.get_added_tokens_decoder()
    special = {token.content: token_id for token_id, token in added.items() if token.special}
    if token not in special:  # any other token can be spelled by a document's text
        raise TokenizerError(
            f"the tokenizer has no special token {token!r} for tokenizer.{key}. Name one of its "
            f"special tokens there, {list(special)}, or add it to the file of tokenizer.path."
        )
    return special[token]


def about_tokenizer(tokenizer_json: str, config: TokenizerConfig) -> dict[str, Any]:
    """What later stages say of the tokenizer; TokenizerError if it lacks a token of the config."""
    tokenizer, end_id = read_tokenizer(tokenizer_json, config.end_of_document)
    begin, begin_id = config.begin_of_document, None
    if begin is not None:
        begin_id = special_token_id(tokenizer, begin, "begin_of_document")
    vocab_size = vocabulary_size(tokenizer)
    return {
        "tokenizer_fingerprint": tokenizer_fingerprint(tokenizer_json),
        "vocab_size": vocab_size,
        "begin_of_document": begin,
        "begin_of_document_id": begin_id,
        "end_of_document": config.end_of_document,
        "end_of_document_id": end_id,
        "token_dtype": str(token_dtype(vocab_size)).lower(),
    }


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """The largest id plus one: more than the number of entries where ids have gaps."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values())) + 1


def token_dtype(vocab_size: int) -> pl.DataType:
    """UInt16 where every id fits, else UInt32."""
    return pl.UInt16() if vocab_size <= UINT16_VOCABULARY else pl.UInt32()
