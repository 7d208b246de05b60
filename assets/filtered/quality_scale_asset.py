"""quality_scale: the scores of a sample of a source, by language, that percentiles refer to.

A scale is made once, of the raw parts that the source has then. Later parts do not change it: the
percentiles of published documents stay. Another model, normalisation or detection of languages
makes a new one.
"""

from dataclasses import dataclass
from pathlib import Path
from unicodedata import unidata_version

import msgspec
import polars as pl

from assets.filtered.classifier.classifier import Classifier, score_fasttext, score_quality
from assets.filtered.classifier.percentiles import (
    EVERY_LANGUAGE,
    SAMPLE_DOCUMENTS,
    QualityScale,
    find_scale,
    is_in_scale,
)
from assets.filtered.classifier_asset import CLASSIFIER, load_classifier
from assets.filtered.filter_files import MODEL, digests_of
from assets.filtered.language.detect_language import detect_language
from assets.filtered.normalize import normalize_text
from assets.raw.asset import RAW
from assets.raw.usable_raw_files import usable_raw
from resources.corpus import Corpus
from resources.settings.filtering.filters import FilterConfig
from resources.settings.pipeline import Settings
from resources.stage import MainTable, Stage
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, fingerprint_of, required_file
from resources.store.store import StoreError
from resources.tasks import Plan, Task, tasks_of

RENEW = "renew"
SCALE_COLUMNS = {
    "language": "detected language; `*`: all documents of the source",
    "scores": "scores at equal steps of rank, in ascending order",
}


class ScaleProvenance(msgspec.Struct, frozen=True):
    """Fingerprint of the model and the settings behind a score, and of the parts sampled."""

    model: str
    parts: tuple[str, ...]


class ScaleNumbers(msgspec.Struct, frozen=True):
    """Documents of the sample by language, for languages with a scale of their own."""

    languages: dict[str, int] = {}


@dataclass(frozen=True)
class ScoreInputs:
    """The settings behind a score, and its model: the classifier, or the path of the user's own."""

    config: FilterConfig
    classifier: Classifier | None
    fasttext_path: Path | None


@dataclass(frozen=True)
class ScaleInputs:
    """Raw documents of a source, the share of them to score, and the score."""

    documents: tuple[PublishedFile, ...]
    share: float
    score: ScoreInputs


def has_percentile(config: FilterConfig) -> bool:
    """Check that a rule looks at the percentile of the quality score."""
    return config.rules.quality is not None and config.rules.quality.min_percentile is not None


def uses_scale(settings: Settings) -> bool:
    """Check that the filters of some source look at the percentile."""
    return any(has_percentile(settings.filters_for(name)) for name in settings.source_names())


def plan_scale(corpus: Corpus, source: str) -> Plan:
    """Plan one task over the raw parts of the first scale, or of today if there is none.

    Raises StoreError if the raw documents or the classifier are not materialized.
    """
    config = corpus.settings.filters_for(source)
    manifest = usable_raw(corpus, source)
    if not has_percentile(config):
        return Plan([], {}, ScaleProvenance(model="", parts=()))
    model, score = score_of(corpus, config)
    by_fingerprint = {part.fingerprint: part for part in manifest.parts if part.stats.rows_kept}
    before = () if RENEW in corpus.flags else sampled_before(corpus, source, model)
    parts = before or tuple(by_fingerprint)
    provenance = ScaleProvenance(model=model, parts=parts)
    if not parts:
        return Plan([], {}, provenance)
    present = [by_fingerprint[name] for name in parts if name in by_fingerprint]
    files = [required_file(manifest, part, "documents") for part in present]
    rows = sum(part.stats.rows_kept for part in present)
    task = tasks_of(corpus, QUALITY_SCALE, source).task(
        "scale",
        (model, parts),
        ScaleInputs(
            tuple(corpus.store.file_of(manifest, file) for file in files),
            min(1.0, SAMPLE_DOCUMENTS / max(1, rows)),
            score,
        ),
        work_bytes=sum(file.bytes for file in files),
    )
    return Plan([task], {}, provenance)


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


def sampled_before(corpus: Corpus, source: str, model: str) -> tuple[str, ...]:
    """Return the fingerprints of the parts that the scale of this model was made of; or none."""
    published = corpus.store.newest_or_none(QUALITY_SCALE, source)
    is_current = published is not None and published.provenance.model == model
    return published.provenance.parts if published is not None and is_current else ()


def make_scale(task: Task[ScaleInputs]) -> list[PartRecord]:
    """Score the sample, a part at a time, and publish the scale."""
    inputs = task.payload
    empty = pl.DataFrame(schema={"language": pl.String, "score": pl.Float64})
    scored = [scored_sample(file, inputs.share, inputs.score) for file in inputs.documents]
    sample = pl.concat([empty, *scored])
    scale = find_scale(sample)
    counts = dict(sample["language"].drop_nulls().value_counts().sort("language").iter_rows())
    writer = task.writer()
    writer.write_parquet("scale", scale.to_table())
    languages = {name: counts[name] for name in scale.scores if name != EVERY_LANGUAGE}
    numbers = ScaleNumbers(languages=languages)
    return [writer.publish(Stats(sample.height, sample.height, numbers=numbers))]


def scored_sample(file: PublishedFile, share: float, score: ScoreInputs) -> pl.DataFrame:
    """Return language and score of the sampled documents of a part, as `filtered` has them."""
    documents = pl.read_parquet(file.checked(), columns=["doc_id", "text"])
    is_taken = pl.Series(is_in_scale(documents["doc_id"], share), dtype=pl.Boolean)
    texts = normalize_text(documents["text"].filter(is_taken), score.config.normalize)
    languages = detect_language(texts, score.config.language)["lang"]
    if score.classifier is not None:
        scores = score_quality(texts, score.classifier)
    else:
        assert score.config.fasttext is not None
        scores = score_fasttext(texts, str(score.fasttext_path), score.config.fasttext.label)
    return pl.DataFrame({"language": languages, "score": scores})


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


def settings_of_scales(settings: Settings) -> dict[str, object]:
    """Return what the scale of each source depends on."""
    keys = {"normalize", "language", "fasttext"}
    return {
        name: settings.filters_for(name).model_dump(mode="json", include=keys)
        for name in settings.source_names()
        if has_percentile(settings.filters_for(name))
    }


QUALITY_SCALE: Stage[ScaleProvenance, ScaleNumbers] = Stage(
    name="quality_scale",
    code_version="1",
    description="Quality scores of a sample of each source, by language: what the percentile of a "
    "document refers to.",
    group="curate",
    partitions="source",
    after=(RAW, CLASSIFIER),
    kinds=frozenset({"numba"}),
    provenance=ScaleProvenance,
    numbers=ScaleNumbers,
    settings=settings_of_scales,
    plan=plan_scale,
    is_held=True,
    work=make_scale,
    is_used=uses_scale,
    flags={RENEW: "measure the scale on the raw documents of today, not on those of the first run"},
    main_table=MainTable("scale", SCALE_COLUMNS),
)
