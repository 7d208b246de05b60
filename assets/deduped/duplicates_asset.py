"""duplicates: clusters of equal and near-equal documents, and which document of each stays."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import xxhash

from assets.deduped.band_index_asset import BAND_INDEX
from assets.deduped.clusters.candidate_files import (
    SignedFiles,
    Words,
    digest_components,
    known_members,
)
from assets.deduped.clusters.cluster_files import (
    NOTHING_DECIDED,
    Decided,
    decide_batches,
    known_rows,
    rows_of_part,
)
from assets.deduped.clusters.component_files import Components, find_components
from assets.deduped.clusters.duplicates import IS_REMOVED
from assets.deduped.clusters.report import duplicates_markdown, largest_clusters, summarize_clusters
from assets.deduped.dedup_warm_up import dedup_warm_ups
from assets.deduped.index.ledger import LedgerEntry
from assets.report.histograms import Summary, add_summaries
from resources.corpus import Corpus
from resources.settings.dedup import DedupConfig
from resources.stage import Stage
from resources.store.disk import has_size
from resources.store.records import (
    Manifest,
    PartRecord,
    Stats,
    fingerprint_of,
    required_file,
    to_json,
)
from resources.store.store import TEMPORARY_PREFIX, PartWriter, StoreError, part_stem
from resources.tasks import Outcome, Plan, Task, Work

STATE = "components"  # the part that tells the next run which components it need not decide again


def plan_duplicates(corpus: Corpus, partition: str) -> Plan:
    """One task over the whole index; it publishes a part per signed part."""
    index = corpus.store.newest("band_index", partition)
    signed = [corpus.store.newest("signatures", s) for s in corpus.settings.source_names()]
    fingerprints = [manifest.fingerprint for manifest in signed]
    if index.provenance["signatures"] != fingerprints:
        raise StoreError(
            "band_index[all] is of other signatures than the newest ones. Materialize "
            "`band_index` first."
        )
    config = corpus.settings.dedup
    if index.config != config.signing():
        raise StoreError(
            "band_index[all] was made under another `dedup` config than pipeline.yaml's. "
            "Materialize `signatures` and `band_index` first."
        )
    dump = config.signing() | config.clustering()
    pairs = [required_file(index, part, "pairs") for part in index.parts]
    task = Task(
        root=corpus.store.root,
        stage=DUPLICATES.name,
        partition=partition,
        name=STATE,
        fingerprint=fingerprint_of(
            DUPLICATES.name, DUPLICATES.code_version, dump, index.fingerprint
        ),
        work_bytes=sum(file.bytes for file in pairs),
        payload={
            "parts": signed_files(corpus, index, signed),
            "pairs": [corpus.store.path_of(index, file) for file in pairs if file.rows],
            "config": config,
            "decided": read_decided(corpus, index, dump),
        },
    )
    about = {
        "band_index": index.fingerprint,
        "signatures": fingerprints,
        "ledger": index.provenance["ledger"],
    }
    return Plan([task], dump, about)


def signed_files(corpus: Corpus, index: Manifest, signed: list[Manifest]) -> list[SignedFiles]:
    """Every signed part, in the order of the ledger."""
    by_key = {(m.partition, part.name): (m, part) for m in signed for part in m.parts}
    filtered = {m.partition: corpus.store.newest("filtered", m.partition) for m in signed}
    documents = {(m.partition, part.name): part for m in filtered.values() for part in m.parts}
    files = []
    for entry in msgspec.convert(index.provenance["ledger"], list[LedgerEntry]):
        manifest, part = by_key[entry.key]
        texts, of_texts = filtered[entry.source], documents.get(entry.key)
        if of_texts is None or texts.fingerprint != manifest.provenance["filtered"]:
            raise StoreError(
                f"signatures[{entry.source}] are of other documents than the newest "
                f"filtered[{entry.source}]. Materialize `signatures` for {entry.source!r} first."
            )
        path = corpus.store.path_of(manifest, required_file(manifest, part, "signatures"))
        text_path = corpus.store.path_of(texts, required_file(texts, of_texts, "documents"))
        files.append(SignedFiles(entry, path, text_path, part.stats.text_bytes))
    return files


def read_decided(corpus: Corpus, index: Manifest, dump: dict[str, Any]) -> Decided:
    """What the newest manifest decided; nothing if its config, code or ledger was another.

    An index built anew without its ledger numbers parts from 0 again: the same refs would stand for
    other documents, or for the same ones of another generation.
    """
    manifest = corpus.store.partition(DUPLICATES.name, index.partition).newest_manifest()
    if (
        manifest is None
        or manifest.config != dump
        or manifest.code_version != DUPLICATES.code_version
    ):
        return NOTHING_DECIDED
    before = {entry["id"]: entry for entry in manifest.provenance["ledger"]}
    if any(before.get(entry["id"], entry) != entry for entry in index.provenance["ledger"]):
        return NOTHING_DECIDED
    paths: dict[str, Path] = {}
    for part in manifest.parts:
        file = required_file(manifest, part, "digests" if part.name == STATE else "clusters")
        paths[part.name] = corpus.store.path_of(manifest, file)
        if not has_size(paths[part.name], file.bytes):
            return NOTHING_DECIDED
    digests = paths.pop(STATE)
    return Decided(digests, {int(name): path for name, path in paths.items()})


def run_clustering(_: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the task, unless all that it would publish is there; an outcome per part."""
    outcomes = []
    for task in tasks:
        there = set(task.folder.records.glob("*.json"))
        start = time.perf_counter()
        records = published_parts(task) or work(task)
        seconds = time.perf_counter() - start
        for record in records:
            stem = part_stem(record.name, record.fingerprint)
            is_reused = task.folder.records / f"{stem}.json" in there
            outcomes.append(Outcome(task, [record], 0.0 if is_reused else seconds, is_reused))
            seconds = seconds if is_reused else 0.0
    return outcomes


