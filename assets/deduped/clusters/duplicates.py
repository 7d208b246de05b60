"""Compare candidates, join duplicates into clusters, and choose the document of each that stays.

Candidates are documents that share a key. Clusters are all documents that a chain of pairs
connects, or stars around the documents that stay; the keep policy ranks their members.
Trade-off: in a component of more than 64 different documents not all pairs are compared, so that
a million near copies cost a million comparisons; some pairs that share no key are missed there.
Price: 8 bytes of memory per pair and 150 per member.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.deduped.clusters.cleanliness import cleanliness
from resources.settings.dedup import DedupConfig, KeepKey

if TYPE_CHECKING:
    from assets.deduped.kernels.pair_similarity import Evidence


Ranking = tuple[NDArray[np.int32], NDArray[np.int32]]  # rank of each row, row of each rank

_RULES: dict[KeepKey, Callable[[DedupConfig], pl.Expr]] = {  # the smallest stays, null is last
    "priority": lambda config: _position(config.priority),
    "ingested": lambda _: pl.col("generation"),
    "quality": lambda _: -pl.col("quality").fill_nan(None),
    "cleanest": lambda _: -pl.col("cleanliness"),
    "longest": lambda _: -pl.col("num_chars").cast(pl.Int64),
    "newest": lambda _: -pl.col("date"),
    "oldest": lambda _: pl.col("date"),
}


def _position(priority: tuple[str, ...]) -> pl.Expr:
    """Return the place of a row's source in `priority`; sources not named come last."""
    named = pl.Series(list(dict.fromkeys(priority)), dtype=pl.String)
    positions = pl.Series(range(len(named)), dtype=pl.UInt32)
    return pl.col("source").replace_strict(named, positions, default=len(named))


def ranking(members: pl.DataFrame, by_id: NDArray[np.int32], config: DedupConfig) -> Ranking:
    """Return the rank of each row, 0 the one that stays, and the row of each rank, int32 [n].

    `members` has source, generation, quality, cleanliness, num_chars and date, as far as
    `config.keep` names them; `by_id`, int32 [n], are their rows in the order of doc_ids, the last
    key. Null, and a quality that is not a number, rank last.
    """
    keys = [_RULES[key](config).alias(key) for key in config.keep if _differs(members, key, config)]
    order = by_id
    if keys:
        frame = members.select(*keys, pl.Series("doc_id", _inverse(by_id)))
        sorted_rows = frame.select(pl.arg_sort_by(frame.columns, nulls_last=True)).to_series()
        order = sorted_rows.to_numpy().astype(np.int32)
    return _inverse(order), order


