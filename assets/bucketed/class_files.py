"""Classes of documents (`buckets.classes`): by a score of `filtered`, or a field of `meta`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from assets.bucketed.groups import Groups
from assets.deduped.minhash.meta_fields import field_values, finite, numbers_of
from assets.deduped.signed_files import clustered_documents
from resources.corpus import Corpus
from resources.settings.classes import QualityClasses, class_names
from resources.store.published import PublishedFile
from resources.store.records import Manifest
from resources.store.store import StoreError

META = "meta."


@dataclass(frozen=True)
class ScoredParts:
    """Files with the scores of the documents of some parts, and the fingerprints of the parts."""

    classes: QualityClasses
    files: tuple[PublishedFile, ...]
    fingerprints: tuple[str, ...]


def scored_documents(corpus: Corpus, source: str) -> Manifest[Any, Any] | None:
    """Return the filtered documents that the classes of a source come from.

    None if there are no classes, or the filters of the source do not store the score.
    """
    classes = corpus.settings.buckets.classes
    if classes is None:
        return None
    manifest = clustered_documents(corpus, source)
    if classes.score.startswith(META) or not manifest.parts:
        return manifest
    part = manifest.parts[0]
    decisions = corpus.store.part_file(manifest, part, "decisions")
    return manifest if classes.score in pl.read_parquet_schema(decisions.checked()) else None


def scored_parts(
    corpus: Corpus, manifest: Manifest[Any, Any], names: Collection[str]
) -> ScoredParts:
    """Return the scores of the documents of some parts; StoreError if one is not filtered."""
    classes = corpus.settings.buckets.classes
    assert classes is not None, "there are scored documents, so there are classes"
    parts = [part for part in manifest.parts if part.name in names]
    if missing := sorted({*names} - {part.name for part in parts}):
        raise StoreError(
            f"tokenized[{manifest.partition}] has the part {missing[0]!r}, of which there are no "
            "filtered documents any more. Materialize `deduped` and `tokenized` for "
            f"{manifest.partition!r} first."
        )
    kind = "documents" if classes.score.startswith(META) else "decisions"
    files = (corpus.store.part_file(manifest, p, kind) for p in parts)
    return ScoredParts(classes, tuple(files), tuple(part.fingerprint for part in parts))


def in_classes(groups: Groups, tables: Sequence[pl.DataFrame], parts: ScoredParts) -> Groups:
    """Put the documents of group 0 into the groups of their classes; others stay where they are.

    Documents without a score stay in group 0. Raises ValueError for a document that is not among
    the filtered ones.
    """
    doc_ids = pl.concat([table.select("doc_id") for table in tables])
    scores = pl.concat([read_scores(file, parts.classes.score) for file in parts.files])
    found = doc_ids.join(scores, on="doc_id", how="left", maintain_order="left")
    if (known := found["is_known"].null_count()) > 0:
        raise ValueError(
            f"{known:,} tokenized documents are not among the filtered ones: these are newer. "
            "Materialize `deduped` and `tokenized` first."
        )
    names = class_names(parts.classes.limits)
    numbers = np.array([groups.names.index(name) + 1 for name in names], np.uint8)
    values = found["score"].to_numpy()
    of_scores = numbers[np.searchsorted(parts.classes.limits, values, side="right")]
    is_scored = (groups.of_documents == 0) & ~np.isnan(values)
    return replace(groups, of_documents=np.where(is_scored, of_scores, groups.of_documents))


def read_scores(file: PublishedFile, score: str) -> pl.DataFrame:
    """Read doc_id, score (Float64, null where absent or not finite) and is_known of a part."""
    if score.startswith(META):
        documents = pl.read_parquet(file.checked(), columns=["doc_id", "meta"])
        values = numbers_of(field_values(documents, score))
    else:
        documents = pl.read_parquet(file.checked(), columns=["doc_id", score])
        values = finite(documents[score].cast(pl.Float64))
    return documents.select("doc_id", score=values, is_known=pl.lit(True))
