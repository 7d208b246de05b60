"""Records of the stages `annotators` and `annotated`, for the store."""

from __future__ import annotations

import msgspec

from corpus_loader.places import stage_names
from resources.store.records import Empty, Manifest, StageRecords

ANSWERS = "answers"  # kind of file of `annotators`: key String, and the columns of the annotator
ANNOTATIONS = "annotations"  # kind of file of `annotated`: doc_id String, and these columns
MODEL = "model"  # kind of file of `annotation_models`
REPORT = "report"  # another, of what a classifier says of the examples that are held out
LEXICAL = "lexical-vectors"  # its part with the vectors of words; annotators have no - in names
DROPPED = "annotation."  # before the name of an annotator: why `bucketed` leaves a document out


class AnnotatorsNumbers(msgspec.Struct, frozen=True):
    """Numbers of the part of a file of answers; of several parts only the totals.

    annotator  name of the annotator
    file       name of the file
    """

    annotator: str = ""
    file: str = ""


class ModelNumbers(msgspec.Struct, frozen=True):
    """Numbers of a model; of several parts none.

    annotator   name of the annotator, or `lexical-vectors`, those of words
    config      digest of its config
    trained_on  fingerprints of the deduped parts that were there, and digests of files of answers
    """

    annotator: str = ""
    config: str = ""
    trained_on: list[str] = []


class AskedNumbers(msgspec.Struct, frozen=True):
    """Numbers of the answers about a deduped part; of several parts all but the first three.

    annotator   name of the annotator
    question    digest of the question
    base        digest of the question, the share and the documents
    run         how many runs have asked on about the same documents
    left        texts that are to be asked about in later runs
    requests    answers that this run got, by annotator
    tokens      their tokens, as the server counts them
    answered    documents that it was asked about, by the model that the server names
    failed      documents without an answer, by reason
    """

    annotator: str = ""
    question: str = ""
    base: str = ""
    run: int = 0
    left: int = 0
    requests: dict[str, int] = {}
    tokens: dict[str, int] = {}
    answered: dict[str, int] = {}
    failed: dict[str, int] = {}


class AnnotatedNumbers(msgspec.Struct, frozen=True):
    """Numbers of what an annotator says of a deduped part; of several parts only the last four.

    annotator  name of the annotator
    part       name of the deduped part
    documents  its documents, by annotator
    matched    those that the annotator says something of, by annotator
    far        those beyond all topics, by annotator: farther than 99 % of the first sample
    topics     those of each topic, by `topic_key`
    """

    annotator: str = ""
    part: str = ""
    documents: dict[str, int] = {}
    matched: dict[str, int] = {}
    far: dict[str, int] = {}
    topics: dict[str, int] = {}


class AnnotatedProvenance(msgspec.Struct, frozen=True):
    """Fingerprints of the documents and of the answers."""

    deduped: str
    annotators: str = ""
    annotation_models: str = ""
    asked: str = ""


def topic_key(annotator: str, topic: str) -> str:
    """Return the key of a topic among those of all annotators; their names have no colon."""
    return f"{annotator}: {topic}"


def part_name(annotator: str, part: str) -> str:
    """Return the name of the part of `annotated` with what an annotator says of a deduped part."""
    return f"{annotator}-{part}"


AnnotatorsManifest = Manifest[Empty, AnnotatorsNumbers]
AnnotatedManifest = Manifest[AnnotatedProvenance, AnnotatedNumbers]

ANNOTATION_MODELS = StageRecords(stage_names.ANNOTATION_MODELS, "2", Empty, ModelNumbers)
ASKED = StageRecords(stage_names.ASKED, "1", Empty, AskedNumbers)
ANNOTATORS = StageRecords(stage_names.ANNOTATORS, "1", Empty, AnnotatorsNumbers)
ANNOTATED = StageRecords(stage_names.ANNOTATED, "1", AnnotatedProvenance, AnnotatedNumbers)
