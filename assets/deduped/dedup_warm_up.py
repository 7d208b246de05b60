"""Call the kernels of deduplication, each once, on tiny texts."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import polars as pl

from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.duplicates import decide
from assets.deduped.index.band_index import candidate_pairs, merge_runs
from assets.deduped.index.row_ids import row_ids_of
from assets.deduped.minhash.minhash import shingle_sets
from assets.deduped.minhash.signatures import signatures
from resources.settings.dedup import DedupConfig

TEXTS = ["the river of that town and its bridge"] * 2
# No kernel depends on them, and tiny documents have none.
NO_FIELDS = {"fields": (), "within": (), "quality_field": None, "date_field": None}


def dedup_warm_ups(config: DedupConfig) -> Iterator[Callable[[], object]]:
    """Yield a call that signs and clusters, the longest of all."""
    documents = pl.DataFrame({"doc_id": ["a", "b"], "text": TEXTS})
    plain = config.model_copy(update=NO_FIELDS)
    yield partial(cluster, documents, plain)


def cluster(documents: pl.DataFrame, config: DedupConfig) -> pl.DataFrame:
    """Cluster the documents of one part, as the stages do it by way of files."""
    facts, keys = signatures(documents, config)
    run = merge_runs([(keys["key"].to_numpy(), row_ids_of(0, keys["row"].to_numpy()))], 0)
    pairs = candidate_pairs(run, [run], np.ones(1, np.bool_))
    members = facts.with_columns(
        ref=pl.Series(np.arange(len(facts), dtype=np.uint64)),
        component=pl.lit(0, pl.UInt64),
        source=pl.lit("s"),
        generation=pl.lit(1, pl.UInt32),
    ).hstack(text_facts(documents["text"], facts["num_words"], config))
    shingles = shingle_sets(documents["text"], config) if config.compares_shingles else None
    return decide(members, pairs, config, shingles)
