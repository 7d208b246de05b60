"""Which documents of a filtered part go before its text is looked at again: copies, contaminated.

`duplicates` says which documents another stands for, `signatures` which have evaluation items. What
cuts and counts repeats must leave both out, or the only other place of a repeat could be in a
document that goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from assets.deduped.clusters.duplicates import drop_duplicates
from resources.corpus import Corpus
from resources.store.records import Manifest, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL


@dataclass(frozen=True)
class Removals:
    """The files that say it for one filtered part; `identity` changes when what goes does."""

    clusters: Path
    contamination: Path | None  # None: not configured
    is_rejecting: bool  # else contaminated documents are tagged and stay
    identity: tuple[str, ...]


def removals_by_part(corpus: Corpus, source: str) -> dict[str, Removals]:
    """The removals of every filtered part of a source, by its name.

    Raises StoreError if they are of other documents than the newest ones.
    """
    filtered, signed = (corpus.store.newest(s, source) for s in ("filtered", "signatures"))
    clusters = corpus.store.newest("duplicates", GLOBAL)
    check_up_to_date(corpus, filtered, clusters)
    decontamination = corpus.settings.dedup.decontamination
    is_rejecting = decontamination is not None and decontamination.action == "reject"
    hits_of = {part.name: part.file("contamination") for part in signed.parts}
    found = {}
    for record in clusters.parts:
        if record.stats.numbers.get("source") != source:
            continue
        name = record.stats.numbers["part"]
        hits = hits_of[name]
        found[name] = Removals(
            corpus.store.path_of(clusters, required_file(clusters, record, "clusters")),
            None if hits is None else corpus.store.path_of(signed, hits),
            is_rejecting,
            (
                record.stats.numbers["removed_ids"],
                "" if hits is None else hits.sha256,
                str(is_rejecting),
            ),
        )
    return found


def check_up_to_date(corpus: Corpus, filtered: Manifest, clusters: Manifest) -> None:
    """StoreError if the clusters were made of other documents than the newest ones.

    A survivor may lie in any source: with clusters of yesterday a document could be dropped for one
    that is no longer there.
    """
    signed = [corpus.store.newest("signatures", name) for name in corpus.settings.source_names()]
    mine = next(manifest for manifest in signed if manifest.partition == filtered.partition)
    if mine.provenance["filtered"] != filtered.fingerprint:
        raise StoreError(
            f"signatures[{filtered.partition}] are of other documents than the newest "
            f"filtered[{filtered.partition}]. Materialize `signatures` for "
            f"{filtered.partition!r}, then `band_index` and `duplicates`, first."
        )
    if clusters.provenance["signatures"] != [manifest.fingerprint for manifest in signed]:
        raise StoreError(
            "duplicates[all] are of other signatures than the newest ones. Materialize "
            "`band_index` and `duplicates` first."
        )


def remaining(documents: Path, removals: Removals, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of a filtered part's documents that stay (doc_id among them), in order."""
    clusters = pl.read_parquet(removals.clusters, columns=["doc_id", "kept_doc_id"])
    kept = drop_duplicates(pl.read_parquet(documents, columns=list(columns)), clusters)
    if removals.contamination is None or not removals.is_rejecting:
        return kept
    hits = pl.read_parquet(removals.contamination, columns=["doc_id", "is_contaminated"])
    gone = hits.filter("is_contaminated")
    return kept.join(gone, on="doc_id", how="anti", maintain_order="left")
