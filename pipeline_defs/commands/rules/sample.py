"""`corpus rules sample`: show documents that a rule rejected or only just kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from assets.filtered.line_edits import edit_lines
from assets.filtered.normalize import normalize_text
from assets.filtered.passages import Span, listed_words, offending_spans, sample_keys, windows
from assets.filtered.rules.rules import Rule, rules_for
from assets.filtered.rules.threshold_replay import find_field, thresholds
from corpus_loader.places.stage_names import FILTERED
from pipeline_defs.commands.marked_texts import Segment, ShownDocument, show_documents
from pipeline_defs.commands.origins import origin_text
from pipeline_defs.commands.published_documents import raw_manifest
from pipeline_defs.commands.rules.filtered_files import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    pick_sources,
    rules_config,
)
from pipeline_defs.commands.terminal import Json, Positive, one_line
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, check_name
from resources.settings.filtering.filter_steps import LinesConfig, NormalizeConfig
from resources.settings.limits import limit_text
from resources.store.records import Manifest
from resources.store.store import StoreError

AFTER_LINES = ("length", "fineweb", "pii")  # groups that judge what the line corrections leave


@Parameter(name="*")
@dataclass(frozen=True)
class Choice:
    """Options: the documents to show, and their form."""

    source: Annotated[str, Parameter(help="Source of the documents.")]
    rule: Annotated[str, Parameter(help="Rule or its key, such as length.too_short.")]
    near_threshold: Annotated[
        bool, Parameter(help="Those whose score is nearest the threshold.")
    ] = False
    kept: Annotated[bool, Parameter(help="Documents only just kept, instead of rejected.")] = False
    count: Annotated[Positive, Parameter(help="Number of documents.")] = 5
    seed: Annotated[int, Parameter(help="Another seed gives other documents.")] = 0
    width: Annotated[Positive, Parameter(help="Characters shown of each document.")] = 2000
    html: Annotated[Path | None, Parameter(help="Write a page (HTML) to this file.")] = None


def sample(*, choice: Choice, json: Json = False) -> int:
    """Show documents that a rule rejected, or only just kept."""
    corpus = load_corpus()
    (source,) = pick_sources(corpus, [choice.source])
    manifest = corpus.store.newest(FILTERED, source)
    rule = rule_in_force(corpus, manifest, choice.rule)
    chosen = choose(corpus, manifest, rule, choice)
    samples = list(read_samples(corpus, manifest, rule, chosen, choice.width))
    verb = "only just kept" if choice.kept else "rejected"
    title = f"{source}: {len(samples)} documents {verb} by {rule.name}"
    show_documents(title, {}, samples, page=choice.html, json=json)
    return 0


def rule_in_force(corpus: Corpus, manifest: Manifest, key: str) -> Rule:
    """Return the rule of a name (or key in pipeline.yaml) among those that made the decisions."""
    custom = filter_data(corpus, manifest).custom
    has_pii = manifest.config.get("pii") is not None
    rules = {rule.name: rule for rule in rules_for(rules_config(manifest), custom, pii=has_pii)}
    names = [key]
    if key not in rules:
        check_name("rule", key, {*rules, *thresholds()})
        names = [name for name, field in thresholds().items() if field == find_field(key)]
    for name in names:
        if name in rules:
            return rules[name]
    raise UsageError(
        f"{key} was off when filtered[{manifest.partition}] was made; "
        f"in force are: {', '.join(rules) or 'none'}"
    )


def choose(corpus: Corpus, manifest: Manifest, rule: Rule, choice: Choice) -> pl.DataFrame:
    """Choose the decisions to show: doc_id, reasons, score and path of their file."""
    score = pl.col(rule.score)
    distance = pl.lit(0.0)
    if (choice.near_threshold or choice.kept) and not isinstance(rule.threshold, tuple):
        distance = (score.cast(pl.Float64) - rule.limit).abs()
    is_wanted = pl.col("kept") if choice.kept else pl.col("reasons").list.contains(rule.name)
    best: list[pl.DataFrame] = []
    for paths in batches(decision_files(corpus, manifest), BATCH_ROWS):
        decisions = pl.scan_parquet(paths, include_file_paths="path")
        if not set(rule.scores) <= set(decisions.collect_schema()):
            raise StoreError(other_version(manifest.partition, "a score is missing"))
        wanted = (
            decisions.filter(is_wanted)
            .select("doc_id", "path", distance.alias("distance"))
            .collect(engine="streaming")
        )
        wanted = wanted.with_columns(sample_keys(wanted["doc_id"], choice.seed))
        together = pl.concat([*best, wanted])
        best = [together.sort("distance", "key", "doc_id", nulls_last=True).head(choice.count)]
    if not best or best[0].is_empty():
        return pl.DataFrame()
    rows = pl.scan_parquet(best[0]["path"].unique().to_list())
    rows = rows.filter(pl.col("doc_id").is_in(best[0]["doc_id"].implode()))
    return best[0].join(
        rows.select("doc_id", "reasons", score.alias("score")).collect(engine="streaming"),
        on="doc_id",
        maintain_order="left",
    )


def read_samples(
    corpus: Corpus, manifest: Manifest, rule: Rule, chosen: pl.DataFrame, width: int
) -> Iterator[ShownDocument]:
    """Yield the documents of the chosen decisions, with the passages that break the rule."""
    if chosen.is_empty():
        return
    documents = read_documents(corpus, manifest, chosen)
    marker = Marker(corpus, manifest)
    for decision in chosen.iter_rows(named=True):
        document = documents[decision["doc_id"]]
        marked = marker.mark(marker.seen(document["text"], rule), rule, width)
        yield ShownDocument(decision["doc_id"], lines_of(decision, document, rule), marked)


class Marker:
    """Marks passages that break rules in texts as `filtered` saw them."""

    def __init__(self, corpus: Corpus, manifest: Manifest) -> None:
        self.normalize = NormalizeConfig.model_validate(manifest.config.get("normalize", {}))
        self.lines = LinesConfig.model_validate(manifest.config.get("lines", {}))
        self.data = filter_data(corpus, manifest)

    def seen(self, text: str, rule: Rule) -> str:
        """Return a raw text as a rule saw it."""
        text = normalize_text(pl.Series([text], dtype=pl.String), self.normalize)[0]
        if rule.group in AFTER_LINES:
            text = edit_lines(pl.Series([text]), self.lines)[0][0]
        return text

    def mark(self, text: str, rule: Rule, width: int) -> list[Segment]:
        """Return the windows to show of such a text, with the passages that break the rule."""
        spans = offending_spans(text, rule) or listed_words(text, rule, self.data)
        return list(segments(text, spans, width))


def segments(text: str, spans: list[Span], width: int) -> Iterator[Segment]:
    """Yield the windows to show of a text, with the passages that break the rule."""
    end = 0
    for start, stop in windows(len(text), spans, width):
        if start > end:
            yield "omitted", f"{start - end:,} characters"
        end = start
        for a, b in spans:
            if b > start and a < stop:
                yield "", text[end : max(a, start)]
                end = min(b, stop)
                yield "passage", text[max(a, start) : end]
        yield "", text[end:stop]
        end = stop
    if end < len(text):
        yield "omitted", f"{len(text) - end:,} characters"


def read_documents(
    corpus: Corpus, manifest: Manifest, chosen: pl.DataFrame
) -> dict[str, dict[str, Any]]:
    """Return the rows of the raw documents behind the chosen decisions, by doc_id."""
    raw = raw_manifest(corpus, manifest)
    named = {file.path: part.name for part in manifest.parts for file in part.files}
    wanted = {named[Path(path).name] for path in chosen["path"]}
    paths = [
        corpus.store.part_file(raw, part, "documents").checked()
        for part in raw.parts
        if part.name in wanted
    ]
    rows = (
        pl.scan_parquet(paths)
        .filter(pl.col("doc_id").is_in(chosen["doc_id"].implode()))
        .select("doc_id", "text", "origin", "url")
        .collect(engine="streaming")
    )
    return {row["doc_id"]: row for row in rows.iter_rows(named=True)}


def lines_of(decision: dict[str, Any], document: dict[str, Any], rule: Rule) -> dict[str, str]:
    """Return lines about a document: origin, score and reasons."""
    origin, score = document["origin"], decision["score"]
    score = f"{score:.4g}" if isinstance(score, float) else score
    lines = {
        "origin": origin_text(origin["file"], origin["row"]) if origin else None,
        "url": document["url"],
        rule.score: f"{score} (rejected {rule.direction} {limit_text(rule.threshold)})",
        "reasons": ", ".join(decision["reasons"]) or "none: kept",
    }
    return {name: one_line(str(line)) for name, line in lines.items() if line is not None}
