"""duplicates: clusters of equal and near-equal documents, and the document of each that stays.

Seven passes: merge the pairs of each range of documents; link them to components, which is one
task; sort the pairs of each range by a hash of their component; gather the members to decide on,
part by part; decide them, by prefixes of the hash; publish the clusters of each signed part;
publish what the next run compares. Parts of the first five are removed when the manifest is
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from assets.deduped.cluster_files import (
    NOTHING_DECIDED,
    Decided,
    DecidedPart,
    PartSummary,
    PublishedName,
    PublishInputs,
    StateInputs,
    decide_prefix,
    publish_part,
    publish_state,
    read_names,
)
from assets.deduped.clusters.candidate_files import (
    WORKING_SPACE,
    GatherInputs,
    PairInputs,
    RangeInputs,
    SignedFiles,
    SplitInputs,
    find_members,
    gather_members,
    member_bytes,
    merge_pairs,
    split_range,
)
from assets.deduped.clusters.cleanliness import text_facts
from assets.deduped.clusters.component_files import block_rows_of, range_borders
from assets.deduped.clusters.duplicates import decide
from assets.deduped.clusters.report import TOP_CLUSTERS, duplicates_markdown
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
from assets.deduped.index.band_index import candidate_pairs, merge_runs, row_ids_of
from assets.deduped.index.ledger import PartKey
from assets.deduped.minhash.minhash import shingle_sets
from assets.deduped.minhash.signatures import signatures
from assets.deduped.signed_files import signed_documents, signed_sources
from assets.report.histograms import Summary, add_summaries
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.exchange import OfPrefix, Publish, files_by_kind, prefix_bits_for
from resources.made_under import check_made_under, is_made_by
from resources.passes import (
    Earlier,
    Pass,
    derive_task,
    file_of,
    list_files,
    list_published,
    run_passes,
)
from resources.run_tasks import all_at_once, with_costs
from resources.settings.dedup import DedupConfig
from resources.stage import MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import required_file, to_line
from resources.store.snapshot import Listing
from resources.store.store import record_name
from resources.store.summed_files import sum_of_files
from resources.tasks import SIMULTANEOUS, Outcome, Plan, Task, Work, tasks_of

DECISION_BYTES = 150  # of a member
MOST_BITS = 16  # of prefixes that are decided one by one
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
TEXTS = ["the river of that town and its bridge"] * 2
# No kernel depends on them, and tiny documents have none.
NO_FIELDS = {"fields": (), "within": (), "quality_field": None, "date_field": None}


def dedup_warm_ups(config: DedupConfig) -> Iterator[Callable[[], object]]:
    """Yield a call that signs and clusters, the longest of all."""
    documents = pl.DataFrame({"doc_id": ["a", "b"], "text": TEXTS})
    plain = config.model_copy(update=NO_FIELDS)
    yield partial(cluster, documents, plain)


def cluster(documents: pl.DataFrame, config: DedupConfig) -> pl.DataFrame:
    """Cluster the documents of one part, as the stages do it by way of files."""
    facts, keys = signatures(documents, config)
    run = merge_runs([(keys["key"].to_numpy(), row_ids_of(0, keys["row"].to_numpy()))], 0)
    pairs = candidate_pairs(run, [run], np.ones(1, np.bool_))
    members = facts.with_columns(
        ref=pl.Series(np.arange(len(facts), dtype=np.uint64)),
        source=pl.lit("s"),
        generation=pl.lit(1, pl.UInt32),
    ).hstack(text_facts(documents["text"], facts["num_words"], config))
    shingles = shingle_sets(documents["text"], config) if config.compares_shingles else None
    return decide(members, pairs, config, shingles)


@dataclass(frozen=True)
class ClusteringInputs:
    """Inputs of the clustering: all signed parts, the files of their pairs, the last decisions."""

    parts: list[SignedFiles]
    pairs: list[PublishedFile]
    config: DedupConfig
    decided: Decided


def plan_merge(
    _: Corpus, tasks: list[Task[ClusteringInputs]], __: Earlier
) -> Iterator[Task[RangeInputs]]:
    """Plan the first pass: one task per range of documents."""
    state, inputs = tasks[-1], tasks[-1].payload
    files, memory_bytes = list_published(state, inputs.pairs), inputs.config.memory_bytes
    borders = range_borders(inputs.pairs, memory_bytes)
    for index, (first, stop) in enumerate(borders):
        work = RangeInputs(files, first, stop, block_rows_of(memory_bytes))
        name, of_range = f"merged-{index:05d}", state.work_bytes // len(borders)
        yield derive_task(state, name, (first, stop), work, of_range)


def plan_components(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> list[Task[PairInputs]]:
    """Plan the second pass: one task over all merged pairs."""
    state, inputs, [merged] = tasks[-1], tasks[-1].payload, earlier
    rows = sorted((part.entry.id, part.entry.rows) for part in inputs.parts)
    numbers = np.array(rows, np.int64).reshape(-1, 2)
    digests = inputs.decided.digests
    made_of = inputs.config.memory_bytes, digests.xxh3 if digests else None
    pairs = PairInputs(numbers, list_files(merged, "merged"), digests)
    return [derive_task(state, "found", made_of, pairs, 0)]  # pairs are streamed


def plan_split(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[SplitInputs]]:
    """Plan the third pass: one task per range, if there is something to decide."""
    merged, [found] = earlier
    is_any = any(num.to_decide for num in members_by_part(found).values())
    counts, members = file_of(found, "counts"), list_files([found], "components")
    for index, outcome in enumerate(merged if is_any else ()):
        pairs, name = file_of(outcome, "merged"), f"pairs-{index:05d}"
        split = SplitInputs(pairs, counts, members)
        yield derive_task(found.task, name, [name], split, pairs.bytes)


def plan_gather(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[GatherInputs]]:
    """Plan the fourth pass: one task per signed part that has members to decide on."""
    [_merged, [found], _split], inputs = earlier, tasks[-1].payload
    numbers, members = members_by_part(found), list_files([found], "components")
    for part in inputs.parts:
        if numbers[part.entry.id].to_decide:
            name, of_part = f"gathered-{part.entry.id:08d}", part.signatures.bytes
            gather = GatherInputs(part, members, inputs.config)
            if inputs.config.reads_candidates:
                of_part += part.documents.bytes
            yield derive_task(found.task, name, [name], gather, of_part)


def plan_decide(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[OfPrefix[DedupConfig]]]:
    """Plan the fifth pass: one task per prefix of the hash."""
    _merged, [found], split, gathered = earlier
    if not gathered:
        return
    parts, config = tasks[-1].payload.parts, tasks[-1].payload.config
    rows, text_bytes = sum(p.entry.rows for p in parts), sum(p.text_bytes for p in parts)
    of_member = WORKING_SPACE * member_bytes(config, text_bytes / max(1, rows))
    to_decide = sum(num.to_decide for num in members_by_part(found).values())
    bits = prefix_bits_for(to_decide * of_member, config.memory_bytes, MOST_BITS)
    files = files_by_kind(gathered) | files_by_kind(split)
    of_prefix = sum(file_of(each, "members").bytes for each in gathered) >> bits
    for prefix in range(1 << bits):
        name, place = f"decided-{prefix:05d}", (prefix, bits)
        inputs = OfPrefix(place, files, config, config.memory_bytes // SIMULTANEOUS)
        yield derive_task(found.task, name, [name, bits], inputs, of_prefix)


def plan_publish(
    _: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier
) -> Iterator[Task[Any]]:
    """Plan the sixth pass: one task per signed part; those that are as they were are published."""
    if not earlier[0]:
        yield from tasks[:-1]
        return
    _merged, [found], _split, _gathered, decided = earlier
    state, inputs, numbers = tasks[-1], tasks[-1].payload, members_by_part(found)
    members = list_files([found], "components")
    decisions = list_files(decided, "decisions") if decided else None
    for part in inputs.parts:
        num, before = numbers[part.entry.id], inputs.decided.parts.get(part.entry.id)
        publish = PublishInputs(part, members, before, decisions)
        name, work_bytes = f"{part.entry.id:08d}", DECISION_BYTES * num.all
        if before is not None and before.candidates == num.all and not num.to_decide:
            yield state.sibling(name, before.fingerprint, publish, work_bytes=work_bytes)
        else:  # its fingerprint is known when its clusters are
            yield derive_task(found.task, name, [name], publish, work_bytes)


def plan_state(_: Corpus, tasks: list[Task[ClusteringInputs]], earlier: Earlier) -> list[Task[Any]]:
    """Plan the last pass: the task that names all parts."""
    state, (_merged, components, *_others, published) = tasks[-1], earlier
    if not components:
        return [state]
    members = members_by_part(components[0])
    names = {
        record.name: PublishedName(record.fingerprint, members[int(record.name)].all)
        for outcome in published
        for record in outcome.records
    }
    digests = components[0].records[0].file("digests")
    assert digests is not None
    return [state.sibling(state.name, state.fingerprint, StateInputs(digests, names), work_bytes=0)]


class NumMembers(NamedTuple):
    """Number of all members in a part, and of those to be decided."""

    all: int
    to_decide: int


def members_by_part(found: Outcome) -> dict[int, NumMembers]:
    """Return the numbers of members of each part, by its id."""
    counts = np.fromfile(file_of(found, "counts").checked(), np.int64).reshape(3, -1)
    return {part: NumMembers(*numbers) for part, *numbers in counts.T.tolist()}


PASSES = (
    Pass(merge_pairs, plan_merge, is_kept=False),
    Pass(find_members, plan_components, shares_memory=True, is_kept=False),
    Pass(Publish(split_range), plan_split, shares_memory=True, is_kept=False),
    Pass(Publish(gather_members), plan_gather, is_kept=False),
    Pass(Publish(decide_prefix), plan_decide, shares_memory=True, is_kept=False),
    Pass(publish_part, plan_publish),
    Pass(publish_state, plan_state),
)


def plan_duplicates(corpus: Corpus, partition: str) -> Plan:
    """Plan the task of the last pass, after those of all parts that it names if it has run."""
    index = corpus.store.newest(BAND_INDEX, partition)
    sources = signed_sources(corpus)
    dedup, signatures = corpus.settings.dedup, sources.fingerprints
    compared = {"signatures than the newest ones": (index.provenance.signatures, signatures)}
    check_made_under(index, inputs=compared)
    again = stage_names.SIGNATURES, stage_names.BAND_INDEX
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
        signatures = corpus.store.part_file(manifest, part, SIGNATURES.name)
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


Sums = tuple[Summary, list[tuple[int, str, PartKey]]]  # of all parts; the largest clusters


def describe_duplicates(corpus: Corpus, manifest: ClustersManifest) -> Metadata:
    """Describe rates per source and pair of sources, sizes, similarities, the largest clusters."""

    def add(files: Iterator[Path]) -> bytes:
        counts: list[Summary] = []
        largest: list[tuple[int, str, PartKey]] = []
        for part, path in zip(cluster_parts(manifest), files, strict=True):
            summary = msgspec.json.decode(path.read_bytes(), type=PartSummary)
            counts.append(summary.counts)
            largest += [(size, doc_id, part.stats.numbers.key) for size, doc_id in summary.largest]
        largest.sort(key=lambda item: (-item[0], item[1]))
        return to_line((add_summaries(counts), largest[:TOP_CLUSTERS]))

    content = sum_of_files(corpus.store, manifest, "summary", add)
    counts, largest = msgspec.json.decode(content, type=Sums)
    texts = pl.collect_all([excerpt(corpus, doc_id, key) for _, doc_id, key in largest])
    shown = [
        (size, doc_id, str(text["text"].first() or ""))
        for (size, doc_id, _), text in zip(largest, texts, strict=True)
    ]
    return duplicates_markdown(counts, shown)


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
    after=(stage_names.BAND_INDEX,),
    outlook=Outlook("new", cpu_per_mb=0.005, first_seconds=0.5),
    kinds=frozenset({"numba", "parquet"}),
    settings=lambda settings: settings.dedup.signing() | settings.dedup.clustering(),
    plan=plan_duplicates,
    work=publish_part,
    main_table=MainTable("clusters", CLUSTER_COLUMNS),
    warm_up=lambda corpus: dedup_warm_ups(corpus.settings.dedup),
    run=all_at_once(run_clustering),
    describe=describe_duplicates,
)
