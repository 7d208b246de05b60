"""Files of the decisions of `filtered`, and the rules that made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from assets.filtered.filter_files import FilterFileError, load_filter_data
from assets.filtered.score_counts import FilterData
from corpus_loader.places.stage_names import FILTERED
from resources.corpus import Corpus
from resources.errors import check_name
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import RulesConfig
from resources.store.records import Manifest, required_file
from resources.store.store import StoreError

BATCH_ROWS = 2_000_000  # bounds memory: some 100 bytes a row


def pick_sources(corpus: Corpus, names: Sequence[str] | None) -> list[str]:
    """Return the named sources without repeats; all that have decisions if none is named."""
    known = corpus.settings.source_names()
    for name in names or []:
        check_name("source", name, known)
    if names:
        return list(dict.fromkeys(names))
    filtered = [n for n in known if corpus.store.partition(FILTERED, n).manifest_numbers()]
    if not filtered:
        raise StoreError(f"{corpus.store}: nothing is filtered here. Materialize `filtered` first.")
    return filtered


def decision_files(corpus: Corpus, manifest: Manifest) -> list[tuple[Path, int]]:
    """Return (path, rows) of every part's decisions; StoreError if a file is missing."""
    records = [required_file(manifest, part, "decisions") for part in manifest.parts]
    files = [(corpus.store.file_of(manifest, file).checked(), file.rows) for file in records]
    for path, _ in files:
        if not path.is_file():
            raise StoreError(f"{path}: missing. Materialize `filtered` again to restore it.")
    return files


def batches(files: Sequence[tuple[Path, int]], max_rows: int) -> Iterator[list[Path]]:
    """Yield runs of files with at most `max_rows` rows together, or of one file."""
    batch: list[Path] = []
    rows = 0
    for path, num_rows in files:
        if batch and rows + num_rows > max_rows:
            yield batch
            batch, rows = [], 0
        batch.append(path)
        rows += num_rows
    if batch:
        yield batch


def rules_config(manifest: Manifest) -> RulesConfig:
    """Return the rules that made a manifest's decisions; StoreError if this version has others."""
    try:
        return RulesConfig.model_validate(manifest.config["rules"])
    except (KeyError, ValidationError) as error:
        raise StoreError(other_version(manifest.partition, str(error))) from None


def filter_data(corpus: Corpus, manifest: Manifest) -> FilterData:
    """Return the lists and custom rules that a manifest's config names."""
    try:
        config = FilterConfig.model_validate(manifest.config)
        return load_filter_data(config, corpus.config.parent)
    except (ValidationError, FilterFileError) as error:
        raise StoreError(other_version(manifest.partition, str(error))) from None


def other_version(source: str, why: str) -> str:
    """Explain that this version does not understand the decisions, and what to do."""
    return (
        f"filtered[{source}] was made by another version of the rules ({why}). "
        f"Materialize `filtered` for {source!r} again."
    )
