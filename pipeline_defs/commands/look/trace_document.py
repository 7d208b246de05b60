"""Trace a document through the stages, from its input file to the rows that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from assets.annotated.annotated_records import ANNOTATIONS, part_name
from assets.bucketed.bucketed_records import LEAKAGE
from assets.bucketed.document_groups import shares_file
from assets.deduped.document_files import kept_documents, read_kept_ids
from assets.mixed.phase_source_files import bucket_of, removed_of
from assets.sharded.flat_row_files import segments_of
from assets.sharded.shard_files import split_of
from corpus_loader.places.stage_names import (
    ANNOTATED,
    BUCKETED,
    DEDUPED,
    DUPLICATES,
    SHARDED,
    TOKENIZED,
)
from pipeline_defs.commands.look.trace_rows import Origin
from pipeline_defs.commands.published_documents import (
    Decision,
    FoundDecision,
    find_decision,
    newest_part,
    path_of,
    raw_manifest,
)
from resources.corpus import Corpus
from resources.settings.conditions import is_met
from resources.store.records import PartRecord
from resources.store.store import StoreError
from resources.tasks import GLOBAL

FLAT_SUFFIX = "megatron.spans"
Form = TypeVar("Form", bound=msgspec.Struct)


class Membership(msgspec.Struct, frozen=True):
    """Duplicate cluster of a document; the survivor has no method."""

    cluster_id: str
    cluster_size: int
    kept_doc_id: str
    kept_source: str
    similarity: float | None
    method: str | None


class Cut(msgspec.Struct, frozen=True):
    """Cut that a step of `deduped` made in a document."""

    step: str
    num_cut: int
    cut_chars: int
    kept_share: float | None
    is_rejected: bool


class Hit(msgspec.Struct, frozen=True):
    """Item of an evaluation set that contaminates a document or is partly like it, and where."""

    set: str
    item: str
    is_contaminated: bool
    item_share: float
    start: int
    stop: int
    passage: str


class Deduped(msgspec.Struct, frozen=True, omit_defaults=True):
    """Result of `deduped`: whether the document was kept, the cuts, and the contamination."""

    kept: bool
    changes: list[Cut]
    contamination: list[Hit] = []


class Tokenized(msgspec.Struct, frozen=True):
    """Number of tokens, begin and end included."""

    tokens: int


class Leakage(msgspec.Struct, frozen=True):
    """The held-out document that has most of the n-grams of a document for training."""

    held_doc_id: str
    share: float
    is_left_out: bool


class Annotation(msgspec.Struct, frozen=True):
    """What an annotator says of a document, by column, and whether it is dropped for it."""

    annotator: str
    columns: dict[str, float | str | None]
    is_dropped: bool


class ShardRow(msgspec.Struct, frozen=True):
    """Row of a shard that holds tokens of the document."""

    shard: int
    row: int
    position: int
    start: int
    tokens: int


class DocumentTrace(msgspec.Struct, frozen=True):
    """Result of each stage for a document; None if the stage has not seen it.

    removed_rows: rows with tokens of it that are in the files of shards, but no longer drawn;
    split: "validation" if it is held out of training, then its rows are drawn by validation alone;
    kept_split: the same of the document that stays for it, if it was removed as a copy;
    leakage: what it has in common with a held-out document, if that was worth comparing;
    left_out: documents of its source that `bucketed` leaves out, by reason, if no row has it;
    annotations: what each annotator that the config names says of it.
    """

    doc_id: str
    source: str
    raw: Origin | None
    filtered: Decision
    duplicates: Membership | None
    deduped: Deduped | None
    tokenized: Tokenized | None
    sharded: list[ShardRow]
    removed_rows: int
    split: str | UnsetType = UNSET
    kept_split: str | UnsetType = UNSET
    leakage: Leakage | UnsetType = UNSET
    left_out: dict[str, int] | UnsetType = UNSET
    annotations: list[Annotation] | UnsetType = UNSET


class ShardRows(NamedTuple):
    """Rows that hold a document, the number of removed ones, and the split of those rows."""

    rows: list[ShardRow]
    removed: int
    split: str


def trace_document(corpus: Corpus, prefix: str) -> DocumentTrace:
    """Trace the document whose id begins with `prefix`.

    Raises UsageError if no document's id, or those of several, begin like that.
    """
    found = find_decision(corpus, prefix)
    doc_id, part, source = found.doc_id, found.part, found.manifest.partition
    rows, removed_rows, split = rows_of(corpus, source, doc_id)
    member = cluster_of(corpus, source, part, doc_id)
    is_copy = member is not None and member.method is not None
    kept = rows_of(corpus, member.kept_source, member.kept_doc_id) if member and is_copy else None
    tokenized = tokens_of(corpus, source, part, doc_id)
    left_out: dict[str, int] = {}
    if tokenized is not None and not rows and not removed_rows:
        bucketed = corpus.store.newest_or_none(BUCKETED, source)
        left_out = dict(bucketed.stats.rejected) if bucketed else {}
    return DocumentTrace(
        doc_id=doc_id,
        source=source,
        raw=raw_of(corpus, found),
        filtered=found.decision,
        duplicates=member,
        deduped=deduped_of(corpus, source, part, doc_id),
        tokenized=tokenized,
        sharded=rows,
        removed_rows=removed_rows,
        split=split or UNSET,
        kept_split=(kept and kept.split) or UNSET,
        leakage=leakage_of(corpus, doc_id) or UNSET,
        left_out=left_out or UNSET,
        annotations=annotations_of(corpus, source, part, doc_id) or UNSET,
    )


def raw_of(corpus: Corpus, found: FoundDecision) -> Origin | None:
    """Return the document's origin, None if the raw documents are gone."""
    try:
        manifest = raw_manifest(corpus, found.manifest)
    except StoreError:
        return None
    raw = next(record for record in manifest.parts if record.name == found.part.name)
    return read_one(path_of(corpus, manifest, raw, "documents"), found.doc_id, Origin)


