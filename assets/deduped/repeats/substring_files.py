"""What each pass of `substrings` does to its part, or to the hashes with its prefix.

`substrings.py` plans them. What a pass writes is mapped from disk by later ones: a prefix takes
`dedup.memory_bytes` over SIMULTANEOUS at most, if every run of its text repeats.
"""

import polars as pl

from assets.deduped.clusters.removal_files import remaining
from assets.deduped.index.hash_prefixes import keys_with_prefix
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
from assets.text.table_rows import count_bytes, rows_between
from resources.store.records import PartRecord, Stats, fingerprint_of, to_json
from resources.tasks import Task


def find_picks(task: Task) -> list[PartRecord]:
    """First pass: the picks of a part's runs."""
    texts, spec = documents_of(task)["text"], task.payload
    return publish_tables(task, picks=fingerprints(texts, spec["config"], spec["salt"]))


def find_twice(task: Task) -> list[PartRecord]:
    """Second pass: the picks with a prefix that occur twice or more."""
    return publish_tables(task, twice=shared_picks(numbered(of_prefix(task, "picks", "picks"))))


def find_runs(task: Task) -> list[PartRecord]:
    """Third pass: the runs of a part whose picks occur twice or more."""
    spec = task.payload
    shared = answers(task, "twice")["hash"]
    runs = candidate_runs(documents_of(task)["text"], shared, spec["config"], spec["salt"])
    return publish_tables(task, runs=runs, distinct=distinct_runs(runs))


def find_elsewhere(task: Task) -> list[PartRecord]:
    """Fourth pass: the runs with a prefix that stand in an earlier part, or in any other."""
    runs = numbered(of_prefix(task, "runs", "distinct"))
    return publish_tables(task, elsewhere=shared_runs(runs, task.payload["config"].keep_first))


def find_spans(task: Task) -> list[PartRecord]:
    """Last pass: the spans of a part, as bytes of its documents."""
    spec, documents = task.payload, documents_of(task)
    runs = mapped(spec["runs"], "runs")
    words = repeated_words(runs, answers(task, "elsewhere"), spec["config"])
    spans = located_spans(documents, words)
    writer = task.writer()
    writer.write_parquet("spans", spans)
    writer.write_text("longest", "json", to_json(longest_spans(documents, spans)).decode())
    rows, text_bytes = documents.height, count_bytes(documents["text"])
    extra = {
        "source": spec["source"],
        "part": spec["part"],
        "spans_id": fingerprint_of(spans.rows()),
        "spans": spans.height,
        "span_words": int(spans["num_words"].sum()),
        "span_bytes": int((spans["stop"] - spans["start"]).sum()),
        "cut_documents": spans["doc_id"].n_unique(),
    }
    return [
        writer.publish(Stats(rows, rows, bytes=text_bytes, text_bytes=text_bytes, numbers=extra))
    ]


def documents_of(task: Task) -> pl.DataFrame:
    """doc_id and text of a part's documents that stay, in order."""
    return remaining(task.payload["path"], task.payload["removals"], ["doc_id", "text"])


def publish_tables(task: Task, **tables: pl.DataFrame) -> list[PartRecord]:
    """Publish tables that a later pass maps into memory."""
    writer = task.writer()
    for kind, table in tables.items():
        writer.write_arrow(kind, table)
    return [writer.publish(Stats())]


def of_prefix(task: Task, earlier: str, kind: str) -> list[pl.DataFrame]:
    """Of the tables of an earlier pass, sorted by hash, the rows with the task's prefix."""
    edges = keys_with_prefix(*task.payload["place"])
    return [rows_between(mapped(part, kind), "hash", edges) for part in task.payload[earlier]]


def answers(task: Task, earlier: str) -> pl.DataFrame:
    """What an earlier pass answered to the task's part, of all prefixes."""
    edges = task.payload["number"], task.payload["number"]
    return pl.concat(
        [rows_between(mapped(prefix, earlier), "part", edges) for prefix in task.payload[earlier]]
    )


def mapped(task: Task, kind: str) -> pl.DataFrame:
    """A table of an earlier pass, mapped from disk."""
    return pl.read_ipc(task.published_file(kind)[0])
