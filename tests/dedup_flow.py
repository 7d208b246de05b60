"""Deduplication of a frame of texts by the pure functions alone, as the stages chain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.duplicates import decide
from assets.deduped.index.band_index import candidate_pairs, merge_runs, row_ids_of
from assets.deduped.minhash.minhash import shingle_sets
from assets.deduped.minhash.signatures import signatures
from resources.settings.dedup import DedupConfig

MASK = np.uint64(0xFFFFFFFFFFFFFFFF)


def clusters_of(
    documents: pl.DataFrame, config: DedupConfig, key_mask: np.uint64 = MASK
) -> pl.DataFrame:
    """The clusters of documents (doc_id, text, and what the config names) as one part of source s.

    `key_mask` shortens the keys, as collisions of hashes would.
    """
    facts, keys = signatures(documents, config)
    row_ids = row_ids_of(0, keys["row"].to_numpy())
    order = np.lexsort([row_ids, keys["key"].to_numpy() & key_mask])
    run = merge_runs([((keys["key"].to_numpy() & key_mask)[order], row_ids[order])], 0)
    pairs = candidate_pairs(run, [run], np.ones(1, np.bool_))
    members = facts.with_columns(
        ref=pl.Series(np.arange(len(facts), dtype=np.uint64)),
        component=pl.lit(0, pl.UInt64),
        source=pl.lit("s"),
        generation=pl.lit(1, pl.UInt32),
    ).hstack(text_facts(documents["text"].fill_null(""), facts["num_words"], config))
    shingles: Any = None
    if config.compares_shingles:
        shingles = shingle_sets(documents["text"].fill_null(""), config)
    return decide(members, pairs, config, shingles)


def removed_of(clusters: pl.DataFrame) -> pl.DataFrame:
    """The documents that another stands for."""
    return clusters.filter(pl.col("doc_id") != pl.col("kept_doc_id"))
