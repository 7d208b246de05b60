"""Look up many rows in the flat files of shards, and copy them together.

corpus_loader reads single rows, a batch at a time; this module serves rewrites of a whole phase.
One file is open at a time, whatever the number of shards. Memory: the requested rows.
Layouts: corpus_loader/flat.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.sharded.formats.flat_rows import FlatRows, FlatSpans, starts_of
from assets.text.list_columns import arrow_items, list_series
from corpus_loader.flat import DOC_ID_BYTES, MappedFile, read_index, read_mask, read_spans
from corpus_loader.mixture import MASK_SUFFIX, Shard
from corpus_loader.places.errors import CorpusError
from resources.store.medium import medium_of
from resources.store.store import StoreError

# Place of a row in the files of its shard, and its length.
PLACE = np.dtype([("byte", "i8"), ("tokens", "i8"), ("span", "i8"), ("spans", "i8")])
Group = tuple[Shard, NDArray[np.intp]]  # a shard, and the indices of the requested rows in it


def read_rows(
    root: Path,
    token_dtype: str,
    shards: Sequence[Shard],
    number: NDArray[np.int64],
    row: NDArray[np.int64],
) -> pl.DataFrame:
    """Read the rows `row[i]` of `shards[number[i]]`, in that order: num_tokens, tokens, spans.

    And loss_mask if a shard has one; of the others, every token but padding is learned.
    Raises CorpusError if a file is not that of its shard; the caller checks hashes.
    """
    groups = by_shard(shards, number, row)
    places = np.empty(row.size, PLACE)
    for shard, which in groups:
        places[which] = find_rows(root, token_dtype, shard, row[which])
    rows = FlatRows(np.empty(places["tokens"].sum(), token_dtype), starts_of(places["tokens"]))
    count, first_span = int(places["spans"].sum()), starts_of(places["spans"])
    start, length = np.empty(count, np.uint32), np.empty(count, np.uint32)
    doc_ids = np.empty((count, DOC_ID_BYTES), np.uint8)
    spans = FlatSpans(first_span.astype(np.uint64), start, length, doc_ids)
    for shard, which in groups:
        copy_tokens(root, shard, places[which], rows, which)
        copy_spans(root, shard, places[which], spans, first_span[which])
    num_tokens = row_tokens(first_span, length)
    masks = {}
    if any(shard.has_loss_mask for shard in shards):
        flags = read_masks(root, rows, places, groups, num_tokens)
        masks = {"loss_mask": list_series(flags, rows.starts)}
    return pl.DataFrame(
        {
            "num_tokens": num_tokens,
            "tokens": list_series(rows.content, rows.starts),
            **masks,
            "spans": list_series(span_structs(spans), first_span),
        }
    )


def by_shard(
    shards: Sequence[Shard], number: NDArray[np.int64], row: NDArray[np.int64]
) -> list[Group]:
    """Group the requested rows by shard, in ascending order."""
    order = np.lexsort((row, number))
    needed, first = np.unique(number[order], return_index=True)
    by_number = np.split(order, first[1:])
    return [(shards[n], which) for n, which in zip(needed.tolist(), by_number, strict=True)]


def open_file(root: Path, shard: Shard, suffix: str) -> MappedFile:
    """Map one of a shard's files."""
    path = root / f"{shard.path}.{suffix}"
    medium_of(path.parent).bring(path)
    return MappedFile(path, shard.files[suffix].bytes)


def find_rows(
    root: Path, token_dtype: str, shard: Shard, row: NDArray[np.int64]
) -> NDArray[np.void]:
    """Return the PLACE of rows of a shard."""
    index = read_index(open_file(root, shard, "idx"), token_dtype, shard.rows)
    places = np.empty(row.size, PLACE)
    places["byte"], places["tokens"] = index.pointers[row], index.lengths[row]
    first = read_spans(open_file(root, shard, "spans"), shard.rows).first
    places["span"] = first[row]
    places["spans"] = first[row + 1].astype(np.int64) - places["span"]
    return places


def copy_tokens(
    root: Path, shard: Shard, places: NDArray[np.void], rows: FlatRows, which: NDArray[np.intp]
) -> None:
    """Copy the tokens of a shard's rows to their places, by slices."""
    file, width = open_file(root, shard, "bin"), rows.content.itemsize
    content = file.array(0, rows.content.dtype, file.num_bytes // width)
    targets = rows.starts[which].tolist()
    sources = (places["byte"] // width).tolist()
    for target, source, size in zip(targets, sources, places["tokens"].tolist(), strict=True):
        rows.content[target : target + size] = content[source : source + size]


def read_masks(
    root: Path,
    rows: FlatRows,
    places: NDArray[np.void],
    groups: Sequence[Group],
    num_tokens: NDArray[np.uint32],
) -> NDArray[np.bool_]:
    """Read the loss masks of rows, end to end as their tokens are."""
    flags = np.zeros(len(rows.content), np.bool_)
    for shard, which in groups:
        targets = rows.starts[which].tolist()
        if not shard.has_loss_mask:
            for target, size in zip(targets, num_tokens[which].tolist(), strict=True):
                flags[target : target + size] = True
            continue
        mask = read_mask(open_file(root, shard, MASK_SUFFIX))
        firsts = (places["byte"][which] // rows.content.itemsize).tolist()
        sizes = places["tokens"][which].tolist()
        for target, first, size in zip(targets, firsts, sizes, strict=True):
            flags[target : target + size] = mask.tokens(first, size)
    return flags


def copy_spans(
    root: Path,
    shard: Shard,
    places: NDArray[np.void],
    spans: FlatSpans,
    targets: NDArray[np.int64],
) -> None:
    """Copy the spans of a shard's rows to their targets."""
    stored = read_spans(open_file(root, shard, "spans"), shard.rows).spans
    source, target = runs(places["span"], places["spans"]), runs(targets, places["spans"])
    spans.start[target] = stored.starts[source]
    spans.length[target] = stored.lengths[source]
    spans.doc_ids[target] = stored.doc_ids[source]


def runs(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers first[i], first[i] + 1, ..., `count[i]` of them, for each i."""
    starts = starts_of(count)
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], count)


def lengths_of_rows(path: Path, rows: int) -> NDArray[np.uint32]:
    """Read the tokens of each row of a shard, without padding; StoreError if .spans is damaged."""
    try:
        by_row = read_spans(MappedFile(path, path.stat().st_size), rows)
    except CorpusError as error:
        raise StoreError(str(error)) from error
    return row_tokens(by_row.first.astype(np.int64), by_row.spans.lengths)


def row_tokens(first_span: NDArray[np.int64], lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the tokens of each row, without padding: the sum of its spans."""
    return np.diff(starts_of(lengths.astype(np.int64))[first_span]).astype(np.uint32)


def span_structs(spans: FlatSpans) -> Any:
    """Return spans as an Arrow array of (doc_id in hex, start, length)."""
    raw = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DOC_ID_BYTES), len(spans.length), [None, pa.py_buffer(spans.doc_ids.tobytes())]
    )
    digits = pl.from_arrow(raw.cast(pa.large_binary())).bin.encode("hex").to_arrow()  # type: ignore[union-attr]
    return pa.StructArray.from_arrays(
        [digits, arrow_items(spans.start), arrow_items(spans.length)], ["doc_id", "start", "length"]
    )
