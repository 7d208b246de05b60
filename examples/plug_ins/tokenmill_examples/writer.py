"""A shard format: a line of JSON with the token ids of each row, and an index of the files."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from tokenmill.plugins import ShardFile, ShardFormat, ShardSchema


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write the rows of a shard; `paths` has one path for each suffix of the format."""
    shard.select("tokens").write_ndjson(paths[0])


def index(files: list[ShardFile], schema: ShardSchema) -> dict[str, bytes]:
    """Return the contents of index.json: the files and the end-of-document token."""
    content = {
        "end_of_document_id": schema.end_of_document_id,
        "files": [{"name": file.name, "rows": file.rows} for file in files],
    }
    return {"index.json": json.dumps(content, indent=2).encode()}


JSON_LINES = ShardFormat("json_lines", ("jsonl",), write, index)
