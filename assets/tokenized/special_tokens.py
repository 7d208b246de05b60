"""Special tokens whose id text could be given, which would end a document early.

`tokenizers` can treat the spelling of a special token as plain text. The model then sees that text,
and Unigram, or BPE with `ignore_merges`, still finds it if its own vocabulary has it too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Container

    from tokenizers import Tokenizer


FILLING = re.compile("fim|pre|mid|suf", re.IGNORECASE)  # in names such as <PRE> or <fim_begin>


class AddedToken(msgspec.Struct, frozen=True):
    """Added token of a tokenizer.json, as far as it matters here.

    `tokenizers` may give it another id than the file, if the ids of the file have gaps.
    """

    id: int
    content: str
    special: bool = False


class UnknownToken(msgspec.Struct, frozen=True):
    """Token that a model gives to what it cannot spell, by its spelling or its id."""

    unk_token: str | None = None
    unk_id: int | None = None


class AddedTokens(msgspec.Struct, frozen=True):
    """Added tokens of a tokenizer.json; reading them alone takes little of the file's size."""

    added_tokens: list[AddedToken] = []
    model: UnknownToken = UnknownToken()

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

    Switches `tokenizer` to treating special tokens as plain text. The unknown token is allowed,
    unless it is one of `marks`, the ids around a document.
    """
    model = json.loads(tokenizer.to_str())["model"]
    unknown_id = model.get("unk_id", tokenizer.token_to_id(model.get("unk_token") or ""))
    tokenizer.encode_special_tokens = True
    return [
        text
        for token_id, text in special_tokens(tokenizer).items()
        if (token_id != unknown_id or token_id in marks)
        and token_id in ids_of_spelling(tokenizer, text)
    ]


def special_tokens(tokenizer: Tokenizer) -> dict[int, str]:
    """Return the spelling of each special token by id."""
    added = tokenizer.get_added_tokens_decoder()
    return {token_id: token.content for token_id, token in added.items() if token.special}


def ids_of_spelling(tokenizer: Tokenizer, text: str) -> set[int]:
    """Encode `text` alone, inside a word and after blanks; return all ids."""
    texts = [text, f"a{text}b", f"a {text} b", f"a {text}", text + text]
    encodings = [tokenizer.encode(spelling, add_special_tokens=False) for spelling in texts]
    return {token_id for encoding in encodings for token_id in encoding.ids}
