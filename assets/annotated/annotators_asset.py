"""annotators: the answers of every annotator, as they are joined to documents.

A part per file of answers: a new file is read, and the others are not read again.
"""

from __future__ import annotations

from dataclasses import dataclass

import xxhash

from assets.annotated.annotated_records import ANNOTATORS, ANSWERS, AnnotatorsNumbers
from assets.annotated.answer_files import find_answer_files, read_answers
from assets.annotated.said_files import reading_of
from assets.raw.readers.formats import foreign_code
from assets.raw.readers.input_file import InputFile
from resources.corpus import Corpus
from resources.settings.annotations import FileAnnotator
from resources.stage import MainTable, Outlook, Stage
from resources.store.records import Empty, PartRecord, Stats
from resources.tasks import Plan, Task, tasks_of

ANSWER_COLUMNS = {
    "key": "what the annotator names a document by",
    "*": "a number or label of the annotator",
}


@dataclass(frozen=True)
class AnswerInputs:
    """A file of answers, and whose they are."""

    annotator: FileAnnotator
    file: InputFile


def plan_annotators(corpus: Corpus, partition: str) -> Plan:
    """Plan one task per file of answers."""
    maker, tasks = tasks_of(corpus, ANNOTATORS, partition), list[Task[AnswerInputs]]()
    for annotator in corpus.settings.file_annotators:
        for file in find_answer_files(annotator, corpus.config.parent, corpus.downloads):
            name = f"{annotator.name}-{xxhash.xxh3_64_hexdigest(file.name.encode())}"
            made_of = (annotator.reading(), file.name, file.digest, *foreign_code(file))
            inputs = AnswerInputs(annotator, file)
            tasks.append(maker.task(name, made_of, inputs, work_bytes=file.bytes))
    return Plan(tasks, reading_of(corpus.settings), Empty())


def publish_answers(task: Task[AnswerInputs]) -> list[PartRecord]:
    """Read one file; publish its answers by key, the first of each, and its unreadable records."""
    annotator, file = task.payload.annotator, task.payload.file
    table, quarantine = read_answers(file, annotator)
    answers = table.unique("key", keep="first", maintain_order=True).sort("key")
    writer = task.writer()
    writer.write_parquet(ANSWERS, answers)
    if quarantine.height:
        writer.write_parquet("quarantine", quarantine)
    stats = Stats(
        rows_in=table.height + quarantine.height,
        rows_kept=answers.height,
        duplicates=table.height - answers.height,
        quarantined=quarantine.height,
        numbers=AnnotatorsNumbers(annotator.name, file.name),
    )
    return [writer.publish(stats)]


STAGE = Stage(
    *ANNOTATORS.fields(),
    description="Scores and labels of documents that were made elsewhere, by annotator.",
    group="annotate",
    partitions="none",
    after=(),
    outlook=Outlook("new"),
    kinds=frozenset({"parquet"}),
    settings=reading_of,
    plan=plan_annotators,
    work=publish_answers,
    is_used=lambda settings: bool(settings.file_annotators),
    main_table=MainTable(ANSWERS, ANSWER_COLUMNS),
)
