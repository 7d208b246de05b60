"""The newest signatures of every source, and the filtered documents that they are of.

Duplicates, of the stage `duplicates`, and contaminated documents, of `signatures`, are left out
where repeats are counted and cut: else the only other place of a repeat could be in a document that
is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from assets.deduped.clusters.duplicates import drop_duplicates
from assets.deduped.deduped_records import (
    DUPLICATES,
    SIGNATURES,
    ClustersManifest,
    Signed,
)
from assets.filtered.filtered_records import FILTERED
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.source_states import parts_of_source, state_of_all, usable_states
from resources.store.published import PublishedFile
from resources.store.records import Manifest, required_file
from resources.store.store import StoreError, newest_first


@dataclass(frozen=True)
class SignedSources:
    """The newest signatures of the sources that have usable ones; reasons for the others."""

    manifests: list[Signed]
    left_out: dict[str, str]

    @property
    def fingerprints(self) -> list[str]:
        """The signatures' fingerprints, in the order of pipeline.yaml."""
        return [manifest.fingerprint for manifest in self.manifests]


def signed_sources(corpus: Corpus) -> SignedSources:
    """Return the newest signatures of all sources, read once for all plans of a step."""
    return corpus.once(SIGNATURES.name, lambda: read_signed_sources(corpus))


def read_signed_sources(corpus: Corpus) -> SignedSources:
    """Return the newest signatures of all sources.

    Left out are sources without signatures, and those that failed in this run and whose last good
    signatures are of another config, or of documents that are not kept.
    """
    config = corpus.settings.dedup.signing()

    def read(source: str) -> Signed:
        signed = corpus.store.newest(SIGNATURES, source)
        if source in corpus.behind:
            check_made_under(signed, config=config, section="dedup")
            signed_documents(corpus, signed)
        return signed

    signed, left_out = usable_states(corpus.settings.source_names(), read)
    return SignedSources(list(signed.values()), left_out)


def signed_documents(
    corpus: Corpus, signed: Signed, again: Sequence[str] = (stage_names.SIGNATURES,)
) -> Manifest[Any, Any]:
    """Return the filtered documents that are signed: the newest, or after a failure older ones.

    Raises StoreError, which names the stages `again`, for signatures of documents that are not the
    newest, if the source has not failed in this run; or if its older documents are not kept.
    """
    newest = corpus.store.newest(FILTERED, signed.partition)
    if signed.partition in corpus.behind:
        kept = newest_first(corpus.store.partition(FILTERED.name, signed.partition))
        older = (each for each in kept if each.fingerprint == signed.provenance.filtered)
        if (documents := next(older, None)) is not None:
            return documents
    of_documents = f"documents than the newest filtered[{signed.partition}]"
    made_of = {of_documents: (signed.provenance.filtered, newest.fingerprint)}
    check_made_under(signed, inputs=made_of, again=again)
    return newest


def clustered_documents(corpus: Corpus, source: str) -> Manifest[Any, Any]:
    """Return the filtered documents of a source that the duplicates are of."""
    again = stage_names.SIGNATURES, stage_names.BAND_INDEX, stage_names.DUPLICATES
    return signed_documents(corpus, corpus.store.newest(SIGNATURES, source), again)


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
    clusters = state_of_all(corpus, DUPLICATES)
    check_up_to_date(corpus, source, clusters)
    decontamination = corpus.settings.dedup.decontamination
    is_rejecting = decontamination is not None and decontamination.action == "reject"
    hits_by_part = {part.name: part.file("contamination") for part in signed.parts}
    removals = {}
    for part in parts_of_source(corpus, clusters, source):
        numbers = part.stats.numbers
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
    check_made_under(
        clusters, inputs=made_of, again=(stage_names.BAND_INDEX, stage_names.DUPLICATES)
    )


@dataclass(frozen=True)
class RemainingPart:
    """A filtered part without the documents that are removed from it."""

    source: str
    name: str
    fingerprint: str
    documents: PublishedFile
    removals: Removals
    text_bytes: int

    def read(self) -> pl.DataFrame:
        """Read doc_id and text of the remaining documents, in order."""
        kept, removals = read_columns(self.documents, "doc_id", "text"), self.removals
        if removals.clusters is not None:
            clusters = read_columns(removals.clusters, "doc_id", "kept_doc_id")
            kept = drop_duplicates(kept, clusters)
        if removals.contamination is None or not removals.is_rejecting:
            return kept
        hits = read_columns(removals.contamination, "doc_id", "is_contaminated")
        gone = hits.filter("is_contaminated")
        return kept.join(gone, on="doc_id", how="anti", maintain_order="left")


def read_columns(file: PublishedFile, *columns: str) -> pl.DataFrame:
    """Read columns of a Parquet file."""
    return pl.read_parquet(file.checked(), columns=list(columns))


def remaining_parts(corpus: Corpus, manifest: Manifest[Any, Any]) -> list[RemainingPart]:
    """Return the parts of the filtered documents of a source, in order.

    Raises StoreError if what is removed was found in other documents than the newest ones.
    """
    removals = removals_by_part(corpus, manifest.partition)
    return [
        RemainingPart(
            manifest.partition,
            part.name,
            part.fingerprint,
            corpus.store.part_file(manifest, part, "documents"),
            removals[part.name],
            part.stats.text_bytes,
        )
        for part in manifest.parts
    ]
