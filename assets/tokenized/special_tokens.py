"""Special tokens whose ids the text of a document could get, which would end the document early.

`tokenizers` can be told to take a special token's spelling as text, but then the model sees it:
Unigram, and BPE with `ignore_merges`, know it where their own vocabulary has it too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from tokenizers import Tokenizer


def tokens_with_shared_ids(tokenizer: Tokenizer) -> list[str]:
    """Special tokens with the id of another entry of the model.

    A token that the model lacks gets the number of its entries, which is taken where ids have gaps.
    """
    entries = {i: entry for entry, i in tokenizer.get_vocab(with_added_tokens=False).items()}
    special = special_tokens(tokenizer)
    return [text for token_id, text in special.items() if entries.get(token_id, text) != text]


def spelled_tokens(tokenizer: Tokenizer, marks: Container[int | None]) -> list[str]:
    """Special tokens whose id a text with their spelling gets; tells `tokenizer` to avoid that.

    The token for what is unknown may come out, unless it is one of `marks`, the ids around a
    document.
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
    """Texts of the special tokens by id."""
    added = tokenizer.get_added_tokens_decoder()
    return {token_id: token.content for token_id, token in added.items() if token.special}


def ids_of_spelling(tokenizer: Tokenizer, text: str) -> set[int]:
    """Ids of texts that have `text` alone, inside a word and after blanks."""
    texts = [text, f"a{text}b", f"a {text} b", f"a {text}", text + text]
    encodings = [tokenizer.encode(each, add_special_tokens=False) for each in texts]
    return {token_id for encoding in encodings for token_id in encoding.ids}