def leakage_of(corpus: Corpus, doc_id: str) -> Leakage | None:
    """Return what a document has in common with a held-out one, None if it was not compared."""
    compared = corpus.store.newest_or_none(LEAKAGE, GLOBAL) if corpus.settings.holds_out else None
    return read_one(shares_file(corpus, compared), doc_id, Leakage) if compared else None


def annotations_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> list[Annotation]:
    """Return what the annotators of a source say of a document, none of those who do not know it.

    Whether it is dropped follows from the config of today.
    """
    found = []
    for annotator in (each for each in corpus.settings.annotations if each.annotates(source)):
        place = newest_part(corpus, ANNOTATED, source, part_name(annotator.name, part.name))
        if place is None:
            continue
        table = pl.scan_parquet(path_of(corpus, *place, ANNOTATIONS)).filter(doc_id=doc_id)
        for row in table.collect().drop("doc_id").iter_slices(1):
            is_dropped = bool(annotator.drop) and is_met(row, annotator.drop or "").item()
            found.append(Annotation(annotator.name, row.row(0, named=True), is_dropped))
    return found


def tokens_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Tokenized | None:
    """Return the document's number of tokens, None if it is not tokenized."""
    place = newest_part(corpus, TOKENIZED, source, part.name)
    if place is None:
        return None
    table = pl.scan_ipc(path_of(corpus, *place, "tokens")).filter(doc_id=doc_id)
    lengths = table.select(pl.col("tokens").list.len()).collect()
    return Tokenized(int(lengths.item())) if lengths.height else None


def rows_with(path: Path, doc_id: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return columns of the rows of a document in a table."""
    return pl.scan_parquet(path).filter(doc_id=doc_id).select(columns).collect().to_dicts()


def read_one(path: Path, doc_id: str, form: type[Form]) -> Form | None:
    """Read a document's row in a table, None if it has none."""
    rows = rows_with(path, doc_id, form.__struct_fields__)
    return msgspec.convert(rows[0], form) if rows else None


def cluster_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Membership | None:
    """Return the document's duplicate cluster, None if it is in none."""
    manifest = corpus.store.partition(DUPLICATES, GLOBAL).newest_manifest()
    for record in manifest.parts if manifest else ():
        clustered = (record.stats.numbers.get("source"), record.stats.numbers.get("part"))
        if manifest and clustered == (source, part.name):
            return read_one(path_of(corpus, manifest, record, "clusters"), doc_id, Membership)
    return None


def deduped_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Deduped | None:
    """Return the result of `deduped` for the document, None if it has not seen its part."""
    place = newest_part(corpus, DEDUPED, source, part.name)
    if place is None:
        return None
    manifest, record = place
    is_kept = doc_id in read_kept_ids(kept_documents(corpus.store, manifest, record))
    changes: list[Cut] = []
    if record.file("changes"):
        path = path_of(corpus, manifest, record, "changes")
        rows = rows_with(path, doc_id, Cut.__struct_fields__)
        changes = msgspec.convert(rows, list[Cut])
    hits: list[Hit] = []
    if record.file("contamination"):
        table = pl.scan_parquet(path_of(corpus, manifest, record, "contamination"))
        found = table.filter(doc_id=doc_id).select(Hit.__struct_fields__)
        hits = msgspec.convert(found.collect().to_dicts(), list[Hit])
    return Deduped(is_kept, changes, hits)


def rows_of(corpus: Corpus, source: str, doc_id: str) -> ShardRows:
    """Return the rows of the newest shards that hold the document."""
    manifest = corpus.store.partition(SHARDED, source).newest_manifest()
    if manifest is None:
        return ShardRows([], 0, "")
    removed = removed_of(manifest)
    flat = [(part, file) for part in manifest.parts if (file := part.file(FLAT_SUFFIX))]
    stems = [corpus.store.file_of(manifest, file).checked().with_suffix("") for _, file in flat]
    rows, num_removed, split = [], 0, ""
    with ThreadPoolExecutor() as pool:
        sizes = [file.rows for _, file in flat]
        by_shard = list(pool.map(segments_of, stems, sizes, [doc_id] * len(flat)))
    for number, ((part, _), segments) in enumerate(zip(flat, by_shard, strict=True)):
        listed = removed.get(part.name) if segments else None
        gone = set() if listed is None else set(listed.read(corpus.store.root).tolist())
        num_removed += len({segment.row for segment in segments} & gone)
        found = [ShardRow(number, **asdict(s)) for s in segments if s.row not in gone]
        rows += found
        split = split_of(bucket_of(part) or "") if found else split
    return ShardRows(rows, num_removed, split)
