"""Documents of a filtered part that are removed before its text is read again.

These are duplicates, of the stage `duplicates`, and contaminated documents, of `signatures`. Both
are left out where repeats are counted and cut: else the only other place of a repeat could be in a
document that is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from assets.deduped.clusters.duplicates import drop_duplicates
from assets.deduped.deduped_records import DUPLICATES, SIGNATURES, ClustersManifest, cluster_parts
from assets.deduped.signed_files import clustered_documents, signed_sources
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.store.published import PublishedFile
from resources.store.records import required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL


@dataclass(frozen=True)
class Removals:
    """Files with the removals of one filtered part; `identity` changes with the removals."""

    clusters: PublishedFile | None  # None: no document is in a cluster
    contamination: PublishedFile | None  # None: not configured
    is_rejecting: bool  # else contaminated documents are tagged and stay
    identity: tuple[str, ...]


def removals_by_part(corpus: Corpus, source: str) -> dict[str, Removals]:
    """Return the removals of every filtered part of a source, by its name.

    Raises StoreError if they are of other documents than the newest ones.
    """
    signed = corpus.store.newest(SIGNATURES, source)
    clusters = corpus.store.newest(DUPLICATES, GLOBAL)
    check_up_to_date(corpus, source, clusters)
    decontamination = corpus.settings.dedup.decontamination
    is_rejecting = decontamination is not None and decontamination.action == "reject"
    hits_by_part = {part.name: part.file("contamination") for part in signed.parts}
    removals = {}
    for part in cluster_parts(clusters):
        numbers = part.stats.numbers
        if numbers.source != source:
            continue
        hits = hits_by_part[numbers.part]
        hits_sha256 = "" if hits is None else hits.sha256
        file = required_file(clusters, part, "clusters")
        removals[numbers.part] = Removals(
            clusters=corpus.store.file_of(clusters, file) if file.rows else None,
            contamination=None if hits is None else corpus.store.file_of(signed, hits),
            is_rejecting=is_rejecting,
            identity=(numbers.removed_ids, hits_sha256, str(is_rejecting)),
        )
    return removals


def check_up_to_date(corpus: Corpus, source: str, clusters: ClustersManifest) -> None:
    """Raise StoreError if the clusters were made of other documents than the newest ones.

    A survivor may be in any source: outdated clusters could remove a document for one that does not
    exist any more.
    """
    clustered_documents(corpus, source)
    sources = signed_sources(corpus)
    if source in sources.left_out:
        raise StoreError(sources.left_out[source])
    made_of = {
        "signatures than the newest ones": (clusters.provenance.signatures, sources.fingerprints)
    }
    check_made_under(clusters, inputs=made_of, again=("band_index", "duplicates"))


def remaining(documents: PublishedFile, removals: Removals, columns: Sequence[str]) -> pl.DataFrame:
    """Read columns (doc_id among them) of a filtered part's remaining documents, in order."""
    kept = pl.read_parquet(documents.checked(), columns=list(columns))
    if removals.clusters is not None:
        members = ["doc_id", "kept_doc_id"]
        kept = drop_duplicates(kept, pl.read_parquet(removals.clusters.checked(), columns=members))
    if removals.contamination is None or not removals.is_rejecting:
        return kept
    hits = pl.read_parquet(removals.contamination.checked(), columns=["doc_id", "is_contaminated"])
    gone = hits.filter("is_contaminated")
    return kept.join(gone, on="doc_id", how="anti", maintain_order="left")
