"""Batches of the loader: rows of tokens and, on request, the documents in each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from corpus_loader.flat import DOC_ID_BYTES, Spans


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a batch of [rows, length] tokens, row after row.

    A segment is a part of a document, with the padding behind it where documents are padded
    (`buckets.pad_documents_to`), or the padding at the end of a row, which is a segment of its own:
    its doc_id is zero. All arrays are made for the flat batch, tokens.reshape(-1), the input of
    attention over segments of varying length (flash-attention's varlen functions).

    cu_seqlens int32 [segments + 1]: offsets of the segments, from 0 to rows x length;
    cu_seqlens_unpadded int32 [segments + 1]: the same sums without padding, of which a segment that
    is nothing else has none;
    max_seqlen: tokens of the longest segment, with padding;
    starts uint32 [segments]: offset of the segment's first token in its document;
    doc_ids uint8 [segments, 16];
    position_ids int32 [rows, length]: from 0 in each segment;
    loss_mask bool [rows, length]: True for a token that can be learned from the one before: not for
    padding, nor for the first of a segment, nor in a repeated row, nor where the mask of a
    conversation is not;
    num_tokens int32 [rows]: tokens without padding.
    """

    cu_seqlens: npt.NDArray[np.int32]
    cu_seqlens_unpadded: npt.NDArray[np.int32]
    max_seqlen: int
    starts: npt.NDArray[np.uint32]
    doc_ids: npt.NDArray[np.uint8]
    position_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_]
    num_tokens: npt.NDArray[np.int32]

    BYTES_PER_TOKEN: ClassVar[int] = 5  # of position_ids and loss_mask

    def rows(self, first: int, stop: int) -> Documents:
        """Slice the documents of the rows [first, stop)."""
        length = self.position_ids.shape[1]
        edges = np.array((first * length, stop * length), np.int32)
        begin, end = np.searchsorted(self.cu_seqlens, edges).tolist()
        rows, segments = slice(first, stop), slice(begin, end)
        cu_seqlens = self.cu_seqlens[begin : end + 1] - edges[0]
        unpadded = self.cu_seqlens_unpadded[begin : end + 1]
        return Documents(
            cu_seqlens=cu_seqlens,
            cu_seqlens_unpadded=unpadded - unpadded[0],
            max_seqlen=int((cu_seqlens[1:] - cu_seqlens[:-1]).max(initial=0)),
            starts=self.starts[segments],
            doc_ids=self.doc_ids[segments],
            position_ids=self.position_ids[rows],
            loss_mask=self.loss_mask[rows],
            num_tokens=self.num_tokens[rows],
        )


@dataclass(slots=True)  # frozen, it takes 0.6 us longer to make, of 8 us for a whole batch
class Batch:
    """A batch of samples of a phase; its arrays belong to the receiver.

    tokens [rows, length]: rows of different lengths are filled up with the end-of-document id;
    lengths int64 [rows]: tokens of the row as stored;
    positions int64 [rows]: of the sample in the phase, as `corpus trace --sample` takes it;
    sources uint16 [rows]: index into the loader's `sources`;
    is_repeated bool [rows]: True for a sample that only fills up the last step of an epoch: leave
    it out of the loss, as `documents.loss_mask` does;
    cursor: samples that all ranks have used once this batch is used (for `state_at`);
    loss_mask bool [rows, length]: True for a token that is learned: of a conversation the
    assistant's, of other documents all, but no padding and no repeated row; None if no source of
    the phase has masks. `documents.loss_mask` is True for no other tokens.
    """

    tokens: npt.NDArray[np.generic]
    lengths: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    sources: npt.NDArray[np.uint16]
    is_repeated: npt.NDArray[np.bool_]
    cursor: int
    documents: Documents | None = None
    loss_mask: npt.NDArray[np.bool_] | None = None

    def rows(self, first: int, stop: int, cursor: int) -> Batch:
        """Slice the rows [first, stop) under a new cursor; documents need rows of one length."""
        if stop - first == len(self.tokens):
            return replace(self, cursor=cursor)
        return Batch(
            self.tokens[first:stop],
            self.lengths[first:stop],
            self.positions[first:stop],
            self.sources[first:stop],
            self.is_repeated[first:stop],
            cursor,
            None if self.documents is None else self.documents.rows(first, stop),
            None if self.loss_mask is None else self.loss_mask[first:stop],
        )

    def mark_repeated(self, rows: int, stop: int | None = None) -> None:
        """Mark the last rows, or those before `stop`, as repeated: they are not learned."""
        stop = len(self.tokens) if stop is None else stop
        self.is_repeated[stop - rows : stop] = True
        if self.documents is not None:
            self.documents.loss_mask[stop - rows : stop] = False
        if self.loss_mask is not None:
            self.loss_mask[stop - rows : stop] = False


