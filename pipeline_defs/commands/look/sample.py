"""`corpus sample`: show documents that a rule rejected or only just kept, with the passages marked.

Texts are untrusted: control and bidirectional characters are shown as signs, nothing in a text is
markup for the terminal, and everything is escaped for HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from assets.filtered.line_edits import edit_lines
from assets.filtered.normalize import normalize_text
from assets.filtered.passages import Span, listed_words, offending_spans, sample_keys, windows
from assets.filtered.rules.rules import Rule, rules_for
from assets.filtered.rules.threshold_replay import find_field, thresholds
from pipeline_defs.commands.look.decisions import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    pick_sources,
    rules_config,
    write_text,
)
from pipeline_defs.commands.look.document_lines import print_lines
from pipeline_defs.commands.look.manifests import raw_manifest
from pipeline_defs.commands.terminal.options import Positive
from pipeline_defs.commands.terminal.output import MANY_LINES, one_line
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.filtering.filter_steps import LinesConfig, NormalizeConfig
from resources.settings.limits import limit_text
from resources.store.records import Manifest
from resources.store.store import StoreError

AFTER_LINES = ("length", "fineweb", "pii")  # groups that judge what the line corrections leave
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:15px sans-serif;max-width:60em;margin:2em auto}}dt{{color:#666}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:1em}}
mark{{background:#ffd54a}}</style></head><body><h1>{title}</h1>
{body}</body></html>
"""


@dataclass(frozen=True)
class Sample:
    """Document, and the passages that break the rule (positions in the normalised text)."""

    lines: dict[str, str]
    text: str
    spans: list[Span]


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


def sample(*, choice: Choice) -> int:
    """Show documents that a rule rejected, or only just kept."""
    corpus = load_corpus()
    (source,) = pick_sources(corpus, [choice.source])
    manifest = corpus.store.newest("filtered", source)
    rule = rule_in_force(corpus, manifest, choice.rule)
    chosen = choose(corpus, manifest, rule, choice)
    samples = list(read_samples(corpus, manifest, rule, chosen))
    verb = "only just kept" if choice.kept else "rejected"
    title = f"{source}: {len(samples)} documents {verb} by {rule.name}"
    if choice.html:
        write_text(choice.html, to_html(title, samples, choice.width))
    else:
        show(title, samples, choice.width)
    return 0


def rule_in_force(corpus: Corpus, manifest: Manifest, key: str) -> Rule:
    """Return the rule of a name (or key in pipeline.yaml) among those that made the decisions."""
    custom = filter_data(corpus, manifest).custom
    has_pii = manifest.config.get("pii") is not None
    in_force = rules_for(rules_config(manifest), custom, pii=has_pii)
    rules = {rule.name: rule for rule in in_force}
    if key in rules:
        return rules[key]
    if key not in thresholds():
        raise UsageError(unknown_name("rule", key, rules))
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
        best = [first_rows(pl.concat([*best, wanted]), choice.count)]
    if not best or best[0].is_empty():
        return pl.DataFrame()
    rows = pl.scan_parquet(best[0]["path"].unique().to_list())
    rows = rows.filter(pl.col("doc_id").is_in(best[0]["doc_id"].implode()))
    return best[0].join(
        rows.select("doc_id", "reasons", score.alias("score")).collect(engine="streaming"),
        on="doc_id",
        maintain_order="left",
    )


def first_rows(decisions: pl.DataFrame, count: int) -> pl.DataFrame:
    """Return the rows nearest to the threshold, then first in the order of the seed."""
    return decisions.sort("distance", "key", "doc_id", nulls_last=True).head(count)


def read_samples(
    corpus: Corpus, manifest: Manifest, rule: Rule, chosen: pl.DataFrame
) -> Iterator[Sample]:
    """Yield the documents of the chosen decisions, with the passages that break the rule."""
    if chosen.is_empty():
        return
    normalize = NormalizeConfig.model_validate(manifest.config.get("normalize", {}))
    lines = LinesConfig.model_validate(manifest.config.get("lines", {}))
    documents = read_documents(corpus, manifest, chosen)
    data = filter_data(corpus, manifest)
    for decision in chosen.iter_rows(named=True):
        document = documents[decision["doc_id"]]
        text = normalize_text(pl.Series([document["text"]], dtype=pl.String), normalize)[0]
        if rule.group in AFTER_LINES:
            text = edit_lines(pl.Series([text]), lines)[0][0]
        spans = offending_spans(text, rule) or listed_words(text, rule, data)
        yield Sample(lines_of(decision, document, rule), text, spans)


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
    origin = document["origin"] or {}
    lines = {
        "document": decision["doc_id"],
        "origin": f"{origin.get('file')}, row {origin.get('row')}",
        "url": document["url"],
        rule.score: f"{decision['score']} (rejected {rule.direction} {limit_text(rule.threshold)})",
        "reasons": ", ".join(decision["reasons"]) or "none: kept",
    }
    return {name: one_line(str(line)) for name, line in lines.items() if line is not None}


def segments(sample: Sample, width: int) -> Iterator[tuple[str, bool]]:
    """Yield (text, is marked): the windows to show, and notes of omitted text; safe to print."""
    end = 0
    length = len(sample.text)
    for start, stop in windows(length, sample.spans, width):
        if start > end:
            yield f"\n[... {start - end:,} characters ...]\n", False
        end = start
        for a, b in sample.spans:
            if b > start and a < stop:
                yield sample.text[end : max(a, start)].translate(MANY_LINES), False
                end = min(b, stop)
                yield sample.text[max(a, start) : end].translate(MANY_LINES), True
        yield sample.text[end:stop].translate(MANY_LINES), False
        end = stop
    if end < length:
        yield f"\n[... {length - end:,} characters ...]", False


def show(title: str, samples: list[Sample], width: int) -> None:
    """Print the samples; without colours, passages are put in ⟦ ⟧."""
    console = Console(soft_wrap=True, highlight=False)
    opening, closing = ("", "") if console.is_terminal else ("⟦", "⟧")
    console.print(Text(title, "bold"))
    for sample in samples:
        console.rule()
        print_lines(console, sample.lines)
        shown = Text("\n")
        for text, is_marked in segments(sample, width):
            if is_marked:
                shown.append(f"{opening}{text}{closing}", "black on yellow")
            else:
                shown.append(text)
        console.print(shown)


def to_html(title: str, samples: list[Sample], width: int) -> str:
    """Return a self-contained page: no scripts, no links, nothing loaded."""
    body = ""
    for sample in samples:
        lines = "".join(
            f"<dt>{html.escape(name)}</dt><dd>{html.escape(line)}</dd>"
            for name, line in sample.lines.items()
        )
        shown = "".join(
            f"<mark>{html.escape(text)}</mark>" if is_marked else html.escape(text)
            for text, is_marked in segments(sample, width)
        )
        body += f'<hr><dl>{lines}</dl><pre dir="auto">{shown}</pre>\n'
    return PAGE.format(title=html.escape(title), body=body)
