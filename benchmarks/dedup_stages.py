"""The stages of deduplication as the assets run them, without Dagster: what benchmarks measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from resources.corpus import Corpus
from resources.materialize.materialization import Stage, manifest_of
from resources.run_tasks import all_at_once, run_partitions, run_tasks
from resources.settings.pipeline import load_settings
from resources.store.records import Manifest, PartRecord, Stats, fingerprint_of
from resources.store.store import Store
from resources.tasks import GLOBAL, Plan, RunStage, Task, Work

AS_TASKS = all_at_once(run_tasks)
STAGES = ("signatures", "band_index", "duplicates", "deduped")


def empty_corpus(folder: Path, sources: Sequence[str], *, workers: int, **dedup: Any) -> Corpus:
    """A corpus below `folder` with these sources and nothing in its store."""
    config = {
        "store": "store",
        "sources": [{"name": name, "where": "none/*"} for name in sources],
        "phases": [{"name": "main", "weights": dict.fromkeys(sources, 1.0)}],
        "dedup": dedup,
        "keep_manifests": 1,
        "engine": {"kind": "in_process", "workers": workers},
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pipeline.yaml"
    path.write_text(yaml.safe_dump(config))
    return Corpus(load_settings(path), path, Store(folder / "store"))


def publish(
    corpus: Corpus,
    stage: Stage,
    partition: str,
    plan: Plan,
    work: Work,
    run: RunStage = AS_TASKS,
) -> Manifest:
    """Compute what is missing of a plan and commit it, as `run_stage` does."""
    folder = corpus.store.partition(stage.name, partition)
    with folder.writing(corpus.settings.keep_manifests):
        groups = run(corpus, plan.tasks, work, run_partitions)
        outcomes = [outcome for group in groups for outcome in group]
        return folder.commit(manifest_of(stage, partition, plan, outcomes))


def publish_filtered(corpus: Corpus, source: str, documents: pl.DataFrame, parts: int) -> None:
    """Publish documents (doc_id, text and what else `filtered` writes) as parts of a source."""
    from assets.filtered.asset import STAGE as FILTERED
    from assets.filtered.filtered_records import FilteredProvenance

    folder, name = corpus.store.root, FILTERED.name
    size = -(-documents.height // parts)
    tasks = [
        Task(folder, name, source, f"{i:04d}", fingerprint_of(name, i), 0, {"rows": rows})
        for i, rows in enumerate(documents.iter_slices(size))
    ]
    publish(corpus, FILTERED, source, Plan(tasks, {}, FilteredProvenance("")), write_documents)


def write_documents(task: Task) -> list[PartRecord]:
    """The part of some documents that are in memory, with decisions that say nothing."""
    documents: pl.DataFrame = task.payload["rows"]
    size = int(documents["text"].str.len_bytes().sum())
    writer = task.writer()
    writer.write_parquet("documents", documents)
    sizes = pl.col("text").str.len_bytes().alias("num_bytes")
    writer.write_parquet("decisions", documents.select("doc_id", sizes, kept=pl.lit(value=True)))
    return [writer.publish(Stats(documents.height, documents.height, bytes=size, text_bytes=size))]


def run_stage(corpus: Corpus, name: str) -> list[Manifest]:
    """Run one of `STAGES` over all its partitions."""
    return [publish(corpus, *step) for step in steps_of(corpus, name)]


def steps_of(corpus: Corpus, name: str) -> Iterator[Any]:
    """Arguments of `publish` for each partition of a stage, planned when it is its turn."""
    if name == "band_index":
        from assets.deduped.band_index_asset import STAGE as BAND_INDEX
        from assets.deduped.band_index_asset import plan_index

        yield BAND_INDEX, GLOBAL, plan_index(corpus, GLOBAL), BAND_INDEX.work, BAND_INDEX.run
    elif name == "duplicates":
        from assets.deduped.duplicates_asset import STAGE as DUPLICATES
        from assets.deduped.duplicates_asset import plan_duplicates

        yield DUPLICATES, GLOBAL, plan_duplicates(corpus, GLOBAL), DUPLICATES.work, DUPLICATES.run
    elif name == "signatures":
        from assets.deduped.signatures_asset import STAGE as SIGNATURES
        from assets.deduped.signatures_asset import plan_signatures, sign_part

        for source in corpus.settings.source_names():
            yield SIGNATURES, source, plan_signatures(corpus, source), sign_part
    else:
        from assets.deduped.asset import STAGE as DEDUPED
        from assets.deduped.asset import dedup_part, plan_deduped

        for source in corpus.settings.source_names():
            yield DEDUPED, source, plan_deduped(corpus, source), dedup_part


def read_clusters(corpus: Corpus) -> pl.DataFrame:
    """The newest clusters of all parts."""
    manifest = corpus.store.newest("duplicates", GLOBAL)
    frames = []
    for part in manifest.parts:
        file = part.file("clusters")
        if file is not None:
            frames.append(pl.read_parquet(corpus.store.path_of(manifest, file)))
    return pl.concat(frames)
