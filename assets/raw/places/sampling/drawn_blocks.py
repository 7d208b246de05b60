"""What is drawn of a source: documents, their blocks, and what a block stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from assets.raw.readers.documents import DOCUMENT_SCHEMA
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import read_chunks, whole
from resources.settings.sources import SourceConfig

MOST_FILES = 64  # that are read; of more files some are drawn
MOST_BYTES = 64 << 20  # of a stream, and of a file that is read whole: it is held in memory
PIECES = 16  # blocks that a stream's beginning, or a row group's, counts as


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
