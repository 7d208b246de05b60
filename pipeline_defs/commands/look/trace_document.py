"""What every stage did with one document, from its input file to the rows that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

from assets.sharded.flat_row_files import pieces_of
from pipeline_defs.commands.look.lineage import ORIGIN
from pipeline_defs.commands.look.manifests import (
    LEAST_PREFIX,
    MAX_SUGGESTED,
    filtered_manifests,
    path_of,
    raw_manifest,
)
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError
from resources.tasks import GLOBAL

CLUSTER = ("cluster_id", "cluster_size", "kept_doc_id", "kept_source", "similarity", "method")
CHANGES = ("step", "num_cut", "cut_chars", "kept_share", "is_rejected")
FLAT_SUFFIX = "megatron.spans"
Found = dict[str, Any]


def trace_document(corpus: Corpus, doc_id: str) -> Found:
    """A document's way; a stage that has not seen it, or is not materialized, is None.

    Raises UsageError if no document's id, or those of several, begin like that.
    """
    manifest, part, decision = find_decision(corpus, doc_id)
    doc_id, source = decision["doc_id"], manifest.partition
    return {
        "doc_id": doc_id,
        "source": source,
        "raw": raw_of(corpus, manifest, part, doc_id),
        "filtered": {key: decision[key] for key in ("kept", "reasons")},
        "duplicates": cluster_of(corpus, source, part, doc_id),
        "deduped": deduped_of(corpus, source, part, doc_id),
        "tokenized": tokens_of(corpus, source, part, doc_id),
        "sharded": list(rows_of(corpus, source, doc_id)),
    }


def find_decision(corpus: Corpus, doc_id: str) -> tuple[Manifest, PartRecord, Found]:
    """The one decision on a document whose id begins like that, and the filtered part it is in."""
    if len(doc_id) < LEAST_PREFIX:
        raise UsageError(f"{doc_id!r} is too short: give at least {LEAST_PREFIX} characters of it.")
    found: list[tuple[Manifest, PartRecord, Found]] = []
    for manifest in filtered_manifests(corpus):
        parts = {str(path_of(corpus, manifest, part, "decisions")): part for part in manifest.parts}
        if not parts:
            continue
        table = pl.scan_parquet(list(parts), include_file_paths="path")
        begins = table.filter(pl.col("doc_id").str.starts_with(doc_id))
        rows = begins.select("doc_id", "kept", "reasons", "path").collect(engine="streaming")
        found += [(manifest, parts[row["path"]], row) for row in rows.iter_rows(named=True)]
    if not found:
        raise UsageError(
            f"there is no document {doc_id!r} among the filtered ones. `corpus summary` shows what "
            "is materialized."
        )
    if len(found) > 1:
        ids = sorted(row["doc_id"] for _, _, row in found)
        more = ", ..." if len(ids) > MAX_SUGGESTED else ""
        raise UsageError(
            f"{doc_id!r} begins the ids of {len(ids)} documents: {', '.join(ids[:MAX_SUGGESTED])}"
            f"{more}. Give more of it."
        )
    return found[0]


def row_of(path: Path, doc_id: str, columns: tuple[str, ...]) -> Found | None:
    """Columns of a document's row, None if the table has none."""
    rows = pl.scan_parquet(path).filter(doc_id=doc_id).select(columns).head(1).collect()
    return rows.row(0, named=True) if rows.height else None


def part_of(
    corpus: Corpus, stage: str, source: str, name: str
) -> tuple[Manifest, PartRecord] | None:
    """The newest part of a stage and name, None if there is none."""
    manifest = corpus.store.partition(stage, source).newest_manifest()
    parts = [part for part in manifest.parts if part.name == name] if manifest else []
    return (manifest, parts[0]) if manifest and parts else None


def raw_of(corpus: Corpus, filtered: Manifest, part: PartRecord, doc_id: str) -> Found | None:
    """Where the document came from, None if the raw documents are gone."""
    try:
        manifest = raw_manifest(corpus, filtered)
    except StoreError:
        return None
    raw = next(each for each in manifest.parts if each.name == part.name)
    return row_of(path_of(corpus, manifest, raw, "documents"), doc_id, ORIGIN)


def cluster_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Found | None:
    """The cluster that the document is in, None if it is in none."""
    manifest = corpus.store.partition("duplicates", GLOBAL).newest_manifest()
    for record in manifest.parts if manifest else ():
        extra = record.stats.numbers
        if manifest and (extra.get("source"), extra.get("part")) == (source, part.name):
            return row_of(path_of(corpus, manifest, record, "clusters"), doc_id, CLUSTER)
    return None


def deduped_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Found | None:
    """Whether the document was kept, and what was cut from it."""
    found = part_of(corpus, "deduped", source, part.name)
    if found is None:
        return None
    manifest, record = found
    kept = row_of(path_of(corpus, manifest, record, "documents"), doc_id, ("doc_id",))
    changes: list[Found] = []
    if record.file("changes"):
        table = pl.scan_parquet(path_of(corpus, manifest, record, "changes"))
        changes = table.filter(doc_id=doc_id).select(CHANGES).collect().to_dicts()
    return {"kept": kept is not None, "changes": changes}


def tokens_of(corpus: Corpus, source: str, part: PartRecord, doc_id: str) -> Found | None:
    """How many tokens the document has, begin and end included."""
    found = part_of(corpus, "tokenized", source, part.name)
    if found is None:
        return None
    table = pl.scan_ipc(path_of(corpus, *found, "tokens")).filter(doc_id=doc_id)
    lengths = table.select(pl.col("tokens").list.len()).collect()
    return {"tokens": int(lengths.item())} if lengths.height else None


def rows_of(corpus: Corpus, source: str, doc_id: str) -> Iterator[Found]:
    """The rows of the newest shards that hold the document, in order."""
    manifest = corpus.store.partition("sharded", source).newest_manifest()
    if manifest is None:
        return
    files = [file for part in manifest.parts for file in part.files if file.kind == FLAT_SUFFIX]
    stems = [corpus.store.path_of(manifest, file).with_suffix("") for file in files]
    with ThreadPoolExecutor() as pool:
        found = pool.map(pieces_of, stems, [file.rows for file in files], [doc_id] * len(files))
        for number, pieces in enumerate(found):
            for piece in pieces:
                yield {
                    "shard": number,
                    "row": piece.row,
                    "position": piece.position,
                    "start": piece.start,
                    "tokens": piece.tokens,
                }
