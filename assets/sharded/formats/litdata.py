"""litdata's chunks and index.json: rows of one length for TokensLoader, others as arrays.

`TokensLoader(block_size)` reads a chunk as one run of tokens and drops an incomplete block at its
end, so rows of one length have no loss if the block has that length. A row of varying length is an
item with its size in bytes (u32) before it, for the default loader. Source: litdata 0.2.76,
streaming/writer.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from assets.sharded.formats.base import (
    ShardFile,
    ShardFormat,
    ShardSchema,
    rows_of,
    state_of,
    with_suffix,
    write_records,
)
from assets.sharded.formats.flat_rows import FlatRows, headed

DATA_FORMATS = {"uint16": "no_header_numpy:5", "uint32": "no_header_numpy:6"}
BARE_ARRAY = '[1, {"type": null, "context": null, "children_spec": []}]'  # an item is a leaf


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one chunk; FormatError beyond 4 GiB."""
    items = rows_of(shard, schema, "litdata").as_bytes()
    if schema.sequence_length is None:
        sizes = items.lengths.astype("<u4").view(np.uint8)
        items = headed(FlatRows(sizes, np.arange(len(items.starts)) * 4), items)
    write_records(paths[0], "litdata", items)


def index(files: list[ShardFile], schema: ShardSchema) -> dict[str, bytes]:
    """Write index.json; `updated_at`, by which litdata names its caches, is a hash and no time."""
    is_fixed = schema.sequence_length is not None
    chunks = [
        {
            "chunk_bytes": file.bytes,
            "chunk_size": file.rows,
            "dim": file.tokens if is_fixed else None,
            "filename": file.name,
        }
        for file in with_suffix(files, "bin")
    ]
    config: dict[str, Any] = {
        "chunk_bytes": None,
        "chunk_size": max((file.rows for file in files), default=0),
        "compression": None,
        "compression_batch_size": None,
        "compression_level": None,
        "data_format": [DATA_FORMATS[schema.token_dtype]],
        "data_spec": BARE_ARRAY,
        "encryption": None,
        "ipc_compression": None,
        "item_loader": "TokensLoader" if is_fixed else "PyTreeLoader",
        "types": "json",
    }
    whole = {"chunks": chunks, "config": config, "updated_at": state_of(files)}
    return {"index.json": json.dumps(whole, sort_keys=True).encode()}


LITDATA = ShardFormat(
    "litdata", ("bin",), write, index, lambda number, suffix: f"chunk-0-{number}.{suffix}"
)
