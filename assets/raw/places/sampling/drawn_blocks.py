"""Draw blocks of documents of a source: lines in windows, rows of row groups, and their strata."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assets.raw.readers.decompress import raise_unless_of_content
from assets.raw.readers.documents import DOCUMENT_SCHEMA
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_chunks import read_chunks, whole
from resources.settings.sources import SourceConfig

MOST_GROUPS = 16  # row groups that are read of a Parquet file
GROUP_BYTES = 1 << 20  # read of a row group at least: a page of each column
WINDOWS = 200  # that a sample aims at: an interval of a share is narrow from a hundred on
LEAST_WINDOWS = 16
WINDOW_BYTES = (1 << 10, 1 << 20)  # least and most: a request a window, on an object store too
MOST_SOURCE_BYTES = 256 << 20  # of all windows: more would narrow no interval that anyone reads
STEP_BYTES = 8 << 10  # by which a window is read on to the end of its last line
MOST_FILES = 64  # that are read; of more files some are drawn
MOST_BYTES = 64 << 20  # of a stream, and of a file that is read whole: it is held in memory
PIECES = 16  # blocks that a stream's beginning, or a row group's, counts as


class Block(NamedTuple):
    """A stretch that was drawn at once: its stratum, and how much of it, in the unit of its size.

    `span` is where its documents begin, `content` what they take: of a window the lines that begin
    in it may be much longer than the window. A block stands for `weight` such blocks of its file.
    """

    stratum: str
    span: float
    content: float
    weight: float = 1.0


class Stratum(NamedTuple):
    """The size of the files that are drawn from in one way, in bytes of content; of Parquet, rows.

    `doubt` is the standard deviation of its logarithm.
    """

    size: float
    doubt: float = 0.0
    is_content: bool = True


@dataclass
class SourceSample:
    """Documents of a source, the blocks that they were drawn in, and the strata of its files.

    documents   the columns of `raw`, and `block`, UInt32: the place of its block in `blocks`
    unread      files that no range can be read of, and that are too large to be read whole
    """

    documents: list[pl.DataFrame] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    strata: dict[str, Stratum] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    read_bytes: int = 0
    all_bytes: int = 0
    unread_bytes: int = 0

    def table(self) -> pl.DataFrame:
        """Return all documents, with ids of their own: rows of scratch files repeat."""
        schema: dict[str, pl.DataType] = {**DOCUMENT_SCHEMA, "block": pl.UInt32()}
        documents = pl.concat([pl.DataFrame(schema=schema), *self.documents])
        ids = pl.Series("doc_id", [f"{row:032x}" for row in range(documents.height)], pl.String())
        return documents.with_columns(ids)

    def add(self, documents: pl.DataFrame, blocks: Sequence[Block], of: pl.Series) -> None:
        """Add documents; `of` is the block of each among `blocks`."""
        placed = (of + len(self.blocks)).cast(pl.UInt32).alias("block")
        self.documents.append(documents.with_columns(placed))
        self.blocks += blocks


class Draw(NamedTuple):
    """Needs of every way of drawing: the source, the share, chance, and a folder for scratch."""

    source: SourceConfig
    share: float
    rng: np.random.Generator
    folder: Path

    def read(self, file: InputFile, name: str, data: bytes) -> pl.DataFrame:
        """Return the documents of bytes of a file, in the file's own format."""
        path = self.folder / name
        path.write_bytes(data)
        drawn = file._replace(place=str(path), compression=None, bytes=len(data), content=None)
        found = [c.documents for c in read_chunks(drawn, whole(drawn), self.source, MOST_BYTES)]
        path.unlink()
        return pl.concat(found)


def drawn_files(files: Sequence[InputFile], draw: Draw) -> list[InputFile]:
    """Return the files, or MOST_FILES of them: one at random in each of as many equal runs."""
    if len(files) <= MOST_FILES:
        return list(files)
    places = (np.arange(MOST_FILES) + draw.rng.random(MOST_FILES)) * len(files) / MOST_FILES
    return [files[int(place)] for place in places]


def by_stratum(sample: SourceSample) -> Iterator[tuple[Stratum, list[int]]]:
    """Yield each stratum of which something was drawn, and the places of its blocks."""
    for name, stratum in sample.strata.items():
        places = [i for i, block in enumerate(sample.blocks) if block.stratum == name]
        if places:
            yield stratum, places


