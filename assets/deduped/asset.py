"""deduped: documents without duplicates, evaluation items and repeats, and what was cut of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA
from assets.deduped.decontamination.contamination import contamination_markdown, count_by_set
from assets.deduped.dedupe import Deduped, Findings, dedupe
from assets.deduped.deduped_records import (
    DEDUPED,
    DUPLICATES,
    REPEATED,
    SUBSTRINGS,
    ClustersManifest,
    DedupedManifest,
    DedupedNumbers,
    DedupedProvenance,
)
from assets.deduped.document_files import (
    FILTERED_DOCUMENTS,
    KEPT,
    KEPT_COLUMNS,
    sizes_of,
)
from assets.deduped.repeats.repeated_lines import LIST_SCHEMA, configs_of
from assets.deduped.repeats.substrings import finding
from assets.deduped.signed_files import Removals, clustered_documents, removals_by_part
from assets.report.drift import judge_drift, state_drifts
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.profiles import Profile
from resources.settings.dedup import DedupConfig
from resources.source_states import parts_of_source, state_of_all
from resources.stage import DriftCheck, MainTable, Metadata, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import (
    FileRecord,
    Manifest,
    PartRecord,
    Stats,
    add_stats,
    required_file,
)
from resources.tasks import Plan, Task, tasks_of

ADDED_COLUMNS = {
    "contamination": "evaluation sets that have items in the document",
}
DEPENDS_ON = {"decontamination", "substrings", "paragraphs", "lines"}


@dataclass(frozen=True)
class Repeats:
    """File of one part's repeats, None if it has none, and an identity that changes with it."""

    file: PublishedFile | None = None
    identity: str = ""


@dataclass(frozen=True)
class DedupInputs:
    """Inputs of one part: its documents and decisions, and the files of what is removed and cut.

    `record` is that of the documents' file.
    """

    documents: PublishedFile
    record: FileRecord
    decisions: PublishedFile
    removals: Removals
    repeated: PublishedFile | None
    spans: PublishedFile | None
    config: DedupConfig

    @property
    def is_cut(self) -> bool:
        """True if texts are cut, and so read."""
        return self.repeated is not None or self.spans is not None

    @property
    def work_bytes(self) -> int:
        """Bytes that are read: of documents that stay whole the sizes are known."""
        return self.documents.bytes if self.is_cut else self.decisions.bytes


def plan_deduped(corpus: Corpus, source: str) -> Plan:
    """Plan one task per filtered part; it depends on what is removed and cut in that part."""
    manifest = clustered_documents(corpus, source)
    clusters = state_of_all(corpus, DUPLICATES)
    dedup = corpus.settings.dedup
    config = dedup.model_dump(mode="json", include=DEPENDS_ON, exclude_none=True)
    removals = removals_by_part(corpus, source)
    is_cut = not corpus.settings.is_chat(source)  # a line may be all that a message has
    cuts_lines = is_cut and (dedup.lines is not None or dedup.paragraphs is not None)
    lines = lines_by_part(corpus, source, clusters) if cuts_lines else {}
    spans = spans_by_part(corpus, source, clusters) if is_cut and dedup.substrings else {}
    make = tasks_of(corpus, DEDUPED, source)
    tasks = []
    for part in manifest.parts:
        file, removed = required_file(manifest, part, "documents"), removals[part.name]
        of_lines, of_spans = lines.get(part.name, Repeats()), spans.get(part.name, Repeats())
        inputs = DedupInputs(
            documents=corpus.store.file_of(manifest, file),
            record=file,
            decisions=corpus.store.part_file(manifest, part, "decisions"),
            removals=removed,
            repeated=of_lines.file,
            spans=of_spans.file,
            config=dedup,
        )
        # "" is of a key of earlier versions, and keeps their parts.
        identities = (*removed.identity, "", of_lines.identity, of_spans.identity)
        made_of = (config, part.fingerprint, identities)
        tasks.append(make.task(part.name, made_of, inputs, work_bytes=inputs.work_bytes))
    return Plan(tasks, config, DedupedProvenance(manifest.fingerprint))


def lines_by_part(corpus: Corpus, source: str, clusters: ClustersManifest) -> dict[str, Repeats]:
    """Return the repeated lines and paragraphs of each filtered part of a source, by its name.

    Raises StoreError if they were made of other duplicates, or under another config.
    """
    manifest = corpus.store.newest(REPEATED, source)
    check_made_under(
        manifest,
        config=configs_of(corpus.settings.dedup),
        inputs=newest_duplicates(manifest.provenance.duplicates, clusters),
    )
    files = {part.name: part.file("repeated") for part in manifest.parts}
    return {
        name: Repeats(corpus.store.file_of(manifest, file) if file.rows else None, file.sha256)
        for name, file in files.items()
        if file is not None
    }


def spans_by_part(corpus: Corpus, source: str, clusters: ClustersManifest) -> dict[str, Repeats]:
    """Return the repeated spans of each filtered part of a source, by its name.

    Raises StoreError if they were made of other duplicates, or under another config.
    """
    manifest = state_of_all(corpus, SUBSTRINGS)
    check_made_under(
        manifest,
        config=finding(corpus.settings.dedup.substrings),
        inputs=newest_duplicates(manifest.provenance.duplicates, clusters),
    )
    repeats = {}
    for part in parts_of_source(corpus, manifest, source):
        numbers, file = part.stats.numbers, required_file(manifest, part, "spans")
        spans = corpus.store.file_of(manifest, file) if file.rows else None
        repeats[numbers.part] = Repeats(spans, numbers.spans_id)
    return repeats


