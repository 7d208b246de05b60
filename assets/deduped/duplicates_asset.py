"""duplicates: clusters of equal and near-equal documents, and the document of each that stays."""

import shutil
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import xxhash

from assets.deduped.band_index_asset import BAND_INDEX, IndexManifest
from assets.deduped.clusters.candidate_files import (
    SignedFiles,
    Words,
    digest_components,
    known_members,
)
from assets.deduped.clusters.cluster_files import (
    NOTHING_DECIDED,
    Decided,
    DecidedPart,
    decide_batches,
    known_rows,
    rows_of_part,
)
from assets.deduped.clusters.component_files import Components, find_components
from assets.deduped.clusters.duplicates import IS_REMOVED
from assets.deduped.clusters.report import (
    TOP_CLUSTERS,
    duplicates_markdown,
    largest_clusters,
    summarize_clusters,
)
from assets.deduped.dedup_warm_up import dedup_warm_ups
from assets.deduped.index.ledger import LedgerEntry, PartKey
from assets.deduped.signatures_asset import (
    SIGNATURES,
    Signed,
    signed_documents,
    signed_sources,
)
from assets.report.histograms import Summary, add_summaries
from resources.corpus import Corpus
from resources.engine.cost import Cost, begin_part
from resources.made_under import check_made_under, is_made_by
from resources.progress import current
from resources.settings.dedup import DedupConfig
from resources.stage import MainTable, Metadata, Stage
from resources.store.disk import TEMPORARY_PREFIX
from resources.store.published import PublishedFile
from resources.store.records import (
    Manifest,
    PartRecord,
    Stats,
    fingerprint_of,
    required_file,
    to_json,
)
from resources.store.scratch import computing
from resources.store.snapshot import Listing
from resources.store.store import record_name
from resources.tasks import Outcome, Plan, Task, TaskMaker, Work, tasks_of

STATE = "components"  # the part with the digests by which the next run knows decided components
EXCERPT_CHARS = 400
CLUSTER_COLUMNS = {
    "row": "row of the document in its part",
    "doc_id": "a document with at least one copy",
    "cluster_id": "smallest doc_id of the cluster",
    "cluster_size": "documents of the cluster",
    "kept_doc_id": "the document that stays for this one",
    "kept_source": "source of the document that stays",
    "similarity": "estimated Jaccard similarity to the document that stays, 0 to 1",
    "method": "why it is a copy: exact, field:<name> or minhash; null for the one that stays",
}


@dataclass(frozen=True)
class ClusteringInputs:
    """Inputs of the clustering: all signed parts, the files of their pairs, the last decisions."""

    parts: list[SignedFiles]
    pairs: list[PublishedFile]
    config: DedupConfig
    decided: Decided


class DuplicatesProvenance(msgspec.Struct, frozen=True):
    """Fingerprints of the index and of the signatures, and the ledger that numbers the parts."""

    band_index: str
    ledger: list[LedgerEntry]
    signatures: list[str]


class DuplicatesNumbers(msgspec.Struct, frozen=True):
    """The filtered part of a part of clusters, and a digest of its removed doc_ids.

    Empty for the part `STATE`, and for the total of a manifest.
    """

    source: str = ""
    part: str = ""
    removed_ids: str = ""

    @property
    def key(self) -> PartKey:
        """Source and name of the filtered part."""
        return self.source, self.part


ClustersManifest = Manifest[DuplicatesProvenance, DuplicatesNumbers]
ClustersPart = PartRecord[DuplicatesNumbers]


def plan_duplicates(corpus: Corpus, partition: str) -> Plan:
    """Plan one task over the whole index; it publishes a part per signed part."""
    index = corpus.store.newest(BAND_INDEX, partition)
    sources = signed_sources(corpus)
    dedup, signatures = corpus.settings.dedup, sources.fingerprints
    compared = {"signatures than the newest ones": (index.provenance.signatures, signatures)}
    check_made_under(index, inputs=compared)
    again = SIGNATURES.name, BAND_INDEX.name
    check_made_under(index, config=dedup.signing(), section="dedup", again=again)
    config = dedup.signing() | dedup.clustering()
    pairs = [required_file(index, part, "pairs") for part in index.parts]
    inputs = ClusteringInputs(
        parts=signed_files(corpus, index, sources.manifests),
        pairs=[corpus.store.file_of(index, file) for file in pairs if file.rows],
        config=dedup,
        decided=read_decided(corpus, index, config),
    )
    task = tasks_of(corpus, DUPLICATES, partition).task(
        STATE,
        (config, index.fingerprint),
        inputs,
        work_bytes=sum(file.bytes for file in pairs),
    )
    provenance = DuplicatesProvenance(index.fingerprint, index.provenance.ledger, signatures)
    return Plan([task], config, provenance, sources.left_out)


