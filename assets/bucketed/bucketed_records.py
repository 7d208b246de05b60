"""Records of the stages `held_out`, `leakage` and `bucketed`, for the store."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from assets.deduped.index.ledger import PartKey
from assets.tokenized.tokenized_records import TokenizedProvenance
from corpus_loader.places import stage_names
from resources.settings.buckets import BucketLayout
from resources.store.records import Manifest, StageRecords

TOO_LONG = "long_conversation"  # why `bucketed` leaves a conversation out
TOKENS = "tokens"  # kinds of file "tokens-0", ...: those of the window's parts, under a second name
SEQUENCE_IDS = "sequence_ids"  # kind of file: identities uint64 [rows, 2], tokens uint32 [rows]
LIKE_HELD_OUT = "like_held_out"  # why a document that shares much with a held-out one is left out
MARKS = "marks"  # the part of `held_out` with the marks of all parts
SHARES = "shares"  # the part of `leakage` with its result, and its kind of file


class HeldOutNumbers(msgspec.Struct, frozen=True):
    """Numbers of the decisions on a signed part; the part `MARKS` has the last two.

    made_of   digest of the documents, clusters and shares that it is of
    held_ids  digest of the documents that are held out, empty without any
    files     its files, as in the ledger: documents keep their file where parts are cut again
    held      documents that are held out
    mixed     clusters with both held-out and trained documents
    trained   the trained documents in them
    """

    source: str = ""
    part: str = ""
    made_of: str = ""
    held_ids: str = ""
    files: list[str] = []
    held: int = 0
    mixed: int = 0
    trained: int = 0

    @property
    def key(self) -> PartKey:
        """Source and name of the signed part."""
        return self.source, self.part


class HeldOutProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the clusters."""

    duplicates: str


HeldOutManifest = Manifest[HeldOutProvenance, HeldOutNumbers]


class LeakageNumbers(msgspec.Struct, frozen=True):
    """Numbers of a part of documents; the part `SHARES` has the last two, by source.

    documents   documents that are not held out
    left_out    those of them that are much like a held-out one
    worst       largest share, in a million, of a document's n-grams that a held-out one has, among
                the documents that are not left out
    """

    documents: dict[str, int] = {}
    left_out: dict[str, int] = {}
    worst: dict[str, int] = {}


class LeakageProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the decisions, and of the deduped documents by source."""

    held_out: str
    deduped: dict[str, str]


LeakageManifest = Manifest[LeakageProvenance, LeakageNumbers]


class BucketedNumbers(msgspec.Struct, frozen=True):
    """Numbers of the stage `bucketed`, all of which add up over windows.

    bucket_sequences        sequences by bucket name
    bucket_tokens           tokens by bucket name, without padding
    bucket_padding          padding tokens by bucket name
    padding_tokens          padding of all buckets
    least_padding           padding that no packing could avoid, 0 if buckets differ in length
    documents_cut           documents in more than one segment
    fitting_documents_cut   documents cut although they fit a sequence
    documents_reaching      documents that fill a sequence
    documents_truncated     documents of which tokens are dropped
    tokens_truncated        tokens dropped
    tokens_overlapped       tokens repeated by overlaps and extended segments
    document_spans          segments in all sequences
    document_lengths        histogram of tokens of a document, by number of the bin
    sequence_documents      histogram of segments in a sequence, by number of the bin
    documents_held_out      documents that are held out of training; left out without `holdout`
    long_conversations      conversations longer than a sequence: those left out, and those cut
                            between turns; left out if there are none
    class_tokens            tokens by class before the smallest have none, where they are counted
    counted                 of one window, the fingerprint of what these are the tokens of
    """

    bucket_sequences: dict[str, int] = {}
    bucket_tokens: dict[str, int] = {}
    bucket_padding: dict[str, int] = {}
    padding_tokens: int = 0
    least_padding: int = 0
    documents_cut: int = 0
    fitting_documents_cut: int = 0
    documents_reaching: int = 0
    documents_truncated: int = 0
    tokens_truncated: int = 0
    tokens_overlapped: int = 0
    document_spans: int = 0
    document_lengths: dict[str, int] = {}
    sequence_documents: dict[str, int] = {}
    documents_held_out: int | UnsetType = UNSET
    long_conversations: dict[str, int] | UnsetType = UNSET
    class_tokens: dict[str, int] | UnsetType = UNSET
    counted: str | UnsetType = UNSET


class ClassFacts(msgspec.Struct, frozen=True):
    """Score, limits and label of the classes that documents were packed in: `DocumentClasses`."""

    score: str
    limits: tuple[float, ...]
    label: str | UnsetType = UNSET


class BucketedProvenance(TokenizedProvenance, frozen=True, kw_only=True):
    """Inputs of the stage `bucketed`: those of `tokenized`, its fingerprint, and the classes."""

    tokenized: str
    classes: ClassFacts | UnsetType = UNSET


BucketedManifest = Manifest[BucketedProvenance, BucketedNumbers]


def layout_of(manifest: BucketedManifest) -> BucketLayout:
    """Return the config and the groups that sequences were made with."""
    return BucketLayout.of(manifest.config)


BUCKETED = StageRecords(stage_names.BUCKETED, "6", BucketedProvenance, BucketedNumbers)
HELD_OUT = StageRecords(stage_names.HELD_OUT, "1", HeldOutProvenance, HeldOutNumbers)
LEAKAGE = StageRecords(stage_names.LEAKAGE, "1", LeakageProvenance, LeakageNumbers)
