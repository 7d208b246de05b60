"""Load the corpus that the environment and pipeline.yaml name."""

from __future__ import annotations

from pathlib import Path

from assets.filtered.filter_files import FilterFileError, files_of, load_custom_rules
from resources.corpus import Corpus
from resources.settings.faults import nearest
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
    """Raise SettingsError for filters with a missing file or an invalid custom rule."""
    filters = settings.filters_for(source)
    try:
        files = files_of(filters, config.parent)
        custom = load_custom_rules(files["filters.custom"]) if filters.custom else ()
    except FilterFileError as error:
        raise SettingsError(f"{config}: source {source!r}: {error}") from error
    names = [rule.name for rule in custom]
    for name in filters.rules.custom:
        if name not in names:
            raise SettingsError(
                f"{config}: source {source!r}: rules.custom.{name}: no such rule in filters.custom"
                f"{nearest(name, names)}; it has {', '.join(names) or 'none'}"
            )
