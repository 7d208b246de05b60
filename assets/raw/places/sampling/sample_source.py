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
from assets.raw.places.sampling.draw_beginnings import sample_streams
from assets.raw.places.sampling.draw_lines import sample_lines
from assets.raw.places.sampling.draw_rows import sample_rows
from assets.raw.places.sampling.drawn_blocks import (
    MOST_BYTES,
    Block,
    Draw,
    SourceSample,
    Stratum,
)
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import as_sent, read_chunks, whole
from resources.settings.sources import SourceConfig

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


WAYS = {
    "lines": sample_lines,
    "stream": sample_streams,
    "rows": sample_rows,
    "whole": sample_files,
}
