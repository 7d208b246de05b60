"""Load the corpus that the environment and pipeline.yaml name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from assets.filtered.filter_files import FilterFileError, files_of
from resources.corpus import Corpus
from resources.settings.named_files import NamedFileError, read_named_file
from resources.settings.pipeline import (
    Settings,
    SettingsError,
    check_ledger,
    config_path,
    load_settings,
    store_root,
)
from resources.store.store import Store

RAY_VARIABLE = "TOKENMILL_RAY_ADDRESS"


def load_corpus(config: Path | None = None) -> Corpus:
    """Load and check a corpus, by default that of the environment; SettingsError names mistakes."""
    config = config or config_path()
    settings = load_settings(config)
    path = settings.tokenizer.path
    if path is not None and not (config.parent / path).is_file():
        raise SettingsError(
            f"{config}: tokenizer.path: no file {path!r} (looked for {config.parent / path}). "
            "Correct it, or leave it out to train a tokenizer."
        )
    check_tokenizer_file(settings, config)
    check_ledger(settings, config)
    for source in settings.source_names():
        check_filter_files(settings, source, config)
    corpus = Corpus(settings, config, Store(store_root(settings, config)))
    address = os.environ.get(RAY_VARIABLE)
    return at_address(corpus, address) if address else corpus


def at_address(corpus: Corpus, address: str | None) -> Corpus:
    """Return the corpus with its parts computed on the Ray cluster at an address."""
    engine = corpus.settings.engine
    ray = engine.ray.model_copy(update={"address": address})
    engine = engine.model_copy(update={"kind": "ray", "ray": ray})
    return replace(corpus, settings=corpus.settings.model_copy(update={"engine": engine}))


def check_tokenizer_file(settings: Settings, config: Path) -> None:
    """Refuse a tokenizer to load that lacks the tokens of `fill_in_the_middle`, if it is used."""
    is_filled = any(source.fill_in_the_middle is not None for source in settings.sources)
    if settings.tokenizer.path is None or not is_filled:
        return
    from assets.tokenized.tokenizer import MOST_FILE_BYTES, TokenizerError, check_fill_tokens

    path = config.parent / settings.tokenizer.path
    tokens = settings.tokenizer.fill_in_the_middle_tokens
    try:
        check_fill_tokens(read_named_file(path, MOST_FILE_BYTES), tokens, is_trained=False)
    except (TokenizerError, NamedFileError) as error:
        raise SettingsError(
            f"{config}: tokenizer.path {settings.tokenizer.path!r}: {error}"
        ) from error


def check_filter_files(settings: Settings, source: str, config: Path) -> None:
    """Refuse filters that name a file that is not there.

    Custom rules are code: they run when `filtered` is planned, not whenever a command starts.
    """
    try:
        files_of(settings.filters_for(source), config.parent)
    except FilterFileError as error:
        raise SettingsError(f"{config}: source {source!r}: {error}") from error
