"""annotation_models: what annotators learn from the corpus: vectors of words, topics, scores.

Each is trained once, on the documents that are there then, and kept until its config or its labels
change, or a run asks for the next one: what is said of published documents stays. Vectors are
shared by all annotators; topics and scores are trained on them in a second pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from assets.annotated.annotated_records import (
    ANNOTATION_MODELS,
    ANNOTATORS,
    ANSWERS,
    MODEL,
    ModelNumbers,
)
from assets.annotated.answer_files import answers_to
from assets.annotated.model_files import load_lexical
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept, read_some
from assets.deduped.minhash.meta_fields import column_of, field_values
from assets.filtered.classifier.classifier import is_in_scale
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.errors import InputError
from resources.passes import Earlier, Pass, file_of, in_passes
from resources.settings.annotations import (
    ClassifyAnnotator,
    FileAnnotator,
    TopicsAnnotator,
    Trained,
)
from resources.settings.pipeline import Settings
from resources.source_states import usable_states
from resources.stage import MainTable, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import (
    Empty,
    Manifest,
    PartRecord,
    Stats,
    fingerprint_of,
    required_file,
)
from resources.tasks import GLOBAL, Plan, Task, tasks_of

RENEW = "renew"
LEXICAL = "lexical"  # the part with the vectors of words
SAMPLE_BYTES = 16 << 20  # of text, divided among the sources
MOST_LABELLED = 20_000  # documents that a score is learned from


@dataclass(frozen=True)
class SampledPart:
    """Documents of a part, and the share of them that is read (0 to 1)."""

    source: str
    documents: KeptDocuments
    share: float


@dataclass(frozen=True)
class Labels:
    """Files of answers, the annotator that they are of, and the column with the labels."""

    annotator: FileAnnotator
    column: str
    answers: tuple[PublishedFile, ...]


@dataclass(frozen=True)
class ModelInputs:
    """What is trained, by its annotator, None for vectors; on which documents, and its numbers."""

    annotator: Trained | None
    sample: tuple[SampledPart, ...]
    numbers: ModelNumbers
    labels: Labels | None = None
    lexical: PublishedFile | None = None


def trained_annotators(settings: Settings) -> list[Trained]:
    """Return the annotators that learn from the corpus."""
    return [each for each in settings.annotations if isinstance(each, Trained)]


def plan_models(corpus: Corpus, partition: str) -> Plan:
    """Plan the vectors, and a task per annotator that learns from them."""
    names = corpus.settings.source_names()
    states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
    before = {} if RENEW in corpus.flags else models_before(corpus)
    make, tasks = tasks_of(corpus, ANNOTATION_MODELS, partition), list[Task[ModelInputs]]()
    for annotator in (None, *trained_annotators(corpus.settings)):
        name = annotator.name if annotator else LEXICAL
        labels = labels_for(corpus, annotator) if isinstance(annotator, ClassifyAnnotator) else None
        of_labels = [file.xxh3 for file in labels.answers] if labels else []
        config = fingerprint_of(annotator and annotator.saying(), of_labels)
        kept = before.get(name)
        parts = [part.fingerprint for state in states.values() for part in state.parts]
        is_kept = kept is not None and kept.config == config
        numbers = kept if kept and is_kept else ModelNumbers(name, config, parts)
        sample = tuple(sampled_parts(corpus, states, numbers))
        inputs = ModelInputs(annotator, sample, numbers, labels)
        made_of = [name, config, numbers.trained_on, *(task.fingerprint for task in tasks[:1])]
        work_bytes = min(SAMPLE_BYTES, sum(state.stats.bytes for state in states.values()))
        tasks.append(make.task(name, made_of, inputs, work_bytes=work_bytes))
    return Plan(tasks, {}, Empty(), left_out)


def models_before(corpus: Corpus) -> dict[str, ModelNumbers]:
    """Return what is known of the models that are published, by name."""
    published = corpus.store.newest_or_none(ANNOTATION_MODELS, GLOBAL)
    return {part.name: part.stats.numbers for part in published.parts} if published else {}


def labels_for(corpus: Corpus, annotator: ClassifyAnnotator) -> Labels:
    """Return the labels that a score is learned from."""
    labelled = corpus.settings.labels_of(annotator)
    assert labelled is not None, "the settings have refused other labels"
    answers = corpus.store.newest(ANNOTATORS, GLOBAL)
    parts = [part for part in answers.parts if part.stats.numbers.annotator == labelled.name]
    files = (corpus.store.part_file(answers, part, ANSWERS) for part in parts)
    return Labels(labelled, annotator.labels.rpartition(".")[2], tuple(files))


def sampled_parts(
    corpus: Corpus, states: Mapping[str, Manifest[Any, Any]], numbers: ModelNumbers
) -> Iterator[SampledPart]:
    """Yield the parts that a model is trained on, as far as they are there."""
    wanted = {*numbers.trained_on}
    for source, state in states.items():
        share = min(1.0, SAMPLE_BYTES / len(states) / max(1, state.stats.bytes))
        for part in state.parts:
            if part.fingerprint in wanted:
                yield SampledPart(source, kept_documents(corpus.store, state, part), share)


def train_vectors(task: Task[ModelInputs]) -> list[PartRecord]:
    """First pass: learn the vectors of words from a sample."""
    from assets.annotated.vectors.lexical import train_lexical

    sample = read_sample(task.payload)
    try:
        model = train_lexical(sample["text"])
    except ValueError as error:
        raise InputError(f"annotations: {error}") from None
    return publish_model(task, model.to_table(), sample.height)


def plan_on_vectors(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[ModelInputs]]:
    """Plan the second pass: what is trained on the vectors of the first."""
    lexical = file_of(earlier[0][0], MODEL)
    return [replace(task, payload=replace(task.payload, lexical=lexical)) for task in tasks[1:]]


def train_on_vectors(task: Task[ModelInputs]) -> list[PartRecord]:
    """Second pass: learn the topics or the score of one annotator."""
    from assets.annotated.vectors.lexical import embed_lexical

    inputs = task.payload
    assert inputs.lexical is not None and inputs.annotator is not None, "it is the second pass"
    documents = read_sample(inputs) if inputs.labels is None else read_labelled(inputs)
    vectors = embed_lexical(documents["text"], load_lexical(inputs.lexical))
    try:
        if isinstance(inputs.annotator, TopicsAnnotator):
            table = learn_topics(documents, vectors, inputs.annotator)
            return publish_model(task, table, documents.height)
        return publish_head(task, documents, vectors)
    except ValueError as error:
        raise InputError(f"annotations: annotator {inputs.annotator.name!r}: {error}") from None


def read_sample(inputs: ModelInputs) -> pl.DataFrame:
    """Read doc_id, text, lang and source of the documents of the sample."""
    columns = ["doc_id", "text", "lang"]
    found = [pl.DataFrame(schema=dict.fromkeys([*columns, "source"], pl.String))]
    for part in inputs.sample:
        documents = read_kept(part.documents, columns)
        is_taken = pl.Series(is_in_scale(documents["doc_id"], part.share), dtype=pl.Boolean)
        found.append(documents.filter(is_taken).with_columns(source=pl.lit(part.source)))
    return pl.concat(found)


def read_labelled(inputs: ModelInputs) -> pl.DataFrame:
    """Read these columns and the label of up to MOST_LABELLED documents, by id."""
    labels, found = inputs.labels, list[pl.DataFrame]()
    assert labels is not None, "the annotator learns labels"
    by, column = labels.annotator.by, pl.col(labels.column)
    for part in inputs.sample:
        keys = read_kept(part.documents, [*{"doc_id": 0, column_of(by): 0}])
        keyed = keys.select("doc_id", key=field_values(keys, by))
        answers = answers_to(keyed["key"], labels.annotator, labels.answers)
        known = keyed.join(answers, on="key").select("doc_id", label=column).drop_nulls()
        known = known.with_columns(number=len(found), source=pl.lit(part.source))
        found.append(known)
    chosen = pl.concat(found).sort("doc_id")[:MOST_LABELLED] if found else pl.DataFrame()
    texts = [
        own.join(
            read_some(inputs.sample[number].documents, own["doc_id"], ["doc_id", "text", "lang"]),
            on="doc_id",
        )
        for (number,), own in chosen.partition_by("number", as_dict=True).items()
    ]
    if not texts:
        name = inputs.annotator.name if inputs.annotator else ""
        raise InputError(
            f"annotations: annotator {name!r}: no document has a label of "
            f"{labels.annotator.name}.{labels.column}. Compare `by` and `key` with the files."
        )
    return pl.concat(texts).sort("doc_id")


def learn_topics(documents: pl.DataFrame, vectors: Any, annotator: TopicsAnnotator) -> pl.DataFrame:
    """Return the topics of a sample, which are named by their number and words, as a table."""
    from assets.annotated.topics.topics import (
        assign_topics,
        name_topics,
        train_topics,
        words_of_topics,
    )

    groups = documents["lang"].fill_null("")
    topics = train_topics(
        vectors, groups, annotator.most_topics, annotator.least_share, annotator.seed
    )
    found = assign_topics(vectors, groups, topics)["topic"]
    words = name_topics(words_of_topics(documents["text"], found))
    digits = len(str(len(topics.names) - 1))
    names = (f"{number:0{digits}} {of}".strip() for number, of in enumerate(words))
    return replace(topics, names=tuple(names)).to_table()


def publish_head(
    task: Task[ModelInputs], documents: pl.DataFrame, vectors: Any
) -> list[PartRecord]:
    """Learn labels of all documents but those that measure it; publish the head and its report."""
    from assets.annotated.classify.head import is_held_out, score_vectors, train_head
    from assets.annotated.classify.head_report import measure_head
    from resources.store.records import to_json

    labels = documents["label"]
    if labels.dtype == pl.Float64:
        if (labels != labels.floor()).any():
            raise ValueError("labels that are numbers must be whole: 0, 1 and so on")
        labels = labels.cast(pl.Int64)
    annotator = task.payload.annotator
    is_held = is_held_out(vectors, annotator.seed if annotator else 0)
    trained, held = pl.Series(~is_held, dtype=pl.Boolean), pl.Series(is_held, dtype=pl.Boolean)
    head = train_head(vectors[~is_held], labels.filter(trained))
    told = pl.DataFrame(
        {
            "score": score_vectors(vectors[is_held], head),
            "label": labels.filter(held),
            "language": documents["lang"].filter(held),
            "source": documents["source"].filter(held),
        }
    )
    report = to_json(measure_head(told, head)).decode()
    return publish_model(task, head.to_table(), documents.height, report)


def publish_model(
    task: Task[ModelInputs], table: pl.DataFrame, rows: int, report: str = ""
) -> list[PartRecord]:
    """Publish a model that was trained on so many documents."""
    writer = task.writer()
    writer.write_parquet(MODEL, table)
    if report:
        writer.write_text("report", "json", report)
    return [writer.publish(Stats(rows, rows, numbers=task.payload.numbers))]


def required_models(
    corpus: Corpus, annotator: Trained
) -> tuple[tuple[PublishedFile, ...], list[str]]:
    """Return the files of the vectors and of an annotator's model, and their digests."""
    published = corpus.store.newest(ANNOTATION_MODELS, GLOBAL)
    named = {part.name: required_file(published, part, MODEL) for part in published.parts}
    records = [named[LEXICAL], named[annotator.name]]
    files = tuple(corpus.store.file_of(published, record) for record in records)
    return files, [record.sha256 for record in records]


STAGE = Stage(
    *ANNOTATION_MODELS.fields(),
    description="What annotators learn from the corpus, once: vectors, topics, scores.",
    group="annotate",
    partitions="none",
    after=(stage_names.DEDUPED, stage_names.ANNOTATORS),
    outlook=Outlook(reaches_all=True, is_kept=lambda settings: True),
    kinds=frozenset({"numba"}),
    settings=lambda settings: [each.saying() for each in trained_annotators(settings)],
    plan=plan_models,
    work=train_vectors,
    run=in_passes(
        Pass(train_vectors, lambda _, tasks, __: tasks[:1]), Pass(train_on_vectors, plan_on_vectors)
    ),
    is_used=lambda settings: bool(trained_annotators(settings)),
    flags={RENEW: "train on the documents of today, not on those of the first run"},
    main_table=MainTable(MODEL, {"*": "weights, in integers"}),
)
