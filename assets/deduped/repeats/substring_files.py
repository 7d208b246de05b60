"""Passes of the stage `substrings` over one part, or over the hashes with one prefix.

`substrings_asset.py` plans them. The tables of a pass are mapped from disk by later ones: a prefix
takes at most `dedup.memory_bytes` over SIMULTANEOUS, if every run of its text repeats.
"""

from dataclasses import dataclass

import polars as pl

from assets.deduped.clusters.removal_files import Removals, remaining
from assets.deduped.deduped_records import SubstringsNumbers
from assets.deduped.repeats.substring_runs import (
    candidate_runs,
    distinct_runs,
    fingerprints,
    located_spans,
    numbered,
    repeated_words,
    shared_picks,
    shared_runs,
)
from assets.deduped.repeats.substrings import longest_spans
from assets.deduped.repeats.table_files import rows_of_part, tables_with_prefix
from assets.text.table_rows import count_bytes
from resources.passes import PassFiles
from resources.settings.repeats import SubstringsConfig
from resources.store.mapped_files import read_arrow
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Task


@dataclass(frozen=True)
class PartInputs:
    """Inputs of a pass over a filtered part; texts are compared with those of the same salt."""

    source: str
    part: str
    number: int  # in ingest order
    documents: PublishedFile
    removals: Removals
    config: SubstringsConfig
    salt: int

    def read(self) -> pl.DataFrame:
        """Read doc_id and text of the part's remaining documents, in order."""
        return remaining(self.documents, self.removals, ["doc_id", "text"])


@dataclass(frozen=True)
class HashInputs:
    """Inputs of a pass over the hashes with a prefix: the tables of the parts' earlier pass.

    `place` is the prefix and its number of bits.
    """

    place: tuple[int, int]
    config: SubstringsConfig
    parts: PassFiles


@dataclass(frozen=True)
class RunsInputs:
    """Inputs of the third pass over a part: the tables of picks that occur twice."""

    of_part: PartInputs
    twice: PassFiles


@dataclass(frozen=True)
class SpansInputs:
    """Inputs of the last pass over a part: its runs, and the tables of runs found elsewhere."""

    of_part: PartInputs
    runs: PublishedFile
    elsewhere: PassFiles


def find_picks(task: Task[PartInputs]) -> list[PartRecord]:
    """First pass: find the picks of a part's runs."""
    inputs = task.payload
    return publish_tables(
        task, picks=fingerprints(inputs.read()["text"], inputs.config, inputs.salt)
    )


def find_twice(task: Task[HashInputs]) -> list[PartRecord]:
    """Second pass: find the picks with a prefix that occur twice or more."""
    return publish_tables(task, twice=shared_picks(numbered_rows(task.payload)))


def find_runs(task: Task[RunsInputs]) -> list[PartRecord]:
    """Third pass: find the runs of a part whose picks occur twice or more.

    A part without any is not read.
    """
    inputs = task.payload.of_part
    shared = rows_of_part(task.payload.twice, inputs.number)["hash"]
    texts = inputs.read()["text"] if len(shared) else pl.Series(dtype=pl.String)
    runs = candidate_runs(texts, shared, inputs.config, inputs.salt)
    return publish_tables(task, runs=runs, distinct=distinct_runs(runs))


def find_elsewhere(task: Task[HashInputs]) -> list[PartRecord]:
    """Fourth pass: find the runs with a prefix that occur in an earlier part, or in any other."""
    runs = numbered_rows(task.payload)
    return publish_tables(task, elsewhere=shared_runs(runs, task.payload.config.keep_first))


def find_spans(task: Task[SpansInputs]) -> list[PartRecord]:
    """Last pass: find the spans of a part, as bytes of its documents."""
    inputs = task.payload.of_part
    documents = inputs.read()
    elsewhere = rows_of_part(task.payload.elsewhere, inputs.number)
    words = repeated_words(read_arrow(task.payload.runs.checked()), elsewhere, inputs.config)
    spans = located_spans(documents, words)
    writer = task.writer()
    writer.write_parquet("spans", spans)
    writer.write_text("longest", "json", to_json(longest_spans(documents, spans)).decode())
    rows, text_bytes = documents.height, count_bytes(documents["text"])
    numbers = SubstringsNumbers(
        source=inputs.source,
        part=inputs.part,
        spans_id=fingerprint_of(spans.rows()),
        spans=spans.height,
        span_words=int(spans["num_words"].sum()),
        span_bytes=int((spans["stop"] - spans["start"]).sum()),
        cut_documents=spans["doc_id"].n_unique(),
    )
    stats = Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=numbers)
    return [writer.publish(stats)]


def publish_tables(task: Task, **tables: pl.DataFrame) -> list[PartRecord]:
    """Publish tables that a later pass maps into memory."""
    writer = task.writer()
    for kind, table in tables.items():
        writer.write_arrow(kind, table)
    return [writer.publish(Stats())]


def numbered_rows(inputs: HashInputs) -> pl.DataFrame:
    """Return the rows with the prefix of all parts, with the number of each one's part."""
    return numbered(list(tables_with_prefix(inputs.parts, inputs.place)))