def published_parts(task: Task) -> list[PartRecord] | None:
    """The parts of a finished run, which its last part names; None if one is missing."""
    state = task.published()
    if state is None:
        return None
    path, _ = task.published_file("parts")
    names = msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    records = [task.folder.find_part(name, fingerprint) for name, fingerprint in names.items()]
    found = [record for record in records if record is not None]
    return found + state if len(found) == len(records) else None


def find_duplicates(task: Task) -> list[PartRecord]:
    """Cluster all documents in bounded memory, and publish for each signed part its clusters.

    Components of the candidate pairs first, then the facts of their members in batches of whole
    components, of which each is decided alone. Files in between lie in a folder of their own.
    """
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=task.folder.folder))
    try:
        return cluster_in(folder, task)
    finally:
        shutil.rmtree(folder)


def cluster_in(scratch: Path, task: Task) -> list[PartRecord]:
    """The steps of `find_duplicates`, with their files below `scratch`."""
    parts: list[SignedFiles] = task.payload["parts"]
    config: DedupConfig = task.payload["config"]
    decided: Decided = task.payload["decided"]
    by_number = sorted((part.entry.id, part.entry.rows) for part in parts)
    numbers = np.array(by_number, np.int64).reshape(-1, 2)
    membership = find_components(
        task.payload["pairs"], (numbers[:, 0], numbers[:, 1]), scratch, config.memory_bytes
    )
    refs, labels = membership.open()
    digests = digest_components(refs, labels, scratch)
    is_known = known_members(labels, digests, decided.read_digests())
    components = Components(refs, labels, is_known)
    decisions = decide_batches(parts, task.payload["pairs"], components, config, scratch)
    records = [
        publish_clusters(task, part, components, decisions, decided.tables.get(part.entry.id))
        for part in parts
    ]
    return [*records, publish_state(task, digests, records)]


