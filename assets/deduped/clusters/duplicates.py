"""Compare candidates, join duplicates into clusters, and choose the document of each that stays.

Candidates are documents that share a key. Clusters are all documents that a chain of pairs
connects, or stars around the documents that stay; the keep policy ranks their members.
Trade-off: in a component of more than 64 different documents not all pairs are compared, so that
a million near copies cost a million comparisons; some pairs that share no key are missed there.
Price: 8 bytes of memory per pair and 150 per member.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.clusters.cleanliness import cleanliness
from assets.deduped.clusters.keep_policy import order_of_ids, ranking
from assets.deduped.clusters.pair_evidence import Shingles, evidence_of, with_spans
from resources.settings.dedup import REHYDRATION, DedupConfig

CLUSTER_SCHEMA: dict[str, Any] = {
    "ref": pl.UInt64,
    "doc_id": pl.String,
    "cluster_id": pl.String,
    "cluster_size": pl.UInt32,
    "kept_doc_id": pl.String,
    "kept_source": pl.String,
    "similarity": pl.Float32,
    "method": pl.String,
}

IS_REMOVED = pl.col("doc_id") != pl.col("kept_doc_id")  # of the rows of a table of clusters


def decide(
    members: pl.DataFrame,
    pairs: NDArray[np.uint64],
    config: DedupConfig,
    shingles: Shingles | None = None,
) -> pl.DataFrame:
    """All documents of clusters of two or more, sorted by ref, with the columns `CLUSTER_SCHEMA`.

    `members` are whole components of candidates, in any order: ref UInt64, source String,
    generation UInt32 (the run that first ingested it) and the columns of a `signatures` table and
    of `text_facts`.
    `pairs`, uint64 [m, 2], are row ids of candidates, in any order, repeated or not. `shingles`,
    for `verify: exact`, are sorted unique values, uint64, and the members' offsets, int64 [n + 1].

    cluster_id is the smallest doc_id; similarity and method ("exact", "field:<name>", "minhash")
    say what a document has in common with its survivor, and are null for the survivor; similarity
    also where nothing was measured: one of the two has no signature, and only a field is equal.
    With "ingested" in `config.keep` generations are decided one after the other, and documents
    that are similar to several older clusters join the one with the best survivor (stars: only if
    "ingested" comes first). Raises ValueError if a doc_id occurs twice, if a pair names a document
    that is not a member, if hashes have another size than 16 bytes, or if shingles are missing.
    """
    if members.is_empty():
        return pl.DataFrame(schema=CLUSTER_SCHEMA)
    members = with_spans(members, shingles).with_columns(_round_column(config).alias("round"))
    order = np.lexsort([members["ref"], members["round"]])  # cheap: mostly sorted already
    members = members if (np.diff(order) == 1).all() else members[order]
    candidates = _candidates(members["ref"].to_numpy(), pairs)
    row_stops = np.cumsum([0, *members["round"].rle().struct.field("len")])
    evidence = evidence_of(members, config, shingles)
    by_id = order_of_ids(members["doc_id"])
    if "cleanest" in config.keep:
        clean = cleanliness(members, evidence, candidates, row_stops)
        members = members.with_columns(cleanliness=clean)
    survivors_of = survivors_kernel(config)
    survivors = survivors_of(evidence, candidates, row_stops, ranking(members, by_id, config))
    in_common = _in_common(evidence, survivors, config)
    return _cluster_table(members, survivors, by_id, in_common)


def _in_common(evidence: Any, survivors: NDArray[np.int32], config: DedupConfig) -> pl.DataFrame:
    """Return similarity and method of each document and its survivor; null for survivors."""
    from assets.deduped.kernels.pair_similarity import compare_with_survivors

    similarities, methods = compare_with_survivors(evidence, survivors)
    names = pl.Series(["exact", *(f"field:{name}" for name in config.fields), "minhash"])
    is_removed = survivors != np.arange(len(survivors))
    measured = pl.Series(similarities).fill_nan(None)
    return pl.DataFrame({"similarity": measured, "method": names.gather(methods)}).select(
        pl.when(pl.Series(is_removed)).then(pl.all())
    )


def survivors_kernel(config: DedupConfig) -> Callable[..., Any]:
    """Return the kernel that decides who stays; only that one is compiled."""
    if config.clusters == "star":
        from assets.deduped.kernels.star_survivors import star_survivors

        return star_survivors  # type: ignore[no-any-return]
    from assets.deduped.kernels.component_survivors import component_survivors

    return component_survivors  # type: ignore[no-any-return]


def _round_column(config: DedupConfig) -> pl.Expr:
    """Return the order of decisions: generations, if the policy keeps earlier documents."""
    keys = [key for key in config.keep if key != "priority" or config.priority]
    ingested = keys[:1] if config.clusters == "star" else keys
    return pl.col("generation") if "ingested" in ingested else pl.lit(0, pl.UInt32)


def _candidates(
    row_ids: NDArray[np.uint64], pairs: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the earlier candidates of each row: offsets, int64 [n + 1], and rows, int32."""
    from assets.deduped.kernels.document_rows import group_pairs

    order = np.argsort(row_ids, kind="stable").astype(np.int32)
    places = np.searchsorted(row_ids[order], pairs)
    rows = order[np.minimum(places, len(order) - 1)]
    if (row_ids[rows] != pairs).any():
        ref = int(np.setdiff1d(pairs, row_ids)[0])
        raise ValueError(
            f"A pair names the document {ref >> 32}:{ref & 0xFFFFFFFF} (part:row), which is not "
            "among the members. Pass both ends of every pair."
        )
    earlier: tuple[NDArray[np.int64], NDArray[np.int32]]
    earlier = group_pairs(np.sort(rows, axis=1), len(row_ids))
    return earlier


