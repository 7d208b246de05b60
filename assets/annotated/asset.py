"""annotated: what each annotator says of the documents that `deduped` keeps.

A part per deduped part and annotator, so that an annotator that is added computes its own, and
later stages depend on those that they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from assets.annotated.annotated_records import (
    ANNOTATED,
    ANNOTATION_MODELS,
    ANNOTATIONS,
    ANNOTATORS,
    ANSWERS,
    ASKED,
    AnnotatedManifest,
    AnnotatedNumbers,
    AnnotatedProvenance,
    part_name,
    topic_key,
)
from assets.annotated.answer_files import answers_to, file_annotators, reading_of
from assets.annotated.asked_files import required_asked
from assets.annotated.model_files import apply_topics, required_models
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept, read_kept_ids
from assets.deduped.minhash.meta_fields import column_of, field_values
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.settings.annotations import (
    Annotator,
    AskAnnotator,
    FileAnnotator,
    TopicsAnnotator,
)
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Plan, Task, tasks_of

ANNOTATION_COLUMNS = {"doc_id": "the document", "*": "a number or label of the annotator"}


@dataclass(frozen=True)
class AnnotationInputs:
    """An annotator, the files of its answers or models, and the documents of one part."""

    annotator: Annotator
    said: tuple[PublishedFile, ...]
    part: str
    documents: KeptDocuments


def plan_annotated(corpus: Corpus, source: str) -> Plan:
    """Plan one task per annotator of the source and deduped part."""
    settings, store = corpus.settings, corpus.store
    deduped, fingerprints = store.newest(DEDUPED, source), dict[str, str]()
    if file_annotators(settings):
        fingerprints[ANNOTATORS.name] = store.newest(ANNOTATORS, GLOBAL).fingerprint
    if settings.asking:
        fingerprints[ASKED.name] = store.newest(ASKED, GLOBAL).fingerprint
    if settings.topics:
        fingerprints[ANNOTATION_MODELS.name] = store.newest(ANNOTATION_MODELS, GLOBAL).fingerprint
    maker, tasks = tasks_of(corpus, ANNOTATED, source), list[Task[AnnotationInputs]]()
    annotators = [each for each in settings.annotations if each.annotates(source)]
    for annotator in annotators:
        files, digests = required_of_all(corpus, annotator)
        for part in deduped.parts:
            documents = kept_documents(store, deduped, part)
            if isinstance(annotator, AskAnnotator):
                files, digests = required_asked(corpus, annotator, source, part.name)
            said = [annotator.saying(), digests]
            inputs = AnnotationInputs(annotator, files, part.name, documents)
            name, work_bytes = part_name(annotator.name, part.name), documents.bytes // 10
            tasks.append(maker.task(name, [*said, part.fingerprint], inputs, work_bytes=work_bytes))
    config = {annotator.name: annotator.saying() for annotator in annotators}
    return Plan(tasks, config, AnnotatedProvenance(deduped.fingerprint, **fingerprints))


def required_of_all(
    corpus: Corpus, annotator: Annotator
) -> tuple[tuple[PublishedFile, ...], list[str]]:
    """Return the files that an annotator needs for every document, and their digests."""
    if isinstance(annotator, FileAnnotator):
        return required_answers(corpus, annotator)
    if isinstance(annotator, TopicsAnnotator):
        return required_models(corpus, annotator)
    return (), []


def required_answers(
    corpus: Corpus, annotator: FileAnnotator
) -> tuple[tuple[PublishedFile, ...], list[str]]:
    """Return the files of an annotator's answers, and their digests.

    Raises StoreError if they were read under another config.
    """
    answers = corpus.store.newest(ANNOTATORS, GLOBAL)
    check_made_under(answers, config=reading_of(corpus.settings), section="annotations")
    parts = [part for part in answers.parts if part.stats.numbers.annotator == annotator.name]
    records = [required_file(answers, part, ANSWERS) for part in parts]
    files = tuple(corpus.store.file_of(answers, record) for record in records)
    return files, [record.sha256 for record in records]


def annotate_part(task: Task[AnnotationInputs]) -> list[PartRecord]:
    """Publish what one annotator says of the documents of a part."""
    inputs, writer, name = task.payload, task.writer(), task.payload.annotator.name
    if isinstance(inputs.annotator, FileAnnotator):
        table, matched = join_answers(inputs.documents, inputs.annotator, inputs.said)
        numbers = AnnotatedNumbers(name, inputs.part, {name: table.height}, {name: matched})
    elif isinstance(inputs.annotator, AskAnnotator):
        [answers], columns = inputs.said, ["doc_id", *inputs.annotator.columns]
        found = pl.read_parquet(answers.checked(), columns=columns)
        ids = read_kept_ids(inputs.documents).to_frame()
        table = ids.join(found, on="doc_id", how="left", maintain_order="left")
        matched = int(table[columns[1]].count())
        numbers = AnnotatedNumbers(name, inputs.part, {name: table.height}, {name: matched})
    else:
        documents = read_kept(inputs.documents, ["doc_id", "text", "lang"])
        table, far = apply_topics(documents, inputs.said)
        counts = table["topic"].drop_nulls().value_counts().sort("topic").iter_rows()
        numbers = AnnotatedNumbers(
            annotator=name,
            part=inputs.part,
            documents={name: table.height},
            matched={name: int(table["topic"].count())},
            far={name: far},
            topics={topic_key(name, topic): count for topic, count in counts},
        )
    writer.write_parquet(ANNOTATIONS, table)
    return [writer.publish(Stats(table.height, table.height, numbers=numbers))]


def join_answers(
    documents: KeptDocuments, annotator: FileAnnotator, answers: Sequence[PublishedFile]
) -> tuple[pl.DataFrame, int]:
    """Return doc_id and what the answers say of each document, and how many they know."""
    by = annotator.by
    table = read_kept(documents, [*{"doc_id": 0, column_of(by): 0}])
    keyed = table.select("doc_id", key=field_values(table, by))
    found = answers_to(keyed["key"], annotator, answers)
    joined = keyed.join(found, on="key", how="left", maintain_order="left")
    return joined.drop("key", "is_known"), int(joined["is_known"].count())


def refuse_unmatched(corpus: Corpus, manifest: AnnotatedManifest, _: Plan) -> None:
    """Raise StoreError for a source of which an annotator says too little."""
    numbers = manifest.stats.numbers
    for annotator in file_annotators(corpus.settings):
        documents = numbers.documents.get(annotator.name, 0)
        matched = numbers.matched.get(annotator.name, 0)
        if matched < annotator.min_matched * documents:
            raise StoreError(
                f"source {manifest.partition!r}: the files of the annotator {annotator.name!r} "
                f"have a record for {matched:,} of {documents:,} documents, less than min_matched "
                f"({annotator.min_matched:g}). Add what is missing to the files, compare `by` and "
                "`key` with them, name other `sources`, or lower `min_matched`."
            )


def describe_annotated(_: Corpus, manifest: AnnotatedManifest) -> Metadata:
    """Report the share of the documents that each annotator says something of, or finds far."""
    numbers: Any = manifest.stats.numbers if manifest.parts else AnnotatedNumbers()
    shares = {
        name: numbers.matched[name] / max(1, documents)
        for name, documents in numbers.documents.items()
    }
    far = {name: count / max(1, numbers.documents[name]) for name, count in numbers.far.items()}
    return {"documents": None, "matched": shares} | ({"far_from_topics": far} if far else {})


STAGE = Stage(
    *ANNOTATED.fields(),
    description="What each annotator says of the documents, as columns.",
    group="annotate",
    partitions="source",
    after=(
        stage_names.DEDUPED,
        stage_names.ANNOTATORS,
        stage_names.ANNOTATION_MODELS,
        stage_names.ASKED,
    ),
    outlook=Outlook("new", cpu_per_mb=0.0004),
    kinds=frozenset({"parquet", "polars"}),
    settings=lambda settings: [(each.saying(), each.sources) for each in settings.annotations],
    plan=plan_annotated,
    work=annotate_part,
    is_used=lambda settings: bool(settings.annotations),
    main_table=MainTable(ANNOTATIONS, ANNOTATION_COLUMNS),
    describe=describe_annotated,
    before_commit=refuse_unmatched,
)
