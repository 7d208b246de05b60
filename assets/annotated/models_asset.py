"""annotation_models: what annotators learn from the corpus: vectors of words, topics, classifiers.

Each is trained once, on the documents and answers that are there then, and kept until its config
changes or a run asks for the next one: what is said of published documents stays. Vectors are
shared by all annotators; topics are trained on them in a second pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from assets.annotated.annotated_records import (
    ANNOTATION_MODELS,
    LEXICAL,
    MODEL,
    REPORT,
    ModelNumbers,
)
from assets.annotated.held_out_report import HeldOutReport, report_markdown, report_on
from assets.annotated.model_files import config_of_models, load_lexical, read_reports
from assets.annotated.said_files import Made, answers_of, join_answers, newest_answers
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept, read_some
from assets.filtered.classifier.classifier import is_held_out, score_quality, train_classifier
from assets.text.document_ids import is_sampled
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.errors import InputError
from resources.passes import Earlier, Pass, file_of, in_passes
from resources.settings.annotations import ClassifyAnnotator, Teacher, TopicsAnnotator
from resources.settings.conditions import check_rows, is_met
from resources.source_states import usable_states
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import (
    Empty,
    Manifest,
    PartRecord,
    Stats,
    as_json_object,
    fingerprint_of,
    to_json,
)
from resources.tasks import GLOBAL, Plan, Task, TaskMaker, tasks_of

RENEW = "renew"
SAMPLE_BYTES = 16 << 20  # of text, divided among the sources
EXAMPLE_BYTES = 64 << 20  # of text of examples that a classifier learns from
FEWEST_EXAMPLES = 10  # of each side


@dataclass(frozen=True)
class SampledPart:
    """Documents of a part of a source, the share that is read (0 to 1), and answers about them.

    `made_of` has the fingerprint of the part, and the digests of the files of answers.
    """

    documents: KeptDocuments
    source: str
    share: float
    answers: tuple[PublishedFile, ...]
    made_of: tuple[str, ...]


@dataclass(frozen=True)
class ModelInputs:
    """What is trained, by its annotator, None for vectors; on which documents, and its numbers.

    `teacher` is the annotator whose answers a classifier learns from.
    """

    annotator: TopicsAnnotator | ClassifyAnnotator | None
    sample: tuple[SampledPart, ...]
    numbers: ModelNumbers
    teacher: Teacher | None = None
    lexical: PublishedFile | None = None


def plan_models(corpus: Corpus, partition: str) -> Plan:
    """Plan the vectors, where topics need them, and a task per annotator that learns."""
    settings, configs = corpus.settings, config_of_models(corpus)
    names = settings.source_names()
    states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
    before = {} if RENEW in corpus.flags else models_before(corpus)
    made = newest_answers(corpus) if settings.classifying else {}
    make, tasks = tasks_of(corpus, ANNOTATION_MODELS, partition), list[Task[ModelInputs]]()
    on_vectors = (None, *settings.topics) if settings.topics else ()
    for annotator in (*on_vectors, *settings.classifying):
        teacher = None
        if isinstance(annotator, ClassifyAnnotator):
            teacher = settings.teachers[annotator.by]
        readers = [each for each in (annotator, teacher) if each is not None]
        own = {n: s for n, s in states.items() if all(each.annotates(n) for each in readers)}
        parts = [*sampled_parts(corpus, own, teacher, made)]
        name = annotator.name if annotator else LEXICAL
        config = fingerprint_of(annotator and configs[annotator.name])
        trained_on = [*dict.fromkeys(each for part in parts for each in part.made_of)]
        new, kept = ModelNumbers(name, config, trained_on), before.get(name)
        vectors = [task.fingerprint for task in tasks[:1] if teacher is None]
        task = model_task(make, ModelInputs(annotator, tuple(parts), new, teacher), vectors)
        if kept is not None and kept.config == config:
            wanted = {*kept.trained_on}
            there = tuple(part for part in parts if wanted.issuperset(part.made_of))
            again = model_task(make, ModelInputs(annotator, there, kept, teacher), vectors)
            # Of another compression or version of the code: made again if it can be the same.
            if {each for part in there for each in part.made_of} == wanted or again.published():
                task = again
        tasks.append(task)
    return Plan(tasks, configs, Empty(), left_out)


def model_task(make: TaskMaker, inputs: ModelInputs, vectors: list[str]) -> Task[ModelInputs]:
    """Return the task of a model, which depends on the vectors' fingerprint unless it is theirs."""
    numbers = inputs.numbers
    made_of = [numbers.config, numbers.trained_on, *vectors]
    return make.task(numbers.annotator, made_of, inputs, work_bytes=SAMPLE_BYTES)


