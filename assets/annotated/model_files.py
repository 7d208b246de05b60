"""Read models and functions of annotators, and apply them to documents."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import msgspec
import polars as pl

from assets.annotated.annotated_records import REPORT
from assets.annotated.asked_files import questions_of
from assets.annotated.held_out_report import HeldOutReport
from assets.annotated.topics.topics import Topics, assign_topics
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical
from assets.filtered.classifier.classifier import Classifier, score_quality
from resources.corpus import Corpus
from resources.settings.annotations import PlugInAnnotator
from resources.settings.conditions import schema_of
from resources.settings.plug_ins import PlugInError, load_plug_in
from resources.store.published import PublishedFile
from resources.store.records import Manifest

THOUSANDTHS = 1000  # of a distance


def config_of_models(corpus: Corpus) -> dict[str, Any]:
    """Return the settings that models depend on, by annotator; of a classifier, its labels' too."""
    settings, questions = corpus.settings, questions_of(corpus)
    config = {each.name: each.saying() for each in settings.topics}
    for each in settings.classifying:
        teacher = settings.teachers[each.by]
        config[each.name] = each.saying() | {
            "learns_from": [teacher.saying(), questions.get(teacher.name)]
        }
    return config


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


def apply_classifier(
    documents: pl.DataFrame, models: tuple[PublishedFile, ...]
) -> tuple[pl.DataFrame, int]:
    """Return doc_id and `score` of documents (doc_id, text), and how many have words, so a score.

    Scores are rounded to thousandths.
    """
    [model] = models
    classifier = Classifier.from_table(pl.read_parquet(model.checked()))
    scores = score_quality(documents["text"], classifier).round(3)
    return documents.select("doc_id", score=scores), int(scores.count())


def apply_plug_in(documents: pl.DataFrame, annotator: PlugInAnnotator) -> tuple[pl.DataFrame, int]:
    """Return doc_id and what a function of a package gives for documents, and how many have any.

    Raises PlugInError for a function that fails, or gives no such columns or another height.
    """
    annotate = load_plug_in("annotators", annotator.plug_in, FunctionType)
    try:
        found = annotate(documents)
        given = documents.select("doc_id").hstack(found.select([*annotator.columns]))
        table = given.cast(pl.Schema(schema_of(annotator.columns)))
        is_number = pl.selectors.float()
        table = table.with_columns(pl.when(is_number.is_finite()).then(is_number))
    except Exception as error:
        raise PlugInError(
            f"annotations: annotator {annotator.name!r}: {annotator.plug_in!r} must return a "
            f"DataFrame with a row for each of {documents.height:,} documents and the columns "
            f"{', '.join(annotator.columns)} ({type(error).__name__}: {error})"
        ) from error
    return table, table.filter(pl.any_horizontal(pl.exclude("doc_id").is_not_null())).height


def read_reports(corpus: Corpus, manifest: Manifest[Any, Any]) -> dict[str, HeldOutReport]:
    """Return what classifiers say of the examples that are held out, by annotator."""
    found = {}
    for part in manifest.parts:
        if part.file(REPORT) is not None:
            content = corpus.store.part_file(manifest, part, REPORT).checked().read_bytes()
            found[part.name] = msgspec.json.decode(content, type=HeldOutReport)
    return found
