"""Kinds of tokens: those that stand for unknown text, and single bytes of longer characters.

A text with many of them is served badly: the tokenizer has learned nothing of its script.
"""

from __future__ import annotations

import json
import re
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.tokenized.byte_level import byte_letters
from assets.tokenized.encode_documents import TokenFormat
from assets.tokenized.encoders import ReferenceEncoder

PLAIN_TOKEN, UNKNOWN_TOKEN, BYTE_TOKEN = range(3)
BYTE_FALLBACK = re.compile(r"<0x[89A-F][0-9A-F]>")  # as models with `byte_fallback` spell bytes


@cache
def token_kinds(reference: ReferenceEncoder, form: TokenFormat) -> NDArray[np.uint8]:
    """Return the kind of every id, uint8 [vocab_size]; marks of documents are plain.

    ASCII characters are single bytes in any tokenizer: only bytes from 128 on count as such.
    """
    model = json.loads(reference.tokenizer.to_str())["model"]
    vocabulary = reference.tokenizer.get_vocab(with_added_tokens=False)
    kinds = np.full(form.vocab_size, PLAIN_TOKEN, np.uint8)
    high = set(byte_letters()[128:]) if reference.is_byte_level else set()
    for token, token_id in vocabulary.items():
        if token in high or (model.get("byte_fallback") and BYTE_FALLBACK.fullmatch(token)):
            kinds[token_id] = BYTE_TOKEN
    unknown = model.get("unk_id", vocabulary.get(model.get("unk_token") or ""))
    if unknown is not None:
        kinds[unknown] = UNKNOWN_TOKEN
    kinds[form.marks] = PLAIN_TOKEN
    return kinds


def count_kinds(tokens: pl.Series, kinds: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the tokens of each document by kind, int64 [kinds, documents]; plain ones stay 0."""
    from assets.tokenized.kernels.token_counts import count_of_kinds

    if not kinds.any():
        return np.zeros((BYTE_TOKEN + 1, len(tokens)), np.int64)
    ids = tokens.explode(empty_as_null=False).to_numpy()
    ends = np.cumsum(tokens.list.len().to_numpy(), dtype=np.int64)
    counts: NDArray[np.int64] = count_of_kinds(ids, ends, kinds, BYTE_TOKEN + 1)
    return counts