def models_before(corpus: Corpus) -> dict[str, ModelNumbers]:
    """Return what is known of the models that are published, by name."""
    published = corpus.store.newest_or_none(ANNOTATION_MODELS, GLOBAL)
    return {part.name: part.stats.numbers for part in published.parts} if published else {}


def sampled_parts(
    corpus: Corpus, states: Mapping[str, Manifest[Any, Any]], teacher: Teacher | None, made: Made
) -> Iterator[SampledPart]:
    """Yield the parts that a model is trained on today, with the answers of its teacher."""
    for source, state in states.items():
        share = min(1.0, SAMPLE_BYTES / len(states) / max(1, state.stats.bytes))
        answers_about = answers_of(corpus.store, teacher, made, source) if teacher else None
        for part in state.parts:
            answers = answers_about(part.name) if answers_about else []
            yield SampledPart(
                documents=kept_documents(corpus.store, state, part),
                source=source,
                share=share,
                answers=tuple(file for file, _ in answers),
                made_of=(part.fingerprint, *(digest for _, digest in answers)),
            )


def train_first(task: Task[ModelInputs]) -> list[PartRecord]:
    """First pass: learn the vectors of words, or a classifier."""
    return train_vectors(task) if task.payload.annotator is None else train_on_answers(task)


def train_vectors(task: Task[ModelInputs]) -> list[PartRecord]:
    """Learn the vectors of words from a sample."""
    from assets.annotated.vectors.lexical import train_lexical

    sample = read_sample(task.payload)
    try:
        model = train_lexical(sample["text"])
    except ValueError as error:
        raise InputError(f"annotations: {error}") from None
    return publish_model(task, model.to_table(), sample.height)


def train_on_answers(task: Task[ModelInputs]) -> list[PartRecord]:
    """Learn a classifier from another annotator's answers, and measure it on those held out."""
    annotator = task.payload.annotator
    assert isinstance(annotator, ClassifyAnnotator), "others learn from documents alone"
    place = f"annotations: annotator {annotator.name!r}"
    examples = read_examples(task.payload, annotator)
    good = int(examples["is_good"].sum())
    bad = examples.height - good
    if min(good, bad) < FEWEST_EXAMPLES:
        raise InputError(
            f"{place}: {annotator.by!r} gives {good:,} good and {bad:,} bad examples by "
            f"{annotator.good!r}; at least {FEWEST_EXAMPLES} of each are needed. Label more "
            "documents, change `good`, or correct how files of labels name documents."
        )
    texts, config = examples["text"], annotator.training
    try:
        model = train_classifier(texts, examples["is_good"].to_numpy(), config)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None
    held = examples.filter(pl.Series(is_held_out(texts, config)))
    report = report_on(held.with_columns(score=score_quality(held["text"], model)))
    return publish_model(task, model.to_table(), examples.height, report)


def read_examples(inputs: ModelInputs, annotator: ClassifyAnnotator) -> pl.DataFrame:
    """Read doc_id, text (as much as is learned from), lang, is_good and source of examples.

    Documents without an answer are none. Of more than EXAMPLE_BYTES of text, those with the lowest
    hashes of ids are taken: half of them, a quarter, and so on.
    """
    teacher, share = inputs.teacher, 1.0
    assert teacher is not None, "the settings refuse a classifier without one"
    try:
        check_rows(annotator.good, teacher.columns)
    except ValueError as error:
        raise InputError(f"annotations: annotator {annotator.name!r}: good: {error}") from None
    texts = dict.fromkeys(("doc_id", "text", "lang"), pl.String())
    found = pl.DataFrame(schema={**texts, "is_good": pl.Boolean(), "source": pl.String()})
    for part in inputs.sample:
        answers, _ = join_answers(part.documents, teacher, part.answers)
        known = answers.filter(pl.any_horizontal(pl.col(*teacher.columns).is_not_null()))
        labels = known.select("doc_id", is_good=is_met(known, annotator.good))
        labels = labels.filter(is_sampled(labels["doc_id"], share, "examples"))
        documents = read_some(part.documents, labels["doc_id"], [*texts]).with_columns(
            pl.col("text").str.head(annotator.training.max_document_bytes)
        )
        examples = documents.join(labels, on="doc_id", how="left", maintain_order="left")
        found = pl.concat([found, examples.with_columns(source=pl.lit(part.source))])
        while count_bytes(found["text"]) > EXAMPLE_BYTES:
            share /= 2
            found = found.filter(is_sampled(found["doc_id"], share, "examples"))
    return found


