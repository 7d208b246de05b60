"""Say why a document is not among the filtered ones: a takedown, or the input."""

from __future__ import annotations

import polars as pl

from assets.raw.size_cap_files import OVER_SIZE_CAP
from assets.raw.taken_down_files import wanted_at
from assets.text.marks import find_doc_ids
from pipeline_defs.commands.look.manifests import path_of
from resources.corpus import Corpus
from resources.store.records import Manifest
from resources.store.store import StoreError, newest_first
from resources.takedowns import count_takedowns, read_takedowns

ID_HEX = 32


def why_absent(corpus: Corpus, prefix: str) -> str:
    """Return why no filtered document's id has this prefix, as far as the store knows."""
    if said := taken_down(corpus, prefix):
        return said
    for source in corpus.settings.source_names():
        manifests = list(newest_first(corpus.store.partition("raw", source)))
        for age, manifest in enumerate(manifests):
            if not has_document(corpus, manifest, prefix):
                continue
            if age == 0:
                return f"raw[{source}] has it, and `filtered` has not read that yet. Build again."
            over = manifests[0].stats.rejected.get(OVER_SIZE_CAP, 0)
            cap = f" {over:,} documents are beyond the source's size cap." if over else ""
            return (
                f"An older state of raw[{source}] has it: its record is no longer in the input, or "
                f"not read any more. `corpus history {source}` shows what has changed.{cap}"
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
