"""Publish the clusters of each signed part, and what the next run compares."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import polars as pl

from assets.deduped.clusters.candidate_files import PartMembers, SignedFiles
from assets.deduped.clusters.cluster_files import DecidedPart, known_rows, rows_of_part
from assets.deduped.clusters.duplicates import IS_REMOVED
from assets.deduped.clusters.report import largest_clusters, summarize_clusters
from assets.deduped.deduped_records import DUPLICATES, DuplicatesNumbers
from assets.report.histograms import Summary
from resources.content_task import task_by_content
from resources.passes import PassFiles
from resources.store.published import PublishedFile
from resources.store.records import FileRecord, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Task


@dataclass(frozen=True)
class PublishInputs:
    """Inputs of the fourth pass over a signed part: its members, old and new decisions on them."""

    part: SignedFiles
    members: PartMembers
    before: DecidedPart | None
    decisions: PassFiles | None


class PublishedName(msgspec.Struct, frozen=True):
    """A published part of clusters: its fingerprint, and the rows of it that had a candidate."""

    fingerprint: str
    candidates: int


@dataclass(frozen=True)
class StateInputs:
    """Inputs of the last pass: the digests that the first one wrote, and the published parts."""

    digests: FileRecord
    names: dict[str, PublishedName]


class PartSummary(msgspec.Struct, frozen=True):
    """Summary file of a part: counts that add up, and its largest clusters."""

    counts: Summary
    largest: list[tuple[int, str]]


def publish_part(task: Task[PublishInputs]) -> list[PartRecord]:
    """Publish the clusters of one signed part, decided now or in the last run."""
    inputs = task.payload
    rows = [*rows_of_part(inputs.part.entry.id, inputs.decisions)]
    if inputs.before is not None:
        rows.append(known_rows(inputs.members.read(), inputs.before))
    clusters = pl.concat(rows).sort("row", maintain_order=True).rechunk()
    return [publish_clusters(task, inputs.part, clusters)]


def publish_clusters(
    task: Task[PublishInputs], part: SignedFiles, clusters: pl.DataFrame
) -> PartRecord:
    """Publish the clusters of one signed part; one that has not changed is not written again."""
    own = task_by_content(task, DUPLICATES.code_version, part.entry.fingerprint, [clusters])
    if published := own.published():
        return published[0]
    removed = clusters.filter(IS_REMOVED)["doc_id"]
    rows, num_removed = part.entry.rows, len(removed)
    writer = own.writer()
    writer.write_parquet("clusters", clusters)
    counts = summarize_clusters(clusters, part.entry.source, rows)
    summary = PartSummary(counts, largest_clusters(clusters))
    writer.write_text("summary", "json", to_json(summary).decode())
    stats = Stats(
        rows_in=rows,
        rows_kept=rows - num_removed,
        duplicates=num_removed,
        text_bytes=part.text_bytes,
        numbers=DuplicatesNumbers(*part.entry.key, fingerprint_of(sorted(removed))),
    )
    return writer.publish(stats)


def publish_state(task: Task[StateInputs]) -> list[PartRecord]:
    """Publish, after all other parts, what the next run compares to decide only changes."""
    inputs, writer = task.payload, task.writer()
    writer.link_file("digests", inputs.digests)
    writer.write_text("parts", "json", to_json(inputs.names).decode())
    return [writer.publish(Stats())]


def read_names(listed: PublishedFile) -> dict[str, PublishedName]:
    """Read the parts that `publish_state` names."""
    content = listed.checked().read_bytes()
    return msgspec.json.decode(content, type=dict[str, PublishedName])