def plan_first(_: Corpus, tasks: list[Task[Any]], __: Earlier) -> list[Task[ModelInputs]]:
    """Plan the first pass: what needs no vectors."""
    return [task for task in tasks if not isinstance(task.payload.annotator, TopicsAnnotator)]


def plan_on_vectors(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[ModelInputs]]:
    """Plan the second pass: what is trained on the vectors of the first."""
    topics = [task for task in tasks if isinstance(task.payload.annotator, TopicsAnnotator)]
    lexical = file_of(earlier[0][0], MODEL) if topics else None
    return [replace(task, payload=replace(task.payload, lexical=lexical)) for task in topics]


def train_on_vectors(task: Task[ModelInputs]) -> list[PartRecord]:
    """Second pass: find the topics of one annotator; named by their number and words."""
    from assets.annotated.topics.topics import (
        assign_topics,
        name_topics,
        train_topics,
        words_of_topics,
    )
    from assets.annotated.vectors.lexical import embed_lexical

    inputs, annotator = task.payload, task.payload.annotator
    assert inputs.lexical and isinstance(annotator, TopicsAnnotator), "it is the second pass"
    sample = read_sample(inputs)
    vectors = embed_lexical(sample["text"], load_lexical(inputs.lexical))
    groups = sample["lang"].fill_null("")
    try:
        topics = train_topics(
            vectors, groups, annotator.most_topics, annotator.least_share, annotator.seed
        )
    except ValueError as error:
        raise InputError(f"annotations: annotator {annotator.name!r}: {error}") from None
    found = assign_topics(vectors, groups, topics)["topic"]
    names = name_topics(words_of_topics(sample["text"], found), len(topics.names))
    return publish_model(task, replace(topics, names=names).to_table(), sample.height)


def read_sample(inputs: ModelInputs) -> pl.DataFrame:
    """Read doc_id, text and lang of the documents of the sample."""
    columns = ["doc_id", "text", "lang"]
    found = [pl.DataFrame(schema=dict.fromkeys(columns, pl.String))]
    for part in inputs.sample:
        documents = read_kept(part.documents, columns)
        found.append(documents.filter(is_sampled(documents["doc_id"], part.share, "topics")))
    return pl.concat(found)


def publish_model(
    task: Task[ModelInputs], table: pl.DataFrame, rows: int, report: HeldOutReport | None = None
) -> list[PartRecord]:
    """Publish a model that was trained on so many documents, and what it says of those held out."""
    writer = task.writer()
    writer.write_parquet(MODEL, table)
    if report is not None:
        writer.write_text(REPORT, "json", to_json(as_json_object(report)).decode())
    return [writer.publish(Stats(rows, rows, numbers=task.payload.numbers))]


def describe_models(corpus: Corpus, manifest: Manifest[Empty, ModelNumbers]) -> Metadata:
    """Return what each classifier says of the examples that are held out, as Markdown."""
    reports = read_reports(corpus, manifest)
    shown = {f"classifier {name}": report_markdown(each) for name, each in reports.items()}
    return dict.fromkeys(("annotator", "config", "trained_on")) | shown


STAGE = Stage(
    *ANNOTATION_MODELS.fields(),
    description="What annotators learn, once: vectors of words, topics, classifiers.",
    group="annotate",
    partitions="none",
    after=(stage_names.DEDUPED, stage_names.ANNOTATORS, stage_names.ASKED),
    outlook=Outlook(reaches_all=True, is_kept=lambda settings: True),
    kinds=frozenset({"numba"}),
    settings=lambda settings: {
        each.name: each.saying() for each in (*settings.topics, *settings.classifying)
    },
    plan=plan_models,
    work=train_first,
    run=in_passes(Pass(train_first, plan_first), Pass(train_on_vectors, plan_on_vectors)),
    is_used=lambda settings: bool(settings.topics or settings.classifying),
    flags={RENEW: "train on the documents and answers of today, not on those of the first run"},
    main_table=MainTable(MODEL, {"*": "weights, in integers"}),
    describe=describe_models,
)
