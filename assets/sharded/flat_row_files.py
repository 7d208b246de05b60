"""Read single rows of flat token files, and find the rows that hold a document.

Files are mapped: reading a row touches a header, two records of an index and its own bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpus_loader.flat import (
    INDEX_DTYPE_CODES,
    INDEX_HEADER_BYTES,
    INDEX_MAGIC,
    Index,
    MappedFile,
    Spans,
    read_index,
    read_spans,
)
from resources.store.medium import medium_of
from resources.store.store import StoreError

DTYPES = {code: dtype for dtype, code in INDEX_DTYPE_CODES.items()}


@dataclass(frozen=True)
class FlatShard:
    """Shard with an open .idx; `stem` is the path of its files without their suffix."""

    stem: Path
    token_dtype: str
    index: Index

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.index.lengths)

    def row_at(self, offset: int) -> int:
        """Return the row that holds a token of the file; StoreError if none does."""
        width = np.dtype(self.token_dtype).itemsize
        num_tokens = map_file(self.stem, "bin").num_bytes // width
        if not 0 <= offset < num_tokens:
            raise StoreError(f"{self.stem}.bin has {num_tokens:,} tokens: there is no {offset:,}")
        row = int(np.searchsorted(self.index.pointers, offset * width, side="right")) - 1
        if row < 0 or offset >= self.first_token(row) + int(self.index.lengths[row]):
            raise StoreError(
                f"{self.stem}.idx has no row with token {offset:,} of its .bin: it is removed, and "
                "no longer drawn."
            )
        return row

    def first_token(self, row: int) -> int:
        """Return the offset of a row in the file, in tokens."""
        return int(self.index.pointers[row]) // np.dtype(self.token_dtype).itemsize

    def read_row(self, row: int) -> tuple[NDArray[Any], Spans]:
        """Read the (tokens, documents) of a row; StoreError if there is no such row."""
        if not 0 <= row < self.rows:
            raise StoreError(f"{self.stem} has {self.rows:,} rows: there is no row {row:,}")
        tokens = map_file(self.stem, "bin").array(
            int(self.index.pointers[row]), self.token_dtype, int(self.index.lengths[row])
        )
        return tokens, read_spans(map_file(self.stem, "spans"), self.rows).row(row)


@dataclass(frozen=True)
class Segment:
    """Segment of a document in a shard: row, place in the row, start in the document, tokens."""

    row: int
    position: int
    start: int
    tokens: int


def open_shard(stem: Path) -> FlatShard:
    """Open a shard; StoreError if its .idx is missing or of another format."""
    with open_file(stem, "idx") as path:
        header = path.read(INDEX_HEADER_BYTES)
    code = header[17] if len(header) == INDEX_HEADER_BYTES else -1
    if not header.startswith(INDEX_MAGIC) or code not in DTYPES:
        raise StoreError(f"{stem}.idx is no index of a flat token file (Megatron's .bin/.idx)")
    rows = int.from_bytes(header[18:26], "little")
    return FlatShard(stem, DTYPES[code], read_index(map_file(stem, "idx"), DTYPES[code], rows))


def segments_of(stem: Path, rows: int, doc_id: str) -> list[Segment]:
    """Find the segments of a document in a shard, in the order of its rows."""
    by_row = read_spans(map_file(stem, "spans"), rows)
    spans = by_row.spans
    ids = np.frombuffer(spans.doc_ids, "<u8").reshape(-1, 2)
    low, high = np.frombuffer(bytes.fromhex(doc_id), "<u8")
    indices = np.flatnonzero((ids[:, 0] == low) & (ids[:, 1] == high))
    in_rows = np.searchsorted(by_row.first, indices.astype(np.uint64), side="right") - 1
    return [
        Segment(
            row=row,
            position=int(spans.stored[int(by_row.first[row]) : index].sum()),
            start=int(spans.starts[index]),
            tokens=int(spans.lengths[index]),
        )
        for index, row in zip(indices.tolist(), in_rows.tolist(), strict=True)
    ]


def map_file(stem: Path, suffix: str) -> MappedFile:
    """Map one of a shard's files; StoreError if it is missing."""
    with open_file(stem, suffix) as file:
        return MappedFile(Path(file.name), Path(file.name).stat().st_size)


def open_file(stem: Path, suffix: str) -> Any:
    """Open one of a shard's files; StoreError says what it lacks."""
    path = Path(f"{stem}.{suffix}")
    medium_of(path.parent).bring(path)
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise StoreError(
            f"{stem}.{suffix}: missing. A shard is traced by its .bin, .idx and .spans: add "
            "megatron to `shards.formats`, or give the path of one of these files."
        ) from None
