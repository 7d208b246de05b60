"""Decide which documents are held out of training: by a share, or a number of tokens.

A document without copies is held out if a keyed hash of its id is below the share of its source. In
a cluster of copies that all came in one run, that of the smallest id decides for all. What was
decided is never changed; a document that comes later takes the decision of its cluster. Clusters
that turn out to be one can so have both trained and held-out documents: they stay as they are, and
a new document of theirs is held out.

No document has to know all others of its cluster: it is enough to know the clusters that are held
out, and these follow from marks on few documents of any part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.index.ledger import Order
from corpus_loader.permutation import derive_key, mix64
from resources.settings.holdout import MOST_SHARE
from resources.settings.pipeline import Settings

HASH_RANGE = 1 << 64
ID_CHARS = 16  # hex digits of 64 bits
HELD = "held"  # a document that is held out
TRAINED = "trained"  # one that is not, in a cluster that its smallest id would hold out
FIRST = "first"  # a new one with the smallest id of its cluster, which this id would hold out
MARK_SCHEMA = {
    "cluster_id": pl.String,
    "doc_id": pl.String,
    "cluster_size": pl.UInt32,
    "mark": pl.String,
}


class Shares(NamedTuple):
    """Share of a source's documents that is held out, and the largest one of any source."""

    own: float
    largest: float


def is_below(doc_ids: pl.Series, share: float) -> NDArray[np.bool_]:
    """Return whether each document is among a share by its own id, bool [n].

    In: String, 32 hex digits. A document that is among a share is among every larger one.
    """
    first, last = (
        doc_ids.str.slice(start, ID_CHARS).str.to_integer(base=16, dtype=pl.UInt64).to_numpy()
        for start in (0, ID_CHARS)
    )
    hashes = mix64(mix64(first ^ np.uint64(derive_key("holdout"))) ^ last)
    is_among: NDArray[np.bool_] = hashes < np.uint64(int(share * HASH_RANGE))
    return is_among


def marks_of(decisions: pl.DataFrame, clusters: pl.DataFrame, shares: Shares) -> pl.DataFrame:
    """Mark the documents of a part that tell which clusters are held out.

    decisions: doc_id String, is_held Boolean (null: not decided yet) of all documents of the part.
    clusters: doc_id, cluster_id String (the smallest id of the cluster), cluster_size UInt32 of
    those in clusters. Out: columns of `MARK_SCHEMA`, sorted.
    """
    members = clusters.join(decisions, on="doc_id", how="left")
    could_be_held = pl.Series(is_below(members["cluster_id"], shares.largest))
    is_first = pl.Series(is_below(members["doc_id"], shares.own))
    is_first &= members["doc_id"] == members["cluster_id"]
    mark = (
        pl.when(pl.col("is_held"))
        .then(pl.lit(HELD))
        .when(pl.col("is_held").is_null() & is_first)
        .then(pl.lit(FIRST))
        .when(~pl.col("is_held") & could_be_held)
        .then(pl.lit(TRAINED))
    )
    marked = members.with_columns(mark=mark).filter(pl.col("mark").is_not_null())
    return marked.select(pl.col(name).cast(of) for name, of in MARK_SCHEMA.items()).sort(
        "cluster_id", "doc_id"
    )


def held_clusters(marks: pl.DataFrame) -> pl.Series:
    """Return the clusters whose new documents are held out, by the marks of all parts, sorted."""
    by_mark = {mark: marks.filter(pl.col("mark") == mark)["cluster_id"] for mark in (HELD, FIRST)}
    trained = marks.filter(pl.col("mark") == TRAINED)["cluster_id"]
    by_hash = by_mark[FIRST].filter(~by_mark[FIRST].is_in(trained.implode()))
    return pl.concat([by_mark[HELD], by_hash]).unique().sort()


def decide(
    known: pl.DataFrame, clusters: pl.DataFrame, held: pl.Series, share: float
) -> pl.DataFrame:
    """Return doc_id and is_held of all documents of a part, none of which is null.

    known, clusters: see `marks_of`; held: the clusters that are held out; share: of the source.
    """
    found = known.join(clusters, on="doc_id", how="left", maintain_order="left")
    by_own_id = pl.Series(is_below(found["doc_id"], share))
    is_alone = found["cluster_id"].is_null()
    by_cluster = found["cluster_id"].is_in(held.implode()).fill_null(value=False)
    decided = pl.col("is_held").fill_null((is_alone & by_own_id) | by_cluster)
    return found.with_columns(is_held=decided).select("doc_id", "is_held")


def mixed_clusters(marks: pl.DataFrame) -> pl.DataFrame:
    """Return the clusters that have both held-out and trained documents, the most trained first.

    Out: cluster_id, held_doc_id (the smallest) String, held, trained UInt32: documents of both.
    """
    by_cluster = marks.filter(pl.col("mark") == HELD).group_by("cluster_id")
    counted = by_cluster.agg(
        held_doc_id=pl.min("doc_id"),
        held=pl.len().cast(pl.UInt32),
        size=pl.max("cluster_size"),
    )
    mixed = counted.filter(pl.col("size") > pl.col("held"))
    return mixed.select(
        "cluster_id", "held_doc_id", "held", trained=pl.col("size") - pl.col("held")
    ).sort("trained", "cluster_id", descending=[True, False])


def shares_of(
    settings: Settings,
    before: Mapping[str, list[float]],
    tokens_of: Callable[[Sequence[str]], int],
) -> dict[str, Any]:
    """Return the config of a manifest: the share of each source, and of `tokens` what is kept.

    A number of tokens becomes a share once: `tokens` has both, by the source that asks for it, as
    `before` has them of the last run. Sources whose share is not known yet, as none of their
    documents has tokens, are missing. `tokens_of` returns the tokens that sources have.
    """
    shares, kept, owners = dict[str, float](), dict[str, list[float]](), holdout_owner(settings)
    for name, owner in owners.items():
        config = settings.source(name).holdout or settings.holdout
        if config is None or config.tokens is None:
            shares[name] = 0.0 if config is None else config.share or 0.0
            continue
        found = kept.get(owner) or before.get(owner)
        if found is None or found[0] != config.tokens:
            among = [each for each, other in owners.items() if other == owner]
            if not (tokens := tokens_of(among)):
                continue
            found = [config.tokens, min(MOST_SHARE, config.tokens / tokens)]
        kept[owner], shares[name] = found, found[1]
    return {"shares": shares, "tokens": kept}


def holdout_owner(settings: Settings) -> dict[str, str]:
    """Return whose `holdout` each source has: the source itself, or "" for the global setting."""
    return {source.name: source.name if source.holdout else "" for source in settings.sources}


def kept_in(settings: Settings, order: Order) -> dict[str, list[float]]:
    """Return the numbers of tokens that another build's ledger has, as `shares_of` takes them."""
    owners = holdout_owner(settings)
    return {
        owners[source]: [*part.holdout_tokens]
        for (source, _), part in order.items()
        if part.holdout_tokens is not None and source in owners
    }
