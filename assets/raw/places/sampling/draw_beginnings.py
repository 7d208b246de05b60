"""Draw the beginnings of files that can be read from their first byte only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from assets.raw.places.open_input import open_input
from assets.raw.places.sampling.draw_lines import read_exactly
from assets.raw.places.sampling.drawn_blocks import (
    MOST_BYTES,
    PIECES,
    Block,
    Draw,
    SourceSample,
    Stratum,
    drawn_files,
)
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.file_content import FRAME_HEADER_BYTES, content_of_frame, end_of_blocks
from assets.raw.readers.input_file import InputFile

LEAST_BYTES = 16 << 10  # of a stream, below which a decoder gives nothing
LEAST_RECORDS = 4
LEAST_TOLD, MOST_TOLD = 0.8, 2.5  # of the guess, beyond which a size is that of a member only
LATER, DOUBT = 1.05, 0.08  # how the content of a whole file differs from a guess by its beginning
RECORD_BYTES = 100  # of a record besides its text, where it is not known


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