def newest_duplicates(made_of: object, clusters: ClustersManifest) -> dict[str, Any]:
    """Return the fingerprint of duplicates that repeats are made of, and the newest, to compare."""
    return {"duplicates than the newest ones": (made_of, clusters.fingerprint)}


def dedup_part(task: Task[DedupInputs]) -> list[PartRecord]:
    """Apply to one part what was found; publish its documents, changes and contaminated items."""
    inputs = task.payload
    hits = inputs.removals.contamination
    columns = ["doc_id", "text"] if inputs.is_cut else ["doc_id"]
    documents = pl.read_parquet(inputs.documents.checked(), columns=columns, row_index_name="row")
    findings = Findings(
        clusters=read_or_empty(inputs.removals.clusters, CLUSTER_SCHEMA),
        hits=None if hits is None else pl.read_parquet(hits.checked()),
        spans=read_or_empty(inputs.spans, {}),
        repeated=read_or_empty(inputs.repeated, LIST_SCHEMA),
    )
    result = dedupe(documents, findings, inputs.config)
    writer = task.writer()
    kept = kept_rows(result)
    writer.link_file(FILTERED_DOCUMENTS, inputs.record, source=inputs.documents.brought())
    writer.write_parquet(KEPT, kept)
    if result.changes:
        writer.write_parquet("changes", result.all_changes())
    if result.hits is not None:
        writer.write_parquet("contamination", result.hits)
    sizes = sizes_of(inputs.decisions)
    kept_sizes = pl.coalesce(kept["text"].str.len_bytes(), sizes[kept["row"]])
    stats = Stats(
        rows_in=documents.height,
        rows_kept=kept.height,
        rejected=result.rejected,
        duplicates=result.num_duplicates,
        bytes=int(pl.select(kept_sizes.cast(pl.Int64).sum()).item()),
        text_bytes=int(sizes.cast(pl.Int64).sum()),
        numbers=numbers_of_result(result),
    )
    return [writer.publish(stats)]


def kept_rows(result: Deduped) -> pl.DataFrame:
    """Return the documents that stay: row, doc_id, text if it was cut, the columns of steps."""
    documents, text = result.documents, pl.lit(None, pl.String)
    if "text" in documents.columns:
        is_cut = pl.col("doc_id").is_in(result.all_changes()["doc_id"].implode())
        text = pl.when(is_cut).then(pl.col("text"))
    others = [name for name in documents.columns if name in ADDED_COLUMNS]
    return documents.select("row", "doc_id", text.alias("text"), *others)


def numbers_of_result(result: Deduped) -> DedupedNumbers:
    """Count the characters that were cut, and the contaminated documents."""
    numbers = DedupedNumbers()
    if result.changes:
        changes, cut_chars = result.all_changes(), {}
        if len(changes):
            cut = changes.group_by("step").agg(pl.sum("cut_chars").cast(pl.Int64))
            cut_chars = dict(cut.sort("step").iter_rows())
        numbers = msgspec.structs.replace(numbers, cut_chars=cut_chars)
    if result.hits is not None:
        by_set = count_by_set(result.hits)
        counts = {
            name: dict(by_set.filter(pl.col(name) > 0).select("set", name).iter_rows())
            for name in ("contaminated", "partly")
        }
        numbers = msgspec.structs.replace(numbers, **counts)
    return numbers


def read_or_empty(file: PublishedFile | None, schema: dict[str, Any]) -> pl.DataFrame:
    """Read a table; without a file, make an empty one."""
    return pl.DataFrame(schema=schema) if file is None else pl.read_parquet(file.checked())


def describe_deduped(corpus: Corpus, manifest: DedupedManifest) -> Metadata:
    """Describe the share of duplicates, and the documents with items of evaluation sets."""
    stats = manifest.stats
    files = corpus.store.checked_files(manifest, manifest.parts, "contamination")
    hits = [pl.read_parquet(path) for path in files]
    return {
        "duplicate_rate": stats.duplicates / max(1, stats.rows_in),
        **(contamination_markdown(pl.concat(hits)) if hits else {}),
    }


def profile_of_deduped(
    _: Corpus, __: Manifest[Any, Any], parts: Sequence[PartRecord[Any]]
) -> Profile:
    """Return the share of copies in some parts, and of what else is removed."""
    stats = add_stats(part.stats for part in parts)
    documents = max(1, stats.rows_in)
    return Profile(
        stats.rows_in,
        numbers={
            "duplicate share": stats.duplicates / documents,
            "removed share": sum(stats.rejected.values()) / documents,
        },
    )


def drifts_of_deduped(
    _: Corpus, manifest: Manifest[Any, Any], before: Manifest[Any, Any]
) -> list[str]:
    """Compare the share of copies in all documents with the state before."""
    now, was = (
        {"documents": each.stats.rows_in, "copies of others": each.stats.duplicates}
        for each in (manifest, before)
    )
    return state_drifts(now, was)


STAGE = Stage(
    *DEDUPED.fields(),
    description="Documents without copies and repeats, and without or tagged for evaluation items.",
    group="deduplicate",
    partitions="source",
    after=(
        stage_names.FILTERED,
        stage_names.DUPLICATES,
        stage_names.REPEATED,
        stage_names.SUBSTRINGS,
    ),
    outlook=Outlook("same", cpu_per_mb=0.0004),
    kinds=frozenset({"parquet", "polars"}),
    settings=lambda settings: settings.dedup.model_dump(mode="json", include=DEPENDS_ON),
    plan=plan_deduped,
    work=dedup_part,
    main_table=MainTable(KEPT, KEPT_COLUMNS | ADDED_COLUMNS),
    describe=describe_deduped,
    drift=DriftCheck(profile_of_deduped, judge_drift, drifts_of_deduped),
)
