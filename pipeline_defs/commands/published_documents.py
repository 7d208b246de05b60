"""Find a published document by the beginning of its id, or say why it is not there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from assets.raw.size_cap_files import OVER_SIZE_CAP
from assets.text.marks import find_doc_ids
from assets.text.takedown_files import wanted_at
from corpus_loader.places.stage_names import FILTERED, RAW
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests
from resources.store.records import Manifest, PartRecord
from resources.store.store import StoreError, newest_first
from resources.takedowns import count_takedowns, read_takedowns

LEAST_PREFIX = 4  # characters of an id: of 1e9 documents, 15,000 begin alike
MAX_SUGGESTED = 5  # ids
ID_HEX = 32


class Decision(msgspec.Struct, frozen=True):
    """Decision of the filters."""

    kept: bool
    reasons: list[str]
    other_language: str | UnsetType = UNSET  # detected, and none of the source's languages


class FoundDecision(msgspec.Struct, frozen=True):
    """A document of `filtered`, the part that has it, and what was decided."""

    manifest: Manifest
    part: PartRecord
    doc_id: str
    decision: Decision


def raw_manifest(corpus: Corpus, manifest: Manifest) -> Manifest:
    """Return the manifest of `raw` that decisions were made from; StoreError if it is gone."""
    raw = KeptManifests(corpus.store, manifest.partition).raw_of(FILTERED, manifest)
    if raw is None:
        raise StoreError(
            f"filtered[{manifest.partition}] was made of raw documents that are no longer there. "
            f"Materialize `filtered` for {manifest.partition!r} again."
        )
    return raw


def path_of(corpus: Corpus, manifest: Manifest, part: PartRecord, kind: str) -> Path:
    """Return the path of a part's file of a kind; DamagedFileError if it is not as published."""
    return corpus.store.part_file(manifest, part, kind).checked()


def newest_part(
    corpus: Corpus, stage: str, source: str, name: str
) -> tuple[Manifest, PartRecord] | None:
    """Return the newest part of a stage and name, None if there is none."""
    manifest = corpus.store.newest_or_none(stage, source)
    parts = [part for part in manifest.parts if part.name == name] if manifest else []
    return (manifest, parts[0]) if manifest and parts else None


def check_prefix(prefix: str) -> None:
    """Raise UsageError for the beginning of an id that says too little."""
    if len(prefix) < LEAST_PREFIX:
        raise UsageError(f"{prefix!r} is too short: give at least {LEAST_PREFIX} characters of it.")


def several(prefix: str, doc_ids: Sequence[str]) -> str:
    """Explain that several documents' ids begin alike."""
    more = ", ..." if len(doc_ids) > MAX_SUGGESTED else ""
    return (
        f"{prefix!r} begins the ids of {len(doc_ids)} documents: "
        f"{', '.join(sorted(doc_ids)[:MAX_SUGGESTED])}{more}. Give more of it."
    )


def find_decision(corpus: Corpus, prefix: str) -> FoundDecision:
    """Find the one document of `filtered` whose id has this prefix; else UsageError."""
    check_prefix(prefix)
    matches: list[FoundDecision] = []
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest_or_none(FILTERED, source)
        if manifest is None or not manifest.parts:
            continue
        parts = {str(path_of(corpus, manifest, part, "decisions")): part for part in manifest.parts}
        table = pl.scan_parquet(list(parts), include_file_paths="path")
        other = pl.lit(None, pl.String).alias("other")
        if "other_language" in table.collect_schema():
            other = pl.when(pl.col("other_language") == 1).then("detected_lang").alias("other")
        begins = table.filter(pl.col("doc_id").str.starts_with(prefix))
        rows = begins.select("doc_id", "path", "kept", "reasons", other).collect(engine="streaming")
        matches += [
            FoundDecision(manifest, parts[path], doc_id, Decision(kept, reasons, other or UNSET))
            for doc_id, path, kept, reasons, other in rows.iter_rows()
        ]
    if not matches:
        raise UsageError(
            f"there is no document {prefix!r} among the filtered ones. {why_absent(corpus, prefix)}"
        )
    if len(matches) > 1:
        raise UsageError(several(prefix, [each.doc_id for each in matches]))
    return matches[0]


def why_absent(corpus: Corpus, prefix: str) -> str:
    """Return why no filtered document's id has this prefix, as far as the store knows."""
    if removed := taken_down(corpus, prefix):
        return removed
    for source in corpus.settings.source_names():
        manifests = list(newest_first(corpus.store.partition(RAW, source)))
        for age, manifest in enumerate(manifests):
            if not has_document(corpus, manifest, prefix):
                continue
            if age == 0:
                return f"raw[{source}] has it, and `filtered` has not read that yet. Build again."
            over = manifests[0].stats.rejected.get(OVER_SIZE_CAP, 0)
            cap = f" {over:,} documents are beyond the source's size cap." if over else ""
            return (
                f"An older state of raw[{source}] has it: its record is no longer in the input, or "
                f"not read any more. `corpus states history {source}` shows what has changed.{cap}"
            )
    return "`corpus summary` shows what is materialized."


def taken_down(corpus: Corpus, doc_id: str) -> str:
    """Return which takedown removed a document, "" if none has found it; only a whole id tells."""
    count = count_takedowns(corpus.store.root)
    if not count or len(doc_id) != ID_HEX or set(doc_id) - set("0123456789abcdef"):
        return ""
    found = find_doc_ids(pl.Series([doc_id]), wanted_at(corpus.store.root, count).ids)
    if not found:
        return ""
    request = read_takedowns(corpus.store.root)[found[0].owner]
    return f"Takedown {found[0].owner + 1} removed it ({request.reason})."


def has_document(corpus: Corpus, manifest: Manifest, prefix: str) -> bool:
    """Return whether a state of `raw` has a document whose id has this prefix."""
    for part in manifest.parts:
        try:
            ids = pl.scan_parquet(path_of(corpus, manifest, part, "documents")).select("doc_id")
        except StoreError:
            continue  # a lost part says nothing
        if ids.filter(pl.col("doc_id").str.starts_with(prefix)).head(1).collect().height:
            return True
    return False


def likeness(similarity: float | None) -> str:
    """Return a similarity as text; "-" if none was measured."""
    return "-" if similarity is None else f"{similarity:.3f}"
