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
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from assets.raw.places.file_digests import FileDigest, FileStatus
from assets.raw.places.sampling.drawn_blocks import (
    MOST_BYTES,
    PIECES,
    Block,
    Draw,
    SourceSample,
    Stratum,
    drawn_files,
    read_exactly,
    sample_lines,
    sample_rows,
)
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.file_content import (
    FRAME,
    FRAME_HEADER_BYTES,
    SKIPPABLE,
    content_of_frame,
    header_size,
)
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_chunks import as_sent, read_chunks, whole
from resources.settings.sources import SourceConfig

LEAST_BYTES = 16 << 10  # of a stream, below which a decoder gives nothing
LEAST_RECORDS = 4
LEAST_TOLD, MOST_TOLD = 0.8, 2.5  # of the guess, beyond which a size is that of a member only
LATER, DOUBT = 1.05, 0.08  # how the content of a whole file differs from a guess by its beginning
RECORD_BYTES = 100  # of a record besides its text, where it is not known
LEAST_SOURCE_BYTES = 2 << 20  # of a source's files, by which small ones are sampled more closely


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
    for file in as_first_sent(files):
        if file.bytes:
            by_way.setdefault(way_of(file, source), []).append(file)
    with tempfile.TemporaryDirectory() as folder:
        draw = Draw(source, share, rng, Path(folder))
        for way, group in by_way.items():
            WAYS[way](sample, group, draw)
    return sample


def as_first_sent(files: Sequence[InputFile]) -> Sequence[InputFile]:
    """Return the files, plain ones of another machine as the first of them is sent."""
    plain = [file for file in files if file.compression is None and "://" in file.name]
    packed = as_sent(plain[0]).compression if plain else None
    if packed is None:
        return files
    chosen = {*plain}
    return [file._replace(compression=packed) if file in chosen else file for file in files]


def way_of(file: InputFile, source: SourceConfig) -> str:
    """Return how a file is sampled: lines, rows, stream or whole."""
    if file.format == "jsonl":
        return "lines" if file.compression is None else "stream"
    if file.format == "parquet" and file.compression is None:
        return "rows"
    if file.format in ("csv", "tsv", "warc"):
        return "stream"
    return "stream" if file.format == "txt" and source.text_documents == "blank_line" else "whole"


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
            told = content_of_frame(read_exactly(stream, 4 + FRAME_HEADER_BYTES))
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


WAYS = {
    "lines": sample_lines,
    "stream": sample_streams,
    "rows": sample_rows,
    "whole": sample_files,
}


def end_of_blocks(head: bytes) -> int:
    """Return the end of the last whole block in the first bytes of a zst file, 0 without one."""
    at = end = 0
    while len(data := head[at : at + 4 + FRAME_HEADER_BYTES]) >= 5:
        magic = int.from_bytes(data[:4], "little")
        if magic & ~15 == SKIPPABLE:
            at += 8 + int.from_bytes(data[4:8], "little")
            continue
        if magic != FRAME:
            break
        has_checksum, at, is_last = data[4] >> 2 & 1, at + 4 + header_size(data[4]), 0
        while not is_last and len(block := head[at : at + 3]) == 3:
            header = int.from_bytes(block, "little")
            is_last = header & 1
            at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
            if at > len(head):
                return end
            end = at
        at += 4 * has_checksum
    return end
