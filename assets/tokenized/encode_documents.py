"""Encode documents to token ids, in Arrow buffers throughout.

Texts are encoded in slices of a megabyte: the output of a slice stays in the processor's cache, and
peak memory stays low. Longer texts are cut where that does not change their ids (`text_pieces`),
and the ids of each piece are stored before the next is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.tokenized.encoders import Encoder, Encoders, Ids, Offsets, ReferenceEncoder
from assets.tokenized.growing_array import GrowingArray
from assets.tokenized.text_pieces import encode_pieces, is_cut
from assets.tokenized.token_offsets import byte_starts, token_sizes
from assets.tokenized.tokenizer import token_dtype
from corpus_loader.permutation import derive_key, mix64

SLICE_BYTES = 1 << 20
THREAD_PIECES = 12
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
    """Encode each document as `encode_with` does, by the best encoder that is exact on a sample."""
    encoder = encoders.exact_on(compared_texts(documents))
    return encode_with(encoder, encoders.reference, documents, form)


def compared_texts(documents: pl.DataFrame) -> list[str]:
    """Return the beginnings of a sample of the documents, which encoders must agree on."""
    return sample_of(documents)["text"].str.slice(0, COMPARED_CHARS).to_list()


def encode_with(
    encoder: Encoder, reference: ReferenceEncoder, documents: pl.DataFrame, form: TokenFormat
) -> pl.DataFrame:
    """Encode each document; put the begin id, if there is one, before its ids and the end id after.

    In: doc_id String, text String. Out, same order, without documents whose text gives no token:
    doc_id, tokens List(UInt16 or UInt32), and with `form.offsets` offsets List(UInt32): the byte of
    the text where each token starts, 0 for the begin id, the text's length for the end id.
    """
    texts = documents["text"]
    capacity = int(texts.str.len_bytes().cast(pl.Int64).sum()) + form.num_marks * len(texts)
    columns = TokenColumns(encoder, reference, form, capacity)
    for texts_slice in slices_of(texts):
        columns.add(texts_slice)
    num_tokens = np.concatenate(columns.num_tokens)
    is_kept = num_tokens > 0
    offsets = np.concatenate([[0], np.cumsum(num_tokens[is_kept] + form.num_marks)])
    lists = {"tokens": list_series(columns.ids.values, offsets)}
    if form.offsets:
        lists["offsets"] = list_series(columns.starts.values, offsets)
    return documents.select("doc_id").filter(pl.Series(is_kept)).with_columns(**lists)


class TokenColumns:
    """Ids and offsets of documents, with their marks, end to end in the order of being added."""

    def __init__(
        self, encoder: Encoder, reference: ReferenceEncoder, form: TokenFormat, capacity: int
    ) -> None:
        self.encoder, self.reference, self.form = encoder, reference, form
        self.ids = GrowingArray(form.dtype, capacity)  # byte-level BPE has at most an id a byte
        self.starts = GrowingArray(np.uint32, capacity if form.offsets else 0)
        self.num_tokens = [np.zeros(0, np.int64)]  # of each document's text

    def add(self, texts: pl.Series) -> None:
        """Encode consecutive texts: together, or one that is long in pieces."""
        sizes = texts.str.len_bytes().to_numpy()
        if len(texts) == 1 and self.add_in_pieces(texts[0], int(sizes[0])):
            return
        form = self.form
        ids, offsets = self.encoder.encode(texts.to_list())
        self.num_tokens.append(np.diff(offsets))
        self.ids.extend(insert_around(ids.astype(form.dtype), offsets, form.begin_id, form.end_id))
        if form.offsets:
            starts = byte_starts(texts, ids, offsets, self.reference)
            first = None if form.begin_id is None else 0
            self.starts.extend(insert_around(starts, offsets, first, sizes))

    def add_in_pieces(self, text: str, num_bytes: int) -> bool:
        """Encode a long text of `num_bytes` piece by piece, and return True.

        False, with nothing added, if it is not to be cut, or its ids do not have as many bytes,
        because the vocabulary lacks some.
        """
        if not is_cut(text, self.reference):
            return False
        sizes = token_sizes(self.reference)
        before, start = self.ids.size, 0
        self.add_mark(self.form.begin_id, 0)
        for ids in in_threads(encode_pieces(self.encoder, text, sizes), self.form.dtype):
            id_sizes = sizes[ids]
            self.ids.extend(ids)
            if self.form.offsets:
                ends = np.cumsum(id_sizes, dtype=np.uint32)
                self.starts.extend(start + ends - id_sizes)
            start += int(id_sizes.sum())
        if start != num_bytes:
            self.ids.truncate(before)
            self.starts.truncate(before)
            return False
        self.add_mark(self.form.end_id, num_bytes)
        num_ids = self.ids.size - before - self.form.num_marks
        self.num_tokens.append(np.array([num_ids], np.int64))
        return True

    def add_mark(self, mark_id: int | None, start: int) -> None:
        """Add the id, unless None, of the begin or end of a document."""
        if mark_id is None:
            return
        self.ids.extend([mark_id])
        if self.form.offsets:
            self.starts.extend([start])


def in_threads(
    pieces: Iterator[Ids], dtype: type[np.unsignedinteger[Any]]
) -> Iterator[NDArray[Any]]:
    """Yield pieces of ids as a type; make every THREAD_PIECES of them in a thread of their own.

    `fastokens` keeps in each thread the words it has seen, of any length, with five bytes a
    character, up to 165 MB of them, until the thread ends.
    """

    def take() -> list[NDArray[Any]]:
        return [ids.astype(dtype) for ids in islice(pieces, THREAD_PIECES)]

    while True:
        with ThreadPoolExecutor(1) as thread:
            batch = thread.submit(take).result()
        if not batch:
            return
        yield from batch


def slices_of(texts: pl.Series) -> Iterator[pl.Series]:
    """Yield slices of consecutive texts, of about SLICE_BYTES each; a longer text is one alone."""
    sizes = texts.str.len_bytes().cast(pl.Int64).to_numpy()
    is_last = np.diff(np.cumsum(sizes) // SLICE_BYTES) > 0
    edges = np.flatnonzero(is_last | (sizes[:-1] > SLICE_BYTES)) + 1
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
    from assets.tokenized.kernels.token_counts import count_each

    counts: NDArray[np.uint64] = count_each(tokens.explode().to_numpy(), vocab_size)
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
