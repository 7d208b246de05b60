"""Read models of annotators, once a process, and apply them to documents."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import polars as pl

from assets.annotated.classify.head import UNITS, Head, score_vectors
from assets.annotated.topics.topics import Topics, assign_topics
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical
from resources.settings.annotations import TopicsAnnotator, Trained
from resources.store.published import PublishedFile


def load_lexical(file: PublishedFile) -> LexicalModel:
    """Read the vectors of words."""
    return read_lexical(file.checked())


@lru_cache(maxsize=2)
def read_lexical(path: Path) -> LexicalModel:
    """Read a file whose name has its fingerprint."""
    return LexicalModel.from_table(pl.read_parquet(path))


def apply_model(
    documents: pl.DataFrame, annotator: Trained, models: tuple[PublishedFile, ...]
) -> pl.DataFrame:
    """Return doc_id and the annotator's columns of documents (doc_id, text, lang); null of none.

    `models` are the files of the vectors and of the annotator's own model.
    """
    lexical, own = models
    vectors = embed_lexical(documents["text"], load_lexical(lexical))
    table = pl.read_parquet(own.checked())
    if isinstance(annotator, TopicsAnnotator):
        topics = Topics.from_table(table)
        found = assign_topics(vectors, documents["lang"].fill_null(""), topics)
        names = pl.Series(topics.names, dtype=pl.String).gather(found["topic"])
        return documents.select("doc_id", topic=names, distance=found["distance"] / UNITS)
    head = Head.from_table(table)
    found_score = score_vectors(vectors, head)
    if not len(head.scores):
        return documents.select("doc_id", score=pl.lit(None, pl.Float64), label=found_score)
    nearest = (2 * found_score.cast(pl.Int64) + UNITS) // (2 * UNITS)
    return documents.select("doc_id", score=found_score / UNITS, label=nearest.cast(pl.String))
