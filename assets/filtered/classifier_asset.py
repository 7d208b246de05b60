"""classifier: a model of good and bad documents, trained on examples, and how good it is."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import unidata_version

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.classifier.classifier import (
    MOST_LINE_BYTES,
    is_held_out,
    read_labelled,
    score_quality,
    take_lines,
    take_sample,
    train_classifier,
)
from assets.filtered.classifier.report import (
    ClassifierReport,
    classifier_markdown,
    classifier_report,
)
from assets.filtered.filtered_records import CLASSIFIER, ClassifierNumbers
from assets.filtered.normalize import normalize_text
from assets.raw.usable_raw_files import usable_raw
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.settings.filtering.classifier import ClassifierConfig
from resources.settings.filtering.filter_steps import NormalizeConfig
from resources.settings.named_files import check_named_file, open_at_once
from resources.source_states import usable_states
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.disk import hash_file
from resources.store.published import PublishedFile
from resources.store.records import Empty, Manifest, PartRecord, Stats, as_json_object, to_json
from resources.store.store import StoreError
from resources.tasks import Plan, Task, tasks_of

MODEL_COLUMNS = {
    "weight": "weight of the features whose hash is the row's number",
    "bias": "score of a document without features, before the logistic function",
    "ngram_words": "words of the longest feature",
    "max_document_bytes": "bytes of a document that are read",
}


@dataclass(frozen=True)
class Sample:
    """A file of raw documents of one side, and the share of them to train on (0 to 1)."""

    documents: PublishedFile
    is_good: bool
    share: float


@dataclass(frozen=True)
class TrainingInputs:
    """The config, the samples of both sides, and the labelled file if there is one."""

    config: ClassifierConfig
    samples: tuple[Sample, ...]
    labelled: Path | None


def plan_classifier(corpus: Corpus, partition: str) -> Plan:
    """Plan one task over all parts of the example sources."""
    config = corpus.settings.classifier
    assert config is not None, "the stage is used with `classifier` only"
    dump = config.model_dump(mode="json")
    (good, no_good), (bad, no_bad) = (parts_of(corpus, each) for each in (config.good, config.bad))
    samples = tuple(
        Sample(file, is_good, min(1.0, config.sample_bytes / side_bytes(side)))
        for side, is_good in ((good, True), (bad, False))
        for file, _ in side
    )
    labelled = labelled_file(corpus, config)
    inputs = [
        unidata_version,
        *(part.fingerprint for _, part in good + bad),
        *([] if labelled is None else [hash_file(labelled)[0]]),
    ]
    task = tasks_of(corpus, CLASSIFIER, partition).task(
        "model",
        (dump, inputs),
        TrainingInputs(config, samples, labelled),
        work_bytes=sum(min(side_bytes(side), config.sample_bytes) for side in (good, bad)),
    )
    return Plan([task], dump, Empty(), no_good | no_bad)


def parts_of(
    corpus: Corpus, names: tuple[str, ...]
) -> tuple[list[tuple[PublishedFile, PartRecord]], dict[str, str]]:
    """Return (file of documents, record) of every raw part of the named sources.

    Also reasons for the sources that are left out, by name.
    """
    states, left_out = usable_states(names, lambda name: usable_raw(corpus, name))
    parts = [
        (corpus.store.part_file(manifest, part, "documents"), part)
        for manifest in states.values()
        for part in manifest.parts
    ]
    return parts, left_out


def side_bytes(side: list[tuple[PublishedFile, PartRecord]]) -> int:
    """Return the bytes of text of one side's parts, at least 1."""
    return max(1, sum(part.stats.bytes for _, part in side))


def labelled_file(corpus: Corpus, config: ClassifierConfig) -> Path | None:
    """Return the path of the labelled file, None without one; StoreError if it is missing."""
    if config.labelled is None:
        return None
    path = corpus.config.parent / config.labelled
    if not path.is_file():
        raise StoreError(
            f"classifier.labelled: no file {config.labelled!r} (looked for {path}). "
            "Correct it, or name sources under good and bad."
        )
    return path


