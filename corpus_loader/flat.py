"""Flat files of a shard: tokens (.bin), rows (.idx), documents (.spans), masks (.loss, .weights).

Files are memory-mapped, which is faster than preadv. Reading beyond the end of a file that was cut
while in use would kill the process (SIGBUS), so the size is checked before every batch. Maps are
read at random and marked so (MADV_RANDOM): a row on disk then costs the bytes of that row, and 17
times as many without.
"""

from __future__ import annotations

import mmap
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import state_of

INDEX_MAGIC = b"MMIDIDX\0\0"
INDEX_HEADER_BYTES = 34  # magic, u64 version, u8 dtype, u64 sequences, u64 documents + 1
INDEX_DTYPE_CODES = {"uint16": 8, "uint32": 4}  # Megatron has no uint32: int32, the same bytes
SPANS_MAGIC = b"TMSPANS1"
PADDED_SPANS_MAGIC = b"TMSPANS2"  # with the padded lengths
PADDED = "padded_length"  # of a span, in tables
SPANS_HEADER_BYTES = 24  # magic, u64 rows, u64 spans
DOC_ID_BYTES = 16
REPAIR = "`corpus verify --repair` writes it again; then go on from the last state."


class MappedFile:
    """A memory-mapped file of `num_bytes` bytes; it is closed with its last view."""

    def __init__(self, path: Path, num_bytes: int) -> None:
        self.path = path
        self.num_bytes = num_bytes
        self.descriptor = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.descriptor)
        try:
            self.map = mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ)
        except ValueError:  # nothing cannot be mapped
            raise CorpusError(f"{path} is empty. {REPAIR}") from None
        self.state = state_of(os.fstat(self.descriptor))
        self.is_unchanged()
        self.map.madvise(mmap.MADV_RANDOM)

    def is_unchanged(self) -> bool:
        """Check that the file was not written to since it was opened; CorpusError if it was cut."""
        status = os.fstat(self.descriptor)
        state = state_of(status)
        if state.bytes != self.num_bytes:
            raise CorpusError(
                f"{self.path} has {state.bytes:,} bytes instead of {self.num_bytes:,}: it "
                f"changed while in use. {REPAIR}"
            )
        return state == self.state or not status.st_nlink  # its removal changes the inode, too

    def array(self, offset: int, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """`count` little-endian values at an offset in bytes, not read yet.

        CorpusError if the file ends before.
        """
        stored = np.dtype(dtype).newbyteorder("<")
        if count < 0 or not 0 <= offset <= self.num_bytes - count * stored.itemsize:
            raise CorpusError(
                f"{self.path} has {self.num_bytes:,} bytes, too few for what it says it holds: "
                f"{count:,} values at {offset:,}. {REPAIR}"
            )
        if not count:  # at the end of a file there is nothing to look at
            return np.empty(0, stored)
        return np.frombuffer(self.map, stored, count, offset)


@dataclass(frozen=True)
class Index:
    """An .idx file, for rows that differ in length.

    lengths int32 [rows] in tokens, pointers int64 [rows] in bytes.
    """

    file: MappedFile
    lengths: npt.NDArray[np.int32]
    pointers: npt.NDArray[np.int64]

    def row(self, tokens: memoryview, row: int) -> memoryview:
        """Slice a row out of the shard's tokens; CorpusError if it is outside of them."""
        first, length = int(self.pointers[row]) // tokens.itemsize, int(self.lengths[row])
        values = tokens[first : first + length]
        if first < 0 or len(values) != length:
            raise CorpusError(
                f"{self.file.path} is damaged: row {row:,} has {length:,} tokens at {first:,}, "
                f"where there are {len(tokens):,}. {REPAIR}"
            )
        return values


@dataclass(frozen=True)
class Spans:
    """Segments of documents, in the order of their rows.

    starts uint32 [n]: offset of the segment in its document; lengths uint32 [n]: its tokens;
    doc_ids uint8 [n, 16]; padded uint32 [n]: tokens up to the next segment, None: its tokens.
    """

    starts: npt.NDArray[np.uint32]
    lengths: npt.NDArray[np.uint32]
    doc_ids: npt.NDArray[np.uint8]
    padded: npt.NDArray[np.uint32] | None = None

    @property
    def stored(self) -> npt.NDArray[np.uint32]:
        """Tokens of each segment in the row, with the padding behind it."""
        return self.lengths if self.padded is None else self.padded

    def is_token(self, length: int) -> npt.NDArray[np.bool_]:
        """Return for each token of a row of these segments, bool [length], if it is no padding."""
        counts = np.stack([self.lengths, self.stored - self.lengths], axis=1).reshape(-1)
        flags = np.repeat(np.arange(counts.size) % 2 == 0, counts)
        return np.concatenate([flags, np.zeros(length - flags.size, np.bool_)])

    def take(self, which: slice | npt.NDArray[np.int64]) -> Spans:
        """Return some of the segments: views for a slice, else copies."""
        padded = None if self.padded is None else self.padded[which]
        return Spans(self.starts[which], self.lengths[which], self.doc_ids[which], padded)

    def copy(self) -> Spans:
        """Copy the spans into memory of their own."""
        return self.take(np.arange(self.starts.size))


@dataclass(frozen=True)
class SpansIndex:
    """A .spans file: row r has the spans first[r] up to first[r + 1] (uint64 [rows + 1])."""

    file: MappedFile
    first: npt.NDArray[np.uint64]
    spans: Spans

    def row(self, row: int) -> Spans:
        """Slice the spans of a row; CorpusError if they are outside of the file."""
        first, stop = self.first[row : row + 2].tolist()
        spans = self.spans
        if not first <= stop <= spans.starts.size:
            raise CorpusError(f"{self.file.path} is damaged at row {row:,}. {REPAIR}")
        return spans.take(slice(first, stop))


def read_index(file: MappedFile, token_dtype: str, rows: int) -> Index:
    """Read an .idx file; CorpusError if it does not have `rows` rows of that dtype."""
    code = INDEX_DTYPE_CODES[token_dtype]
    expected = INDEX_MAGIC + (1).to_bytes(8, "little") + bytes([code]) + rows.to_bytes(8, "little")
    check_header(file, expected, f"the index of {rows:,} rows of {token_dtype}")
    return Index(
        file,
        lengths=file.array(INDEX_HEADER_BYTES, "<i4", rows),
        pointers=file.array(INDEX_HEADER_BYTES + 4 * rows, "<i8", rows),
    )


def read_spans(file: MappedFile, rows: int) -> SpansIndex:
    """Read a .spans file; CorpusError if it does not have `rows` rows."""
    is_padded = file.map[: len(SPANS_MAGIC)] == PADDED_SPANS_MAGIC
    magic = PADDED_SPANS_MAGIC if is_padded else SPANS_MAGIC
    check_header(file, magic + rows.to_bytes(8, "little"), f"the documents of {rows:,} rows")
    count = int(file.array(16, "<u8", 1)[0])
    first = SPANS_HEADER_BYTES + 8 * (rows + 1)
    starts, lengths, *padded = (
        file.array(first + 4 * count * column, "<u4", count) for column in range(2 + is_padded)
    )
    first += 4 * count * (2 + is_padded)
    doc_ids = file.array(first, "u1", DOC_ID_BYTES * count).reshape(count, DOC_ID_BYTES)
    spans = Spans(starts, lengths, doc_ids, *padded)
    return SpansIndex(file, file.array(SPANS_HEADER_BYTES, "<u8", rows + 1), spans)


@dataclass(frozen=True)
class Mask:
    """A .loss file: bit i, from the lowest of the first byte, is that of token i of .bin."""

    file: MappedFile
    bits: npt.NDArray[np.uint8]

    def tokens(self, first: int, count: int) -> npt.NDArray[np.bool_]:
        """Return the flags of tokens; CorpusError if the file ends before."""
        low, high = first // 8, -(-(first + count) // 8)
        if not 0 <= low <= high <= self.bits.size:
            raise CorpusError(
                f"{self.file.path} is damaged: it has {8 * self.bits.size:,} flags, and no "
                f"{count:,} at {first:,}. {REPAIR}"
            )
        flags = np.unpackbits(self.bits[low:high], bitorder="little")
        return flags[first - 8 * low :][:count].astype(np.bool_)


def read_mask(file: MappedFile) -> Mask:
    """Read a .loss file."""
    return Mask(file, file.array(0, np.uint8, file.num_bytes))


@dataclass(frozen=True)
class Weights:
    """A .weights file: the weight of each token of .bin in the loss, in hundredths, uint8."""

    file: MappedFile

    def tokens(self, first: int, count: int) -> npt.NDArray[np.uint8]:
        """Return the weights of tokens; CorpusError if the file ends before."""
        return self.file.array(first, np.uint8, count)


def check_header(file: MappedFile, expected: bytes, what: str) -> None:
    """Raise CorpusError if a file does not begin as the mixture says."""
    if file.map[: len(expected)] != expected:
        raise CorpusError(f"{file.path} is not {what}, as the mixture says. {REPAIR}")
