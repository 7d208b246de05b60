"""Asset `leakage`: documents for training that share much of their text with a held-out one.

A part per deduped part has the sketches of its documents, and all n-grams of those held out: a
function of the part and of what is held out of it, so a night makes those of what is new. Where
anything is new, the sketches of all parts are compared with all that is held out, and the few
documents that may share much are read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from assets.bucketed.bucketed_records import (
    HELD_OUT,
    LEAKAGE,
    SHARES,
    LeakageManifest,
    LeakageNumbers,
    LeakageProvenance,
)
from assets.bucketed.document_groups import decided_parts, decisions_on
from assets.bucketed.leakage import (
    MOST_SHARE,
    NO_OCCURRENCES,
    find_candidates,
    first_occurrences,
    occurrences,
    sketch,
    worst_shares,
)
from assets.deduped.deduped_records import DEDUPED
from assets.deduped.document_files import KeptDocuments, kept_documents, read_kept, read_some
from assets.deduped.index.ledger import PartKey
from assets.text.table_rows import count_bytes
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.passes import Earlier, Pass, PassFiles, in_passes, list_files
from resources.source_states import usable_states
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import Manifest, PartRecord, Stats
from resources.tasks import GLOBAL, Plan, Task, tasks_of

SKETCHES = "sketches"
KEYS = {"source": pl.String, "part_name": pl.String}
LEAKAGE_COLUMNS = {
    "doc_id": "the document, which is not held out",
    "held_doc_id": "the held-out document that has most of its 13-grams",
    "share": "share of its 13-grams that the held-out document has",
    "source": "source of the document",
    "part_name": "name of the part that the document is in",
    "is_left_out": "whether it is left out of training",
}


@dataclass(frozen=True)
class SketchInputs:
    """Inputs of one part: its documents, and the decisions on them."""

    key: PartKey
    documents: KeptDocuments
    decisions: tuple[PublishedFile, ...]


@dataclass(frozen=True)
class LeakageInputs:
    """The keys and documents of all parts, and their sketches; None if there are no parts."""

    keys: tuple[PartKey, ...]
    documents: tuple[KeptDocuments, ...]
    sketches: PassFiles | None = None


def plan_leakage(corpus: Corpus, partition: str) -> Plan:
    """Plan one task per deduped part, and one for the result."""
    tasks: list[Task[Any]] = []

    def plan_source(source: str) -> str:
        manifest, planned = sketch_tasks(corpus, source)
        tasks.extend(planned)
        return manifest.fingerprint

    deduped, left_out = usable_states(corpus.settings.source_names(), plan_source)
    tasks.sort(key=lambda task: task.name)
    made_of = [[task.name, task.fingerprint] for task in tasks]
    work_bytes = sum(task.work_bytes for task in tasks) // 10
    parts: list[SketchInputs] = [task.payload for task in tasks]
    inputs = LeakageInputs(
        tuple(part.key for part in parts), tuple(part.documents for part in parts)
    )
    maker = tasks_of(corpus, LEAKAGE, partition)
    result: Task[Any] = maker.task(SHARES, made_of, inputs, work_bytes=work_bytes)
    provenance = LeakageProvenance(corpus.store.newest(HELD_OUT, GLOBAL).fingerprint, deduped)
    return Plan([*tasks, result], {}, provenance, left_out)


def sketch_tasks(
    corpus: Corpus, source: str
) -> tuple[Manifest[Any, Any], list[Task[SketchInputs]]]:
    """Plan a task per deduped part of a source; return them with the manifest of these parts."""
    manifest, decided = corpus.store.newest(DEDUPED, source), decided_parts(corpus, source)
    maker, tasks = tasks_of(corpus, LEAKAGE, GLOBAL), []
    for part in manifest.parts:
        decisions = decisions_on(source, decided, [part.name])
        assert decisions is not None, "the stage is used with `holdout` only"
        documents = kept_documents(corpus.store, manifest, part)
        inputs = SketchInputs((source, part.name), documents, decisions.files)
        made_of = (part.fingerprint, decisions.held_ids)
        name = f"{source}-{part.name}"
        tasks.append(maker.task(name, made_of, inputs, work_bytes=part.stats.text_bytes))
    return manifest, tasks


def sketch_part(task: Task[SketchInputs]) -> list[PartRecord]:
    """First pass: publish the sketches of one part, and all n-grams that it holds out."""
    inputs, writer = task.payload, task.writer()
    documents = read_kept(inputs.documents, ["doc_id", "text"])
    decided = pl.concat([pl.read_parquet(file.checked()) for file in inputs.decisions])
    is_held = documents["doc_id"].is_in(decided.filter("is_held")["doc_id"].implode())
    writer.write_arrow(SKETCHES, sketch(documents.with_columns(is_held=is_held)))
    count, text_bytes = documents.height, count_bytes(documents["text"])
    numbers = LeakageNumbers({inputs.key[0]: count - int(is_held.sum())})
    return [writer.publish(Stats(count, count, text_bytes=text_bytes, numbers=numbers))]


def plan_result(_: Corpus, tasks: list[Task[Any]], earlier: Earlier) -> list[Task[LeakageInputs]]:
    """Plan the second pass: one task, which is published already if nothing is new."""
    sketches = list_files(earlier[0], SKETCHES) if earlier[0] else None
    return [replace(tasks[-1], payload=replace(tasks[-1].payload, sketches=sketches))]


def publish_shares(task: Task[LeakageInputs]) -> list[PartRecord]:
    """Second pass: publish the largest share of each candidate, and which of them are left out.

    In memory are 24 bytes for each word that is held out and for each of candidates, several times
    while they are compared.
    """
    inputs = task.payload
    of_parts = (occurrences(n, part.filter("is_held")) for n, part in sketch_tables(inputs))
    held = pl.concat([NO_OCCURRENCES, *of_parts])
    found = find_candidates(held, occurrences_of(inputs, held["hash"]))
    ngrams = pl.concat([NO_OCCURRENCES, *candidate_ngrams(inputs, found)])
    shares = worst_shares(ngrams, held, occurrences_of(inputs, ngrams["hash"]))
    keys = pl.DataFrame(inputs.keys, KEYS, orient="row")
    is_left_out = pl.col("share") > MOST_SHARE
    table = shares.select("doc_id", "held_doc_id", "share", is_left_out=is_left_out).with_columns(
        keys[shares["part"]]
    )
    sources = table.sort("source").group_by("source", maintain_order=True)
    worst = (pl.col("share").filter(~pl.col("is_left_out")).max() * 1e6).cast(pl.Int64)
    numbers = LeakageNumbers(
        left_out=dict(sources.agg(pl.sum("is_left_out")).iter_rows()),
        worst=dict(sources.agg(worst.fill_null(0)).iter_rows()),
    )
    writer = task.writer()
    writer.write_parquet(SHARES, table)
    return [writer.publish(Stats(numbers=numbers))]


def sketch_tables(inputs: LeakageInputs) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield the number and the sketches of each part."""
    files = inputs.sketches.read() if inputs.sketches else ()
    for number, file in enumerate(files):
        yield number, map_arrow(file.checked())


