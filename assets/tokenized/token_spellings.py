"""Bytes of tokens: what each id spells, where each token begins in its text, and kinds of tokens.

The tokens of byte-level BPE are bytes, so their offsets are the cumulative sum of their lengths. If
these do not add up to the text (a normalizer, a blank put in front, another tokenizer model),
`tokenizers` computes the offsets, which is slow.
A text with many tokens for what is unknown, or for single bytes of longer characters, is served
badly: the tokenizer has learned nothing of its script.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.tokenized.encoders import Ids, Offsets, ReferenceEncoder
from resources.made_once import made_once

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PLAIN_TOKEN, UNKNOWN_TOKEN, BYTE_TOKEN = range(3)
BYTE_FALLBACK = re.compile(r"<0x[89A-F][0-9A-F]>")  # as models with `byte_fallback` spell bytes


class Spellings(NamedTuple):
    """Bytes of every id."""

    data: NDArray[np.uint8]  # of all ids, end to end
    edges: NDArray[np.int64]  # [ids + 1], where the bytes of an id begin and end
    words: NDArray[np.uint64]  # the first eight bytes as a number, shifted up to the highest bit


@made_once
def byte_letters() -> list[str]:
    """List the characters that stand for the bytes 0 to 255.

    This is the alphabet of GPT-2 (openai/gpt-2, src/encoder.py). A byte of visible Latin-1 is
    written as itself; the others get code points from 256 on.
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte if byte in visible else 256 + hidden.index(byte)) for byte in range(256)]


@cache
def spellings_of(reference: ReferenceEncoder) -> Spellings | None:
    """Return the bytes that a byte-level BPE decodes each id to; None for any other tokenizer."""
    if not reference.is_byte_level:
        return None
    vocabulary = reference.tokenizer.get_vocab(with_added_tokens=True)
    bytes_of = {letter: byte for byte, letter in enumerate(byte_letters())}
    spelled = [b""] * (max(vocabulary.values()) + 1)
    for token, token_id in vocabulary.items():
        try:
            spelled[token_id] = bytes(map(bytes_of.__getitem__, token))
        except KeyError:  # an added token with characters that stand for no byte
            spelled[token_id] = token.encode()
    edges = np.concatenate([[0], np.cumsum([len(token) for token in spelled], dtype=np.int64)])
    words = [int.from_bytes(token[:8].rjust(8, b"\0"), "little") for token in spelled]
    return Spellings(np.frombuffer(b"".join(spelled), np.uint8), edges, np.array(words, np.uint64))


def byte_starts(
    texts: pl.Series, ids: Ids, offsets: Offsets, reference: ReferenceEncoder
) -> NDArray[np.uint32]:
    """Return the byte offset of each token in its text, uint32, aligned with `ids`."""
    ends = np.zeros(ids.size + 1, np.uint32)
    np.cumsum(token_sizes(reference)[ids], out=ends[1:])
    begins = ends[offsets[:-1]]
    is_wrong = ends[offsets[1:]] - begins != texts.str.len_bytes().to_numpy()
    starts: NDArray[np.uint32] = ends[:-1]
    if len(texts) > 1:  # a text alone begins at 0, and may be long: this takes 4 bytes a token
        starts -= np.repeat(begins, np.diff(offsets))
    for row in np.flatnonzero(is_wrong).tolist():
        starts[offsets[row] : offsets[row + 1]] = reference_starts(texts[row], reference.plain)
    return starts


@cache
def token_sizes(reference: ReferenceEncoder) -> NDArray[np.uint32]:
    """Count the bytes of text of each id; zeros if the tokenizer is not byte-level BPE."""
    spellings = spellings_of(reference)
    if spellings is None or reference.component_types["normalizer"] is not None:
        ids = reference.tokenizer.get_vocab(with_added_tokens=True).values()
        return np.zeros(max(ids) + 1, np.uint32)
    sizes = np.diff(spellings.edges).astype(np.uint32)
    for token_id, added in reference.tokenizer.get_added_tokens_decoder().items():
        sizes[token_id] = len(added.content.encode())
    return sizes


def reference_starts(text: str, tokenizer: Tokenizer) -> NDArray[np.int64]:
    """Compute the byte offsets from those of `tokenizers`, which count characters."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    characters = np.array([start for start, _ in encoding.offsets], np.int64)
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(widths)])[characters]


@cache
def token_kinds(
    reference: ReferenceEncoder, vocab_size: int, marks: tuple[int, ...]
) -> NDArray[np.uint8]:
    """Return the kind of every id, uint8 [vocab_size]; marks of documents are plain.

    ASCII characters are single bytes in any tokenizer: only bytes from 128 on count as such.
    """
    model = json.loads(reference.tokenizer.to_str())["model"]
    vocabulary = reference.tokenizer.get_vocab(with_added_tokens=False)
    kinds = np.full(vocab_size, PLAIN_TOKEN, np.uint8)
    high = set(byte_letters()[128:]) if reference.is_byte_level else set()
    for token, token_id in vocabulary.items():
        if token in high or (model.get("byte_fallback") and BYTE_FALLBACK.fullmatch(token)):
            kinds[token_id] = BYTE_TOKEN
    if reference.unknown_id is not None:
        kinds[reference.unknown_id] = UNKNOWN_TOKEN
    kinds[list(marks)] = PLAIN_TOKEN
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