def publish_clusters(
    task: Task,
    part: SignedFiles,
    components: Components,
    decisions: list[pl.DataFrame],
    before: Path | None,
) -> PartRecord:
    """Publish the clusters of one signed part: what was decided now, and before.

    The part is named by its content: one that nothing changed in is not written again.
    """
    table = pl.concat(
        [*rows_of_part(part.entry.id, decisions), *known_rows(part, components, before)]
    )
    table = table.sort("row")
    removed = table.filter(IS_REMOVED)["doc_id"]
    content = BytesIO()
    table.write_ipc(content, compression="uncompressed")
    fingerprint = fingerprint_of(
        task.stage,
        DUPLICATES.code_version,
        part.entry.fingerprint,
        xxhash.xxh3_128_hexdigest(content.getbuffer()),
    )
    name = f"{part.entry.id:08d}"
    if (published := task.folder.find_part(name, fingerprint)) is not None:
        return published
    rows, count = part.entry.rows, len(removed)
    writer = PartWriter(task.folder, name, fingerprint)
    writer.write_parquet("clusters", table)
    summary = {
        "counts": summarize_clusters(table, part.entry.source, rows),
        "largest": largest_clusters(table),
    }
    writer.write_text("summary", "json", to_json(summary).decode())
    extra = {
        "source": part.entry.source,
        "part": part.entry.part,
        "removed_ids": fingerprint_of(sorted(removed)),
    }
    return writer.publish(
        Stats(rows, rows - count, duplicates=count, text_bytes=part.text_bytes, numbers=extra)
    )


def publish_state(
    task: Task, digests: tuple[Words, Words], records: list[PartRecord]
) -> PartRecord:
    """Publish, after all other parts, what the next run must know to decide only what changed."""
    writer = task.writer()
    writer.write_arrays("digests", digests[0], digests[1][:, 0], digests[1][:, 1])
    names = {record.name: record.fingerprint for record in records}
    writer.write_text("parts", "json", to_json(names).decode())
    return writer.publish(Stats())


class PartSummary(msgspec.Struct):
    """What a part's summary file holds: counts that add up, and its largest clusters."""

    counts: Summary
    largest: list[tuple[int, str]]


def describe_duplicates(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """Rates per source and pair of sources, sizes, similarities, the ten largest clusters."""
    counts: list[Summary] = []
    largest: list[tuple[int, str, str, str]] = []
    for part in manifest.parts:
        if part.name == STATE:
            continue
        path = corpus.store.path_of(manifest, required_file(manifest, part, "summary"))
        summary = msgspec.json.decode(path.read_bytes(), type=PartSummary)
        counts.append(summary.counts)
        place = part.stats.numbers["source"], part.stats.numbers["part"]
        largest += [(size, doc_id, *place) for size, doc_id in summary.largest]
    largest = sorted(largest, key=lambda item: (-item[0], item[1]))[:10]
    shown = [(size, doc_id, excerpt(corpus, doc_id, *place)) for size, doc_id, *place in largest]
    return duplicates_markdown(add_summaries(counts), shown)


def excerpt(corpus: Corpus, doc_id: str, source: str, part_name: str) -> str:
    """The beginning of a document's text."""
    manifest = corpus.store.newest("filtered", source)
    part = next(part for part in manifest.parts if part.name == part_name)
    path = corpus.store.path_of(manifest, required_file(manifest, part, "documents"))
    found = pl.scan_parquet(path).filter(pl.col("doc_id") == doc_id)
    texts = found.select(pl.col("text").str.slice(0, 400)).collect()["text"]
    return str(texts.first() or "")


DUPLICATES = Stage(
    name="duplicates",
    code_version="3",
    description="Clusters of equal and near-equal documents over all sources, and which of each "
    "stays.",
    partitions="none",
    after=(BAND_INDEX,),
    kinds=frozenset({"numba", "parquet"}),
    provenance=dict,
    numbers=dict,
    plan=plan_duplicates,
    work=find_duplicates,
    warm_up=lambda corpus: dedup_warm_ups(corpus.settings.dedup),
    run=run_clustering,
    describe=describe_duplicates,
)
