"""The newest signatures of every source, and the filtered documents that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assets.deduped.deduped_records import SIGNATURES, Signed
from assets.filtered.filtered_records import FILTERED
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.source_states import usable_states
from resources.store.records import Manifest
from resources.store.store import newest_first


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
    corpus: Corpus, signed: Signed, again: Sequence[str] = ("signatures",)
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
    again = "signatures", "band_index", "duplicates"
    return signed_documents(corpus, corpus.store.newest(SIGNATURES, source), again)
