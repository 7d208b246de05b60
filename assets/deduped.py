"""deduped, by way of signatures (per part) and duplicates (one clustering over all sources)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unicodedata import unidata_version

import dagster as dg
import numpy as np
import polars as pl

from assets.filtered import filtered
from assets.transforms.deduped import drop_duplicates
from assets.transforms.duplicates import choose_survivors, cluster_documents
from assets.transforms.minhash import DedupConfig
from assets.transforms.signatures import signatures as sign_documents
from pipeline_defs.partitions import SOURCES
from resources.corpus import (
    GLOBAL,
    Corpus,
    MadeBy,
    Plan,
    Task,
    part_task,
    required_file,
    stream_name,
)
from resources.records import Manifest, PartRecord, Stats, fingerprint_of
from resources.stages import Stage, run_stage, stage_asset
from resources.store import StoreError

SIGNATURES = Stage("signatures", code_version="1")
DUPLICATES = Stage("duplicates", code_version="1")
DEDUPED = Stage("deduped", code_version="1")
NOTHING_SIGNED = {"source": "", "part": "", "stats": Stats()}


@stage_asset(SIGNATURES, deps=[filtered], partitions=SOURCES, kinds={"numba", "parquet"})
def signatures(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """For each document a hash of its text and a MinHash signature with its LSH bands."""
    return run_stage(context, SIGNATURES, plan_signatures, sign_part)


def plan_signatures(corpus: Corpus, source: str) -> Plan:
    """One task per filtered part."""
    manifest = corpus.store.newest("filtered", source)
    config = corpus.settings.dedup
    dump = config.model_dump(mode="json")
    made_by = MadeBy(
        SIGNATURES.name, SIGNATURES.code_version, dump, (unidata_version,), {"config": config}
    )
    tasks = [part_task(corpus, manifest, part, "documents", made_by) for part in manifest.parts]
    return Plan(tasks, dump, {"filtered": manifest.fingerprint})


def sign_part(task: Task) -> list[PartRecord]:
    """Sign one part."""
    documents = pl.read_parquet(task.spec["path"], columns=["doc_id", "text"])
    writer = task.writer()
    writer.write_parquet("signatures", sign_documents(documents, task.spec["config"]))
    num_bytes = int(documents["text"].str.len_bytes().sum())
    rows = documents.height
    return [writer.publish(Stats(rows, rows, bytes=num_bytes, text_bytes=num_bytes))]


@stage_asset(DUPLICATES, deps=[signatures], partitions=None, kinds={"numba", "parquet"})
def duplicates(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Clusters of equal and near-equal documents over all sources, and which of each stays."""
    return run_stage(context, DUPLICATES, plan_duplicates, find_duplicates)


def plan_duplicates(corpus: Corpus, partition: str) -> Plan:
    """One task over the signatures of every source; it publishes a part per signed part."""
    manifests = [corpus.store.newest("signatures", s) for s in corpus.settings.source_names()]
    config = corpus.settings.dedup
    dump = config.model_dump(mode="json")
    signed = [(manifest, part) for manifest in manifests for part in manifest.parts]
    task = Task(
        root=corpus.store.root,
        stage=DUPLICATES.name,
        partition=partition,
        name="clusters",
        fingerprint=fingerprint_of(
            DUPLICATES.name,
            DUPLICATES.code_version,
            dump,
            [(manifest.partition, part.name, part.fingerprint) for manifest, part in signed],
        ),
        work_bytes=sum(required_file(m, part, "signatures").bytes for m, part in signed),
        spec={"parts": [signed_part(corpus, *item) for item in signed], "config": config},
        is_stream=True,
    )
    return Plan([task], dump, {"signatures": [manifest.fingerprint for manifest in manifests]})


def signed_part(corpus: Corpus, manifest: Manifest, part: PartRecord) -> dict[str, Any]:
    """What the clustering must know of one part of signatures."""
    path = corpus.store.path_of(manifest, required_file(manifest, part, "signatures"))
    return {
        "source": manifest.partition,
        "part": part.name,
        "path": path,
        "stats": part.stats,
    }


def find_duplicates(task: Task) -> list[PartRecord]:
    """Cluster all documents, one band in memory at a time; list the removed ones by part."""
    parts, config = task.spec["parts"], task.spec["config"]
    paths = [part["path"] for part in parts]
    if not paths:
        return [publish_removed(task, 0, NOTHING_SIGNED, None, True)]
    hashes = read_column(paths, "text_hash")
    labels = cluster_documents(
        hashes if config.exact else hashes.clear(len(hashes)), bands(paths, config)
    )
    removed = choose_survivors(read_members(paths, labels))
    return [
        publish_removed(
            task, number, part, removed.filter(part_index=number), number == len(parts) - 1
        )
        for number, part in enumerate(parts)
    ]


