"""`corpus duplicates check`: the clusters of a sample, held against datasketch's own LSH."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

import polars as pl
import xxhash
from cyclopts import Parameter

from assets.deduped.minhash.meta_fields import column_of, field_values
from pipeline_defs.commands.look.datasketch_pairs import (
    Difference,
    Removal,
    Sample,
    accepted_of,
    candidates_of,
    differences,
)
from pipeline_defs.commands.look.duplicates import cluster_places, scan_clusters
from pipeline_defs.commands.published_documents import filtered_manifests, path_of
from pipeline_defs.commands.terminal import Json, Natural, Positive, print_json, print_table
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.store import StoreError

UNEXPLAINED = "NOT EXPLAINED"


def check_sample(
    *,
    sample: Annotated[Positive, Parameter(help="Documents to draw.")] = 5000,
    seed: Annotated[Natural, Parameter(help="Seed of the draw.")] = 0,
    most: Annotated[Positive, Parameter(name="--most", help="Show at most so many.")] = 20,
    json: Json = False,
) -> int:
    """Compare the removals of a sample with datasketch; 1 if a difference is not explained.

    Drawn documents bring the others of their clusters with them.
    """
    corpus = load_corpus()
    if not corpus.settings.dedup.near:
        raise UsageError("dedup.near is false: there is no MinHash to check. Set it to true.")
    drawn = read_sample(corpus, sample, seed)
    candidates = candidates_of(drawn)
    accepted = accepted_of(drawn, candidates)
    found = differences(drawn, candidates, accepted)
    confirmed = len(drawn.removals) - sum(each.found_by == "corpus" for each in found)
    counts = {
        "documents": len(drawn.texts),
        "candidate pairs of datasketch": len(candidates),
        "of these accepted": len(accepted),
        "documents removed by the corpus": len(drawn.removals),
        "of these confirmed by datasketch": confirmed,
        "pairs that datasketch alone would settle": len(found) - len(drawn.removals) + confirmed,
        "differences not explained": sum(not each.reason for each in found),
    }
    if json:
        print_json({"counts": counts, "differences": found})
    else:
        print_check(counts, found, most)
    return 1 if counts["differences not explained"] else 0


def read_sample(corpus: Corpus, size: int, seed: int) -> Sample:
    """Draw documents by a hash of their ids, and read them and their whole clusters.

    Contaminated documents that are rejected are left out: they are compared with no other.
    """
    contaminated = rejected_ids(corpus)
    tables = [
        path_of(corpus, manifest, part, "documents")
        for manifest in filtered_manifests(corpus)
        for part in manifest.parts
    ]
    ids = [
        doc_id for path in tables for doc_id in pl.read_parquet(path, columns=["doc_id"])["doc_id"]
    ]
    keys = {doc_id: xxhash.xxh3_64_intdigest(doc_id.encode(), seed) for doc_id in ids}
    drawn = set(sorted(set(ids) - contaminated, key=lambda doc_id: (keys[doc_id], doc_id))[:size])
    clusters = scan_clusters(cluster_places(corpus)).collect(engine="streaming")
    with_drawn = clusters.filter(pl.col("doc_id").is_in(list(drawn)))["cluster_id"].unique()
    members = clusters.filter(pl.col("cluster_id").is_in(with_drawn.implode()))
    wanted = drawn | set(members["doc_id"])
    if missing := sorted(wanted - keys.keys()):
        raise StoreError(
            f"{len(missing)} clustered documents ({missing[0]}, ...) are not among the newest "
            "filtered documents. Materialize `duplicates` again."
        )
    removed = members.filter(pl.col("method").is_not_null())
    rows = removed.select("doc_id", "kept_doc_id", "method").iter_rows()
    removals = {doc_id: Removal(kept, method) for doc_id, kept, method in rows}
    return sample_of(corpus, tables, wanted, removals)


def sample_of(
    corpus: Corpus, tables: Iterable[object], wanted: set[str], removals: dict[str, Removal]
) -> Sample:
    """Read the texts of the wanted documents, and the values that they are grouped by."""
    config = corpus.settings.dedup
    columns = list(dict.fromkeys(["doc_id", "text", *map(column_of, config.within)]))
    texts: dict[str, str] = {}
    groups: dict[str, tuple[str | None, ...]] = {}
    for path in tables:
        rows = pl.scan_parquet(str(path)).select(columns)
        found = rows.filter(pl.col("doc_id").is_in(sorted(wanted))).collect(engine="streaming")
        texts |= dict(zip(found["doc_id"], found["text"].fill_null(""), strict=True))
        values = [field_values(found, name).to_list() for name in config.within]
        rows_of_values = zip(*values, strict=True) if values else [()] * found.height
        groups |= dict(zip(found["doc_id"], rows_of_values, strict=True))
    return Sample(texts, groups, removals, config)


def rejected_ids(corpus: Corpus) -> set[str]:
    """Return the documents that are rejected for items of evaluation sets."""
    decontamination = corpus.settings.dedup.decontamination
    if decontamination is None or decontamination.action != "reject":
        return set()
    gone: set[str] = set()
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest("signatures", source)
        for part in manifest.parts:
            if part.file("contamination"):
                hits = pl.read_parquet(path_of(corpus, manifest, part, "contamination"))
                gone |= set(hits.filter("is_contaminated")["doc_id"])
    return gone


def print_check(counts: dict[str, int], found: list[Difference], most: int) -> None:
    """Print counts, differences by reason, and the first of them, those not explained first."""
    print_table(
        "duplicates, held against datasketch", ("of the sample",), ("count",), counts.items()
    )
    by_reason = Counter((each.found_by, each.reason or UNEXPLAINED) for each in found)
    reasons = ((*pair, count) for pair, count in sorted(by_reason.items()))
    print_table("differences", ("found by", "reason"), ("count",), reasons)
    pairs = (
        (each.found_by, *each.pair, each.reason or UNEXPLAINED, f"{each.similarity:.4f}")
        for each in sorted(found, key=lambda each: (bool(each.reason), each.pair))[:most]
    )
    texts = ("found by", "document", "document", "reason")
    print_table("pairs", texts, ("similarity",), pairs)
