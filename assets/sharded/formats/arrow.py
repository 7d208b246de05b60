"""Hugging Face Arrow: the folder that `datasets.load_from_disk` opens by mapping it.

Rows of one length are a fixed_size_list, which has no offsets. Source: datasets 5.2,
arrow_dataset.py; the feature is named "Sequence", which all versions accept (before 4 no other).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from assets.sharded.formats.base import (
    ShardFile,
    ShardFormat,
    ShardSchema,
    rows_of,
    state_of,
    too_large,
    with_suffix,
)
from resources.store.records import to_json

MAX_TOKENS = (1 << 31) - 1


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one Arrow stream of one batch; FormatError if rows that vary have 2**31 tokens."""
    import pyarrow as pa

    rows = rows_of(shard, schema, "arrow")
    tokens = pa.array(rows.content)
    if schema.sequence_length is not None:
        column = pa.FixedSizeListArray.from_arrays(tokens, schema.sequence_length)
    elif len(tokens) > MAX_TOKENS:
        raise too_large("arrow", f"{len(tokens):,} tokens", "a list's offsets end at 2**31")
    else:
        column = pa.ListArray.from_arrays(pa.array(rows.starts.astype("int32")), tokens)
    table = pa.table({"tokens": column})
    with pa.OSFile(str(paths[0]), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def index(files: list[ShardFile], schema: ShardSchema) -> dict[str, bytes]:
    """Write state.json, which names the shards, and dataset_info.json, which has their column."""
    shards = with_suffix(files, "arrow")
    state: dict[str, Any] = {
        "_data_files": [{"filename": file.name} for file in shards],
        "_fingerprint": state_of(shards)[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    tokens: dict[str, Any] = {
        "_type": "Sequence",
        "feature": {"_type": "Value", "dtype": schema.token_dtype},
        "length": schema.sequence_length or -1,
    }
    return {
        "state.json": to_json(state),
        "dataset_info.json": to_json({"features": {"tokens": tokens}}),
    }


ARROW = ShardFormat("arrow", ("arrow",), write, index)
