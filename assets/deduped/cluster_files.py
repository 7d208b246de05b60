"""Decide clusters by prefixes of a hash, carry over decisions of the last run, and publish both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import polars as pl

from assets.deduped.clusters.candidate_files import SignedFiles, list_buffers, members_of_part
from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA, IS_REMOVED, decide
from assets.deduped.clusters.report import largest_clusters, summarize_clusters
from assets.deduped.deduped_records import DUPLICATES, DuplicatesNumbers
from assets.deduped.index.band_index import rows_of, slice_of_part
from assets.report.histograms import Summary
from resources.exchange import Made, OfPrefix
from resources.passes import PassFiles
from resources.settings.dedup import DedupConfig
from resources.store.mapped_files import map_arrow
from resources.store.published import PublishedFile
from resources.store.records import FileRecord, PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Task, task_by_content

TABLE_SCHEMA = {"row": pl.UInt32, **{k: v for k, v in CLUSTER_SCHEMA.items() if k != "ref"}}


@dataclass(frozen=True)
class DecidedPart:
    """A part of the last run, its table, and the number of its rows that had a candidate."""

    fingerprint: str
    table: PublishedFile
    candidates: int


@dataclass(frozen=True)
class Decided:
    """The last run: its digests, and its parts by ledger id; None and {} if unusable."""

    digests: PublishedFile | None
    parts: dict[int, DecidedPart]


NOTHING_DECIDED = Decided(None, {})


def decide_prefix(hashes: OfPrefix[DedupConfig]) -> Made:
    """Fifth pass: decide the components with a prefix; the decisions are sorted by ref."""
    members = pl.concat(hashes.tables("members"), rechunk=True).drop("hash")
    shingles = list_buffers(members["shingles"]) if "shingles" in members.columns else None
    pairs = pl.concat(hashes.tables("pairs")).select("earlier", "later").to_numpy()
    members = members.drop("shingles", strict=False)
    return Made({"decisions": decide(members, pairs, hashes.shared, shingles)})


@lru_cache(maxsize=256)
def mapped_decisions(file: PublishedFile) -> pl.DataFrame:
    """Map the decisions with a prefix, which every part looks into: once per process."""
    return map_arrow(file.checked())


def rows_of_part(number: int, decisions: PassFiles | None) -> Iterator[pl.DataFrame]:
    """Yield the decisions on documents of one part, with rows in place of row ids."""
    yield pl.DataFrame(schema=TABLE_SCHEMA)
    for file in decisions.read() if decisions else ():
        frame = mapped_decisions(file)
        of_part = frame[slice_of_part(frame["ref"].to_numpy(), number)]
        rows = pl.Series(rows_of(of_part["ref"].to_numpy()))
        yield of_part.with_columns(row=rows).select(list(TABLE_SCHEMA))


def known_rows(inputs: PublishInputs, before: DecidedPart) -> pl.DataFrame:
    """Return the rows of a part in the last run whose components have not changed."""
    members = members_of_part(inputs.members, inputs.part.entry.id)
    rows = pl.Series(rows_of(members.row_ids[members.is_known]))
    table = pl.read_parquet(before.table.checked())
    return table.filter(pl.col("row").is_in(rows.implode()))


@dataclass(frozen=True)
class PublishInputs:
    """Inputs of the sixth pass over a signed part: all members, old and new decisions on them."""

    part: SignedFiles
    members: PassFiles
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
        rows.append(known_rows(inputs, inputs.before))
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
