"""Records of the stages from `evaluation` to `deduped`, for the store."""

from __future__ import annotations

import msgspec

from assets.deduped.index.band_index import Segment
from assets.deduped.index.ledger import LedgerEntry, PartKey
from corpus_loader.places import stage_names
from resources.store.records import Empty, Manifest, PartRecord, StageRecords

CONTAMINATED = "contaminated"  # why a document with an item of an evaluation set is removed
STATE = "components"  # the part of `duplicates` with digests of decided components


class EvaluationNumbers(msgspec.Struct, frozen=True):
    """Numbers of files and of distinct n-grams."""

    files: int = 0
    ngrams: int = 0


class SignaturesProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the documents that are signed."""

    filtered: str


class SignaturesNumbers(msgspec.Struct, frozen=True):
    """Numbers of a signed part.

    documents_with   documents with a value of each field that the config names
    files            XXH3-64 of the name of each of its files, in the order of rows
    file_stops       the row that the rows of each end before
    """

    documents_with: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    files: list[str] | msgspec.UnsetType = msgspec.UNSET
    file_stops: list[int] | msgspec.UnsetType = msgspec.UNSET


Signed = Manifest[SignaturesProvenance, SignaturesNumbers]


class BandIndexNumbers(msgspec.Struct, frozen=True):
    """Number of candidate pairs."""

    pairs: int = 0


class BandIndexProvenance(msgspec.Struct, frozen=True):
    """The ledger, the segments, and the fingerprints of the signatures that they are made of."""

    ledger: list[LedgerEntry]
    next_id: int
    segments: list[Segment]
    signatures: list[str]


IndexManifest = Manifest[BandIndexProvenance, BandIndexNumbers]


class DuplicatesNumbers(msgspec.Struct, frozen=True):
    """The filtered part of a part of clusters, and a digest of its removed doc_ids.

    Empty for the part `STATE`, and for the total of a manifest.
    """

    source: str = ""
    part: str = ""
    removed_ids: str = ""

    @property
    def key(self) -> PartKey:
        """Source and name of the filtered part."""
        return self.source, self.part


class DuplicatesProvenance(msgspec.Struct, frozen=True):
    """Fingerprints of the index and of the signatures, and the ledger that numbers the parts."""

    band_index: str
    ledger: list[LedgerEntry]
    signatures: list[str]


ClustersManifest = Manifest[DuplicatesProvenance, DuplicatesNumbers]
ClustersPart = PartRecord[DuplicatesNumbers]


def cluster_parts(manifest: ClustersManifest) -> list[ClustersPart]:
    """Return the parts of a manifest that hold the clusters of a signed part."""
    return [part for part in manifest.parts if part.name != STATE]


class RepeatedNumbers(msgspec.Struct, frozen=True):
    """Numbers of repeated texts, and of their characters in all documents, by unit."""

    repeated_lines: int | msgspec.UnsetType = msgspec.UNSET
    repeated_lines_chars: int | msgspec.UnsetType = msgspec.UNSET
    repeated_paragraphs: int | msgspec.UnsetType = msgspec.UNSET
    repeated_paragraphs_chars: int | msgspec.UnsetType = msgspec.UNSET


class RepeatedProvenance(msgspec.Struct, frozen=True):
    """Fingerprints of documents and duplicates."""

    filtered: str
    duplicates: str


class SubstringsNumbers(msgspec.Struct, frozen=True):
    """Spans of one filtered part and a digest of them; of several parts only the counts."""

    source: str = ""
    part: str = ""
    spans_id: str = ""
    spans: int = 0
    span_words: int = 0
    span_bytes: int = 0
    cut_documents: int = 0


class SubstringsProvenance(msgspec.Struct, frozen=True):
    """Fingerprints of documents and duplicates."""

    filtered: list[str]
    duplicates: str


class DedupedProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the filtered documents."""

    filtered: str


class DedupedNumbers(msgspec.Struct, frozen=True):
    """Characters cut by step; documents by evaluation set, contaminated and partly like an item.

    Unset if not looked.
    """

    cut_chars: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    contaminated: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    partly: dict[str, int] | msgspec.UnsetType = msgspec.UNSET


DedupedManifest = Manifest[DedupedProvenance, DedupedNumbers]

DEDUPED = StageRecords(stage_names.DEDUPED, "3", DedupedProvenance, DedupedNumbers)
BAND_INDEX = StageRecords(stage_names.BAND_INDEX, "1", BandIndexProvenance, BandIndexNumbers)
DUPLICATES = StageRecords(stage_names.DUPLICATES, "5", DuplicatesProvenance, DuplicatesNumbers)
EVALUATION = StageRecords(stage_names.EVALUATION, "3", Empty, EvaluationNumbers)
REPEATED = StageRecords(stage_names.REPEATED, "1", RepeatedProvenance, RepeatedNumbers)
SIGNATURES = StageRecords(stage_names.SIGNATURES, "5", SignaturesProvenance, SignaturesNumbers)
SUBSTRINGS = StageRecords(stage_names.SUBSTRINGS, "1", SubstringsProvenance, SubstringsNumbers)
