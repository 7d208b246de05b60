"""Special tokens whose id text could be given, which would end a document early.

`tokenizers` can treat the spelling of a special token as plain text. The model then sees that text,
and Unigram, or BPE with `ignore_merges`, still finds it if its own vocabulary has it too. So text
is encoded with a vocabulary that has another spelling there, which no text has.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import msgspec

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
        """Whether an entry is found by merges alone: no text spells a special token."""
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
    model = read_added_tokens(tokenizer_json.encode()).model
    unknown_id = model.unk_id
    if unknown_id is None:
        unknown_id = tokenizer.token_to_id(model.unk_token or "")
    plain = Tokenizer.from_str(without_spellings(tokenizer_json))
    plain.encode_special_tokens = True
    return [
        text
        for token_id, text in special_tokens(tokenizer).items()
        if (token_id != unknown_id or token_id in marks)
        and token_id in ids_of_spelling(plain, text)
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
