"""Documents to training sequences in length buckets.

A sequence is one document here; `spans` says which documents it holds and which tokens of each, so
that modes which pack several documents into a sequence fill the same columns. A batch drawn from
one bucket pads little: sequences of 0-128 tokens to 128, of 129-256 to 256, and so on.
"""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, field_validator

SPAN = pl.Struct({"doc_id": pl.String(), "start": pl.UInt32(), "length": pl.UInt32()})


class BucketConfig(BaseModel):
    """Length buckets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    edges: tuple[int, ...] = Field(
        default=(128, 256, 512, 1024),
        min_length=1,
        max_length=255,  # a bucket's index is a UInt8
        description="longest sequence, in tokens, of each bucket; one more takes what is longer",
    )

    @field_validator("edges")
    @classmethod
    def check_ascending(cls, edges: tuple[int, ...]) -> tuple[int, ...]:
        """Edges must be positive and ascending."""
        if edges[0] < 1 or any(low >= high for low, high in pairwise(edges)):
            raise ValueError(f"edges must be positive and ascending, got {list(edges)}")
        return edges


def bucket_names(config: BucketConfig) -> list[str]:
    """Names in bucket order: "0-128", "129-256", ..., "1025-up"."""
    lows = [0, *(edge + 1 for edge in config.edges)]
    return [f"{low}-{high}" for low, high in zip(lows, [*config.edges, "up"], strict=True)]


def assign_buckets(documents: pl.DataFrame, config: BucketConfig) -> pl.DataFrame:
    """One sequence per document, sorted by bucket, input order kept inside a bucket.

    In: doc_id String, tokens List. Out: bucket UInt8 (index into `bucket_names`), num_tokens
    UInt32, tokens as they were, spans List(Struct{doc_id, start, length}), start and length in
    tokens of the document.
    """
    num_tokens = pl.col("tokens").list.len().cast(pl.UInt32)
    span = pl.struct("doc_id", start=pl.lit(0, pl.UInt32), length="num_tokens")
    return (
        documents.with_columns(num_tokens=num_tokens)
        .with_columns(bucket=bucket_of(pl.col("num_tokens"), config), spans=pl.concat_list(span))
        .select("bucket", "num_tokens", "tokens", "spans")
        .sort("bucket", maintain_order=True)
    )


def bucket_of(num_tokens: pl.Expr, config: BucketConfig) -> pl.Expr:
    """UInt8 index of the bucket for a length: how many edges are shorter."""
    return pl.sum_horizontal((num_tokens > edge).cast(pl.UInt8) for edge in config.edges).cast(
        pl.UInt8
    )


def bucket_report(sequences: pl.DataFrame, config: BucketConfig) -> dict[str, dict[str, int]]:
    """Per bucket: sequences, tokens, and padding if each is padded to the bucket's edge.

    The open bucket pads to its own longest sequence.
    """
    edges = pl.Series([*config.edges, None], dtype=pl.Int64)
    grouped = sequences.group_by("bucket").agg(
        sequences=pl.len(),
        tokens=pl.col("num_tokens").cast(pl.Int64).sum(),
        longest=pl.col("num_tokens").max(),
    )
    padded = pl.coalesce(edges.gather(grouped["bucket"]), grouped["longest"])
    report = grouped.with_columns(
        padding=pl.col("sequences") * padded.cast(pl.Int64) - pl.col("tokens")
    )
    rows = {row["bucket"]: row for row in report.iter_rows(named=True)}
    empty = {"sequences": 0, "tokens": 0, "padding": 0}
    return {
        name: {key: rows.get(index, empty)[key] for key in empty}
        for index, name in enumerate(bucket_names(config))
    }
