"""Stage `duplicates`: which documents are copies of which, over all sources at once.

Purpose: connected components over equal text hashes and equal LSH bands, and the one document of
each component that stays. Trade-off: components are transitive, so the ends of a chain of near
copies may differ more than any two neighbours; `similarity` shows by how much.
Price: 16 bytes per document and at most 24 more for the column at hand; 100 ns per document and
column; 2 microseconds per member of a cluster.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

_HASH_BYTES = 16
_REMOVED_FIRST = ["doc_id", "kept_doc_id", "cluster_id", "cluster_size", "similarity", "method"]


def cluster_documents(text_hashes: pl.Series, bands: Iterable[pl.Series]) -> NDArray[np.int64]:
    """Cluster label of each of n documents, int64 [n]: the smallest row number in its cluster.

    Two documents are in one cluster if a chain of equal `text_hashes` (Binary, 16 bytes) or equal
    values of a band (UInt64) leads from one to the other. Null equals nothing. `bands` is consumed
    one column at a time. In another order of rows the labels differ, the clusters do not. Raises
    ValueError for hashes of another size and for columns of different lengths.
    """
    from assets.transforms.kernels.clusters import flatten, link_equal

    parents = np.arange(len(text_hashes), dtype=np.int64)
    link_equal(_hash_words(text_hashes), text_hashes.is_not_null().to_numpy(), parents)
    for number, band in enumerate(bands):
        if len(band) != len(parents):
            raise ValueError(
                f"Band {number} has {len(band)} rows and text_hashes {len(parents)}. "
                "Read both from the same signatures, in the same order."
            )
        keys = band.fill_null(0).to_numpy().reshape(-1, 1)
        link_equal(np.ascontiguousarray(keys), band.is_not_null().to_numpy(), parents)
    flatten(parents)
    return parents


def _hash_words(text_hashes: pl.Series) -> NDArray[np.uint64]:
    """128-bit hashes as two 64-bit words, uint64 [n, 2]; zeros for null."""
    array: Any = text_hashes.fill_null(bytes(_HASH_BYTES)).to_arrow()
    if len(text_hashes) == 0:
        return np.empty((0, 2), np.uint64)
    if not text_hashes.drop_nulls().bin.size().eq(_HASH_BYTES).all():
        sizes = text_hashes.drop_nulls().bin.size().unique().sort().to_list()
        raise ValueError(
            f"A text_hash must have {_HASH_BYTES} bytes, found {sizes=}. "
            "Materialize `signatures` again."
        )
    return np.frombuffer(array.buffers()[2], np.uint64).reshape(-1, 2)


def choose_survivors(members: pl.DataFrame) -> pl.DataFrame:
    """The documents to remove: all of each cluster but the longest, or of those the first doc_id.

    `members` has cluster Int64, doc_id String, num_chars UInt32, text_hash Binary and signature
    Array(UInt32, k); further columns are kept. Neither the order of rows nor of sources matters.
    Returns, sorted by doc_id: doc_id, kept_doc_id, cluster_id (the cluster's first doc_id),
    cluster_size UInt32, similarity Float32 (share of signature values equal to the survivor's, 1.0
    for exact copies), method ("exact" if its text_hash is the survivor's, else "minhash"), and
    the further columns. Raises ValueError if a doc_id occurs twice.
    """
    _check_unique(members["doc_id"])
    order = ["cluster", "num_chars", "doc_id"]
    ranked = members.sort(order, descending=[False, True, False]).with_row_index("_row")
    ranked = ranked.with_columns(
        _survivor=pl.col("_row").first().over("cluster"),
        kept_doc_id=pl.col("doc_id").first().over("cluster"),
        cluster_id=pl.col("doc_id").min().over("cluster"),
        cluster_size=pl.len().over("cluster").cast(pl.UInt32),
        _is_exact=(pl.col("text_hash") == pl.col("text_hash").first().over("cluster")),
    ).with_columns(pl.col("_is_exact").fill_null(False))
    ranked = ranked.with_columns(
        similarity=pl.when("_is_exact").then(1.0).otherwise(_shares(ranked)).cast(pl.Float32),
        method=pl.when("_is_exact").then(pl.lit("exact")).otherwise(pl.lit("minhash")),
    )
    known = {*order, "text_hash", "signature"}
    further = [name for name in members.columns if name not in known]
    removed = ranked.filter(pl.col("_row") != pl.col("_survivor"))
    return removed.select(*_REMOVED_FIRST, *further).sort("doc_id")


def _check_unique(doc_ids: pl.Series) -> None:
    if doc_ids.n_unique() < len(doc_ids):
        repeated = doc_ids.filter(doc_ids.is_duplicated()).min()
        raise ValueError(
            f"doc_id {repeated!r} occurs more than once among the duplicates, so removing "
            "one would remove both. Give each document its own doc_id."
        )


def _shares(ranked: pl.DataFrame) -> pl.Series:
    """Share of signature values equal to the survivor's, Float32; null without a signature."""
    from assets.transforms.kernels.clusters import agreement

    if ranked.is_empty():
        return pl.Series([], dtype=pl.Float32)
    array: Any = ranked["signature"].rechunk().to_arrow()
    values = np.frombuffer(array.values.buffers()[1], np.uint32).reshape(len(ranked), -1)
    shares = pl.Series(agreement(values, ranked["_survivor"].cast(pl.Int64).to_numpy()))
    return shares.set(ranked["signature"].is_null(), None)
