"""deduped: documents without copies, evaluation items and repeats, and what was cut from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from assets.deduped.clusters.removal_files import removals_by_part
from assets.deduped.clusters.report import rate_jump
from assets.deduped.decontamination.report import contamination_markdown
from assets.deduped.dedupe import Findings, dedupe
from assets.deduped.duplicates_asset import DUPLICATES
from assets.deduped.repeated_asset import REPEATED, configs_of
from assets.deduped.substrings_asset import SUBSTRINGS, finding
from assets.filtered.asset import FILTERED
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.stage import HistoryCheck, Stage
from resources.store.records import Manifest, PartRecord, Stats, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL, MadeBy, Plan, Task, part_task


@dataclass(frozen=True)
class Repeats:
    """Where the repeats of one part lie, and what changes when they do."""

    path: Path | None = None
    identity: str = ""


RATE_CHECK = HistoryCheck(
    name="duplicate_rate",
    number="duplicate_rate",
    description="the share of duplicates is within dedup.max_rate_jump of its median in ten runs",
    has_jumped=lambda corpus, rate, earlier: rate_jump(
        rate, earlier, corpus.settings.dedup.max_rate_jump
    ),
)
NOT_CONFIGURED = Repeats()
DEPENDS_ON = {"rehydration", "decontamination", "substrings", "paragraphs", "lines"}


def plan_deduped(corpus: Corpus, source: str) -> Plan:
    """One task per filtered part; it depends on what is removed and cut inside that part."""
    manifest = corpus.store.newest("filtered", source)
    clusters = corpus.store.newest("duplicates", GLOBAL)
    config = corpus.settings.dedup
    dump = config.model_dump(mode="json", include=DEPENDS_ON, exclude_none=True)
    removals = removals_by_part(corpus, source)
    lines = lines_by_part(corpus, source, clusters) if config.lines or config.paragraphs else {}
    spans = spans_by_part(corpus, source, clusters) if config.substrings else {}
    sizes = cluster_identities(clusters) if config.rehydration is not None else {}
    tasks = []
    for part in manifest.parts:
        of_lines = lines.get(part.name, NOT_CONFIGURED)
        of_spans = spans.get(part.name, NOT_CONFIGURED)
        made_by = MadeBy(
            DEDUPED.name,
            DEDUPED.code_version,
            dump,
            inputs=(
                *removals[part.name].identity,
                sizes.get((source, part.name), ""),
                of_lines.identity,
                of_spans.identity,
            ),
            payload={
                "removals": removals[part.name],
                "repeated": of_lines.path,
                "spans": of_spans.path,
                "config": config,
            },
        )
        tasks.append(part_task(corpus, manifest, part, "documents", made_by))
    return Plan(tasks, dump, {"filtered": manifest.fingerprint})


def cluster_identities(clusters: Manifest) -> dict[tuple[str, str], str]:
    """What changes with the size of any cluster of a part: only with `rehydration` that matters.

    Without it, a new copy elsewhere of a document that stays does not change the part.
    """
    return {
        (part.stats.numbers["source"], part.stats.numbers["part"]): part.fingerprint
        for part in clusters.parts
        if "part" in part.stats.numbers
    }


def lines_by_part(corpus: Corpus, source: str, clusters: Manifest) -> dict[str, Repeats]:
    """The repeated lines and paragraphs of each filtered part of a source, by its name."""
    manifest = made_for(corpus, "repeated", source, clusters, configs_of(corpus.settings.dedup))
    files = {part.name: part.file("repeated") for part in manifest.parts}
    return {
        name: Repeats(corpus.store.path_of(manifest, file), file.sha256)
        for name, file in files.items()
        if file is not None
    }


def spans_by_part(corpus: Corpus, source: str, clusters: Manifest) -> dict[str, Repeats]:
    """The repeated spans of each filtered part of a source, by its name."""
    manifest = made_for(
        corpus, "substrings", GLOBAL, clusters, finding(corpus.settings.dedup.substrings)
    )
    return {
        part.stats.numbers["part"]: Repeats(
            corpus.store.path_of(manifest, required_file(manifest, part, "spans")),
            part.stats.numbers["spans_id"],
        )
        for part in manifest.parts
        if part.stats.numbers["source"] == source
    }


def made_for(
    corpus: Corpus, stage: str, partition: str, clusters: Manifest, config: dict[str, Any]
) -> Manifest:
    """The newest manifest of a stage; StoreError if it was made after other duplicates, or under
    another config."""
    manifest = corpus.store.newest(stage, partition)
    if manifest.provenance.get("duplicates") != clusters.fingerprint or manifest.config != config:
        raise StoreError(
            f"{stage}[{partition}] was made for other duplicates than the newest ones, or under "
            f"another config than pipeline.yaml's. Materialize `{stage}` first."
        )
    return manifest


def dedup_part(task: Task) -> list[PartRecord]:
    """Take out of one part what was found; publish what stays, what was cut, and who was hit."""
    spec, config = task.payload, task.payload["config"]
    documents = pl.read_parquet(spec["path"])
    found = Findings(
        clusters=pl.read_parquet(spec["removals"].clusters),
        hits=read_if_there(spec["removals"].contamination),
        spans=read_if_there(spec["spans"]),
        repeated=read_if_there(spec["repeated"]),
    )
    done = dedupe(documents, found, config)
    writer = task.writer()
    writer.write_parquet("documents", done.documents)
    extra: dict[str, Any] = {}
    if done.changes:
        changes = done.all_changes()
        writer.write_parquet("changes", changes)
        cut = changes.group_by("step").agg(pl.sum("cut_chars").cast(pl.Int64)).sort("step")
        extra["cut_chars"] = dict(cut.iter_rows())
    if done.hits is not None:
        writer.write_parquet("contamination", done.hits)
        contaminated = (
            done.hits.filter("is_contaminated").group_by("set").agg(pl.n_unique("doc_id"))
        )
        extra["contaminated"] = dict(contaminated.sort("set").iter_rows())
    stats = Stats(
        rows_in=documents.height,
        rows_kept=done.documents.height,
        rejected=done.rejected,
        duplicates=done.num_duplicates,
        bytes=count_bytes(done.documents["text"]),
        text_bytes=count_bytes(documents["text"]),
        numbers=extra,
    )
    return [writer.publish(stats)]


def read_if_there(path: Path | None) -> pl.DataFrame | None:
    """A table, None without one."""
    return None if path is None else pl.read_parquet(path)


def describe_deduped(corpus: Corpus, manifest: Manifest) -> Mapping[str, Any]:
    """The share of duplicates; which evaluation items were found in which documents."""
    stats = manifest.stats
    files = [file for part in manifest.parts if (file := part.file("contamination"))]
    hits = [pl.read_parquet(corpus.store.path_of(manifest, file)) for file in files]
    return {
        "duplicate_rate": stats.duplicates / max(1, stats.rows_in),
        **(contamination_markdown(pl.concat(hits)) if hits else {}),
    }


DEDUPED = Stage(
    name="deduped",
    code_version="2",
    description="Documents without copies and repeats, and without or tagged for evaluation items.",
    partitions="source",
    after=(FILTERED, DUPLICATES, REPEATED, SUBSTRINGS),
    kinds=frozenset({"parquet", "polars"}),
    provenance=dict,
    numbers=dict,
    plan=plan_deduped,
    work=dedup_part,
    describe=describe_deduped,
    check=RATE_CHECK,
)
