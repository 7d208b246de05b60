"""Encode documents to token ids, in Arrow buffers throughout.

Texts are encoded in slices of half a megabyte: the output of a slice stays in the processor's
cache, and peak memory stays low. Longer texts are cut where that does not change their ids
(`text_pieces`), and the ids of each piece are stored before the next is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from assets.text.document_ids import doc_heads
from assets.text.list_columns import list_series
from assets.tokenized.encoders import Encoder, Encoders, Ids, Offsets, ReferenceEncoder
from assets.tokenized.fill_in_the_middle import (
    NO_ID,
    NUM_TOKENS,
    FillForm,
    Int64s,
    Sections,
    draw,
    rearrange,
    whole,
)
from assets.tokenized.text_pieces import encode_pieces, inside_words, is_cut
from assets.tokenized.token_spellings import token_sizes
from assets.tokenized.tokenizer import token_dtype
from corpus_loader.permutation import derive_key, mix64
from resources.reused_array import NewArray


class GrowingArray:
    """Values of a type, end to end in one buffer.

    The buffer is a `new_array` for the most values expected: pages that are not written take no
    memory. Arrays in a list would have to be joined in the end, which takes their memory twice.
    """

    def __init__(
        self,
        dtype: type[np.unsignedinteger[Any]],
        capacity: int,
        new_array: NewArray = np.empty,
    ) -> None:
        self.buffer: NDArray[Any] = new_array(capacity, np.dtype(dtype))
        self.size = 0

    @property
    def values(self) -> NDArray[Any]:
        """The values so far, not copied."""
        return self.buffer[: self.size]

    def extend(self, values: ArrayLike) -> None:
        """Append values, cast to the type of the array."""
        added = np.asarray(values)
        self.add_room(added.size)[:] = added

    def add_room(self, size: int) -> NDArray[Any]:
        """Append arbitrary values, and return them for the caller to write."""
        start, end = self.size, self.size + size
        if end > self.buffer.size:
            larger = np.empty(2 * end, self.buffer.dtype)
            larger[:start] = self.values
            self.buffer = larger
        self.size = end
        return self.buffer[start:end]

    def truncate(self, size: int) -> None:
        """Forget the values from number `size` on, if there are any."""
        self.size = min(self.size, size)


SLICE_BYTES = 1 << 19
THREAD_PIECES = 12
SAMPLED_DOCUMENTS = 64
SAMPLED_BYTES = 1 << 19  # of the whole sample; its first document may exceed it
COMPARED_CHARS = 500  # of each sampled document; the reference encoder is slow


@dataclass(frozen=True)
class TokenFormat:
    """Stored form of a document: the ids around its own, and what is rearranged."""

    vocab_size: int
    end_id: int
    begin_id: int | None = None
    fill: FillForm | None = None

    @property
    def dtype(self) -> type[np.unsignedinteger[Any]]:
        """Smallest type that holds every id: uint16 or uint32."""
        return np.uint16 if token_dtype(self.vocab_size) == pl.UInt16 else np.uint32

    @property
    def num_marks(self) -> int:
        """Number of ids that every document has besides those of its text."""
        return 1 if self.begin_id is None else 2

    @property
    def marks(self) -> tuple[int, ...]:
        """The ids that are not of a text."""
        fill = () if self.fill is None else self.fill.ids
        return tuple(mark for mark in (self.begin_id, self.end_id, *fill) if mark is not None)

    def marks_of(self, doc_ids: pl.Series) -> pl.Series:
        """Count the marks of documents that have tokens, Int64."""
        num_marks = np.full(len(doc_ids), self.num_marks, np.int64)
        if self.fill is not None:
            num_marks += NUM_TOKENS * draw(doc_heads(doc_ids), self.fill).is_rearranged
        return pl.Series(num_marks)


def encode_documents(
    documents: pl.DataFrame,
    encoders: Encoders,
    form: TokenFormat,
    new_array: NewArray = np.empty,
) -> pl.DataFrame:
    """Encode each document as `encode_with` does, by the best encoder that is exact on a sample."""
    encoder = encoders.exact_on(compared_texts(documents))
    return encode_with(encoder, encoders.reference, documents, form, new_array)


def compared_texts(documents: pl.DataFrame) -> list[str]:
    """Return the beginnings of a sample of the documents, which encoders must agree on."""
    return sample_of(documents)["text"].str.slice(0, COMPARED_CHARS).to_list()


def encode_with(
    encoder: Encoder,
    reference: ReferenceEncoder,
    documents: pl.DataFrame,
    form: TokenFormat,
    new_array: NewArray = np.empty,
) -> pl.DataFrame:
    """Encode each document; put the begin id, if there is one, before its ids and the end id after.

    In: doc_id String, text String. Out, same order, without documents whose text gives no token:
    doc_id, tokens List(UInt16 or UInt32). The tokens are in a `new_array`.
    """
    texts = documents["text"]
    draws = None if form.fill is None else draw(doc_heads(documents["doc_id"]), form.fill)
    num_marks = form.num_marks + (0 if draws is None else NUM_TOKENS)
    num_bytes = texts.str.len_bytes().to_numpy()
    capacity = int(num_bytes.sum(dtype=np.int64)) + num_marks * len(texts)
    ids = GrowingArray(form.dtype, capacity, new_array)  # byte-level BPE has at most an id a byte
    columns = TokenColumns(encoder, reference, form, ids)
    for rows in slices_of(num_bytes):
        sections = whole(
            texts[rows], NO_ID if form.begin_id is None else form.begin_id, form.end_id
        )
        if draws is not None and form.fill is not None:
            sections = rearrange(sections, draws.of(rows), form.fill)
        columns.add(sections, len(num_bytes[rows]))
    num_tokens = np.concatenate([np.zeros(0, np.int64), *columns.num_tokens])
    is_kept = num_tokens > 0
    doc_ids = documents["doc_id"].filter(pl.Series(is_kept))
    sizes = num_tokens[is_kept] + form.marks_of(doc_ids).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kept = documents.select("doc_id").filter(pl.Series(is_kept))
    return kept.with_columns(tokens=list_series(columns.ids.values, offsets))


@dataclass
class TokenColumns:
    """Ids of documents, with their marks, end to end in the order of being added."""

    encoder: Encoder
    reference: ReferenceEncoder
    form: TokenFormat
    ids: GrowingArray
    num_tokens: list[Int64s] = field(default_factory=list)  # of the texts of each `add`

    def add(self, sections: Sections, num_documents: int) -> None:
        """Encode documents: together, or one that is long in pieces."""
        if num_documents == 1 and self.add_in_pieces(sections):
            return
        ids, offsets = self.encoder.encode(sections.texts.to_list())
        of_each = np.bincount(sections.documents, np.diff(offsets), num_documents)
        num_tokens = of_each.astype(np.int64)
        self.num_tokens.append(num_tokens)
        marks = np.where((num_tokens > 0)[sections.documents, None], sections.marks, NO_ID)
        extend_marked(self.ids, ids, offsets, marks)

    def add_in_pieces(self, sections: Sections) -> bool:
        """Encode a long document piece by piece, and return True.

        False, with nothing added, if it is not to be cut, or its ids do not have as many bytes,
        because the vocabulary lacks some.
        """
        texts = sections.texts.to_list()
        if not any(is_cut(text, self.reference) for text in texts):
            return False
        sizes, inside = token_sizes(self.reference), inside_words(self.reference)
        before, num_marks = self.ids.size, np.count_nonzero(sections.marks != NO_ID)
        for text, (*ids_before, end_id) in zip(texts, sections.marks.tolist(), strict=True):
            self.add_marks(ids_before)
            num_bytes = 0
            pieces = encode_pieces(self.encoder, text, sizes, inside)
            for ids in in_threads(pieces, self.form.dtype):
                self.ids.extend(ids)
                num_bytes += int(sizes[ids].sum())
            if num_bytes != len(text.encode()):
                self.ids.truncate(before)
                return False
            self.add_marks([end_id])
        self.num_tokens.append(np.array([self.ids.size - before - num_marks], np.int64))
        return True

    def add_marks(self, mark_ids: list[int]) -> None:
        """Add ids that are not of the text, unless NO_ID."""
        self.ids.extend([mark_id for mark_id in mark_ids if mark_id != NO_ID])


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


def slices_of(num_bytes: NDArray[np.uint32]) -> Iterator[slice]:
    """Yield slices of consecutive texts, of about SLICE_BYTES each; a longer text is one alone.

    `num_bytes` is the size of every text.
    """
    sizes = num_bytes.astype(np.int64)
    is_last = np.diff(np.cumsum(sizes) // SLICE_BYTES) > 0
    edges = np.flatnonzero(is_last | (sizes[:-1] > SLICE_BYTES)) + 1
    for start, stop in pairwise([0, *edges.tolist(), sizes.size]):
        yield slice(start, stop)


def extend_marked(
    column: GrowingArray, values: NDArray[np.uint32], offsets: Offsets, marks: Int64s
) -> None:
    """Append lists to a column, each with its marks around it, int64 [n, 4].

    Three marks are before each list, one is after it. Nothing is inserted for NO_ID.
    """
    from assets.tokenized.kernels.marked_lists import write_marked

    room = column.add_room(values.size + int(np.count_nonzero(marks != NO_ID)))
    write_marked(values, offsets, marks, room)


def count_ids(tokens: pl.Series, vocab_size: int) -> NDArray[np.uint64]:
    """Count the occurrences of each id of the vocabulary, uint64 [vocab_size]."""
    from assets.tokenized.kernels.token_counts import count_each

    counts: NDArray[np.uint64] = count_each(tokens.explode().to_numpy(), vocab_size)
    return counts


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