def _inverse(order: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the place of each row in an order."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def _differs(members: pl.DataFrame, key: KeepKey, config: DedupConfig) -> bool:
    """Return False if a key is known to be the same for all documents: it would cost a sort."""
    if key == "priority":
        return bool(config.priority)
    if key == "ingested":
        return members["generation"].min() != members["generation"].max()
    return True


def order_of_ids(doc_ids: pl.Series) -> NDArray[np.int32]:
    """Return rows in the order of their doc_ids, int32 [n]; ValueError if one occurs twice.

    As numbers of 128 bits they sort several times faster than as strings.
    """
    numbers = doc_ids.str.to_integer(base=16, dtype=pl.UInt128)
    order = numbers.arg_sort()
    ordered = numbers.gather(order)
    repeated = order.filter((ordered == ordered.shift(1)).fill_null(False))
    if len(repeated):
        doc_id = doc_ids[int(repeated[0])]
        raise ValueError(
            f"doc_id {doc_id!r} occurs more than once among the duplicates, so removing "
            "one would remove both. Give each document its own doc_id."
        )
    return order.to_numpy().astype(np.int32)


Shingles = tuple[NDArray[np.uint64], NDArray[np.int64]]
_HASH_BYTES = 16


def with_spans(members: pl.DataFrame, shingles: Shingles | None) -> pl.DataFrame:
    """Add the columns `start` and `stop`, Int64, of the members' shingles; 0 without shingles."""
    offsets = np.zeros(len(members) + 1, np.int64) if shingles is None else shingles[1]
    return members.with_columns(start=pl.Series(offsets[:-1]), stop=pl.Series(offsets[1:]))


def evidence_of(
    members: pl.DataFrame, config: DedupConfig, shingles: Shingles | None
) -> "Evidence":
    """Return the evidence by which the kernels compare n documents.

    `members` has group UInt64, text_hash and a field_00, field_01, ... for each of `config.fields`
    (Binary, 16 bytes or null), signature Array(UInt32) or null, and the columns of `with_spans`.
    Raises ValueError if hashes have another size, or if shingles are needed and not given.
    """
    from assets.deduped.kernels import pair_similarity as cluster_pairs

    if config.compares_shingles and shingles is None:
        raise ValueError("verify: exact compares shingles: pass those of the members")
    verify = {
        "none": cluster_pairs.NOT_VERIFIED,
        "signature": cluster_pairs.BY_SIGNATURE,
        "exact": cluster_pairs.BY_SHINGLES,
    }[config.verify]
    groups = members["group"].to_numpy()
    columns = ["text_hash", *(f"field_{number:02}" for number in range(len(config.fields)))]
    arrays = (
        np.stack([_first_of_equal(members[name], groups) for name in columns], axis=1),
        groups,
        _signature_values(members["signature"]),
        members["signature"].is_not_null().to_numpy(),
        np.empty(0, np.uint64) if shingles is None else shingles[0][:],
        np.stack([members["start"].to_numpy(), members["stop"].to_numpy()], axis=1),
    )
    for array in arrays:
        array.flags.writeable = False  # as the kernels are compiled for
    return cluster_pairs.Evidence(*arrays, verify, config.rows, config.threshold)


def _first_of_equal(hashes: pl.Series, groups: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the first row of the same group with an equal hash, uint32 [n]; its own for null."""
    from assets.deduped.kernels.document_rows import first_equal

    rows = np.flatnonzero(hashes.is_not_null().to_numpy())
    words = np.column_stack([_hash_words(hashes), groups])[rows]
    firsts = np.arange(len(hashes), dtype=np.uint32)
    firsts[rows] = rows[first_equal(np.ascontiguousarray(words.T))]
    return firsts


def _hash_words(hashes: pl.Series) -> NDArray[np.uint64]:
    """Return 128-bit hashes as two 64-bit words, uint64 [n, 2]; zeros for null."""
    sizes = hashes.bin.size()
    if not sizes.eq(_HASH_BYTES).all():
        others = sizes.drop_nulls().unique().sort().to_list()
        raise ValueError(
            f"{hashes.name} must have {_HASH_BYTES} bytes, found sizes={others}. "
            "Materialize `signatures` again."
        )
    array: Any = hashes.fill_null(bytes(_HASH_BYTES)).rechunk().to_arrow()
    if len(hashes) == 0:
        return np.empty((0, 2), np.uint64)
    words = np.frombuffer(array.buffers()[2], np.uint64).reshape(-1, 2)
    return words[array.offset : array.offset + len(hashes)]


def _signature_values(signatures: pl.Series) -> NDArray[np.uint32]:
    """Return signatures as uint32 [n, values], without a copy; anything for null."""
    width = getattr(signatures.dtype, "size", 0)
    if len(signatures) == 0 or width == 0 or signatures.is_null().all():
        return np.zeros((len(signatures), max(1, width)), np.uint32)
    array: Any = signatures.rechunk().to_arrow()
    values = array.values
    first = values.offset + array.offset * width
    held = np.frombuffer(values.buffers()[1], np.uint32)
    return held[first : first + len(signatures) * width].reshape(-1, width)


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


def drop_duplicates(documents: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
    """Remove the documents of which another is kept; the others stay in the same order.

    `clusters` has doc_id and kept_doc_id String of all members of clusters.
    """
    if len(clusters) and len(removed := clusters.filter(IS_REMOVED)["doc_id"]):
        return documents.filter(~pl.col("doc_id").is_in(removed.implode()))
    return documents
