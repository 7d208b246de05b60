"""Flat arrays of a shard's rows, which all formats are written from.

A shard's frame has num_tokens UInt32, tokens List (or Array) of UInt16 | UInt32, and spans
List(Struct{doc_id String, start UInt32, length UInt32}); those of conversations loss_mask
List(Boolean) as well. The formats want the rows as one run of
tokens and the start of each row, the layout of Arrow, so nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.list_columns import as_numpy, field_of, list_content
from corpus_loader.flat import DOC_ID_BYTES, PADDED


@dataclass(frozen=True)
class FlatRows:
    """Rows of numbers end to end: row i is `content[starts[i]:starts[i + 1]]`."""

    content: NDArray[Any]  # token ids (uint16 | uint32), or bytes (uint8)
    starts: NDArray[np.int64]  # [rows + 1], the first is 0

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Numbers in each row."""
        return np.diff(self.starts)

    def as_bytes(self) -> FlatRows:
        """View the same rows as bytes."""
        return FlatRows(self.content.view(np.uint8), self.starts * self.content.itemsize)


@dataclass(frozen=True)
class FlatSpans:
    """Document spans end to end: those of row i are `first_span[i]:first_span[i + 1]`."""

    first_span: NDArray[np.uint64]  # [rows + 1]
    start: NDArray[np.uint32]
    length: NDArray[np.uint32]
    doc_ids: NDArray[np.uint8]  # [spans, 16]
    padded: NDArray[np.uint32] | None = None  # lengths with padding, if documents are padded


def flat_rows(tokens: pl.Series) -> FlatRows:
    """Return the rows of a column of token lists, as views of its memory."""
    values, starts = list_content(as_lists(tokens))
    return FlatRows(as_numpy(values), starts)


def as_lists(tokens: pl.Series) -> pl.Series:
    """Return a column of tokens as lists, be they lists or arrays of a fixed length."""
    return tokens.arr.to_list() if isinstance(tokens.dtype, pl.Array) else tokens


def flat_mask(masks: pl.Series) -> NDArray[np.bool_]:
    """Return the flags of a column of lists, end to end."""
    return masks.explode(empty_as_null=False).to_numpy().astype(np.bool_)


def flat_spans(spans: pl.Series) -> FlatSpans:
    """Return the spans of a column of span lists, with the 32 hex digits of doc_id as 16 bytes."""
    values, first_span = list_content(spans)
    doc_id, start, length = (values.field(name) for name in ("doc_id", "start", "length"))
    digits = pl.Series(doc_id, dtype=pl.String).str.decode("hex").to_arrow()
    return FlatSpans(
        first_span.astype(np.uint64),
        as_numpy(start),
        as_numpy(length),
        np.frombuffer(digits.buffers()[2] or b"", np.uint8).reshape(len(digits), DOC_ID_BYTES),
        field_of(values, PADDED),
    )


def by_length(lengths: NDArray[np.int64], make: Callable[[int], bytes]) -> FlatRows:
    """Return the bytes that `make` returns for the length of each row, called once per length."""
    distinct, number = np.unique(lengths, return_inverse=True)
    heads = [make(length) for length in distinct.tolist()]
    sizes = np.array([len(head) for head in heads], np.int64)[number]
    content = np.frombuffer(b"".join([heads[i] for i in number.tolist()]), np.uint8)
    return FlatRows(content, starts_of(sizes))


def headed(heads: FlatRows, rows: FlatRows, unit: int = 1) -> FlatRows:
    """Put each row of bytes after its head, filled up with zeros to a multiple of `unit`."""
    from assets.sharded.kernels.place_rows import place_rows

    sizes = heads.lengths + rows.lengths
    starts = starts_of(-(-sizes // unit) * unit)
    content = np.zeros(starts[-1], np.uint8)
    place_rows(content, starts[:-1], heads.content, heads.starts)
    place_rows(content, starts[:-1] + heads.lengths, rows.content, rows.starts)
    return FlatRows(content, starts)


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the starts of rows of these lengths end to end, and the last end, int64 [n + 1]."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
