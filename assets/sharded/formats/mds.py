"""MosaicML Streaming's MDS: shards with a table of 32-bit offsets, and index.json.

The column `tokens` is an array of the source's dtype. Of rows of one length only the values are
stored; else each has its size (u32), a byte (dimensions << 2 | width of the shape: 0 to 3 for u8 to
u64) and its shape before them. Source: streaming 0.10, base/format/mds. The index has the sha256
of every shard, which Streaming checks with validate_hash="sha256".
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import polars as pl

from assets.sharded.formats.base import ShardFile, ShardFormat, ShardSchema, rows_of, with_suffix
from assets.sharded.formats.flat_rows import FlatRows, by_length, headed
from assets.sharded.formats.offset_table import write_records

COLUMN = "tokens"
HASH = "sha256"
VERSION = 2
ONE_DIMENSION = 1 << 2


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one shard."""
    rows = rows_of(shard, schema, "mds")
    samples = rows.as_bytes() if schema.sequence_length else with_shapes(rows)
    write_records(paths[0], "mds", samples, encode_json(columns(schema)))


def with_shapes(rows: FlatRows) -> FlatRows:
    """Arrays of any length: size, shape, values."""
    heads = by_length(rows.lengths, lambda length: head(length, rows.content.itemsize))
    return headed(heads, rows.as_bytes())


def head(length: int, token_bytes: int) -> bytes:
    """What stands before the values of a row: its length as u8, u16 or u32, the first that fits."""
    code, letter = next((i, "BHI"[i]) for i in range(3) if length < 256 ** (1 << i))
    shape = struct.pack(f"<B{letter}", ONE_DIMENSION | code, length)
    return struct.pack("<I", len(shape) + length * token_bytes) + shape


def columns(schema: ShardSchema) -> dict[str, Any]:
    """The config that every shard carries, and the index repeats."""
    length = schema.sequence_length
    shape = "" if length is None else f":{length}"
    return {
        "column_encodings": [f"ndarray:{schema.token_dtype}{shape}"],
        "column_names": [COLUMN],
        "column_sizes": [None if length is None else length * schema.token_bytes],
        "compression": None,
        "format": "mds",
        "hashes": [HASH],
        "size_limit": None,
        "version": VERSION,
    }


def index(files: list[ShardFile], schema: ShardSchema) -> dict[str, bytes]:
    """index.json, without which the folder is no dataset."""
    shards = [
        columns(schema)
        | {
            "raw_data": {
                "basename": file.name,
                "bytes": file.bytes,
                "hashes": {HASH: file.sha256},
            },
            "samples": file.rows,
            "zip_data": None,
        }
        for file in with_suffix(files, "mds")
    ]
    return {"index.json": encode_json({"shards": shards, "version": VERSION})}


def encode_json(value: dict[str, Any]) -> bytes:
    """JSON as Streaming's own writer lays it out."""
    return json.dumps(value, sort_keys=True).encode()


MDS = ShardFormat(
    "mds", ("mds",), write, index, lambda number, suffix: f"shard.{number:05d}.{suffix}"
)