def signed_files(corpus: Corpus, index: IndexManifest, signed: list[Signed]) -> list[SignedFiles]:
    """Return the files of every signed part, in the order of the ledger.

    Raises StoreError if signatures are of other documents than the newest ones.
    """
    parts = {(m.partition, part.name): (m, part) for m in signed for part in m.parts}
    filtered = {m.partition: signed_documents(corpus, m) for m in signed}
    documents = {(m.partition, part.name): part for m in filtered.values() for part in m.parts}
    files = []
    for entry in index.provenance.ledger:
        manifest, part = parts[entry.key]
        texts = filtered[entry.source]
        signatures = corpus.store.file_of(manifest, required_file(manifest, part, "signatures"))
        text_file = required_file(texts, documents[entry.key], "documents")
        text = corpus.store.file_of(texts, text_file)
        files.append(SignedFiles(entry, signatures, text, part.stats.text_bytes))
    return files


def read_decided(corpus: Corpus, index: IndexManifest, config: dict[str, Any]) -> Decided:
    """Return the last decisions; none if they are of another config, code version or ledger.

    An index that is built again without its ledger numbers parts from 0: equal row ids would then
    stand for other documents, or for the same documents of another generation.
    """
    manifest = corpus.store.newest_or_none(DUPLICATES, index.partition)
    if manifest is None or not is_made_by(manifest, DUPLICATES, config):
        return NOTHING_DECIDED
    before = {entry.id: entry for entry in manifest.provenance.ledger}
    if any(before.get(entry.id, entry) != entry for entry in index.provenance.ledger):
        return NOTHING_DECIDED
    listing = Listing(corpus.store.partition(DUPLICATES.name, index.partition).folder)
    if not all(listing.has_size(file) for part in manifest.parts for file in part.files):
        return NOTHING_DECIDED
    state = next(part for part in manifest.parts if part.name == STATE)
    listed = corpus.store.file_of(manifest, required_file(manifest, state, "parts"))
    candidates = read_names(listed)
    parts = {
        int(part.name): DecidedPart(
            part.name,
            part.fingerprint,
            corpus.store.file_of(manifest, required_file(manifest, part, "clusters")),
            candidates[part.name].candidates,
        )
        for part in cluster_parts(manifest)
    }
    digests = corpus.store.file_of(manifest, required_file(manifest, state, "digests"))
    return Decided(digests, parts)