def bands(paths: list[Path], config: DedupConfig) -> Iterator[pl.Series]:
    """One LSH band of all documents at a time: 8 bytes a document."""
    if config.near:
        for band in range(config.bands):
            yield read_column(paths, f"band_{band:02d}")


def read_column(paths: list[Path], column: str) -> pl.Series:
    """One column of many files, in order."""
    return pl.concat([pl.read_parquet(path, columns=[column]) for path in paths])[column]


def read_members(
    paths: list[Path], labels: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> pl.DataFrame:
    """The rows of documents that share their cluster with another."""
    _, inverse, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    is_member = sizes[inverse] > 1
    members = []
    start = 0
    for index, path in enumerate(paths):
        rows = pl.read_parquet(path, columns=["doc_id", "num_chars", "text_hash", "signature"])
        stop = start + rows.height
        rows = rows.with_columns(
            cluster=pl.Series(labels[start:stop]), part_index=pl.lit(index, pl.Int64)
        )
        members.append(rows.filter(pl.Series(is_member[start:stop])))
        start = stop
    return pl.concat(members)


def publish_removed(
    task: Task, number: int, part: dict[str, Any], removed: pl.DataFrame | None, is_last: bool
) -> PartRecord:
    """Publish the removed documents of one signed part."""
    writer = task.writer(stream_name(task.name, number))
    doc_ids: list[str] = []
    if removed is not None:
        table = removed.drop("part_index").sort("doc_id")
        writer.write_parquet("removed", table)
        doc_ids = table["doc_id"].to_list()
    count, rows, text_bytes = len(doc_ids), part["stats"].rows_kept, part["stats"].text_bytes
    extra = {
        "source": part["source"],
        "part": part["part"],
        "removed_ids": fingerprint_of(doc_ids),
        "is_last": is_last,
    }
    return writer.publish(
        Stats(rows, rows - count, duplicates=count, text_bytes=text_bytes, extra=extra)
    )


@stage_asset(DEDUPED, deps=[filtered, duplicates], partitions=SOURCES, kinds={"polars", "parquet"})
def deduped(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Filtered documents without those that another document stands for."""
    return run_stage(context, DEDUPED, plan_deduped, dedup_part)


def plan_deduped(corpus: Corpus, source: str) -> Plan:
    """One task per filtered part; it depends on which of that part's documents are removed."""
    manifest = corpus.store.newest("filtered", source)
    clusters = corpus.store.newest("duplicates", GLOBAL)
    check_up_to_date(corpus, manifest, clusters)
    clustered = {
        part.stats.extra["part"]: part
        for part in clusters.parts
        if part.stats.extra["source"] == source
    }
    tasks = []
    for part in manifest.parts:
        removed = clustered[part.name]
        made_by = MadeBy(
            DEDUPED.name,
            DEDUPED.code_version,
            {},
            inputs=(removed.stats.extra["removed_ids"],),
            spec={
                "removed": corpus.store.path_of(
                    clusters, required_file(clusters, removed, "removed")
                )
            },
        )
        tasks.append(part_task(corpus, manifest, part, "documents", made_by))
    return Plan(tasks, {}, {"filtered": manifest.fingerprint})


def check_up_to_date(corpus: Corpus, filtered: Manifest, clusters: Manifest) -> None:
    """StoreError if the clusters were made of other documents than the newest ones.

    A survivor may lie in any source: with clusters of yesterday a document could be dropped for one
    that is no longer there.
    """
    signed = [corpus.store.newest("signatures", name) for name in corpus.settings.source_names()]
    mine = next(manifest for manifest in signed if manifest.partition == filtered.partition)
    if mine.about["filtered"] != filtered.fingerprint:
        raise StoreError(
            f"signatures[{filtered.partition}] are of other documents than the newest "
            f"filtered[{filtered.partition}]. Materialize `signatures` for "
            f"{filtered.partition!r}, then `duplicates`, first."
        )
    if clusters.about["signatures"] != [manifest.fingerprint for manifest in signed]:
        raise StoreError(
            "duplicates[all] are of other signatures than the newest ones. Materialize "
            "`duplicates` first."
        )


def dedup_part(task: Task) -> list[PartRecord]:
    """Drop the removed documents of one part."""
    documents = pl.read_parquet(task.spec["path"])
    kept = drop_duplicates(documents, pl.read_parquet(task.spec["removed"]))
    writer = task.writer()
    writer.write_parquet("documents", kept)
    stats = Stats(
        rows_in=documents.height,
        rows_kept=kept.height,
        duplicates=documents.height - kept.height,
        bytes=int(kept["text"].str.len_bytes().sum()),
        text_bytes=int(documents["text"].str.len_bytes().sum()),
    )
    return [writer.publish(stats)]
