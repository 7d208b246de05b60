"""Find and load the published index of evaluation sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from assets.deduped.decontamination.evaluation_index import EvaluationIndex
from assets.deduped.deduped_records import EVALUATION, EvaluationNumbers
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.store.published import PublishedFile
from resources.store.records import Empty, Manifest
from resources.tasks import GLOBAL

TABLES = ("items", "ngrams", "filter")

EvaluationManifest = Manifest[Empty, EvaluationNumbers]


@dataclass(frozen=True)
class IndexFiles:
    """Files of a published index: small, for tasks that cross a process border."""

    items: PublishedFile
    ngrams: PublishedFile
    filter: PublishedFile


def index_files(corpus: Corpus, manifest: EvaluationManifest) -> IndexFiles:
    """Return the files of a manifest's index."""
    return IndexFiles(*(corpus.store.part_file(manifest, manifest.parts[0], n) for n in TABLES))


def find_evaluation_index(corpus: Corpus) -> tuple[IndexFiles, str] | None:
    """Return the files and the fingerprint of the index, None without `dedup.decontamination`.

    Raises StoreError if the index is missing, or was made under another config.
    """
    config = corpus.settings.dedup.decontamination
    if config is None:
        return None
    manifest = corpus.store.newest(EVALUATION, GLOBAL)
    check_made_under(manifest, config=config.indexing())
    return index_files(corpus, manifest), manifest.parts[0].fingerprint


@lru_cache(maxsize=1)
def load_index(files: IndexFiles) -> EvaluationIndex:
    """Read a published index, once per process: its file names carry its fingerprint."""
    return EvaluationIndex(
        pl.read_parquet(files.items.checked()),
        pl.read_parquet(files.ngrams.checked()),
        pl.read_parquet(files.filter.checked()),
    )
