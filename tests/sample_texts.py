"""Texts of the sample corpus, of every source that needs no reader."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl

SAMPLE = Path(__file__).parents[1] / "sample_data"
FILES = ("code/part-0.parquet", "multilingual/part-1.parquet", "reference/part-1.parquet")


@cache
def texts_of_sources() -> pl.Series:
    """Texts of code, prose and thirty languages."""
    parquet = [pl.read_parquet(SAMPLE / name)["text"] for name in FILES]
    lines = pl.read_ndjson(SAMPLE / "reference/part-2.jsonl")["text"]
    return pl.concat([*parquet, lines], rechunk=True)
