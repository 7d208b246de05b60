"""Identities of sequences: hashes by which a later build finds the same sequences again.

An identity is an xxh3_128 of the tokens of a sequence, padding included, seeded with a hash of its
spans (document, first token, length), and of its loss mask if it has one. A text that changed at
the same length is thus another sequence, and so is one whose documents are of another group now.
Sequences of a part that are alike in all of this are told apart by their order.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.text.list_columns import as_numpy
from corpus_loader.permutation import derive_key
from resources.settings.buckets import BucketLayout, bucket_names

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
        masks = sequences["loss_mask"].explode(empty_as_null=False).to_numpy()
        flags, ends = masks.astype(np.uint8).data, sequences["loss_mask"].list.len()
        stops = ends.cast(pl.Int64).cum_sum().to_list()
        rows = zip([0, *stops[:-1]], stops, seeds, strict=True)
        seeds = [hash_spans(flags[start:stop], seed) for start, stop, seed in rows]
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
