"""Sample of a source: documents of small ranges of its files, drawn at random and read alone.

    plain JSON lines   the lines that begin in a window at a random place
    Parquet            the first rows of random row groups
    streams            the beginning, as a compressed file, CSV or WARC is read from its first byte
    other files        some of them, whole

A line is drawn if its first byte is in a window, so long ones are drawn no more often than short
ones. What is drawn is written to a scratch file of the same format, which the readers of `raw` then
read. A document's block is the unit that is drawn: documents of one block may be alike.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assets.raw.places.file_digests import FileDigest, FileStatus
from assets.raw.places.open_input import open_input
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.documents import DOCUMENT_SCHEMA
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import read_chunks, whole
from assets.raw.readers.zstd_frames import HEADER_BYTES, content_of_frame, end_of_blocks
from resources.settings.sources import SourceConfig

WINDOWS = 200  # that a sample aims at: an interval of a share is narrow from a hundred on
LEAST_WINDOWS = 16
WINDOW_BYTES = (1 << 10, 1 << 20)  # least and most: a request a window, on an object store too
MOST_FILES = 64  # that are read; of more files some are drawn
MOST_GROUPS = 16  # row groups that are read of a Parquet file
GROUP_BYTES = 1 << 20  # read of a row group at least: a page of each column
LEAST_BYTES = 16 << 10  # of a stream, below which a decoder gives nothing
MOST_BYTES = 64 << 20  # of a stream, and of a file that is read whole: it is held in memory
LEAST_RECORDS = 4
LEAST_SOURCE_BYTES = 2 << 20  # of a source's files, by which small ones are sampled more closely
MOST_SOURCE_BYTES = 256 << 20  # of all windows: more would narrow no interval that anyone reads
STEP_BYTES = 8 << 10  # by which a window is read on to the end of its last line
PIECES = 16  # blocks that a stream's beginning counts as
LEAST_TOLD, MOST_TOLD = 0.8, 2.5  # of the guess, beyond which a size is that of a member only
LATER, DOUBT = 1.05, 0.08  # how the content of a whole file differs from a guess by its beginning
RECORD_BYTES = 100  # of a record besides its text, where it is not known


class Block(NamedTuple):
    """What was drawn at once: the stratum, and how much of it, in the unit of its size.

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


def sizes_only(files: Sequence[FileStatus]) -> list[FileDigest]:
    """Return the sizes of files without their digests, for which all would be read."""
    return [FileDigest(each.bytes, "") for each in files]


def sample_source(
    files: Sequence[InputFile], source: SourceConfig, share: float, rng: np.random.Generator
) -> SourceSample:
    """Draw about a share of the bytes of a source's files."""
    sample = SourceSample(all_bytes=sum(file.bytes for file in files))
    share = min(1.0, max(share, LEAST_SOURCE_BYTES / max(1, sample.all_bytes)))
    by_way: dict[str, list[InputFile]] = {}
    for file in files:
        if file.bytes:
            by_way.setdefault(way_of(file, source), []).append(file)
    with tempfile.TemporaryDirectory() as folder:
        draw = Draw(source, share, rng, Path(folder))
        for way, group in by_way.items():
            WAYS[way](sample, group, draw)
    return sample


class Draw(NamedTuple):
    """What every way of drawing needs: the source, the share, chance, and a folder for scratch."""

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


def way_of(file: InputFile, source: SourceConfig) -> str:
    """Return how a file is sampled: lines, rows, stream or whole."""
    if file.format == "jsonl":
        return "lines" if file.compression is None else "stream"
    if file.format == "parquet" and file.compression is None:
        return "rows"
    if file.format in ("csv", "tsv", "warc"):
        return "stream"
    return "stream" if file.format == "txt" and source.text_documents == "blank_line" else "whole"


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
        pieces, blocks = [], []
        with open_input(file) as stream:
            for start in starts:
                stop = min(start + width, file.bytes)
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


def drawn_files(files: Sequence[InputFile], draw: Draw) -> list[InputFile]:
    """Return the files, or MOST_FILES of them: one at random in each of as many equal runs."""
    if len(files) <= MOST_FILES:
        return list(files)
    places = (np.arange(MOST_FILES) + draw.rng.random(MOST_FILES)) * len(files) / MOST_FILES
    return [files[int(place)] for place in places]


def sample_streams(sample: SourceSample, files: Sequence[InputFile], draw: Draw) -> None:
    """Read the beginnings of files that can be read from their first byte only."""
    chosen = drawn_files(files, draw)
    share = draw.share * sum(f.bytes for f in files) / sum(f.bytes for f in chosen)
    for kind in sorted({stratum_of(file) for file in chosen}):
        drawn = [file for file in chosen if stratum_of(file) == kind]
        sizes = []
        for file in drawn:
            wanted = int(np.clip(share * file.bytes, LEAST_BYTES, MOST_BYTES))
            sizes.append(add_beginning(sample, file, draw, wanted))
        size, doubt = sum(each.size for each in sizes), max(each.doubt for each in sizes)
        all_bytes = sum(file.bytes for file in files if stratum_of(file) == kind)
        grown = all_bytes / sum(file.bytes for file in drawn)
        sample.strata[kind] = Stratum(size * grown, doubt)


