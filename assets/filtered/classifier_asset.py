"""classifier: a model of good and bad documents, trained on examples, and how good it is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import msgspec
import numpy as np
import polars as pl

from assets.filtered.classifier.classifier import (
    Classifier,
    is_held_out,
    read_labelled,
    score_quality,
    take_lines,
    take_sample,
    train_classifier,
)
from assets.filtered.classifier.report import classifier_markdown, classifier_report
from assets.filtered.normalize import normalize_text
from assets.raw.asset import RAW
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.settings.filter_steps import NormalizeConfig
from resources.settings.quality import QualityConfig
from resources.stage import Stage
from resources.store.disk import hash_file
from resources.store.records import (
    Manifest,
    PartRecord,
    Stats,
    fingerprint_of,
    required_file,
    to_json,
)
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Plan, Task

NOT_CONFIGURED = "Not configured: pipeline.yaml has no `quality`, so nothing was trained."


def plan_classifier(corpus: Corpus, partition: str) -> Plan:
    """One task over every part of the sources of examples; none if `quality` is not configured."""
    config = corpus.settings.quality
    if config is None:
        return Plan([], {})
    dump = config.model_dump(mode="json")
    good, bad = (parts_of(corpus, names) for names in (config.good, config.bad))
    samples = [
        (path, is_good, min(1.0, config.sample_bytes / side_bytes(side)))
        for side, is_good in ((good, True), (bad, False))
        for path, _ in side
    ]
    labelled = labelled_file(corpus, config)
    inputs = [
        unidata_version,
        *(part.fingerprint for _, part in good + bad),
        *([] if labelled is None else [hash_file(labelled)[0]]),
    ]
    task = Task(
        root=corpus.store.root,
        stage=CLASSIFIER.name,
        partition=partition,
        name="model",
        fingerprint=fingerprint_of(CLASSIFIER.name, CLASSIFIER.code_version, dump, inputs),
        work_bytes=sum(min(side_bytes(side), config.sample_bytes) for side in (good, bad)),
        payload={"config": config, "samples": samples, "labelled": labelled},
    )
    return Plan([task], dump)


def parts_of(corpus: Corpus, names: tuple[str, ...]) -> list[tuple[Path, PartRecord]]:
    """(file of documents, record) of every raw part of the named sources."""
    manifests = [corpus.store.newest("raw", name) for name in names]
    return [
        (corpus.store.path_of(manifest, required_file(manifest, part, "documents")), part)
        for manifest in manifests
        for part in manifest.parts
    ]


def side_bytes(side: list[tuple[Path, PartRecord]]) -> int:
    """Bytes of text of one side's parts, at least 1."""
    return max(1, sum(part.stats.bytes for _, part in side))


def labelled_file(corpus: Corpus, config: QualityConfig) -> Path | None:
    """Where the labelled file lies, None without one; StoreError if it is missing."""
    if config.labelled is None:
        return None
    path = corpus.config.parent / config.labelled
    if not path.is_file():
        raise StoreError(
            f"quality.labelled: no file {config.labelled!r} (looked for {path}). "
            "Correct it, or name sources under good and bad."
        )
    return path


def train_part(task: Task) -> list[PartRecord]:
    """Train on the sample, measure on what was held out, and publish model and report."""
    config: QualityConfig = task.payload["config"]
    read = list(read_samples(task))
    texts = pl.concat([pl.Series(dtype=pl.String), *(texts for texts, _ in read)])
    labels = np.concatenate([np.empty(0, np.bool_), *(labels for _, labels in read)])
    del read
    model = train_classifier(texts, labels, config)
    is_held = is_held_out(texts, config)
    held_scores = score_quality(texts.filter(pl.Series(is_held)), model).to_numpy()
    report = classifier_report(held_scores, labels[is_held])
    writer = task.writer()
    writer.write_parquet("model", model.to_table())
    writer.write_text("report", "json", to_json(report).decode())
    rows, text_bytes = len(texts), count_bytes(texts)
    extra = {
        "good_documents": int(labels.sum()),
        "bad_documents": int((~labels).sum()),
        "held_out_documents": int(is_held.sum()),
        **{key: report[key] for key in ("auc", "log_loss") if report[key] is not None},
    }
    return [
        writer.publish(Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=extra))
    ]


def read_samples(task: Task) -> Iterator[tuple[pl.Series, np.ndarray[Any, np.dtype[np.bool_]]]]:
    """(texts, labels) of each part and of the labelled file, normalised; one part in memory."""
    config: QualityConfig = task.payload["config"]
    for path, is_good, share in task.payload["samples"]:
        texts = take_sample(pl.read_parquet(path, columns=["doc_id", "text"]), share, config)
        yield heads(texts, config), np.full(len(texts), is_good)
    labelled: Path | None = task.payload["labelled"]
    if labelled is None:
        return
    share = min(1.0, config.sample_bytes / max(1, labelled.stat().st_size))
    with open(labelled, "rb") as lines:
        try:
            found = list(read_labelled(take_lines(lines, share, config)))
        except ValueError as error:
            raise ValueError(f"quality.labelled: {labelled}: {error}") from None
    texts = pl.Series([text for text, _ in found], dtype=pl.String)
    yield heads(texts, config), np.array([is_good for _, is_good in found], np.bool_)


def heads(texts: pl.Series, config: QualityConfig) -> pl.Series:
    """Normalised texts, cut to what training reads of them: the rest would only fill memory."""
    return normalize_text(texts, NormalizeConfig()).str.head(config.max_document_bytes)


def describe_classifier(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """The report as Markdown, with its plot."""
    if not manifest.parts:
        return {"report": NOT_CONFIGURED}
    path = corpus.store.path_of(manifest, required_file(manifest, manifest.parts[0], "report"))
    return {"report": classifier_markdown(msgspec.json.decode(path.read_bytes()))}


def load_classifier(corpus: Corpus) -> tuple[Classifier, str] | None:
    """(model, sha256 of its file), None if `quality` is not configured.

    Equal weights have equal files: what was scored by them need not be scored again. Raises
    StoreError if the model is missing, or was trained under another config.
    """
    config = corpus.settings.quality
    if config is None:
        return None
    manifest = corpus.store.newest(CLASSIFIER.name, GLOBAL)
    if manifest.config != config.model_dump(mode="json"):
        raise StoreError(
            "classifier[all] was trained under another config than pipeline.yaml's. "
            "Materialize `classifier` first."
        )
    file = required_file(manifest, manifest.parts[0], "model")
    model = Classifier.from_table(pl.read_parquet(corpus.store.path_of(manifest, file)))
    return model, file.sha256


CLASSIFIER = Stage(
    name="classifier",
    code_version="1",
    description="The classifier whose score is a rule of `filtered`, and what each threshold "
    "would keep.",
    partitions="none",
    after=(RAW,),
    kinds=frozenset({"numba"}),
    provenance=dict,
    numbers=dict,
    plan=plan_classifier,
    work=train_part,
    describe=describe_classifier,
)
