"""annotated: what each annotator says of the documents that `deduped` keeps.

A part per deduped part and annotator, so that an annotator that is added computes its own, and
later stages depend on those that they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from assets.annotated.annotated_records import (
    ANNOTATED,
    ANNOTATIONS,
    ANNOTATORS,
    ANSWERS,
    AnnotatedManifest,
    AnnotatedNumbers,
    AnnotatedProvenance,
    part_name,
)
from assets.annotated.answer_files import reading_of
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from assets.deduped.minhash.meta_fields import column_of, field_values
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.settings.annotations import Annotator
from resources.settings.conditions import schema_of
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Plan, Task, tasks_of

ANNOTATION_COLUMNS = {"doc_id": "the document", "*": "a number or label of the annotator"}


@dataclass(frozen=True)
class AnnotationInputs:
    """An annotator, the files of its answers by key, and the documents of one part."""

    annotator: Annotator
    answers: tuple[PublishedFile, ...]
    part: str
    documents: KeptDocuments


def plan_annotated(corpus: Corpus, source: str) -> Plan:
    """Plan one task per annotator of the source and deduped part."""
    settings, store = corpus.settings, corpus.store
    deduped, answers = store.newest(DEDUPED, source), store.newest(ANNOTATORS, GLOBAL)
    check_made_under(answers, config=reading_of(settings), section="annotations")
    maker, tasks = tasks_of(corpus, ANNOTATED, source), list[Task[AnnotationInputs]]()
    annotators = [each for each in settings.annotations if each.annotates(source)]
    for annotator in annotators:
        parts = [part for part in answers.parts if part.stats.numbers.annotator == annotator.name]
        records = [required_file(answers, part, ANSWERS) for part in parts]
        files = tuple(store.file_of(answers, record) for record in records)
        said = [annotator.joining(), [record.sha256 for record in records]]
        for part in deduped.parts:
            documents = kept_documents(store, deduped, part)
            inputs = AnnotationInputs(annotator, files, part.name, documents)
            name, work_bytes = part_name(annotator.name, part.name), documents.bytes // 10
            tasks.append(maker.task(name, [*said, part.fingerprint], inputs, work_bytes=work_bytes))
    config = {annotator.name: annotator.joining() for annotator in annotators}
    return Plan(tasks, config, AnnotatedProvenance(deduped.fingerprint, answers.fingerprint))


def annotate_part(task: Task[AnnotationInputs]) -> list[PartRecord]:
    """Publish what one annotator says of the documents of a part."""
    inputs, writer = task.payload, task.writer()
    name, by = inputs.annotator.name, inputs.annotator.by
    documents = read_kept(inputs.documents, [*dict.fromkeys(["doc_id", column_of(by)])])
    keyed = documents.select("doc_id", key=field_values(documents, by))
    found = answers_to(keyed["key"], inputs)
    table = keyed.join(found, on="key", how="left", maintain_order="left")
    matched = int(table["is_known"].count())
    writer.write_parquet(ANNOTATIONS, table.drop("key", "is_known"))
    numbers = AnnotatedNumbers(name, inputs.part, {name: table.height}, {name: matched})
    return [writer.publish(Stats(table.height, table.height, numbers=numbers))]


def answers_to(keys: pl.Series, inputs: AnnotationInputs) -> pl.DataFrame:
    """Return the answers to some keys, each once: that of the first file which has it."""
    schema = {"key": pl.String, **schema_of(inputs.annotator.columns)}
    is_asked = pl.col("key").is_in(keys.drop_nulls().unique().implode())
    tables = (pl.scan_parquet(file.checked()).filter(is_asked) for file in inputs.answers)
    found = pl.concat([pl.DataFrame(schema=schema), *(table.collect() for table in tables)])
    unique = found.unique("key", keep="first", maintain_order=True)
    return unique.with_columns(is_known=pl.lit(True))


def refuse_unmatched(corpus: Corpus, manifest: AnnotatedManifest, _: Plan) -> None:
    """Raise StoreError for a source of which an annotator says too little."""
    numbers = manifest.stats.numbers
    for annotator in corpus.settings.annotations:
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
    """Report the share of the documents that each annotator has a record for."""
    numbers: Any = manifest.stats.numbers if manifest.parts else AnnotatedNumbers()
    shares = {
        name: numbers.matched[name] / max(1, documents)
        for name, documents in numbers.documents.items()
    }
    return {"documents": None, "matched": shares}


STAGE = Stage(
    *ANNOTATED.fields(),
    description="What each annotator says of the documents, as columns.",
    group="annotate",
    partitions="source",
    after=(stage_names.DEDUPED, stage_names.ANNOTATORS),
    outlook=Outlook("new", cpu_per_mb=0.0004),
    kinds=frozenset({"parquet", "polars"}),
    settings=lambda settings: [(each.joining(), each.sources) for each in settings.annotations],
    plan=plan_annotated,
    work=annotate_part,
    is_used=lambda settings: bool(settings.annotations),
    main_table=MainTable(ANNOTATIONS, ANNOTATION_COLUMNS),
    describe=describe_annotated,
    before_commit=refuse_unmatched,
)