def stratum_of(file: InputFile) -> str:
    """Return the name of the files that are alike in bytes a document."""
    return f"{file.format}.{file.compression}" if file.compression else file.format


def add_beginning(sample: SourceSample, file: InputFile, draw: Draw, wanted: int) -> Stratum:
    """Add the records of about the first `wanted` bytes, and return the size of the content."""
    while True:
        data, used = beginning(file, draw.folder, min(wanted, file.bytes))
        is_whole = wanted >= file.bytes
        end = len(data) if is_whole else record_end(file, data)
        documents = draw.read(file, "stream", data[:end]) if end else pl.DataFrame()
        if not is_whole and file.format != "jsonl":
            documents = documents.head(-1)  # the last one may be cut
        if documents.height >= LEAST_RECORDS or is_whole or wanted >= MOST_BYTES:
            break
        wanted *= 2
    sample.read_bytes += min(wanted, file.bytes)
    kind = stratum_of(file)
    size = Stratum(len(data)) if is_whole else content_size(file, len(data) / max(1, used))
    weight = size.size / max(1, end)
    if documents.height:
        number = min(PIECES, documents.height)
        of = np.arange(documents.height) * number // documents.height
        shares = np.bincount(of, record_sizes(file, documents, end), number)
        spans = (shares * end / shares.sum()).tolist()
        sample.add(documents, [Block(kind, span, span, weight) for span in spans], pl.Series(of))
    elif end:
        sample.blocks.append(Block(kind, end, end, weight))
    return size


def content_size(file: InputFile, ratio: float) -> Stratum:
    """Return the bytes of a file's content, of which the beginning has `ratio` per stored byte.

    The end of a gz file and the beginning of a zst file tell, if there is one member. A beginning
    is compressed less than what follows, since it has less before it to refer to.
    """
    if file.compression is None:
        return Stratum(file.bytes)
    told = 0
    with open_input(file) as stream:
        if file.compression == "gz":
            stream.seek(max(0, file.bytes - 4))
            told = int.from_bytes(read_exactly(stream, 4), "little")
        elif file.compression == "zst":
            told = content_of_frame(read_exactly(stream, 4 + HEADER_BYTES))
    guess = file.bytes * ratio
    if guess * LEAST_TOLD < told < guess * MOST_TOLD:
        return Stratum(told)
    return Stratum(guess * LATER, DOUBT)


def record_end(file: InputFile, data: bytes) -> int:
    """Return where a record ends in the content, 0 if none does.

    Of JSON lines it is the end of the line that is across three quarters: the last line that fits
    would be a short one more often than not.
    """
    if file.format != "jsonl":
        return len(data)
    return data.find(b"\n", len(data) * 3 // 4) + 1


def record_sizes(file: InputFile, documents: pl.DataFrame, end: int) -> np.ndarray:
    """Return about the bytes of content that each document takes."""
    if file.format == "jsonl":
        rows = documents["origin"].struct.field("row").to_numpy()
        return np.diff(np.append(rows, end)).astype(np.float64)
    return documents["text"].str.len_bytes().to_numpy().astype(np.float64) + RECORD_BYTES


def beginning(file: InputFile, folder: Path, size: int) -> tuple[bytes, int]:
    """Return the content of the first bytes of a file, and how many of them it is the content of.

    A zst decoder gives whole blocks only: bytes of a block that is not whole do not count.
    """
    with open_input(file) as stream:
        head = read_exactly(stream, size)
    if file.compression is None:
        return head, len(head)
    if file.compression == "zst" and size < file.bytes:
        head = head[: end_of_blocks(head)]
    path = folder / "head"
    path.write_bytes(head)
    parts = []
    try:
        for block in read_blocks(file._replace(place=str(path), bytes=len(head), content=None)):
            parts.append(block)
    except BrokenStream:
        pass  # it ends where it was cut
    path.unlink()
    return b"".join(parts), len(head)


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
            except (pa.ArrowException, OSError):
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


def sample_files(sample: SourceSample, files: Sequence[InputFile], draw: Draw) -> None:
    """Read some files whole, at least two, none that is too large."""
    small = [file for file in files if file.bytes <= MOST_BYTES]
    sample.unread += [file.name for file in files if file.bytes > MOST_BYTES]
    sample.unread_bytes += sum(file.bytes for file in files if file.bytes > MOST_BYTES)
    if not small:
        return
    number = min(len(small), max(2, math.ceil(len(small) * draw.share)))
    sample.strata["files"] = Stratum(sum(file.bytes for file in small))
    for index in sorted(draw.rng.choice(len(small), number, replace=False).tolist()):
        file = small[index]
        found = [c.documents for c in read_chunks(file, whole(file), draw.source, MOST_BYTES)]
        documents = pl.concat(found)
        sample.read_bytes += file.bytes
        of = pl.Series(np.zeros(documents.height, np.int64))
        sample.add(documents, [Block("files", file.bytes, file.bytes)], of)


WAYS = {
    "lines": sample_lines,
    "stream": sample_streams,
    "rows": sample_rows,
    "whole": sample_files,
}


def by_stratum(sample: SourceSample) -> Iterator[tuple[Stratum, list[int]]]:
    """Yield each stratum of which something was drawn, and the places of its blocks."""
    for name, stratum in sample.strata.items():
        places = [i for i, block in enumerate(sample.blocks) if block.stratum == name]
        if places:
            yield stratum, places
