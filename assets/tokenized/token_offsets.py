"""Byte offset of each token in the UTF-8 text of its document.

The tokens of byte-level BPE are bytes, so their offsets are the cumulative sum of their lengths. If
these do not add up to the text (a normalizer, a blank put in front, another tokenizer model),
`tokenizers` computes the offsets, which is slow.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.tokenized.encoders import Ids, Offsets, ReferenceEncoder

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
    """Count the bytes of each id; zeros if the tokenizer is not byte-level BPE."""
    vocabulary = reference.tokenizer.get_vocab(with_added_tokens=True)
    sizes = np.zeros(max(vocabulary.values()) + 1, np.uint32)
    if reference.is_byte_level and reference.component_types["normalizer"] is None:
        for token, token_id in vocabulary.items():
            sizes[token_id] = len(token)
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
