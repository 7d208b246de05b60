"""Encode documents to token ids, in Arrow buffers throughout.

Texts are encoded in slices of a megabyte: the output of a slice stays in the processor's cache, and
peak memory stays low. Longer texts are cut where that does not change their ids (`text_pieces`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.tokenized.encoders import Encoders, Offsets
from assets.tokenized.text_pieces import encode_texts, join_arrays
from assets.tokenized.token_offsets import byte_starts
from assets.tokenized.tokenizer import token_dtype
from corpus_loader.permutation import derive_key, mix64

SLICE_BYTES = 1 << 20
SAMPLED_DOCUMENTS = 64
SAMPLED_BYTES = 1 << 19  # of the whole sample; its first document may exceed it
COMPARED_CHARS = 500  # of each sampled document; the reference encoder is slow
NO_TOKENS = "no_tokens"  # why this stage rejects a document


@dataclass(frozen=True)
class TokenFormat:
    """Stored form of a document: the ids around its own, and its offsets if wanted."""

    vocab_size: int
    end_id: int
    begin_id: int | None = None
    offsets: bool = False

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """Smallest type that holds every id: uint16 or uint32."""
        return np.uint16 if token_dtype(self.vocab_size) == pl.UInt16 else np.uint32

    @property
    def num_marks(self) -> int:
        """Number of ids that every document has besides those of its text."""
        return 1 if self.begin_id is None else 2


def encode_documents(
    documents: pl.DataFrame, encoders: Encoders, form: TokenFormat
) -> pl.DataFrame:
    """Encode each document; put the begin id, if there is one, before its ids and the end id after.

    In: doc_id String, text String. Out, same order, without documents whose text gives no token:
    doc_id, tokens List(UInt16 or UInt32), and with `form.offsets` offsets List(UInt32): the byte of
    the text where each token starts, 0 for the begin id, the text's length for the end id.
    """
    sample = sample_of(documents)["text"].str.slice(0, COMPARED_CHARS)
    encoder = encoders.exact_on(sample.to_list())
    lengths = [np.zeros(0, np.int64)]  # of the ids of every document's text
    ids = [np.zeros(0, form.dtype)]
    starts = [np.zeros(0, np.uint32)]
    for texts in slices_of(documents["text"]):
        text_ids, offsets = encode_texts(encoders, encoder, texts.to_list(), form.dtype)
        lengths.append(np.diff(offsets))
        ids.append(insert_around(text_ids, offsets, form.begin_id, form.end_id))
        if form.offsets:
            at = byte_starts(texts, text_ids, offsets, encoders.reference)
            first = None if form.begin_id is None else 0
            starts.append(insert_around(at, offsets, first, texts.str.len_bytes().to_numpy()))
            del at  # a long text's arrays have hundreds of megabytes
        del text_ids
    num_tokens = np.concatenate(lengths)
    is_kept = num_tokens > 0
    offsets = np.concatenate([[0], np.cumsum(num_tokens[is_kept] + form.num_marks)])
    columns = {"tokens": list_series(join_arrays(ids), offsets)}
    if form.offsets:
        columns["offsets"] = list_series(join_arrays(starts), offsets)
    return documents.select("doc_id").filter(pl.Series(is_kept)).with_columns(**columns)


def slices_of(texts: pl.Series) -> Iterator[pl.Series]:
    """Yield slices of consecutive texts, of about SLICE_BYTES each; a longer text is not cut."""
    numbers = texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy() // SLICE_BYTES
    edges = np.flatnonzero(np.diff(numbers)) + 1
    for start, stop in pairwise([0, *edges.tolist(), len(texts)]):
        yield texts[start:stop]


def insert_around(
    values: NDArray[Any], offsets: Offsets, before: int | None, after: int | NDArray[Any]
) -> NDArray[Any]:
    """Insert a value before (unless None) and after each list; empty lists stay empty."""
    is_kept = np.diff(offsets) > 0
    ends = offsets[1:][is_kept]
    afters = np.broadcast_to(after, is_kept.shape)[is_kept]
    if before is None:
        return np.insert(values, ends, afters)
    places = np.stack([offsets[:-1][is_kept], ends], axis=1)
    around = np.stack([np.full_like(afters, before), afters], axis=1)
    return np.insert(values, places.ravel(), around.ravel())


def list_series(values: NDArray[Any], offsets: Offsets) -> pl.Series:
    """Make a List series of two arrays without copying them."""
    item_type = pa.uint16() if values.dtype == np.uint16 else pa.uint32()
    # pa.array would import pandas, if it is installed, which is slow.
    content = pa.Array.from_buffers(item_type, values.size, [None, pa.py_buffer(values)])
    lists = pa.Array.from_buffers(
        pa.large_list(item_type),
        offsets.size - 1,
        [None, pa.py_buffer(offsets)],
        children=[content],
    )
    return pl.Series(values=lists)


def count_ids(tokens: pl.Series, vocab_size: int) -> NDArray[np.uint64]:
    """Count the occurrences of each id of the vocabulary, uint64 [vocab_size]."""
    counts = np.zeros(vocab_size, np.uint64)
    ids = tokens.explode().to_numpy()
    for start in range(0, ids.size, SLICE_BYTES):  # bincount makes 8 bytes of every id
        slice_counts = np.bincount(ids[start : start + SLICE_BYTES])
        counts[: slice_counts.size] += slice_counts.astype(np.uint64)
    return counts


def doc_heads(doc_ids: pl.Series) -> NDArray[np.uint64]:
    """Return the first 16 hex digits of each doc_id as a number."""
    heads = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    return heads.to_numpy()


def doc_index(doc_ids: pl.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return the heads of the doc_ids, ascending, and the row of each, for lookup by bisection."""
    heads = doc_heads(doc_ids)
    rows = np.argsort(heads, kind="stable")
    return heads[rows], rows.astype(np.uint32)


def sample_of(documents: pl.DataFrame) -> pl.DataFrame:
    """Draw a seeded sample of whole documents, which depends on the documents alone."""
    keys = mix64(doc_heads(documents["doc_id"]) ^ np.uint64(derive_key("tokenized sample")))
    sample = documents[np.argsort(keys, kind="stable")[:SAMPLED_DOCUMENTS]]
    sizes = sample["text"].str.len_bytes().cast(pl.Int64)
    return sample.filter((sizes.cum_sum() <= SAMPLED_BYTES) | (pl.int_range(pl.len()) == 0))
