"""Ids of documents as numbers, by which samples are drawn and documents are ordered."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from corpus_loader.permutation import derive_key, mix64


def doc_heads(doc_ids: pl.Series) -> NDArray[np.uint64]:
    """Return the first 16 hex digits of each doc_id as a number."""
    heads = doc_ids.str.slice(0, 16).str.to_integer(base=16, dtype=pl.UInt64)
    return heads.to_numpy()


def is_sampled(doc_ids: pl.Series, share: float, *purpose: int | str) -> pl.Series:
    """Select a seeded sample of documents by their ids, Boolean [n]: about `share` (0 to 1)."""
    keys = mix64(doc_heads(doc_ids) ^ np.uint64(derive_key(*purpose)))
    return pl.Series(keys.astype(np.float64) < share * 2.0**64, dtype=pl.Boolean)
