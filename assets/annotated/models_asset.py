"""annotation_models: what annotators learn from the corpus: vectors of words, and topics.

Each is trained once, on the documents that are there then, and kept until its config changes or a
run asks for the next one: what is said of published documents stays. Vectors are shared by all
annotators; topics are trained on them in a second pass.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from assets.annotated.annotated_records import (
    ANNOTATION_MODELS,
    LEXICAL,
    MODEL,
    ModelNumbers,
)
from assets.annotated.model_files import load_lexical, settings_of_models
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept
from assets.text.document_ids import is_sampled
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.errors import InputError
from resources.passes import Earlier, Pass, file_of, in_passes
from resources.settings.annotations import TopicsAnnotator
from resources.source_states import usable_states
from resources.stage import MainTable, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import (
    Empty,
    Manifest,
    PartRecord,
    Stats,
    fingerprint_of,
)
from resources.tasks import GLOBAL, Plan, Task, TaskMaker, tasks_of

RENEW = "renew"
SAMPLE_BYTES = 16 << 20  # of text, divided among the sources


@dataclass(frozen=True)
class SampledPart:
    """Documents of a part, and the share of them that is read (0 to 1)."""

    documents: KeptDocuments
    share: float


@dataclass(frozen=True)
class ModelInputs:
    """What is trained, by its annotator, None for vectors; on which documents, and its numbers."""

    annotator: TopicsAnnotator | None
    sample: tuple[SampledPart, ...]
    numbers: ModelNumbers
    lexical: PublishedFile | None = None


def plan_models(corpus: Corpus, partition: str) -> Plan:
    """Plan the vectors, and a task per annotator that learns from them."""
    names = corpus.settings.source_names()
    states, left_out = usable_states(names, lambda name: corpus.store.newest(DEDUPED, name))
    before = {} if RENEW in corpus.flags else models_before(corpus)
    make, tasks = tasks_of(corpus, ANNOTATION_MODELS, partition), list[Task[ModelInputs]]()
    for annotator in (None, *corpus.settings.topics):
        name = annotator.name if annotator else LEXICAL
        own = [s for n, s in states.items() if annotator is None or annotator.annotates(n)]
        parts = [part.fingerprint for state in own for part in state.parts]
        config = fingerprint_of(annotator and annotator.saying())
        new, kept = ModelNumbers(name, config, parts), before.get(name)
        vectors = [task.fingerprint for task in tasks[:1]]
        task = model_task(
            make, ModelInputs(annotator, sampled_parts(corpus, own, new), new), vectors
        )
        if kept is not None and kept.config == config:
            inputs = ModelInputs(annotator, sampled_parts(corpus, own, kept), kept)
            again = model_task(make, inputs, vectors)
            # Of another compression or version of the code: made again if it can be the same.
            if len(inputs.sample) == len(kept.trained_on) or again.published():
                task = again
        tasks.append(task)
    return Plan(tasks, settings_of_models(corpus.settings), Empty(), left_out)


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
    corpus: Corpus, states: Collection[Manifest[Any, Any]], numbers: ModelNumbers
) -> tuple[SampledPart, ...]:
    """Return the parts that a model is trained on, as far as they are there."""
    wanted, found = {*numbers.trained_on}, list[SampledPart]()
    for state in states:
        share = min(1.0, SAMPLE_BYTES / len(states) / max(1, state.stats.bytes))
        parts = (part for part in state.parts if part.fingerprint in wanted)
        found += [SampledPart(kept_documents(corpus.store, state, part), share) for part in parts]
    return tuple(found)


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
    """Second pass: find the topics of one annotator; named by their number and words."""
    from assets.annotated.topics.topics import (
        assign_topics,
        name_topics,
        train_topics,
        words_of_topics,
    )
    from assets.annotated.vectors.lexical import embed_lexical

    inputs, annotator = task.payload, task.payload.annotator
    assert inputs.lexical is not None and annotator is not None, "it is the second pass"
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


def publish_model(task: Task[ModelInputs], table: pl.DataFrame, rows: int) -> list[PartRecord]:
    """Publish a model that was trained on so many documents."""
    writer = task.writer()
    writer.write_parquet(MODEL, table)
    return [writer.publish(Stats(rows, rows, numbers=task.payload.numbers))]


STAGE = Stage(
    *ANNOTATION_MODELS.fields(),
    description="What annotators learn from the corpus, once: vectors of words, topics.",
    group="annotate",
    partitions="none",
    after=(stage_names.DEDUPED,),
    outlook=Outlook(reaches_all=True, is_kept=lambda settings: True),
    kinds=frozenset({"numba"}),
    settings=settings_of_models,
    plan=plan_models,
    work=train_vectors,
    run=in_passes(
        Pass(train_vectors, lambda _, tasks, __: tasks[:1]), Pass(train_on_vectors, plan_on_vectors)
    ),
    is_used=lambda settings: bool(settings.topics),
    flags={RENEW: "train on the documents of today, not on those of the first run"},
    main_table=MainTable(MODEL, {"*": "weights, in integers"}),
)