def sample_lines(sample: SourceSample, files: Sequence[InputFile], draw: Draw) -> None:
    """Draw windows of plain JSON lines, one in each of as many equal stretches of the files."""
    ends = np.cumsum([file.bytes for file in files])
    total = int(ends[-1])
    budget = min(total * draw.share, MOST_SOURCE_BYTES)
    width = int(np.clip(budget / (2 * WINDOWS), *WINDOW_BYTES))
    number = max(LEAST_WINDOWS, math.ceil(budget / (2 * width)))
    number = min(number, max(1, total // width))
    places = (np.arange(number) + draw.rng.random(number)) * (total / number)
    sample.strata["lines"] = Stratum(total)
    of_file = np.searchsorted(ends, places, side="right")
    for index in np.unique(of_file):
        file = files[index]
        first = int(ends[index]) - file.bytes
        starts = [int(place) - first for place in places[of_file == index]]
        pieces, blocks, stop = [], [], 0
        with open_input(file) as stream:
            for place in starts:
                # A line that is drawn twice would count as a copy, of which each stands for many.
                start, stop = max(place, stop), min(place + width, file.bytes)
                if start >= stop:
                    continue
                pieces.append(lines_of(stream, start, stop, draw.source.max_record_bytes))
                blocks.append(Block("lines", stop - start, len(pieces[-1])))
                sample.read_bytes += max(stop - start, len(pieces[-1]))
        documents = draw.read(file, "lines", b"".join(pieces))
        stops = np.cumsum([len(piece) for piece in pieces])
        rows = documents["origin"].struct.field("row").to_numpy()
        of = np.searchsorted(stops, rows, side="right")
        sample.add(documents, blocks, pl.Series(of))


def lines_of(stream: BinaryIO, start: int, stop: int, most: int) -> bytes:
    """Return the lines that begin in bytes [start, stop) of a file, each with its newline."""
    before = max(start - 1, 0)
    stream.seek(before)
    data = read_exactly(stream, stop - before)
    if start:
        first = data.find(b"\n") + 1
        data = data[first:] if first else b""
    if not data or data.endswith(b"\n"):
        return data
    parts, size = [data], len(data)
    while size <= most and (more := read_exactly(stream, STEP_BYTES)):
        end = more.find(b"\n") + 1
        parts.append(more[:end] if end else more)
        size += len(more)
        if end:
            return b"".join(parts)
    return b"".join([*parts, b"\n"])


def read_exactly(stream: BinaryIO, size: int) -> bytes:
    """Read so many bytes, or up to the end."""
    data = bytearray()
    while len(data) < size and (block := stream.read(size - len(data))):
        data += block
    return bytes(data)


def sample_rows(sample: SourceSample, files: Sequence[InputFile], draw: Draw) -> None:
    """Draw the first rows of random row groups."""
    num_rows = 0.0
    chosen = drawn_files(files, draw)
    for file in chosen:
        with open_input(file) as stream:
            try:
                read = Counted(stream)
                table = pq.ParquetFile(pa.PythonFile(read, "r"), buffer_size=1 << 16)
                num_rows += table.metadata.num_rows
                add_groups(sample, file, table, draw)
            except (pa.ArrowException, OSError) as error:
                raise_unless_of_content(error, file.bytes)
                sample.unread.append(file.name)  # `raw` says what is wrong with it
            sample.read_bytes += read.num_bytes
    of_chosen = sum(file.bytes for file in chosen)
    sample.strata["rows"] = Stratum(
        num_rows * sum(file.bytes for file in files) / of_chosen, is_content=False
    )


class Counted:
    """A file that counts the bytes that are read of it."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.num_bytes = stream, 0
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int = -1) -> bytes:
        """Read bytes."""
        data = self.stream.read(size)
        self.num_bytes += len(data)
        return data

    def close(self) -> None:
        """Leave the file to whoever opened it."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True


def add_groups(sample: SourceSample, file: InputFile, table: pq.ParquetFile, draw: Draw) -> None:
    """Add rows of a Parquet file: of each row group that is drawn as many."""
    sizes = np.array([table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)])
    if not sizes.sum():
        return
    most = max(1, int(file.bytes * draw.share / GROUP_BYTES))
    number = min(MOST_GROUPS, len(sizes), most)
    groups = draw.rng.choice(len(sizes), number, p=sizes / sizes.sum())
    wanted = math.ceil(max(2 * PIECES, sizes.sum() * draw.share) / number)
    for group in sorted(set(groups.tolist())):
        batches = table.iter_batches(wanted, row_groups=[group], use_threads=False)
        path = draw.folder / "rows.parquet"
        pq.write_table(pa.Table.from_batches([next(batches)]), path)
        drawn = file._replace(place=str(path), bytes=path.stat().st_size, content=None)
        chunks = read_chunks(drawn, whole(drawn), draw.source, MOST_BYTES)
        documents = pl.concat(chunk.documents for chunk in chunks)
        rows = min(wanted, int(sizes[group]))
        number = min(PIECES, rows)
        of = documents["origin"].struct.field("row").to_numpy() * number // rows
        sample.add(documents, [Block("rows", rows / number, rows / number)] * number, pl.Series(of))
