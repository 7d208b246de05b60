"""Read models of annotators, once a process, and apply them to documents."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from assets.annotated.topics.topics import Topics, assign_topics
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical
from resources.settings.pipeline import Settings
from resources.store.published import PublishedFile

THOUSANDTHS = 1000  # of a distance


def settings_of_models(settings: Settings) -> dict[str, Any]:
    """Return the settings that models depend on, by annotator."""
    return {each.name: each.saying() for each in settings.topics}


def load_lexical(file: PublishedFile) -> LexicalModel:
    """Read the vectors of words."""
    return read_lexical(file.checked())


@lru_cache(maxsize=2)
def read_lexical(path: Path) -> LexicalModel:
    """Read a file whose name has its fingerprint."""
    return LexicalModel.from_table(pl.read_parquet(path))


def apply_topics(
    documents: pl.DataFrame, models: tuple[PublishedFile, ...]
) -> tuple[pl.DataFrame, int]:
    """Return doc_id, `topic` and `distance` of documents (doc_id, text, lang); null without words.

    And how many are beyond all topics. `models` are the files of the vectors and of the topics.
    """
    lexical, own = models
    vectors = embed_lexical(documents["text"], load_lexical(lexical))
    topics = Topics.from_table(pl.read_parquet(own.checked()))
    found = assign_topics(vectors, documents["lang"].fill_null(""), topics)
    names = pl.Series(topics.names, dtype=pl.String).gather(found["topic"])
    table = documents.select("doc_id", topic=names, distance=found["distance"] / THOUSANDTHS)
    return table, int((found["distance"] > topics.far).sum())
