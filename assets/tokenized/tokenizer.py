"""Tokenizer of a corpus: a byte-level BPE, trained on a sample of it or loaded from a file.

No text may be given the id of a special token, which would end a document early. `tokenizers` can
treat the spelling of one as plain text. The model then sees that text, and Unigram, or BPE with
`ignore_merges`, still finds it if its own vocabulary has it too. So text is encoded with a
vocabulary that has another spelling there, which no text has.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import polars as pl

from assets.tokenized.kept_tokenizer import RETRAIN_COMMAND
from assets.tokenized.tokenized_records import MarkedTokenFacts
from resources.settings.tokenizer import (
    GPT2,
    PATTERNS,
    FillTokens,
    TokenizerConfig,
    word_regex,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from tokenizers import Tokenizer


NONCHARACTER = "\ufdef"
FILLING = re.compile("fim|pre|mid|suf", re.IGNORECASE)  # in names such as <PRE> or <fim_begin>


class AddedToken(msgspec.Struct, frozen=True):
    """Added token of a tokenizer.json, as far as it matters here.

    `tokenizers` may give it another id than the file, if the ids of the file have gaps.
    """

    id: int
    content: str
    special: bool = False


class ModelFacts(msgspec.Struct, frozen=True):
    """Kind of a model, and the token that it gives to what it cannot spell, by spelling or id."""

    type: str | None = None
    ignore_merges: bool = False
    unk_token: str | None = None
    unk_id: int | None = None

    @property
    def merges_alone(self) -> bool:
        """True if entries are found by merges alone: no text spells a special token."""
        return self.type == "BPE" and not self.ignore_merges


class AddedTokens(msgspec.Struct, frozen=True):
    """Added tokens of a tokenizer.json; reading them alone takes little of the file's size."""

    added_tokens: list[AddedToken] = []
    model: ModelFacts = ModelFacts()

    def special(self) -> list[str]:
        """List the special tokens."""
        return [token.content for token in self.added_tokens if token.special]

    def unknown(self) -> list[str]:
        """List the spellings of the unknown token."""
        by_id = [token.content for token in self.added_tokens if token.id == self.model.unk_id]
        return by_id if self.model.unk_token is None else [self.model.unk_token, *by_id]

    def like_filling(self) -> list[str]:
        """List the tokens that may be meant for filling in the middle, by their names."""
        return [token.content for token in self.added_tokens if FILLING.search(token.content)]


def read_added_tokens(tokenizer_json: bytes) -> AddedTokens:
    """Read the added tokens of a tokenizer.json."""
    return msgspec.json.decode(tokenizer_json, type=AddedTokens)


def without_spellings(tokenizer_json: str) -> str:
    """Return a tokenizer.json that gives no text the id of a special token, and all other ids.

    The entries of special tokens in its vocabulary are spelled in another way; the unknown token
    stays. It is the same where merges alone find entries.
    """
    known = read_added_tokens(tokenizer_json.encode())
    hidden = {*known.special()} - {*known.unknown()}
    if known.model.merges_alone or not hidden:
        return tokenizer_json
    content = json.loads(tokenizer_json)
    model = content["model"]
    if isinstance(model["vocab"], dict):
        hidden &= model["vocab"].keys()
        model["vocab"] = {
            hidden_name(token_id) if text in hidden else text: token_id
            for text, token_id in model["vocab"].items()
        }
    else:
        hidden &= {text for text, _ in model["vocab"]}
        model["vocab"] = [
            [hidden_name(number) if text in hidden else text, score]
            for number, (text, score) in enumerate(model["vocab"])
        ]
    if not hidden:
        return tokenizer_json
    pairs = [pair.split(" ") if isinstance(pair, str) else pair for pair in model.get("merges", ())]
    if pairs:
        model["merges"] = [pair for pair in pairs if not hidden & {*pair, "".join(pair)}]
    added = [token for token in content["added_tokens"] if token["content"] not in hidden]
    unused = dict.fromkeys(("post_processor", "truncation", "padding"))
    return json.dumps(content | unused | {"added_tokens": added}, ensure_ascii=False)


def hidden_name(token_id: int) -> str:
    """Return a spelling of an entry that no text has: 16 noncharacters, and its id."""
    return f"{NONCHARACTER * 16}{token_id}"


def tokens_with_shared_ids(tokenizer: Tokenizer) -> list[str]:
    """List the special tokens that share their id with another entry of the model.

    A token that the model lacks gets the number of entries as its id, which another entry may
    already have if the ids have gaps.
    """
    entries = {i: entry for entry, i in tokenizer.get_vocab(with_added_tokens=False).items()}
    special = special_tokens(tokenizer)
    return [text for token_id, text in special.items() if entries.get(token_id, text) != text]


def spelled_tokens(tokenizer: Tokenizer, marks: Container[int | None]) -> list[str]:
    """List the special tokens whose spelling, as plain text, is given their id.

    The unknown token is allowed, unless it is one of `marks`, the ids around a document.
    """
    from tokenizers import Tokenizer

    tokenizer_json = tokenizer.to_str()
    unknown = unknown_id(tokenizer, tokenizer_json)
    plain = Tokenizer.from_str(without_spellings(tokenizer_json))
    plain.encode_special_tokens = True
    return [
        text
        for token_id, text in special_tokens(tokenizer).items()
        if (token_id != unknown or token_id in marks) and token_id in ids_of_spelling(plain, text)
    ]


def unknown_id(tokenizer: Tokenizer, tokenizer_json: str) -> int | None:
    """Return the id of what the model of a tokenizer cannot spell, None if it has none."""
    model = read_added_tokens(tokenizer_json.encode()).model
    return tokenizer.token_to_id(model.unk_token or "") if model.unk_id is None else model.unk_id


def special_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the spelling of each special token by id."""
    added = tokenizer.get_added_tokens_decoder()
    return {token_id: token.content for token_id, token in added.items() if token.special}


def ids_of_spelling(tokenizer: Tokenizer, text: str) -> set[int]:
    """Encode `text` alone, inside a word and after blanks; return all ids."""
    texts = [text, f"a{text}b", f"a {text} b", f"a {text}", text + text]
    encodings = [tokenizer.encode(spelling, add_special_tokens=False) for spelling in texts]
    return {token_id for encoding in encodings for token_id in encoding.ids}


UINT16_VOCABULARY = 1 << 16
MOST_FILE_BYTES = 64 << 20  # Gemma's has 33 MB; parsing takes ten times as much memory
MOST_IDS = 1 << 24  # Gemma's has 262,144; tables by id have a row for each, gaps too


class TokenizerError(ValueError):
    """Error of a tokenizer that cannot be used as configured."""


def train_bpe(batches: Iterable[Sequence[str] | pl.Series], config: TokenizerConfig) -> str:
    """Train byte-level BPE and return its canonical tokenizer.json.

    `tokenizers` counts in integers and breaks ties by id, so the result is the same bytes for any
    number of threads, and for any batches and order of the texts.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    regex = word_regex(config.pattern, config.digits)
    is_built_in = regex == PATTERNS[GPT2]
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, use_regex=is_built_in
    )
    if not is_built_in:
        words = pre_tokenizers.Split(Regex(regex), "isolated")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, tokenizer.pre_tokenizer])
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
