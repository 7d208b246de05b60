"""OLMo's and Dolma's token files: bare ids in a .npy without a header, rows in a .csv.gz.

numpy.memmap reads such a file; numpy.load, despite the name, does not. The csv has "start,end" of
every row, in tokens, without a gap. Source: olmo_core 3.0, data/utils.py.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl

from assets.sharded.formats.base import ShardFormat, ShardSchema, rows_of


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write .npy and .csv.gz."""
    tokens_path, rows_path = paths
    rows = rows_of(shard, schema, "npy")
    rows.content.tofile(tokens_path)
    ends = pl.DataFrame({"start": rows.starts[:-1], "end": rows.starts[1:]})
    text = ends.write_csv(include_header=False)
    rows_path.write_bytes(gzip.compress(text.encode(), compresslevel=1, mtime=0))


NPY = ShardFormat("npy", ("npy", "csv.gz"), write)
