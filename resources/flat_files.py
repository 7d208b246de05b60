"""Many rows of the flat files of shards at once: mapped, looked up, copied together.

corpus_loader reads row by row, for a batch at a time; this is for whoever rewrites a whole phase.
Layouts: resources/formats/megatron.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.transforms.shard_formats import DOC_ID_BYTES, FlatRows, FlatSpans, starts_of
from resources.store import map_array

SPANS_HEADER = 24  # magic, u64 rows, u64 spans
INDEX_HEADER = 34  # magic, u64 version, u8 dtype code, u64 rows, u64 rows + 1


def map_rows(stem: Path, rows: int, token_dtype: str) -> FlatRows:
    """The rows of .bin and .idx, of which only what is looked at is read."""
    lengths = map_array(Path(f"{stem}.idx"), np.int32, (rows,), INDEX_HEADER)
    starts = starts_of(lengths)
    dtype = np.dtype(token_dtype).type
    tokens = map_array(Path(f"{stem}.bin"), dtype, (int(starts[-1]),))
    return FlatRows(np.asarray(tokens), starts)  # a slice of a memmap takes 2 us, of this 0.1


def map_spans(path: Path, rows: int) -> FlatSpans:
    """The document spans of a .spans file, of which only what is looked at is read."""
    first_span = map_array(path, np.uint64, (rows + 1,), SPANS_HEADER)
    count = int(first_span[-1])
    at = SPANS_HEADER + first_span.nbytes
    start, length = (map_array(path, np.uint32, (count,), at + 4 * count * i) for i in (0, 1))
    doc_ids = map_array(path, np.uint8, (count, DOC_ID_BYTES), at + 8 * count)
    return FlatSpans(*(np.asarray(each) for each in (first_span, start, length, doc_ids)))


def row_tokens(spans: FlatSpans) -> NDArray[np.uint32]:
    """Tokens of each row, without padding: the sum of its spans."""
    reached = starts_of(spans.length.astype(np.int64))
    return np.diff(reached[spans.first_span.astype(np.int64)]).astype(np.uint32)


def read_rows(
    shards: list[tuple[FlatRows, FlatSpans]], shard: NDArray[np.intp], row: NDArray[np.int64]
) -> pl.DataFrame:
    """The rows `row[i]` of shards `shard[i]`, in that order: num_tokens, tokens, spans."""
    tokens: list[NDArray[Any]] = []
    spans: list[tuple[NDArray[Any], ...]] = []
    for number, place in zip(shard.tolist(), row.tolist(), strict=True):
        flat, documents = shards[number]
        tokens.append(flat.content[flat.starts[place] : flat.starts[place + 1]])
        piece = slice(int(documents.first_span[place]), int(documents.first_span[place + 1]))
        spans.append((documents.start[piece], documents.length[piece], documents.doc_ids[piece]))
    start, length, doc_ids = (np.concatenate(each) for each in zip(*spans, strict=True))
    first_span = starts_of(np.array([len(piece[0]) for piece in spans]))
    starts = starts_of(np.array([len(piece) for piece in tokens]))
    together = FlatSpans(first_span.astype(np.uint64), start, length, doc_ids)
    return pl.DataFrame(
        {
            "num_tokens": row_tokens(together),
            "tokens": as_lists(starts, np.concatenate(tokens)),
            "spans": as_lists(first_span, span_structs(together)),
        }
    )


def as_lists(offsets: NDArray[np.int64], values: Any) -> pl.Series:
    """A column of lists over values that lie back to back."""
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(values))
    column = pl.from_arrow(lists)
    assert isinstance(column, pl.Series)
    return column


def span_structs(spans: FlatSpans) -> Any:
    """Spans as an Arrow array of (doc_id in hex, start, length)."""
    raw = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DOC_ID_BYTES), len(spans.length), [None, pa.py_buffer(spans.doc_ids.tobytes())]
    )
    digits = pl.from_arrow(raw.cast(pa.large_binary())).bin.encode("hex").to_arrow()  # type: ignore[union-attr]
    return pa.StructArray.from_arrays(
        [digits, pa.array(spans.start), pa.array(spans.length)], ["doc_id", "start", "length"]
    )
