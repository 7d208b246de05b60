"""Shards of made-up or given rows, written to folders as the stage does it."""

from __future__ import annotations

import hashlib
import importlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from assets.sharded.formats import FORMATS, ShardFile, ShardSchema
from assets.sharded.formats.flat_rows import as_lists

SPAN = pl.Struct({"doc_id": pl.String, "start": pl.UInt32, "length": pl.UInt32})
DTYPES = {"uint16": pl.UInt16, "uint32": pl.UInt32}
END = 0


def about_of(dtype: str = "uint16", sequence_length: int | None = None) -> ShardSchema:
    """A source of that dtype and length."""
    vocab = 50_000 if dtype == "uint16" else 100_000
    return ShardSchema(dtype, sequence_length, END, vocab, "f" * 32)


def shard_of(rows: Sequence[Sequence[int]], dtype: str = "uint16") -> pl.DataFrame:
    """A shard's frame: every row is one document, without padding."""
    spans = [
        [{"doc_id": f"{number:032x}", "start": 0, "length": len(row)}]
        for number, row in enumerate(rows)
    ]
    return pl.DataFrame(
        {
            "num_tokens": pl.Series([len(row) for row in rows], dtype=pl.UInt32),
            "tokens": pl.Series(list(rows), dtype=pl.List(DTYPES[dtype])),
            "spans": pl.Series(spans, dtype=pl.List(SPAN)),
        }
    )


def seeded_rows(count: int, about: ShardSchema, seed: int = 0) -> list[list[int]]:
    """Rows of ids that end with the end-of-document id; 1 to 700 long if the length varies."""
    numbers = np.random.default_rng(seed)
    lengths = [about.sequence_length or int(numbers.integers(1, 700)) for _ in range(count)]
    return [
        [*numbers.integers(1, about.vocab_size, length - 1).tolist(), END] for length in lengths
    ]


def write_shards(
    folder: Path, name: str, shards: Sequence[pl.DataFrame], about: ShardSchema
) -> list[ShardFile]:
    """Write shards and index files of one format to a folder; returns the shards' files."""
    shard_format = FORMATS[name]
    folder.mkdir(parents=True, exist_ok=True)
    files: list[ShardFile] = []
    for number, shard in enumerate(shards):
        names = [shard_format.file_name(number, suffix) for suffix in shard_format.suffixes]
        paths = [folder / f".tmp-0123-{name}" for name in names]
        shard_format.write(paths, shard, about)
        tokens = int(as_lists(shard["tokens"]).list.len().sum())
        for path, final in zip(paths, names, strict=True):
            content = path.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            files.append(ShardFile(final, len(content), shard.height, tokens, sha256))
            path.rename(folder / final)
    for final, content in shard_format.index(files, about).items():
        (folder / final).write_bytes(content)
    return files


def peer(name: str) -> Any:
    """A package whose reader our files are held to.

    Where it is not installed the test is skipped, but fails with TOKENMILL_PEERS=1. What it says
    of itself when it is imported is no concern of ours.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if os.environ.get("TOKENMILL_PEERS") == "1":
            return importlib.import_module(name)
        return pytest.importorskip(name, exc_type=ImportError)
