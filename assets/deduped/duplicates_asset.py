"""duplicates: clusters of equal and near-equal documents, and the document of each that stays.

`clusters.pass_files` plans the five passes that find them.
"""

from dataclasses import replace
from typing import Any

import msgspec
import polars as pl

from assets.deduped.clusters.candidate_files import SignedFiles
from assets.deduped.clusters.cluster_files import NOTHING_DECIDED, Decided, DecidedPart
from assets.deduped.clusters.pass_files import PASSES, ClusteringInputs
from assets.deduped.clusters.publish_files import PartSummary, publish_part, read_names
from assets.deduped.clusters.report import TOP_CLUSTERS, duplicates_markdown
from assets.deduped.dedup_warm_up import dedup_warm_ups
from assets.deduped.deduped_records import (
    BAND_INDEX,
    DUPLICATES,
    SIGNATURES,
    STATE,
    ClustersManifest,
    DuplicatesProvenance,
    IndexManifest,
    Signed,
    cluster_parts,
)
from assets.deduped.index.ledger import PartKey
from assets.deduped.signed_files import signed_documents, signed_sources
from assets.report.histograms import Summary, add_summaries
from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.made_under import check_made_under, is_made_by
from resources.passes import run_passes
from resources.run_tasks import all_at_once, with_costs
from resources.stage import MainTable, Metadata, Stage
from resources.store.records import required_file
from resources.store.snapshot import Listing
from resources.store.store import record_name
from resources.tasks import Outcome, Plan, Task, Work, tasks_of

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


def plan_duplicates(corpus: Corpus, partition: str) -> Plan:
    """Plan the task of the last pass, after those of all parts that it names if it has run."""
    index = corpus.store.newest(BAND_INDEX, partition)
    sources = signed_sources(corpus)
    dedup, signatures = corpus.settings.dedup, sources.fingerprints
    compared = {"signatures than the newest ones": (index.provenance.signatures, signatures)}
    check_made_under(index, inputs=compared)
    again = "signatures", "band_index"
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
    return Plan([*published_parts(task), task], config, provenance, sources.left_out)


def published_parts(state: Task[ClusteringInputs]) -> list[Task[None]]:
    """Return the tasks of the parts that the last pass named, none if it has not run."""
    if state.published() is None:
        return []
    names = read_names(state.published_file("parts")[0]).items()
    return [state.sibling(name, part.fingerprint, None, work_bytes=0) for name, part in names]


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
        signatures = corpus.store.part_file(manifest, part, "signatures")
        text = corpus.store.part_file(texts, documents[entry.key], "documents")
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
    listed = corpus.store.part_file(manifest, state, "parts")
    candidates = read_names(listed)
    parts = {
        int(part.name): DecidedPart(
            part.name,
            part.fingerprint,
            corpus.store.part_file(manifest, part, "clusters"),
            candidates[part.name].candidates,
        )
        for part in cluster_parts(manifest)
    }
    digests = corpus.store.part_file(manifest, state, "digests")
    return Decided(digests, parts)


def run_clustering(corpus: Corpus, tasks: list[Task], _: Work) -> list[Outcome]:
    """Run the passes; a part whose clusters turn out to be as they were counts as reused.

    Its costs are added to those of the first part that does not.
    """
    folder = tasks[0].folder
    before = folder.medium.sizes(folder.records).keys()
    outcomes: list[Outcome] = []
    costs: list[Cost] = []
    for outcome in run_passes(corpus, tasks, PASSES):
        names = [record_name(record.name, record.fingerprint) for record in outcome.records]
        if names and before >= {*names}:
            costs += outcome.costs
            outcome = replace(outcome, costs=(), is_reused=True)
        outcomes.append(outcome)
    return with_costs(outcomes, costs)


def describe_duplicates(corpus: Corpus, manifest: ClustersManifest) -> Metadata:
    """Describe rates per source and pair of sources, sizes, similarities, the largest clusters."""
    counts: list[Summary] = []
    largest: list[tuple[int, str, PartKey]] = []
    for part in cluster_parts(manifest):
        file = corpus.store.part_file(manifest, part, "summary")
        summary = msgspec.json.decode(file.checked().read_bytes(), type=PartSummary)
        counts.append(summary.counts)
        largest += [(size, doc_id, part.stats.numbers.key) for size, doc_id in summary.largest]
    largest = sorted(largest, key=lambda item: (-item[0], item[1]))[:TOP_CLUSTERS]
    texts = pl.collect_all([excerpt(corpus, doc_id, key) for _, doc_id, key in largest])
    shown = [
        (size, doc_id, str(text["text"].first() or ""))
        for (size, doc_id, _), text in zip(largest, texts, strict=True)
    ]
    return duplicates_markdown(add_summaries(counts), shown)


def excerpt(corpus: Corpus, doc_id: str, key: PartKey) -> pl.LazyFrame:
    """Read the beginning of the text of a document in a filtered part: text String, one row."""
    source, part_name = key
    manifest = signed_documents(corpus, corpus.store.newest(SIGNATURES, source))
    part = next(part for part in manifest.parts if part.name == part_name)
    file = corpus.store.part_file(manifest, part, "documents")
    document = pl.scan_parquet(file.checked()).filter(pl.col("doc_id") == doc_id)
    return document.select(pl.col("text").str.slice(0, EXCERPT_CHARS))


STAGE = Stage(
    *DUPLICATES.fields(),
    description="Clusters of equal and near-equal documents over all sources, and which of each "
    "stays.",
    group="deduplicate",
    partitions="none",
    after=("band_index",),
    kinds=frozenset({"numba", "parquet"}),
    settings=lambda settings: settings.dedup.signing() | settings.dedup.clustering(),
    plan=plan_duplicates,
    work=publish_part,
    main_table=MainTable("clusters", CLUSTER_COLUMNS),
    warm_up=lambda corpus: dedup_warm_ups(corpus.settings.dedup),
    run=all_at_once(run_clustering),
    describe=describe_duplicates,
)