def occurrences_of(inputs: LeakageInputs, hashes: pl.Series) -> list[pl.DataFrame]:
    """Return where some n-grams are in the sketches, by part."""
    wanted = hashes.unique()
    return [first_occurrences(number, table, wanted) for number, table in sketch_tables(inputs)]


def candidate_ngrams(inputs: LeakageInputs, found: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield all n-grams of the candidates of each part that has any, from their texts."""
    for (number, *_), rows in found.group_by("part", maintain_order=True):
        texts = read_some(inputs.documents[number], rows["doc_id"], ["doc_id", "text"])
        yield occurrences(number, sketch(texts.with_columns(is_held=True)))


def describe_leakage(corpus: Corpus, manifest: LeakageManifest) -> Metadata:
    """Report the documents that are left out, and the largest share of those that are not."""
    numbers = manifest.stats.numbers
    worst = {source: share / 1e6 for source, share in numbers.worst.items()}
    return {"documents": None, "left_out": numbers.left_out, "worst": worst}


STAGE = Stage(
    *LEAKAGE.fields(),
    description="Documents for training that share much of their text with a held-out one.",
    group="train",
    partitions="none",
    after=(stage_names.DEDUPED, stage_names.HELD_OUT),
    outlook=Outlook("new", cpu_per_mb=0.03),
    kinds=frozenset({"arrow", "numba"}),
    settings=lambda settings: settings.holds_out,
    plan=plan_leakage,
    work=sketch_part,
    is_used=lambda settings: settings.holds_out,
    main_table=MainTable(SHARES, LEAKAGE_COLUMNS),
    run=in_passes(
        Pass(sketch_part, lambda _, tasks, __: tasks[:-1]), Pass(publish_shares, plan_result)
    ),
    describe=describe_leakage,
)