@dataclass(frozen=True)
class Group:
    """Batches that were read together: their rows, and the number of rows and cursor of each."""

    together: Batch
    sizes: list[int]
    cursors: list[int]

    def batches(self) -> Iterator[Batch]:
        """Yield the batches, slices of what was read."""
        if self.together.documents is None and len(set(self.sizes)) == 1:
            yield from self.equal_batches()
            return
        first = 0
        for size, cursor in zip(self.sizes, self.cursors, strict=True):
            yield self.together.rows(first, first + size, cursor)
            first += size

    def equal_batches(self) -> Iterator[Batch]:
        """Yield batches of one size, without documents: in half of the time."""
        together, count, size = self.together, len(self.sizes), self.sizes[0]
        mask = together.loss_mask
        return map(
            Batch,
            together.tokens.reshape(count, size, -1),
            together.lengths.reshape(count, size),
            together.positions.reshape(count, size),
            together.sources.reshape(count, size),
            together.is_repeated.reshape(count, size),
            self.cursors,
            repeat(None),
            repeat(None) if mask is None else mask.reshape(count, size, -1),
        )


def find_documents(rows: Sequence[Spans], length: int) -> Documents:
    """Lay out the documents of a batch from the spans of each row of `length` tokens.

    Raises ValueError if the spans of a row are longer than the row.
    """
    segment_tokens = join([row.lengths for row in rows]).astype(np.int64)
    counts = np.array([row.lengths.size for row in rows], np.int64)
    upto = np.concatenate([[0], np.cumsum(counts)])
    num_tokens = sums_up_to(segment_tokens, upto)
    stored_tokens, used = segment_tokens, num_tokens
    if is_padded := any(row.padded is not None for row in rows):
        stored_tokens = join([row.stored for row in rows]).astype(np.int64)
        used = sums_up_to(stored_tokens, upto)
    if used.max(initial=0) > length:
        raise ValueError(f"documents of {used.max():,} tokens in a row of {length:,}")

    # A segment of padding after the documents of each row; most are empty, and not there.
    is_document = np.ones(segment_tokens.size + counts.size, np.bool_)
    is_document[upto[1:] + np.arange(counts.size)] = False
    lengths = np.empty(is_document.size, np.int64)
    lengths[is_document], lengths[~is_document] = stored_tokens, length - used
    tokens = np.zeros(is_document.size, np.int64)
    tokens[is_document] = segment_tokens
    starts = np.zeros(is_document.size, np.uint32)
    starts[is_document] = join([row.starts for row in rows])
    doc_ids = np.zeros((is_document.size, DOC_ID_BYTES), np.uint8)
    doc_ids[is_document] = join([row.doc_ids for row in rows]).reshape(-1, DOC_ID_BYTES)
    is_there = lengths > 0
    lengths, tokens = lengths[is_there], tokens[is_there]

    cu_seqlens = np.concatenate([[0], np.cumsum(lengths)], dtype=np.int32, casting="same_kind")
    position_ids = np.arange(cu_seqlens[-1], dtype=np.int32) - np.repeat(cu_seqlens[:-1], lengths)
    loss_mask = (position_ids > 0) & np.repeat(is_document[is_there], lengths)
    if is_padded:
        loss_mask &= position_ids < np.repeat(tokens.astype(np.int32), lengths)
    return Documents(
        cu_seqlens=cu_seqlens,
        cu_seqlens_unpadded=np.concatenate([[0], np.cumsum(tokens)], dtype=np.int32),
        max_seqlen=int(lengths.max(initial=0)),
        starts=starts[is_there],
        doc_ids=doc_ids[is_there],
        position_ids=position_ids.reshape(len(rows), length),
        loss_mask=loss_mask.reshape(len(rows), length),
        num_tokens=num_tokens.astype(np.int32),
    )


def sums_up_to(values: npt.NDArray[np.int64], upto: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sum the values from each place in `upto`, int64 [n + 1], to the next, int64 [n]."""
    return np.diff(np.concatenate([[0], np.cumsum(values)])[upto])


def join(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate arrays; of none, return an empty uint32 array."""
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)
