"""The tokenizer of a corpus: a byte-level BPE, trained on a sample of it or loaded from a file."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from assets.transforms.bpe_training import Texts, train_equal, train_with_tokenizers
from assets.transforms.special_tokens import special_tokens, spelled_tokens, tokens_with_shared_ids

if TYPE_CHECKING:
    from collections.abc import Container

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
    special = {text: token_id for token_id, text in special_tokens(tokenizer).items()}
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
    refuse_ambiguous_ids(tokenizer, {end_id, begin_id})
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


def refuse_ambiguous_ids(tokenizer: Tokenizer, marks: Container[int | None]) -> None:
    """TokenizerError if a text's ids can hold that of a special token: see `special_tokens`."""
    if shared := tokens_with_shared_ids(tokenizer):
        raise TokenizerError(
            f"the special tokens {shared} have ids that model.vocab gives to other entries. Number "
            "the entries of model.vocab without gaps, and the tokens that it lacks after them."
        )
    if spelled := spelled_tokens(tokenizer, marks):
        raise TokenizerError(
            f"text that spells the special tokens {spelled} is given their ids, so that it could "
            "end a document: model.vocab has them too. Take them out of model.vocab if their ids "
            "are its last (added_tokens keeps them; other ids would move). Or name in tokenizer."
            "end_of_document a special token that only added_tokens has, and mark the others "
            '"special": false there: then they are tokens that text may spell.'
        )


def vocabulary_size(tokenizer: Tokenizer) -> int:
    """The largest id plus one: more than the number of entries where ids have gaps."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values())) + 1


def token_dtype(vocab_size: int) -> pl.DataType:
    """UInt16 where every id fits, else UInt32."""
    return pl.UInt16() if vocab_size <= UINT16_VOCABULARY else pl.UInt32()
