"""Gather the tokens of sequences from the documents, and give every sequence an identity.

Tokens are copied once, from the input's Arrow buffers (which may be mapped files) to the output's.
Memory: the sequences, and 60 bytes a segment.

By its identity a later build finds a sequence again. It is an xxh3_128 of the tokens, padding
included, seeded with a hash of the spans (document, first token, length), and of the loss mask if
there is one. A text that changed at the same length is thus another sequence, and so is one whose
documents are of another group now. Sequences of a part that are alike in all of this are told apart
by their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.bucketed.document_chunks import Int64s, Segments, padded
from assets.text.list_columns import as_numpy, field_of, list_content, list_series
from corpus_loader.flat import PADDED
from corpus_loader.permutation import derive_key
from resources.reused_array import NewArray
from resources.settings.buckets import BucketLayout, bucket_names

ROW_COLUMNS = {  # of sequences in shards, too
    "num_tokens": "tokens of the sequence without padding",
    "tokens": "token ids",
    "loss_mask": "whether each token is learned, of conversations; or its weight in hundredths",
    "spans": "documents in the sequence: id, first token in it, tokens (and with its padding)",
}
PLACE_COLUMNS = {  # by which the tokens of a sequence are found in the files of its documents
    "rows": "row of each span's document, counted over the token files beside this one",
    "stored_tokens": "tokens with padding",
}
SPAN = pl.Struct({"doc_id": pl.String(), "start": pl.UInt32(), "length": pl.UInt32()})


class Filling(NamedTuple):
    """The token that fills sequences up, and the multiple of tokens that each document takes."""

    token: int
    multiple: int = 1


def count_tokens(tables: Sequence[pl.DataFrame]) -> Int64s:
    """Count the tokens of every document of all tables, int64 [n]."""
    counts = [table["tokens"].list.len().cast(pl.Int64).to_numpy() for table in tables]
    return np.concatenate([np.empty(0, np.int64), *counts])


def count_empty(
    tables: Sequence[pl.DataFrame], is_left_out: NDArray[np.bool_] | None = None
) -> int:
    """Count the documents without tokens, besides those left out (bool [n])."""
    is_empty = count_tokens(tables) == 0
    return int((is_empty if is_left_out is None else is_empty & ~is_left_out).sum())


def gather_sequences(
    tables: Sequence[pl.DataFrame],
    segments: Segments,
    sequence: NDArray[np.uint32],
    stored: Int64s,
    filling: Filling,
    new_array: NewArray = np.empty,
) -> pl.DataFrame:
    """Return num_tokens, tokens, spans, rows and stored_tokens of each sequence, in order.

    In: `tables` of documents (doc_id String, tokens List(UInt16 or UInt32)); segments of their
    rows, counted over all tables; the sequence of each segment; the tokens stored of each sequence,
    int64 [m], filled up as `filling` says. Segments keep their order within a sequence. The tokens
    are in a `new_array`.
    """
    from assets.bucketed.kernels.copy_tokens import sort_by_key

    order, first = sort_by_key(sequence, np.arange(len(sequence), dtype=np.uint32), len(stored))
    lengths = segments.lengths[order]
    num_tokens = np.diff(np.concatenate([[0], np.cumsum(lengths)])[first])
    ends = np.concatenate([[0], np.cumsum(padded(lengths, filling.multiple))])
    offsets = np.concatenate([[0], np.cumsum(stored)])
    places = np.empty(len(order), np.int64)
    places[order] = ends[:-1] + np.repeat(offsets[:-1] - ends[first[:-1]], np.diff(first))
    masks = gather_masks(tables, segments, places, offsets)
    is_wide = tables[0].schema["tokens"] == pl.List(pl.UInt32)
    values = new_array(int(offsets[-1]), np.dtype(np.uint32 if is_wide else np.uint16))
    values.fill(filling.token)
    copy_tokens(tables, segments, places, values)
    return pl.DataFrame(
        {
            "num_tokens": num_tokens.astype(np.uint32),
            "tokens": list_series(values, offsets),
            "spans": list_series(
                spans_of(tables, segments, order, filling.multiple).to_arrow(), first
            ),
            "rows": list_series(segments.documents[order].astype(np.uint32), first),
            "stored_tokens": stored.astype(np.uint32),
            **masks,
        }
    )


def spans_of(
    tables: Sequence[pl.DataFrame], segments: Segments, order: NDArray[np.uint32], multiple: int
) -> pl.Series:
    """Return segments in an order as structs of doc_id, start and length.

    And padded_length, if each takes a multiple of more than one token.
    """
    doc_ids = pl.concat([table["doc_id"] for table in tables])
    spans = pl.DataFrame(
        {
            "doc_id": doc_ids.gather(segments.documents[order]),
            "start": segments.starts[order].astype(np.uint32),
            "length": segments.lengths[order].astype(np.uint32),
        }
    )
    if multiple > 1:
        lengths = padded(segments.lengths[order], multiple)
        spans = spans.with_columns(pl.Series(PADDED, lengths.astype(np.uint32)))
    return spans.to_struct()


def copy_sequences(
    sequences: pl.DataFrame,
    numbers: Int64s,
    tables: Iterable[pl.DataFrame],
    places: Int64s,
    target: NDArray[Any],
) -> None:
    """Copy the tokens of some sequences from their documents to their places in `target`.

    In: the columns spans and rows of all sequences; the numbers of the wanted ones and a place for
    each, int64 [n]; the `tables` of documents that `rows` counts through. Padding is not written.
    """
    spans, edges = list_content(sequences["spans"])
    rows, _ = list_content(sequences["rows"])
    counts = edges[numbers + 1] - edges[numbers]
    firsts = np.cumsum(counts) - counts
    wanted = np.repeat(edges[numbers] - firsts, counts) + np.arange(counts.sum())
    documents = as_numpy(rows)[wanted].astype(np.int64)
    starts = as_numpy(spans.field("start"))[wanted].astype(np.int64)
    lengths = as_numpy(spans.field("length"))[wanted].astype(np.int64)
    with_padding = field_of(spans, PADDED)
    stored = lengths if with_padding is None else with_padding[wanted].astype(np.int64)
    before = np.cumsum(stored) - stored
    to = np.repeat(places - before[firsts], counts) + before
    order = np.argsort(documents, kind="stable")
    segments = Segments(documents[order], starts[order], lengths[order])
    copy_tokens(tables, segments, to[order], target)


def gather_masks(
    tables: Sequence[pl.DataFrame], segments: Segments, places: Int64s, offsets: Int64s
) -> dict[str, pl.Series]:
    """Return the loss masks of sequences with these offsets, False in padding; none of texts.

    Or their weights in hundredths, 0 in padding.
    """
    if "loss_mask" not in tables[0].columns:
        return {}
    flags = np.zeros(int(offsets[-1]), np.uint8)
    for table, first in zip(tables, first_rows(tables), strict=True):
        counts = table["loss_mask"].list.len().cast(pl.Int64).to_numpy()
        begins = np.concatenate([[0], np.cumsum(counts)])
        stored = table["loss_mask"].explode(empty_as_null=False).to_numpy().astype(np.uint8)
        low, high = np.searchsorted(segments.documents, [first, first + table.height])
        starts = begins[segments.documents[low:high] - first] + segments.starts[low:high]
        pieces = zip(starts, places[low:high], segments.lengths[low:high], strict=True)
        for start, place, length in pieces:  # conversations are long: a microsecond each
            flags[place : place + length] = stored[start : start + length]
    are_flags = tables[0].schema["loss_mask"] == pl.List(pl.Boolean)
    return {"loss_mask": list_series(flags.astype(np.bool_) if are_flags else flags, offsets)}


def first_rows(tables: Sequence[pl.DataFrame]) -> list[int]:
    """Return the number of the first document of each table."""
    return [*accumulate((table.height for table in tables), initial=0)][:-1]


def copy_tokens(
    tables: Iterable[pl.DataFrame], segments: Segments, places: Int64s, target: NDArray[Any]
) -> None:
    """Copy the tokens of all segments to their places in `target`."""
    from assets.bucketed.kernels.copy_tokens import copy_pieces

    row = 0
    for table in tables:
        for chunk in table["tokens"].get_chunks():
            tokens: Any = chunk.to_arrow()
            source, begins = as_numpy(tokens.values), as_numpy(tokens.offsets)
            low, high = np.searchsorted(segments.documents, [row, row + len(chunk)])
            starts = begins[segments.documents[low:high] - row] + segments.starts[low:high]
            copy_pieces(source, starts, segments.lengths[low:high], places[low:high], target)
            row += len(chunk)


DOC_ID_BYTES = 16


def sequence_ids(sequences: pl.DataFrame, layout: BucketLayout | None = None) -> NDArray[np.uint64]:
    """Return the identity of every sequence, uint64 [rows, 2].

    Of the columns tokens and spans, and loss_mask if there is one. With a `layout` that has groups
    the column bucket tells the group.
    """
    tokens = sequences["tokens"].rechunk().to_arrow()
    token_bytes, token_ends = as_bytes(as_numpy(tokens.values)), as_numpy(tokens.offsets)
    width = tokens.values.type.bit_width // 8
    span_bytes, span_ends = span_records(sequences["spans"])
    hash_spans, hash_tokens = xxhash.xxh3_64_intdigest, xxhash.xxh3_128_digest
    starts, stops = (token_ends[:-1] * width).tolist(), (token_ends[1:] * width).tolist()
    firsts, lasts = span_ends[:-1].tolist(), span_ends[1:].tolist()
    seeds = [hash_spans(span_bytes[first:last]) for first, last in zip(firsts, lasts, strict=True)]
    if "loss_mask" in sequences.columns:
        seeds = with_masks(seeds, sequences["loss_mask"])
    digests = b"".join(
        [
            hash_tokens(token_bytes[start:stop], seed)
            for start, stop, seed in zip(starts, stops, seeds, strict=True)
        ]
    )
    ids = np.frombuffer(digests, "<u8").reshape(-1, 2)
    if layout is not None and layout.groups:
        keys = [derive_key("group", name) if name else 0 for name in ("", *layout.groups)]
        group = sequences["bucket"].to_numpy() // len(bucket_names(layout.config))
        ids = np.stack([ids[:, 0] ^ np.array(keys, np.uint64)[group], ids[:, 1]], axis=1)
    return told_apart(ids)


def with_masks(seeds: Sequence[int], masks: pl.Series) -> list[int]:
    """Hash the loss mask of every sequence, a byte a token, with its seed."""
    values, ends = list_content(masks)
    flags = pl.Series(values=values).cast(pl.UInt8).to_numpy().data
    rows = zip(ends[:-1].tolist(), ends[1:].tolist(), seeds, strict=True)
    return [xxhash.xxh3_64_intdigest(flags[first:last], seed) for first, last, seed in rows]


def span_records(spans: pl.Series) -> tuple[memoryview, NDArray[np.int64]]:
    """Return the spans of all rows as bytes, and where those of each row end: int64 [rows + 1]."""
    lists = spans.rechunk().to_arrow()
    ends = as_numpy(lists.offsets)
    values = lists.values.slice(ends[0], ends[-1] - ends[0])
    doc_id, start, length = (values.field(name) for name in ("doc_id", "start", "length"))
    digits = pl.Series(doc_id, dtype=pl.String).str.decode("hex").to_arrow()
    records = np.empty((len(values), DOC_ID_BYTES + 8), np.uint8)
    doc_ids = np.frombuffer(digits.buffers()[2] or b"", np.uint8)
    records[:, :DOC_ID_BYTES] = doc_ids.reshape(-1, DOC_ID_BYTES)
    records[:, DOC_ID_BYTES:-4] = as_rows(as_numpy(start))
    records[:, -4:] = as_rows(as_numpy(length))
    return as_bytes(records), (ends - ends[0]) * records.shape[1]


def as_rows(numbers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """View numbers as rows of four bytes."""
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, 4)


def as_bytes(array: NDArray[np.generic]) -> memoryview:
    """View an array as bytes."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def told_apart(ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Add to each identity the number of equal ones before it."""
    table = pl.DataFrame({"high": ids[:, 1], "low": ids[:, 0]})
    if not table.is_duplicated().any():
        return ids
    before = pl.int_range(pl.len(), dtype=pl.UInt64).over("high", "low")
    return np.stack([ids[:, 0] + table.select(n=before)["n"].to_numpy(), ids[:, 1]], axis=1)
