"""Load the corpus that the environment and pipeline.yaml name."""

from __future__ import annotations

from pathlib import Path

from assets.filtered.filter_files import FilterFileError, files_of
from resources.corpus import Corpus
from resources.settings.pipeline import (
    Settings,
    SettingsError,
    check_ledger,
    config_path,
    load_settings,
    store_root,
)
from resources.store.store import Store


def load_corpus() -> Corpus:
    """Load and check the corpus of the environment; SettingsError names every mistake."""
    config = config_path()
    settings = load_settings(config)
    path = settings.tokenizer.path
    if path is not None and not (config.parent / path).is_file():
        raise SettingsError(
            f"{config}: tokenizer.path: no file {path!r} (looked for {config.parent / path}). "
            "Correct it, or leave it out to train a tokenizer."
        )
    check_ledger(settings, config)
    for source in settings.source_names():
        check_filter_files(settings, source, config)
    return Corpus(settings, config, Store(store_root(settings, config)))


def check_filter_files(settings: Settings, source: str, config: Path) -> None:
    """Refuse filters that name a file that is not there.

    Custom rules are code: they run when `filtered` is planned, not whenever a command starts.
    """
    try:
        files_of(settings.filters_for(source), config.parent)
    except FilterFileError as error:
        raise SettingsError(f"{config}: source {source!r}: {error}") from error
