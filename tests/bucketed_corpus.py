"""Bucketed parts as that stage leaves them, and runs of `sharded` over them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from builders import open_corpus, write_corpus

from assets.bucketed.bucketed_records import SEQUENCE_IDS
from assets.bucketed.sequences import SPAN, sequence_ids
from assets.sharded.asset import PASSES, plan_sharded, write_shard
from assets.sharded.asset import STAGE as SHARDED
from assets.sharded.ledger_files import write_ledger
from assets.sharded.plan_files import plan_index, plan_shards
from resources.materialize.materialization import manifest_of
from resources.passes import run_passes
from resources.store.records import Manifest, PartRecord, Stats, add_stats, fingerprint_of
from resources.store.store import PartWriter
from resources.tasks import Outcome, Plan, Task, Work

LENGTH = 8
WIDTHS = {"uint16": pl.UInt16, "uint32": pl.UInt32}
PACKED = {"mode": "pack", "sequence_length": LENGTH}


def sequences(first: int, count: int, dtype: str = "uint16", length: int = LENGTH) -> pl.DataFrame:
    """A bucketed part whose sequence i is i, i, ..., and one document that pads its last token."""
    numbers = range(first, first + count)
    return pl.DataFrame(
        {
            "bucket": [0] * count,
            "num_tokens": [length - 1] * count,
            "tokens": [[number % 60_000] * length for number in numbers],
            "spans": [
                [{"doc_id": f"{number:032x}", "start": 3, "length": length - 1}]
                for number in numbers
            ],
        },
        schema={
            "bucket": pl.UInt8,
            "num_tokens": pl.UInt32,
            "tokens": pl.List(WIDTHS[dtype]),
            "spans": pl.List(SPAN),
        },
    )


def publish_bucketed(corpus: Any, parts: list[pl.DataFrame], source: str = "prose") -> None:
    """What `bucketed` would have published."""
    folder = corpus.store.partition("bucketed", source)
    dtype = "uint32" if parts and parts[0].schema["tokens"] == pl.List(pl.UInt32) else "uint16"
    names = ["0-8", "9-up"] if corpus.settings.buckets.mode == "buckets" else [str(LENGTH)]
    about = {
        "tokenizer_fingerprint": "f" * 64,
        "vocab_size": 60_000,
        "end_of_document": "<end>",
        "end_of_document_id": 0,
        "begin_of_document": None,
        "begin_of_document_id": None,
        "token_dtype": dtype,
        "deduped": "d" * 32,
        "tokenized": "c" * 32,
    }
    records = [publish_part(folder, names, number, part) for number, part in enumerate(parts)]
    config = corpus.settings.buckets.model_dump(mode="json")
    made_of = fingerprint_of([record.fingerprint for record in records], config, about)
    stats = add_stats(record.stats for record in records)
    with folder.writing(3):
        folder.commit(
            Manifest("bucketed", source, made_of, "1", config, tuple(records), stats, about)
        )


def publish_part(folder: Any, names: list[str], number: int, part: pl.DataFrame) -> PartRecord:
    content = part.write_ipc(None).getvalue()
    writer = PartWriter(folder, f"{number:04d}", hashlib.sha256(content).hexdigest()[:32])
    writer.write_arrow("sequences", part)
    writer.write_arrays(SEQUENCE_IDS, sequence_ids(part), part["num_tokens"].to_numpy())
    by_bucket = {index: part.filter(bucket=index) for index in range(len(names))}
    counts = {names[index]: rows.height for index, rows in by_bucket.items()}
    tokens = {names[index]: int(rows["num_tokens"].sum()) for index, rows in by_bucket.items()}
    rows, num_tokens = part.height, sum(tokens.values())
    extra = {"bucket_sequences": counts, "bucket_tokens": tokens}
    stats = Stats(
        rows, rows, tokens=num_tokens, bytes=2 * num_tokens, text_bytes=rows, numbers=extra
    )
    return writer.publish(stats)


def planned(tmp_path: Path, parts: list[pl.DataFrame] | None = None, **shards: Any) -> Any:
    """(corpus, plan) with other `shards`, and with other bucketed parts if there are any."""
    config = write_corpus(
        tmp_path,
        buckets=PACKED,
        shards={"target_bytes": 1024, **shards},
        engine={"kind": "in_process", "workers": 1},
    )
    corpus = open_corpus(config)
    if parts is not None:
        publish_bucketed(corpus, parts)
    return corpus, plan_sharded(corpus, "prose")


def tasks_of(corpus: Any, plan: Plan) -> list[Task]:
    """The shards and the index that follow from the ledger, which this publishes."""
    [ledger] = plan.tasks
    records = ledger.published() or write_ledger(ledger)
    earlier = [[Outcome(ledger, records, (), True)]]
    return [*plan_shards(corpus, plan.tasks, earlier), *plan_index(corpus, plan.tasks, earlier)]


def run_sharded(corpus: Any, tasks: list[Task], work: Work = write_shard) -> list[Outcome]:
    """Run the passes of the stage, with other work on its shards."""
    passes = [replace(each, work=work) if each.work is write_shard else each for each in PASSES]
    return run_passes(corpus, tasks, passes)


def build(corpus: Any, plan: Plan, work: Work = write_shard) -> Manifest:
    folder = corpus.store.partition("sharded", "prose")
    with folder.writing(corpus.settings.keep_manifests):
        outcomes = run_sharded(corpus, plan.tasks, work)
        return folder.commit(manifest_of(SHARDED, "prose", plan, outcomes))
