"""bucketed: documents become training sequences, window by window."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import polars as pl

from assets.bucketed.make_sequences import group_windows, make_sequences
from assets.bucketed.report import readable, report_markdown, shares, warnings_of
from assets.tokenized.asset import TOKENIZED, token_bytes
from assets.tokenized.encode_documents import NO_TOKENS
from resources.corpus import Corpus
from resources.settings.buckets import BucketConfig
from resources.stage import Conclusion, Stage
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, required_file
from resources.tasks import Plan, Task


def plan_bucketed(corpus: Corpus, source: str) -> Plan:
    """One task per window of consecutive tokenized parts, named after the first of them."""
    manifest = corpus.store.newest("tokenized", source)
    config = corpus.settings.buckets
    dump = config.model_dump(mode="json")
    windows = group_windows([part.stats.tokens for part in manifest.parts], config.window_tokens)
    tasks = []
    for window in windows:
        parts = manifest.parts[window]
        files = [required_file(manifest, part, "tokens") for part in parts]
        made_of = [part.fingerprint for part in parts]
        tasks.append(
            Task(
                root=corpus.store.root,
                stage=BUCKETED.name,
                partition=source,
                name=parts[0].name,
                fingerprint=fingerprint_of(BUCKETED.name, BUCKETED.code_version, dump, made_of),
                work_bytes=sum(file.bytes for file in files),
                payload={
                    "paths": [corpus.store.path_of(manifest, file) for file in files],
                    "config": config,
                    "padding": manifest.provenance["end_of_document_id"],
                    "text_bytes": sum(part.stats.text_bytes for part in parts),
                },
            )
        )
    return Plan(tasks, dump, manifest.provenance | {"tokenized": manifest.fingerprint})


def bucket_window(task: Task) -> list[PartRecord]:
    """Make the sequences of one window, whose documents are mapped, not read into memory."""
    tables = [pl.read_ipc(path, columns=["doc_id", "tokens"]) for path in task.payload["paths"]]
    sequences, counts = make_sequences(tables, task.payload["config"], task.payload["padding"])
    writer = task.writer()
    writer.write_arrow("sequences", sequences)
    documents = sum(table.height for table in tables)
    without = counts.pop("documents_without_tokens")
    num_tokens = sum(counts["bucket_tokens"].values())
    stats = Stats(
        rows_in=documents,
        rows_kept=documents - without,
        rejected={NO_TOKENS: without} if without else {},
        tokens=num_tokens,
        bytes=num_tokens * token_bytes(sequences.schema["tokens"]),
        text_bytes=task.payload["text_bytes"],
        numbers=counts,
    )
    return [writer.publish(stats)]


def describe_bucketed(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Padding, documents cut, sequences by bucket and histograms."""
    if not manifest.parts:
        return {}
    extra = manifest.stats.numbers
    return {
        **report_markdown(extra, config_of(manifest)),
        **shares(extra, manifest.stats.rows_in),
        **{name: readable(extra[name]) for name in ("document_lengths", "sequence_documents")},
    }


def config_of(manifest: Manifest) -> BucketConfig:
    """The config that sequences were made with."""
    return BucketConfig.model_validate(manifest.config)


def warn_of_buckets(corpus: Corpus, manifest: Manifest) -> Conclusion:
    """Warn of sequences that waste space."""
    if not manifest.parts:
        return Conclusion()
    warnings = warnings_of(manifest.stats.numbers, config_of(manifest))
    return Conclusion([f"source {manifest.partition!r}: {warning}" for warning in warnings])


BUCKETED = Stage(
    name="bucketed",
    code_version="2",
    description="Training sequences by bucket, each with the spans of the documents in it.",
    partitions="source",
    after=(TOKENIZED,),
    kinds=frozenset({"arrow", "numba"}),
    provenance=dict,
    numbers=dict,
    plan=plan_bucketed,
    work=bucket_window,
    warm_up=lambda corpus: [partial(import_module, "assets.bucketed.kernels.packing_plan")],
    describe=describe_bucketed,
    conclude=warn_of_buckets,
)
