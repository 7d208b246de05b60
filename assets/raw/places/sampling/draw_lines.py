"""Draw the lines that begin in windows at random places of plain JSON lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import polars as pl

from assets.raw.places.open_input import open_input
from assets.raw.places.sampling.drawn_blocks import Block, Draw, SourceSample, Stratum
from assets.raw.readers.input_file import InputFile

WINDOWS = 200  # that a sample aims at: an interval of a share is narrow from a hundred on
LEAST_WINDOWS = 16
WINDOW_BYTES = (1 << 10, 1 << 20)  # least and most: a request a window, on an object store too
MOST_SOURCE_BYTES = 256 << 20  # of all windows: more would narrow no interval that anyone reads
STEP_BYTES = 8 << 10  # by which a window is read on to the end of its last line


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