def _cluster_table(
    members: pl.DataFrame,
    survivors: NDArray[np.int32],
    by_id: NDArray[np.int32],
    evidence: pl.DataFrame,
) -> pl.DataFrame:
    """Return the clusters of two or more; `evidence` has similarity and method of each row."""
    sizes = np.bincount(survivors, minlength=len(members))
    first_by_id = np.empty(len(members), np.int32)
    first_by_id[survivors[by_id[::-1]]] = by_id[::-1]  # the last one written is the smallest
    rows = np.flatnonzero(sizes[survivors] > 1)
    kept = survivors[rows]
    doc_ids = members["doc_id"]
    columns = {
        "ref": members["ref"].gather(rows),
        "doc_id": doc_ids.gather(rows),
        "cluster_id": doc_ids.gather(first_by_id[kept]),
        "cluster_size": pl.Series(sizes[kept], dtype=pl.UInt32),
        "kept_doc_id": doc_ids.gather(kept),
        "kept_source": members["source"].gather(kept),
        **evidence[rows].to_dict(),
    }
    return pl.DataFrame(columns).sort("ref")


def copies_of(cluster_sizes: pl.Series, rehydration: str | Mapping[int, int] | None) -> pl.Series:
    """Return the copies of documents by the size of their cluster, UInt32.

    `rehydration` is a table of {least size: copies}, the name of one in `REHYDRATION`, or None: 1
    for all. Sizes below the smallest of the table give 1.
    """
    table = REHYDRATION[rehydration] if isinstance(rehydration, str) else (rehydration or {})
    least = pl.Series(sorted(table), dtype=pl.Int64)
    copies = pl.Series([1, *(table[size] for size in sorted(table))], dtype=pl.UInt32)
    places = least.search_sorted(cluster_sizes.cast(pl.Int64), side="right")
    return copies.gather(places).rename("copies")


Rehydration = str | Mapping[int, int] | None


def drop_duplicates(
    documents: pl.DataFrame, clusters: pl.DataFrame, rehydration: Rehydration = None
) -> pl.DataFrame:
    """Remove the documents of which another is kept; the others stay in the same order.

    `clusters` has doc_id, kept_doc_id String and cluster_size UInt32 of all members of clusters.
    With `rehydration` the columns cluster_size and copies, UInt32, follow: the size of the cluster
    that a document is the survivor of (1 without one), and its copies by the table.
    """
    kept = documents
    if len(clusters) and len(removed := clusters.filter(IS_REMOVED)["doc_id"]):
        kept = documents.filter(~pl.col("doc_id").is_in(removed.implode()))
    if rehydration is None:
        return kept
    sizes = clusters.filter(~IS_REMOVED).select("doc_id", "cluster_size")
    kept = kept.join(sizes, on="doc_id", how="left", maintain_order="left")
    kept = kept.with_columns(pl.col("cluster_size").fill_null(1))
    return kept.with_columns(copies=copies_of(kept["cluster_size"], rehydration))
