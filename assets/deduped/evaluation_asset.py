"""evaluation: the n-grams of all evaluation sets, which `deduped` looks for in documents."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import polars as pl

from assets.deduped.decontamination.evaluation_files import find_evaluation_files, read_items
from assets.deduped.decontamination.evaluation_index import (
    REPEATED,
    TOO_SHORT,
    EvaluationIndex,
    build_index,
)
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.settings.decontamination import DecontaminationConfig
from resources.stage import Stage
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL, Plan, Task

NOT_CONFIGURED = (
    "Not configured: pipeline.yaml has no `dedup.decontamination`, so no document is compared "
    "with evaluation sets."
)
TABLES = ("items", "ngrams", "filter")


def plan_evaluation(corpus: Corpus, partition: str) -> Plan:
    """One task over the files of every set; none if `dedup.decontamination` is not configured."""
    config = corpus.settings.dedup.decontamination
    if config is None:
        return Plan([], {})
    dump = config.indexing()
    files = find_evaluation_files(config, corpus.config.parent, corpus.downloads)
    digests = [(each.name, file.name, file.digest) for each, file in files]
    task = Task(
        root=corpus.store.root,
        stage=EVALUATION.name,
        partition=partition,
        name="index",
        fingerprint=fingerprint_of(
            EVALUATION.name, EVALUATION.code_version, dump, unidata_version, digests
        ),
        work_bytes=sum(file.bytes for _, file in files),
        payload={"config": config, "files": files},
    )
    return Plan([task], dump)


def index_items(task: Task) -> list[PartRecord]:
    """Read the items of every set, and publish them with their n-grams."""
    config: DecontaminationConfig = task.payload["config"]
    items, quarantine = read_items(task.payload["files"])
    index = build_index(items, config.ngram, config.min_item_words)
    writer = task.writer()
    for name, table in zip(TABLES, (index.items, index.ngrams, index.filter), strict=True):
        writer.write_parquet(name, table)
    if quarantine.height:
        writer.write_parquet("quarantine", quarantine)
    reasons = dict(index.items["reason"].drop_nulls().value_counts().sort("reason").iter_rows())
    kept = index.items.filter(pl.col("reason").is_null())
    num_bytes = count_bytes(items["text"])
    stats = Stats(
        rows_in=items.height + quarantine.height,
        rows_kept=kept.height,
        rejected=reasons,
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers={
            "files": len(task.payload["files"]),
            "ngrams": index.ngrams.height,
        },
    )
    return [writer.publish(stats)]


def describe_evaluation(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Items of each set, and those that are not looked for, with the reason."""
    files = index_files(corpus, manifest)
    if files is None:
        return {"report": NOT_CONFIGURED}
    counted = (
        pl.scan_parquet(files.items)
        .group_by("set", maintain_order=True)
        .agg(
            pl.len(),
            pl.col("num_ngrams").sum(),
            too_short=(pl.col("reason") == TOO_SHORT).sum(),
            repeated=(pl.col("reason") == REPEATED).sum(),
        )
        .collect()
    )
    rows = "".join(
        f"| {name} | {items:,} | {ngrams:,} | {short:,} | {repeated:,} |\n"
        for name, items, ngrams, short, repeated in counted.iter_rows()
    )
    quarantined = manifest.stats.quarantined
    return {
        "report": "| set | items | n-grams | too short | repeated |\n|---|---|---|---|---|\n"
        f"{rows}\n{quarantined:,} records could not be read."
    }


@dataclass(frozen=True)
class IndexFiles:
    """Where a published index lies: small, for tasks that cross a process border."""

    items: Path
    ngrams: Path
    filter: Path


def index_files(corpus: Corpus, manifest: Manifest) -> IndexFiles | None:
    """The files of a manifest's index, None if nothing was configured."""
    if not manifest.parts:
        return None
    files = [required_file(manifest, manifest.parts[0], name) for name in TABLES]
    return IndexFiles(*(corpus.store.path_of(manifest, file) for file in files))


def find_evaluation_index(corpus: Corpus) -> tuple[IndexFiles, str] | None:
    """(files, fingerprint) of the index, None if `dedup.decontamination` is not configured.

    Raises StoreError if it is missing, or was made under another config.
    """
    config = corpus.settings.dedup.decontamination
    if config is None:
        return None
    manifest = corpus.store.newest(EVALUATION.name, GLOBAL)
    files = index_files(corpus, manifest)
    if files is None or manifest.config != config.indexing():
        raise StoreError(
            "evaluation[all] was made under another config than pipeline.yaml's. "
            "Materialize `evaluation` first."
        )
    return files, manifest.parts[0].fingerprint


@lru_cache(maxsize=1)
def load_index(files: IndexFiles) -> EvaluationIndex:
    """Read a published index, once per process: its file names carry its fingerprint."""
    return EvaluationIndex(
        pl.read_parquet(files.items), pl.read_parquet(files.ngrams), pl.read_parquet(files.filter)
    )


EVALUATION = Stage(
    name="evaluation",
    code_version="1",
    description="The n-grams of the evaluation sets that the corpus must not hold.",
    partitions="none",
    after=(),
    kinds=frozenset({"numba", "parquet"}),
    provenance=dict,
    numbers=dict,
    plan=plan_evaluation,
    work=index_items,
    describe=describe_evaluation,
)
