"""quality_scale: the scores of a sample of a source, by language, that percentiles refer to.

A scale is made once, of the raw parts that the source has then. Later parts do not change it: the
percentiles of published documents stay. Another model, normalisation or detection of languages
makes a new one.
"""

from dataclasses import dataclass

import polars as pl

from assets.filtered.classifier.classifier import (
    EVERY_LANGUAGE,
    SAMPLE_DOCUMENTS,
    find_scale,
    score_fasttext,
    score_quality,
)
from assets.filtered.classifier.classifier_files import ScoreInputs, score_of
from assets.filtered.filtered_records import QUALITY_SCALE, ScaleNumbers, ScaleProvenance
from assets.filtered.language.detect_language import detect_language
from assets.filtered.normalize import normalize_text
from assets.raw.usable_raw_files import usable_raw
from assets.text.document_ids import is_sampled
from corpus_loader.places import stage_names
from resources.corpus import Corpus
from resources.settings.pipeline import Settings
from resources.stage import MainTable, Outlook, Stage
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, required_file
from resources.tasks import Plan, Task, tasks_of

RENEW = "renew"
SCALE_COLUMNS = {
    "language": "detected language; `*`: all documents of the source",
    "scores": "scores at equal steps of rank, in ascending order",
}


@dataclass(frozen=True)
class ScaleInputs:
    """Raw documents of a source, the share of them to score, and the score."""

    documents: tuple[PublishedFile, ...]
    share: float
    score: ScoreInputs


def uses_scale(settings: Settings) -> bool:
    """Check that the filters of some source look at the percentile."""
    return any(settings.filters_for(name).has_percentile for name in settings.source_names())


def plan_scale(corpus: Corpus, source: str) -> Plan:
    """Plan one task over the raw parts of the first scale, or of today if there is none.

    Raises StoreError if the raw documents or the classifier are not materialized.
    """
    config = corpus.settings.filters_for(source)
    manifest = usable_raw(corpus, source)
    if not config.has_percentile:
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
    is_taken = is_sampled(documents["doc_id"], share, 0, "quality scale")
    texts = normalize_text(documents["text"].filter(is_taken), score.config.normalize)
    languages = detect_language(texts, score.config.language)["lang"]
    if score.classifier is not None:
        scores = score_quality(texts, score.classifier)
    else:
        assert score.config.fasttext is not None
        scores = score_fasttext(texts, str(score.fasttext_path), score.config.fasttext.label)
    return pl.DataFrame({"language": languages, "score": scores})


def settings_of_scales(settings: Settings) -> dict[str, object]:
    """Return what the scale of each source depends on."""
    keys = {"normalize", "language", "fasttext"}
    return {
        name: settings.filters_for(name).model_dump(mode="json", include=keys)
        for name in settings.source_names()
        if settings.filters_for(name).has_percentile
    }


STAGE: Stage[ScaleProvenance, ScaleNumbers] = Stage(
    *QUALITY_SCALE.fields(),
    description="Quality scores of a sample of each source, by language: what the percentile of a "
    "document refers to.",
    group="curate",
    partitions="source",
    after=(stage_names.RAW, stage_names.CLASSIFIER),
    outlook=Outlook(reaches_all=True),
    kinds=frozenset({"numba"}),
    settings=settings_of_scales,
    plan=plan_scale,
    stays_rolled_back=True,
    work=make_scale,
    is_used=uses_scale,
    flags={RENEW: "measure the scale on the raw documents of today, not on those of the first run"},
    main_table=MainTable("scale", SCALE_COLUMNS),
)
