"""Load what scores documents: the trained classifier, and the scale of percentiles of a source."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from unicodedata import unidata_version

import polars as pl

from assets.filtered.classifier.classifier import Classifier, QualityScale
from assets.filtered.filter_files import MODEL, digests_of
from assets.filtered.filtered_records import CLASSIFIER, QUALITY_SCALE
from resources.corpus import Corpus
from resources.made_under import check_made_under
from resources.settings.filtering.filters import FilterConfig
from resources.store.records import fingerprint_of, required_file
from resources.store.store import StoreError
from resources.tasks import GLOBAL


@dataclass(frozen=True)
class ScoreInputs:
    """The settings behind a score, and its model: the classifier, or the path of the user's own."""

    config: FilterConfig
    classifier: Classifier | None
    fasttext_path: Path | None


def score_of(corpus: Corpus, config: FilterConfig) -> tuple[str, ScoreInputs]:
    """Return (fingerprint, inputs) of the score that percentiles are of."""
    behind = config.model_dump(mode="json", include={"normalize", "language", "fasttext"})
    if config.ranks_fasttext:
        assert config.fasttext is not None
        digests = [d for d in digests_of(config, corpus.config.parent) if d.startswith(MODEL)]
        score = ScoreInputs(config, None, corpus.config.parent / config.fasttext.path)
    else:
        trained = load_classifier(corpus)
        assert trained is not None, "the settings refuse a percentile without a model"
        classifier, digest = trained
        digests, score = [digest], ScoreInputs(config, classifier, None)
    return fingerprint_of(behind, digests, unidata_version), score


def load_scale(corpus: Corpus, source: str, config: FilterConfig) -> tuple[QualityScale, str]:
    """Return (scale, sha256 of its file) of a source; an empty scale for one without documents.

    Raises StoreError if it is missing, or of another model than today's.
    """
    manifest = corpus.store.newest(QUALITY_SCALE, source)
    if manifest.provenance.model != score_of(corpus, config)[0]:
        raise StoreError(
            f"quality_scale[{source}] is of another model, or of other settings of `normalize` or "
            f"`language`. Materialize `quality_scale` for {source!r} first."
        )
    if not manifest.parts:
        return QualityScale({}), ""
    file = required_file(manifest, manifest.parts[0], "scale")
    table = pl.read_parquet(corpus.store.file_of(manifest, file).checked())
    return QualityScale.from_table(table), file.sha256


def load_classifier(corpus: Corpus) -> tuple[Classifier, str] | None:
    """Return (model, sha256 of its file), None if `classifier` is not configured.

    Equal weights have equal files: documents that they scored need no new score. Raises StoreError
    if the model is missing, or was trained under another config.
    """
    config = corpus.settings.classifier
    if config is None:
        return None
    manifest = corpus.store.newest(CLASSIFIER, GLOBAL)
    check_made_under(manifest, config=config.model_dump(mode="json"))
    file = required_file(manifest, manifest.parts[0], "model")
    model = Classifier.from_table(pl.read_parquet(corpus.store.file_of(manifest, file).checked()))
    return model, file.sha256
