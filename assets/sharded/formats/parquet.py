"""Parquet: tokens, their number, spans and loss masks, for lineage and interchange.

Parquet has no integers below 32 bits. BYTE_STREAM_SPLIT stores first bytes with first bytes, so
that the two empty ones of a uint16 compress to nothing: 0.72 bytes a byte of ids, 0.80 without; a
dictionary is slower and larger than both. Readers need Parquet format 2.11 (2024): Arrow 15, Polars
1.0, DuckDB 1.2, Spark 4. All fields are required: to say of each token that it is no null takes a
sixth of the time to write it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from assets.sharded.formats.base import ShardFormat, ShardSchema
from assets.sharded.formats.flat_rows import as_lists

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP_TOKENS = 8 << 20  # a reader of a few rows unpacks 16 MB, not the shard


def write(paths: list[Path], shard: pl.DataFrame, schema: ShardSchema) -> None:
    """Write one file."""
    import pyarrow.parquet as pq

    rows = shard.with_columns(as_lists(shard["tokens"]))
    if schema.has_loss_weights:  # by another name: whoever takes them for flags would be wrong
        rows = rows.rename({"loss_mask": "loss_weight"})
    table = without_nulls(rows.to_arrow())
    num_tokens = max(1, int(shard["num_tokens"].cast(pl.UInt64).sum()))
    pq.write_table(
        table,
        paths[0],
        row_group_size=max(1, ROW_GROUP_TOKENS * shard.height // num_tokens),
        use_dictionary=False,
        use_byte_stream_split=["tokens.list.element"],
        write_statistics=["num_tokens"],
        compression="zstd",
        compression_level=1,
    )


def without_nulls(table: pa.Table) -> pa.Table:
    """Return a table with the same columns, in whose schema no field may be null.

    Raises ValueError for a column with a null.
    """
    import pyarrow as pa

    return table.cast(pa.schema([_required(field) for field in table.schema]))


def _required(field: pa.Field) -> pa.Field:
    import pyarrow as pa

    kind: Any = field.type
    if pa.types.is_large_list(kind):
        kind = pa.large_list(_required(kind.value_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_required(kind[i]) for i in range(kind.num_fields)])
    return pa.field(field.name, kind, nullable=False)


PARQUET = ShardFormat("parquet", ("parquet",), write)
