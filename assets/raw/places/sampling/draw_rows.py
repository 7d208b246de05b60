"""Draw the first rows of random row groups of Parquet files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from assets.raw.places.open_input import open_input
from assets.raw.places.sampling.drawn_blocks import (
    MOST_BYTES,
    PIECES,
    Block,
    Draw,
    SourceSample,
    Stratum,
    drawn_files,
)
from assets.raw.readers.decompress import raise_unless_of_content
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import read_chunks, whole

MOST_GROUPS = 16  # row groups that are read of a Parquet file
GROUP_BYTES = 1 << 20  # read of a row group at least: a page of each column


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
