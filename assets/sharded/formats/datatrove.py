"""datatrove's and nanotron's .ds: tokens, ends of documents, and metadata.

.ds.index is u64 end[rows] in tokens; .ds.metadata three lines of text: tokenizer and bytes per
token, number of tokens, the same number rounded. Source: datatrove 0.10,
pipeline/tokens/tokenizer.py.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from assets.sharded.formats.base import ShardFormat, ShardSchema, rows_of


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write .ds, .ds.index and .ds.metadata."""
    tokens_path, index_path, metadata_path = paths
    rows = rows_of(shard, schema, "datatrove")
    rows.content.tofile(tokens_path)
    rows.starts[1:].astype("<u8").tofile(index_path)
    num_tokens = len(rows.content)
    tokenizer = f"{schema.tokenizer_fingerprint}|{schema.token_bytes}"
    metadata_path.write_text(f"{tokenizer}\n{num_tokens}\n{for_people(num_tokens)}")


def for_people(num_tokens: int) -> str:
    """Format a number with three digits and a unit, as datatrove does: 836 kT, 1.50 MT."""
    value, units = float(num_tokens), " kMGTPE"
    while three_digits(value) >= 1000:
        value, units = value / 1000, units[1:]
    places = sum(three_digits(value) < limit for limit in (10, 100))
    return f"{value:.{places}f} {units[0].strip()}T"


def three_digits(value: float) -> float:
    """Round a number to its first three digits."""
    return float(f"{value:.3g}")


DATATROVE = ShardFormat("datatrove", ("ds", "ds.index", "ds.metadata"), write)
