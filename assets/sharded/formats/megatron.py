"""Megatron-LM's pair: .bin has the tokens end to end, .idx the place of each sequence.

The format for training: a sample of a mapped .bin is read without decoding, unlike one of Parquet.
The file .spans beside the pair has the document segments of each row. Megatron ignores it;
`corpus_loader` makes document masks from it.

.idx (little-endian): "MMIDIDX\\0\\0", u64 version 1, u8 dtype, u64 sequences, u64 documents + 1,
i32 length[sequences], i64 byte_pointer[sequences], i64 document[documents + 1]. Source: Megatron
Core 0.16, megatron/core/datasets/indexed_dataset.py.
.spans: "TMSPANS1", u64 rows, u64 spans, u64 first_span[rows + 1], u32 start[spans],
u32 length[spans], 16-byte doc_id[spans]; where documents are padded "TMSPANS2", with u32
padded_length[spans] before doc_id.
.loss, of conversations: bit i, from the lowest of the first byte, is 1 if token i of .bin is
learned, padding is not. No header: tokens and bits have the same places.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.sharded.formats.base import ShardFormat, ShardSchema, rows_of
from assets.sharded.formats.flat_rows import FlatSpans, flat_mask, flat_spans
from corpus_loader.flat import (
    INDEX_DTYPE_CODES,
    INDEX_MAGIC,
    PADDED_SPANS_MAGIC,
    SPANS_MAGIC,
)
from corpus_loader.mixture import MASK_SUFFIX

IDX_VERSION = 1


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write .bin, .idx and .spans, and .loss if rows have masks."""
    bin_path, idx_path, spans_path, *mask_paths = paths
    rows = rows_of(shard, schema, "megatron")
    rows.content.tofile(bin_path)
    # Every row is a sequence, and a document of its own.
    write_places(idx_path, rows.lengths, rows.starts[:-1] * schema.token_bytes, schema)
    write_spans(spans_path, flat_spans(shard["spans"]))
    for path in mask_paths:
        write_mask(path, shard["loss_mask"])


def write_places(
    path: Path, lengths: NDArray[Any], pointers: NDArray[Any], schema: ShardSchema
) -> None:
    """Write .idx for rows of these lengths in tokens, at these bytes of .bin."""
    num_rows = len(lengths)
    header = (IDX_VERSION, INDEX_DTYPE_CODES[schema.token_dtype], num_rows, num_rows + 1)
    with open(path, "wb") as file:
        file.write(INDEX_MAGIC + struct.pack("<QBQQ", *header))
        lengths.astype("<i4").tofile(file)
        pointers.astype("<i8").tofile(file)
        np.arange(num_rows + 1, dtype="<i8").tofile(file)


def write_spans(path: Path, spans: FlatSpans) -> None:
    """Write .spans: the document segments, in the order of the rows."""
    padded = [] if spans.padded is None else [spans.padded]
    magic = PADDED_SPANS_MAGIC if padded else SPANS_MAGIC
    with open(path, "wb") as file:
        file.write(magic + struct.pack("<QQ", len(spans.first_span) - 1, len(spans.start)))
        spans.first_span.tofile(file)
        for array in (spans.start, spans.length, *padded):
            array.tofile(file)
        spans.doc_ids.tofile(file)


def write_mask(path: Path, masks: pl.Series) -> None:
    """Write .loss: a bit for each token, in the order of .bin."""
    np.packbits(flat_mask(masks), bitorder="little").tofile(path)


MEGATRON = ShardFormat("megatron", ("bin", "idx", "spans"), write, mask_suffixes=(MASK_SUFFIX,))