def run_clustering(_: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the task unless all its parts are published; return an outcome per part.

    Not a pass: only the computed clusters tell the names of the parts, and which of them are new.
    """
    outcomes = []
    for task in tasks:
        published = task.folder.medium.sizes(task.folder.records).keys()
        current().begin_pass([task])
        end_part = begin_part()
        try:
            with computing():
                records = published_parts(task) or work(task)
        finally:  # a part that failed takes no share of the CPU time of the next
            costs: tuple[Cost, ...] = (end_part(),)
        for record in records:
            is_reused = record_name(record.name, record.fingerprint) in published
            outcomes.append(Outcome(task, [record], () if is_reused else costs, is_reused))
            costs = costs if is_reused else ()
    return outcomes


def published_parts(task: Task[ClusteringInputs]) -> list[PartRecord] | None:
    """Return the parts of a finished run, which its last part names; None if one is missing."""
    state = task.published()
    if state is None:
        return None
    listed, _ = task.published_file("parts")
    names = read_names(listed).items()
    records = [task.folder.find_part(name, part.fingerprint) for name, part in names]
    present = [record for record in records if record is not None]
    return present + state if len(present) == len(records) else None


def find_duplicates(task: Task[ClusteringInputs]) -> list[PartRecord]:
    """Cluster all documents in bounded memory, and publish for each signed part its clusters.

    Components of the candidate pairs come first. Then their members are compared, in batches of
    whole components, which are decided one by one. Intermediate files go to a scratch folder.
    """
    folder = Path(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX, dir=task.folder.folder))
    try:
        return cluster_in(folder, task)
    finally:
        shutil.rmtree(folder)


def cluster_in(scratch: Path, task: Task[ClusteringInputs]) -> list[PartRecord]:
    """Take the steps of `find_duplicates`, with their files below `scratch`."""
    inputs = task.payload
    by_number = sorted((part.entry.id, part.entry.rows) for part in inputs.parts)
    numbers = np.array(by_number, np.int64).reshape(-1, 2)
    pairs = [file.checked() for file in inputs.pairs]
    membership = find_components(
        pairs, (numbers[:, 0], numbers[:, 1]), scratch, inputs.config.memory_bytes
    )
    row_ids, labels = membership.open()
    digests = digest_components(row_ids, labels, scratch)
    is_known = known_members(labels, digests, inputs.decided.read_digests())
    components = Components(row_ids, labels, is_known)
    decisions = decide_batches(inputs.parts, pairs, components, inputs.config, scratch)
    records = [
        publish_part(task, part, components.of_part(part.entry.id), decisions)
        for part in inputs.parts
    ]
    names = {
        record.name: PublishedName(record.fingerprint, components.of_part(int(record.name)).count)
        for record in records
    }
    return [*records, publish_state(task, digests, names)]


def publish_part(
    task: Task[ClusteringInputs],
    part: SignedFiles,
    members: Components,
    decisions: list[pl.DataFrame],
) -> PartRecord:
    """Publish the clusters of one signed part, decided now or in the last run.

    If all its members are known, and there were no more, they are as they were: the part that the
    last run published is not read.
    """
    before = task.payload.decided.parts.get(part.entry.id)
    if before is not None and members.is_known.all() and before.candidates == members.count:
        record = task.folder.find_part(before.name, before.fingerprint)
        if record is not None:
            return record
    decided = rows_of_part(part.entry.id, decisions)
    clusters = pl.concat([*decided, *known_rows(members, before)])
    return publish_clusters(task, part, clusters.sort("row", maintain_order=True).rechunk())


def publish_clusters(
    task: Task[ClusteringInputs], part: SignedFiles, clusters: pl.DataFrame
) -> PartRecord:
    """Publish the clusters of one signed part; one that has not changed is not written again.

    The part's fingerprint is that of its content, as Parquet: in an Arrow file the bytes of strings
    depend on the tables that they were gathered from.
    """
    content = BytesIO()
    clusters.write_parquet(content, compression="uncompressed")
    digest = xxhash.xxh3_128_hexdigest(content.getbuffer())
    make = TaskMaker(*task.place[:2], DUPLICATES.code_version, task.partition, task.compression)
    part_task = make.task(
        f"{part.entry.id:08d}", (part.entry.fingerprint, digest), None, work_bytes=0
    )
    if published := part_task.published():
        return published[0]
    removed = clusters.filter(IS_REMOVED)["doc_id"]
    rows, num_removed = part.entry.rows, len(removed)
    writer = part_task.writer()
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


class PublishedName(msgspec.Struct, frozen=True):
    """A published part of clusters: its fingerprint, and the rows of it that had a candidate."""

    fingerprint: str
    candidates: int


def publish_state(
    task: Task[ClusteringInputs], digests: tuple[Words, Words], names: dict[str, PublishedName]
) -> PartRecord:
    """Publish, after all other parts, what the next run compares to decide only changes."""
    writer = task.writer()
    writer.write_arrays("digests", digests[0], digests[1][:, 0], digests[1][:, 1])
    writer.write_text("parts", "json", to_json(names).decode())
    return writer.publish(Stats())


def read_names(listed: PublishedFile) -> dict[str, PublishedName]:
    """Read the parts that `publish_state` names."""
    content = listed.checked().read_bytes()
    return msgspec.json.decode(content, type=dict[str, PublishedName])


class PartSummary(msgspec.Struct, frozen=True):
    """Summary file of a part: counts that add up, and its largest clusters."""

    counts: Summary
    largest: list[tuple[int, str]]


def cluster_parts(manifest: ClustersManifest) -> list[ClustersPart]:
    """Return the parts of a manifest that hold the clusters of a signed part."""
    return [part for part in manifest.parts if part.name != STATE]


def describe_duplicates(corpus: Corpus, manifest: ClustersManifest) -> Metadata:
    """Describe rates per source and pair of sources, sizes, similarities, the largest clusters."""
    counts: list[Summary] = []
    largest: list[tuple[int, str, PartKey]] = []
    for part in cluster_parts(manifest):
        file = corpus.store.file_of(manifest, required_file(manifest, part, "summary"))
        summary = msgspec.json.decode(file.checked().read_bytes(), type=PartSummary)
        counts.append(summary.counts)
        largest += [(size, doc_id, part.stats.numbers.key) for size, doc_id in summary.largest]
    largest = sorted(largest, key=lambda item: (-item[0], item[1]))[:TOP_CLUSTERS]
    shown = [(size, doc_id, excerpt(corpus, doc_id, key)) for size, doc_id, key in largest]
    return duplicates_markdown(add_summaries(counts), shown)


def excerpt(corpus: Corpus, doc_id: str, key: PartKey) -> str:
    """Return the beginning of the text of a document in a filtered part."""
    source, part_name = key
    manifest = signed_documents(corpus, corpus.store.newest(SIGNATURES, source))
    part = next(part for part in manifest.parts if part.name == part_name)
    file = corpus.store.file_of(manifest, required_file(manifest, part, "documents"))
    document = pl.scan_parquet(file.checked()).filter(pl.col("doc_id") == doc_id)
    texts = document.select(pl.col("text").str.slice(0, EXCERPT_CHARS)).collect()["text"]
    return str(texts.first() or "")


DUPLICATES = Stage(
    name="duplicates",
    code_version="4",
    description="Clusters of equal and near-equal documents over all sources, and which of each "
    "stays.",
    group="deduplicate",
    partitions="none",
    after=(BAND_INDEX,),
    kinds=frozenset({"numba", "parquet"}),
    provenance=DuplicatesProvenance,
    numbers=DuplicatesNumbers,
    settings=lambda settings: settings.dedup.signing() | settings.dedup.clustering(),
    plan=plan_duplicates,
    work=find_duplicates,
    main_table=MainTable("clusters", CLUSTER_COLUMNS),
    warm_up=lambda corpus: dedup_warm_ups(corpus.settings.dedup),
    run=run_clustering,
    describe=describe_duplicates,
)
