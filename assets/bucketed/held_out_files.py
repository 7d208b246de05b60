"""Passes over signed parts that decide which of their documents are held out of training."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
import polars as pl

from assets.bucketed.bucketed_records import HELD_OUT, HeldOutNumbers
from assets.bucketed.held_out import (
    HELD,
    MARK_SCHEMA,
    Shares,
    decide,
    held_clusters,
    marks_of,
    mixed_clusters,
)
from assets.deduped.index.ledger import Generations
from resources.passes import PassFiles
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, fingerprint_of
from resources.store.store import StoreError
from resources.tasks import Task, task_by_content

DECISION_SCHEMA = {"doc_id": pl.String, "is_held": pl.Boolean}
CLUSTER_SCHEMA = {"doc_id": pl.String, "cluster_id": pl.String, "cluster_size": pl.UInt32}
STATE_SCHEMA = {"part": pl.String, **MARK_SCHEMA}


@dataclass(frozen=True)
class Exported:
    """Decisions of another build: on rows up to the `newest` generation, and what it held out."""

    newest: int
    held_out: tuple[str, ...]


@dataclass(frozen=True)
class PartInputs:
    """Inputs of one part; `before` are decisions of the last run that can be on its documents."""

    numbers: HeldOutNumbers
    shares: Shares
    signatures: PublishedFile
    clusters: PublishedFile | None  # None: no document is in a cluster
    text_bytes: int
    generations: Generations
    before: tuple[PublishedFile, ...] = ()
    exported: Exported | None = None


@dataclass(frozen=True)
class DecideInputs:
    """Inputs of the third pass over a part: the clusters that are held out."""

    part: PartInputs
    held: PublishedFile


@dataclass(frozen=True)
class StayingInputs:
    """Inputs of a part that stays as it was, to make it again if a file of it is lost.

    `decisions` and `marks` are its own files, None if lost; `all_marks` those of all parts.
    """

    part: PartInputs
    decisions: PublishedFile | None
    marks: PublishedFile | None
    all_marks: PublishedFile | None


@dataclass(frozen=True)
class MarksInputs:
    """Marks of all parts: those that the last run left, and the new ones of some parts.

    `stale` are the parts that have new ones, or are gone; `names` those of `marks`.
    """

    before: PublishedFile | None
    stale: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    marks: PassFiles | None = None

    def read(self) -> pl.DataFrame:
        """Read the marks of all parts, with the column part."""
        tables = [pl.DataFrame(schema=STATE_SCHEMA)]
        if self.before is not None:
            known = pl.read_parquet(self.before.checked())
            tables.append(known.filter(~pl.col("part").is_in(list(self.stale))))
        for name, file in zip(self.names, self.marks.read() if self.marks else (), strict=True):
            table = pl.read_parquet(file.checked())
            tables.append(table.select(pl.lit(name).alias("part"), *MARK_SCHEMA))
        return pl.concat(tables).sort("part", "cluster_id", "doc_id")


def mark_part(task: Task[PartInputs]) -> list[PartRecord]:
    """First pass: mark the documents of one part by what was decided before."""
    inputs, writer = task.payload, task.writer()
    marks = marks_of(read_known(inputs), read_clusters(inputs), inputs.shares)
    writer.write_parquet("marks", marks)
    return [writer.publish(Stats())]


def join_marks(task: Task[MarksInputs]) -> list[PartRecord]:
    """Second pass: find the clusters that are held out."""
    writer = task.writer()
    writer.write_parquet("held", held_clusters(task.payload.read()).to_frame())
    return [writer.publish(Stats())]


def decide_part(task: Task[DecideInputs | StayingInputs]) -> list[PartRecord]:
    """Third pass: decide one part; one whose decisions are as they were is not written again.

    Raises StoreError for a part that has lost its decisions, if they cannot be told.
    """
    inputs, clusters = task.payload.part, read_clusters(task.payload.part)
    if isinstance(task.payload, StayingInputs):
        decisions = read_again(task.name, task.payload, clusters)
    else:
        held = pl.read_parquet(task.payload.held.checked())["cluster_id"]
        decisions = decide(read_known(inputs), clusters, held, inputs.shares.own)
    numbers, marks = inputs.numbers, marks_of(decisions, clusters, inputs.shares)
    ids = sorted(decisions.filter("is_held")["doc_id"])
    numbers = msgspec.structs.replace(
        numbers, held=len(ids), held_ids=fingerprint_of(ids) if ids else ""
    )
    own = task_by_content(
        task, HELD_OUT.code_version, msgspec.to_builtins(numbers), [decisions, marks]
    )
    if isinstance(task.payload, StayingInputs) and own.fingerprint != task.fingerprint:
        raise StoreError(
            f"{task.title} has lost its decisions, and not all can be told from what is left. "
            "Restore its files, or go back to an earlier state with `corpus states rollback`."
        )
    if published := own.published():
        return published
    writer, rows = own.writer(), decisions.height
    writer.write_parquet("decisions", decisions)
    writer.write_parquet("marks", marks)
    return [writer.publish(Stats(rows, rows, text_bytes=inputs.text_bytes, numbers=numbers))]


def publish_marks(task: Task[MarksInputs]) -> list[PartRecord]:
    """Last pass: publish the marks of all parts, and the clusters with both kinds of documents."""
    marks = task.payload.read()
    mixed = mixed_clusters(marks)
    numbers = HeldOutNumbers(mixed=mixed.height, trained=int(mixed["trained"].sum()))
    own = task_by_content(task, HELD_OUT.code_version, msgspec.to_builtins(numbers), [marks, mixed])
    if published := own.published():
        return published
    writer = own.writer()
    writer.write_parquet("marks", marks)
    writer.write_parquet("mixed", mixed)
    return [writer.publish(Stats(numbers=numbers))]


def read_known(inputs: PartInputs) -> pl.DataFrame:
    """Return doc_id and is_held of all documents of a part; is_held is null of undecided ones."""
    doc_ids = map_arrow(inputs.signatures.checked(), ["doc_id"])
    if inputs.exported is not None:
        spans = np.array(inputs.generations, np.int64).reshape(-1, 2)
        places = np.searchsorted(spans[:, 0], np.arange(doc_ids.height), side="right")
        is_known = pl.Series(spans[places, 1] <= inputs.exported.newest)
        is_held = doc_ids["doc_id"].is_in(list(inputs.exported.held_out))
        return doc_ids.with_columns(is_held=pl.when(is_known).then(is_held))
    tables = [pl.read_parquet(file.checked()) for file in inputs.before]
    before = pl.concat([pl.DataFrame(schema=DECISION_SCHEMA), *tables])
    return doc_ids.join(before, on="doc_id", how="left", maintain_order="left")


def read_again(name: str, inputs: StayingInputs, clusters: pl.DataFrame) -> pl.DataFrame:
    """Return the decisions on a part that has lost a file, from its other file or all marks."""
    if inputs.decisions is not None:
        return pl.read_parquet(inputs.decisions.checked())
    if inputs.marks is not None:
        marks = pl.read_parquet(inputs.marks.checked())
    elif inputs.all_marks is not None:
        marks = pl.read_parquet(inputs.all_marks.checked()).filter(pl.col("part") == name)
    else:
        marks = pl.DataFrame(schema=MARK_SCHEMA)
    doc_ids = map_arrow(inputs.part.signatures.checked(), ["doc_id"])
    nothing = doc_ids.with_columns(is_held=pl.lit(None, pl.Boolean))
    held = marks.filter(pl.col("mark") == HELD)["doc_id"]
    no_cluster = pl.Series("cluster_id", [], pl.String)
    decided = decide(nothing, clusters, no_cluster, inputs.part.shares.own)
    return decided.with_columns(is_held=pl.col("is_held") | pl.col("doc_id").is_in(held.implode()))


def read_clusters(inputs: PartInputs) -> pl.DataFrame:
    """Return doc_id, cluster_id and cluster_size of the documents of a part in clusters."""
    if inputs.clusters is None:
        return pl.DataFrame(schema=CLUSTER_SCHEMA)
    return pl.read_parquet(inputs.clusters.checked(), columns=list(CLUSTER_SCHEMA))
