"""annotated: what each annotator says of the documents that `deduped` keeps.

A part per deduped part and annotator, so that an annotator that is added computes its own, and
later stages depend on those that they read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assets.annotated.annotated_records import (
    ANNOTATED,
    ANNOTATION_MODELS,
    ANNOTATIONS,
    LEXICAL,
    MODEL,
    AnnotatedManifest,
    AnnotatedNumbers,
    AnnotatedProvenance,
    part_name,
    topic_key,
)
from assets.annotated.model_files import (
    apply_classifier,
    apply_plug_in,
    apply_topics,
    config_of_models,
)
from assets.annotated.said_files import (
    Made,
    Said,
    answers_of,
    files_of,
    join_answers,
    newest_answers,
    newest_under,
)
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.settings.annotations import (
    Annotator,
    AskAnnotator,
    ClassifyAnnotator,
    FileAnnotator,
    PlugInAnnotator,
    TopicsAnnotator,
)
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats
from resources.store.store import Store, StoreError
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
    deduped = store.newest(DEDUPED, source)
    made = corpus.once("answers and models", lambda: newest_made(corpus))  # of all sources
    maker, tasks = tasks_of(corpus, ANNOTATED, source), list[Task[AnnotationInputs]]()
    annotators = [each for each in settings.annotations if each.annotates(source)]
    for annotator in annotators:
        files_about = said_by(store, annotator, made, source)
        for part in deduped.parts:
            found = files_about(part.name)
            files, said = tuple(f for f, _ in found), [annotator.saying(), [d for _, d in found]]
            documents = kept_documents(store, deduped, part)
            inputs = AnnotationInputs(annotator, files, part.name, documents)
            name, work_bytes = part_name(annotator.name, part.name), documents.bytes // 10
            tasks.append(maker.task(name, [*said, part.fingerprint], inputs, work_bytes=work_bytes))
    config = {annotator.name: annotator.saying() for annotator in annotators}
    fingerprints = {name: each.fingerprint for name, each in made.items()}
    return Plan(tasks, config, AnnotatedProvenance(deduped.fingerprint, **fingerprints))


def newest_made(corpus: Corpus) -> dict[str, Manifest[Any, Any]]:
    """Return the answers and the models that annotators have, by stage.

    Raises StoreError if they were made under another config.
    """
    made, config = newest_answers(corpus), config_of_models(corpus)
    models = newest_under(corpus, ANNOTATION_MODELS, config) if config else None
    return made | ({ANNOTATION_MODELS.name: models} if models else {})


def said_by(store: Store, annotator: Annotator, made: Made, source: str) -> Callable[[str], Said]:
    """Return a function that gives the files of an annotator's answers or models for a part."""
    if isinstance(annotator, FileAnnotator | AskAnnotator):
        return answers_of(store, annotator, made, source)
    if isinstance(annotator, PlugInAnnotator):
        return lambda _: []
    models = made[ANNOTATION_MODELS.name]
    vectors = [LEXICAL] if isinstance(annotator, TopicsAnnotator) else []
    wanted = (*vectors, annotator.name)
    parts = [part for name in wanted for part in models.parts if part.name == name]
    if len(parts) < len(wanted):
        raise StoreError(
            f"{ANNOTATION_MODELS.name}[{GLOBAL}] lacks a model of the annotator "
            f"{annotator.name!r}. Materialize {ANNOTATION_MODELS.name} first."
        )
    files = files_of(store, models, parts, MODEL)
    return lambda _: files


def annotate_part(task: Task[AnnotationInputs]) -> list[PartRecord]:
    """Publish what one annotator says of the documents of a part."""
    inputs, writer, name = task.payload, task.writer(), task.payload.annotator.name
    if isinstance(inputs.annotator, TopicsAnnotator):
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
    else:
        if isinstance(inputs.annotator, ClassifyAnnotator):
            documents = read_kept(inputs.documents, ["doc_id", "text"])
            table, matched = apply_classifier(documents, inputs.said)
        elif isinstance(inputs.annotator, PlugInAnnotator):
            documents = read_kept(inputs.documents, ["doc_id", "text", "lang"])
            table, matched = apply_plug_in(documents, inputs.annotator)
        else:
            table, matched = join_answers(inputs.documents, inputs.annotator, inputs.said)
        numbers = AnnotatedNumbers(name, inputs.part, {name: table.height}, {name: matched})
    writer.write_parquet(ANNOTATIONS, table)
    return [writer.publish(Stats(table.height, table.height, numbers=numbers))]


def refuse_unmatched(corpus: Corpus, manifest: AnnotatedManifest, _: Plan) -> None:
    """Raise StoreError for a source of which an annotator says too little."""
    numbers = manifest.stats.numbers
    for annotator in corpus.settings.file_annotators:
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
        *(stage_names.DEDUPED, stage_names.ANNOTATORS),
        *(stage_names.ANNOTATION_MODELS, stage_names.ASKED),
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
