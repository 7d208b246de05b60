"""MosaicML Streaming's MDS: shards with a table of 32-bit offsets, and index.json.

The column `tokens` is an array of the source's dtype. Rows of one length store only the values;
rows that vary have before them the size (u32), a byte (dimensions << 2 | width of the shape: 0 to 3
for u8 to u64) and the shape. Source: streaming 0.10, base/format/mds. The index has the sha256 of
every shard, which Streaming checks with validate_hash="sha256".
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import polars as pl

from assets.sharded.formats.base import (
    ShardFile,
    ShardFormat,
    ShardSchema,
    rows_of,
    with_suffix,
    write_records,
)
from assets.sharded.formats.flat_rows import by_length, headed

COLUMN = "tokens"
HASH = "sha256"
VERSION = 2
ONE_DIMENSION = 1 << 2


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one shard; FormatError beyond 4 GiB."""
    rows = rows_of(shard, schema, "mds")
    samples, token_bytes = rows.as_bytes(), rows.content.itemsize
    if schema.sequence_length is None:
        samples = headed(by_length(rows.lengths, lambda n: head(n, token_bytes)), samples)
    write_records(paths[0], "mds", samples, encode_json(columns(schema)))


def head(length: int, token_bytes: int) -> bytes:
    """Return the head of a row: size, and its length as u8, u16 or u32, the first that fits."""
    code, letter = next((i, "BHI"[i]) for i in range(3) if length < 256 ** (1 << i))
    shape = struct.pack(f"<B{letter}", ONE_DIMENSION | code, length)
    return struct.pack("<I", len(shape) + length * token_bytes) + shape


def columns(schema: ShardSchema) -> dict[str, Any]:
    """Return the config that every shard contains, and the index repeats."""
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
    """Write index.json, which makes the folder a dataset."""
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
    """Encode JSON with the layout of Streaming's own writer."""
    return json.dumps(value, sort_keys=True).encode()


MDS = ShardFormat(
    "mds", ("mds",), write, index, lambda number, suffix: f"shard.{number:05d}.{suffix}"
)