def train_part(task: Task[TrainingInputs]) -> list[PartRecord]:
    """Train on the sample, measure the held-out documents, and publish model and report."""
    config = task.payload.config
    samples = list(read_samples(task.payload))
    texts = pl.concat([pl.Series(dtype=pl.String), *(texts for texts, _ in samples)])
    labels = np.concatenate([np.empty(0, np.bool_), *(labels for _, labels in samples)])
    del samples
    model = train_classifier(texts, labels, config)
    is_held = is_held_out(texts, config)
    held_scores = score_quality(texts.filter(pl.Series(is_held)), model).to_numpy()
    report = classifier_report(held_scores, labels[is_held])
    writer = task.writer()
    writer.write_parquet("model", model.to_table())
    writer.write_text("report", "json", to_json(as_json_object(report)).decode())
    rows, text_bytes = len(texts), count_bytes(texts)
    numbers = ClassifierNumbers(
        good_documents=int(labels.sum()),
        bad_documents=int((~labels).sum()),
        held_out_documents=int(is_held.sum()),
        auc=msgspec.UNSET if report.auc is None else report.auc,
        log_loss=msgspec.UNSET if report.log_loss is None else report.log_loss,
    )
    stats = Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)
    return [writer.publish(stats)]


def read_samples(inputs: TrainingInputs) -> Iterator[tuple[pl.Series, NDArray[np.bool_]]]:
    """Yield (texts, labels) of each part and of the labelled file, normalised.

    One part is in memory at a time. Raises ValueError for a wrong line of the labelled file.
    """
    config, labelled = inputs.config, inputs.labelled
    for sample in inputs.samples:
        documents = pl.read_parquet(sample.documents.checked(), columns=["doc_id", "text"])
        texts = take_sample(documents, sample.share, config)
        yield heads(texts, config), np.full(len(texts), sample.is_good)
    if labelled is None:
        return
    share = min(1.0, config.sample_bytes / max(1, labelled.stat().st_size))
    with open(labelled, "rb", opener=open_at_once) as file:
        lines = iter(lambda: file.readline(MOST_LINE_BYTES + 1), b"")
        try:
            check_named_file(labelled, sys.maxsize)
            examples = list(read_labelled(take_lines(lines, share, config)))
        except ValueError as error:
            raise ValueError(f"classifier.labelled: {labelled}: {error}") from None
    texts = pl.Series([text for text, _ in examples], dtype=pl.String)
    yield heads(texts, config), np.array([is_good for _, is_good in examples], np.bool_)


def heads(texts: pl.Series, config: ClassifierConfig) -> pl.Series:
    """Normalise texts and cut them to the head that training reads, to save memory."""
    return normalize_text(texts, NormalizeConfig()).str.head(config.max_document_bytes)


def describe_classifier(corpus: Corpus, manifest: Manifest[Empty, ClassifierNumbers]) -> Metadata:
    """Return the report as Markdown, with its plot."""
    file = corpus.store.part_file(manifest, manifest.parts[0], "report")
    report = msgspec.json.decode(file.checked().read_bytes(), type=ClassifierReport)
    return {"report": classifier_markdown(report)}


STAGE = Stage(
    *CLASSIFIER.fields(),
    description="The classifier whose score is a rule of `filtered`, and what each threshold "
    "would keep.",
    group="curate",
    partitions="none",
    after=(stage_names.RAW,),
    outlook=Outlook(reaches_all=True),
    kinds=frozenset({"numba"}),
    settings=lambda settings: settings.model_dump(mode="json", include={"classifier"}),
    plan=plan_classifier,
    work=train_part,
    is_used=lambda settings: settings.classifier is not None,
    main_table=MainTable("model", MODEL_COLUMNS),
    describe=describe_classifier,
)
