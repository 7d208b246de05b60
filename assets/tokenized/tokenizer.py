"""Tokenizer of a corpus: a byte-level BPE, trained on a sample of it or loaded from a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from assets.tokenized.kept_tokenizer import RETRAIN_COMMAND
from assets.tokenized.special_tokens import (
    read_added_tokens,
    special_tokens,
    spelled_tokens,
    tokens_with_shared_ids,
)
from assets.tokenized.tokenized_records import MarkedTokenFacts
from resources.settings.fill_in_the_middle import FillTokens
from resources.settings.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Container

    from tokenizers import Tokenizer

UINT16_VOCABULARY = 1 << 16
MOST_FILE_BYTES = 64 << 20  # Gemma's has 33 MB; parsing takes ten times as much memory
MOST_IDS = 1 << 24  # Gemma's has 262,144; tables by id have a row for each, gaps too


class TokenizerError(ValueError):
    """Error of a tokenizer that cannot be used as configured."""


def train_bpe(batches: Iterable[Sequence[str] | pl.Series], config: TokenizerConfig) -> str:
    """Train byte-level BPE (GPT-2's split) and return its canonical tokenizer.json.

    `tokenizers` counts in integers and breaks ties by id, so the result is the same bytes for any
    number of threads, and for any batches and order of the texts.
    """
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
    tokenizer.train_from_iterator(map(list, batches), trainer)
    return canonical_json(tokenizer.to_str())


def canonical_json(tokenizer_json: str) -> str:
    """Rewrite a tokenizer.json with sorted keys and no layout, for publishing and fingerprints."""
    try:
        content = json.loads(tokenizer_json)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TokenizerError(
            f"not a tokenizer.json: it is no JSON ({error}). Check tokenizer.path."
        ) from None
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def tokenizer_fingerprint(tokenizer_json: str) -> str:
    """Return the sha256 (hex) of the canonical JSON."""
    return hashlib.sha256(canonical_json(tokenizer_json).encode()).hexdigest()


def read_tokenizer(tokenizer_json: str, end_of_document: str) -> tuple[Tokenizer, int]:
    """Read (tokenizer, id of the end-of-document token); TokenizerError if either is missing.

    Truncation and padding are off, even if the file asks for them: a document keeps all tokens.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(tokenizer_json)
    except Exception as error:  # the package raises bare Exception for any bad file
        raise TokenizerError(
            f"not a tokenizer.json that `tokenizers` can read: {error}. Check tokenizer.path."
        ) from error
    if (size := vocabulary_size(tokenizer)) > MOST_IDS:
        raise TokenizerError(
            f"its largest id is {size - 1:,}, and ids up to {MOST_IDS - 1:,} are read. Number the "
            "entries of model.vocab and added_tokens without gaps."
        )
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer, special_token_id(tokenizer, end_of_document, "end_of_document")


def special_token_id(tokenizer: Tokenizer, token: str, key: str) -> int:
    """Look up the special token that the config names under `key`; TokenizerError if missing."""
    special = {text: token_id for token_id, text in special_tokens(tokenizer).items()}
    if token not in special:  # any other token can be spelled by a document's text
        raise TokenizerError(
            f"the tokenizer has no special token {token!r} for tokenizer.{key}. Name one of its "
            f"special tokens there, {list(special)}, or add it to the file of tokenizer.path."
        )
    return special[token]


def check_fill_tokens(tokenizer_json: bytes, tokens: FillTokens, *, is_trained: bool) -> None:
    """Check that the tokens of `fill_in_the_middle` are special tokens of a tokenizer.

    Raises TokenizerError with those that are not, and those that look like them.
    """
    try:
        added = read_added_tokens(tokenizer_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TokenizerError(f"not a tokenizer.json: {error}. Check tokenizer.path.") from None
    lacking = [token for token in tokens.all if token not in added.special()]
    plain = [token.content for token in added.added_tokens if token.content in lacking]
    fact = f"the tokenizer lacks the special tokens {lacking}, which fill_in_the_middle puts in"
    if lacking and is_trained:
        raise TokenizerError(f"{fact}. `{RETRAIN_COMMAND}` trains the next one, which has them.")
    if plain:
        raise TokenizerError(
            f"{fact}: text may spell {plain}, which are no special tokens in the file. Mark them "
            '"special": true in its added_tokens.'
        )
    if lacking:
        raise TokenizerError(
            f"{fact}. Of its tokens, these look like them: {added.like_filling()}. Name its own in "
            "tokenizer.fill_in_the_middle_tokens, or add them to the file of tokenizer.path."
        )
    if unknown := [token for token in tokens.all if token in added.unknown()]:
        raise TokenizerError(
            f"text that the tokenizer cannot spell becomes {unknown}, its unknown token, so that "
            "it cannot mark a piece of a document. Name another special token in "
            "tokenizer.fill_in_the_middle_tokens."
        )


@lru_cache(maxsize=2)
def fill_ids(
    tokenizer_json: bytes, tokens: FillTokens, *, is_trained: bool
) -> tuple[int, int, int]:
    """Look up the special tokens of `fill_in_the_middle`: ids of prefix, middle, suffix.

    Raises TokenizerError as `check_fill_tokens` does.
    """
    from tokenizers import Tokenizer

    check_fill_tokens(tokenizer_json, tokens, is_trained=is_trained)
    special = special_tokens(Tokenizer.from_buffer(tokenizer_json))
    ids = {token: token_id for token_id, token in special.items()}
    prefix, middle, suffix = (ids[token] for token in tokens.all)
    return prefix, middle, suffix


def token_facts(tokenizer_json: str, config: TokenizerConfig) -> MarkedTokenFacts:
    """Describe a tokenizer for later stages; TokenizerError if it lacks a token of the config."""
    tokenizer, end_id = read_tokenizer(tokenizer_json, config.end_of_document)
    begin, begin_id = config.begin_of_document, None
    if begin is not None:
        begin_id = special_token_id(tokenizer, begin, "begin_of_document")
    refuse_ambiguous_ids(tokenizer, {end_id, begin_id})
    vocab_size = vocabulary_size(tokenizer)
    return MarkedTokenFacts(
        tokenizer_fingerprint=tokenizer_fingerprint(tokenizer_json),
        vocab_size=vocab_size,
        token_dtype=str(token_dtype(vocab_size)).lower(),
        end_of_document=config.end_of_document,
        end_of_document_id=end_id,
        begin_of_document=begin,
        begin_of_document_id=begin_id,
    )


def refuse_ambiguous_ids(tokenizer: Tokenizer, marks: Container[int | None]) -> None:
    """Raise TokenizerError if text can be given the id of a special token."""
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
    """Return the largest id plus one, which exceeds the number of entries where ids have gaps."""
    return int(max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)) + 1


def token_dtype(vocab_size: int) -> pl.DataType:
    """Return UInt16 if every id fits, else UInt32."""
    return pl.UInt16() if vocab_size <= UINT16_VOCABULARY else pl.UInt32()
