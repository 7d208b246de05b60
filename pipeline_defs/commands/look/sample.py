"""`corpus sample`: documents that a rule rejected, or only just kept, with the passages marked.

Texts are untrusted: control and bidirectional characters are shown as signs, nothing in a text is
markup for the terminal, and everything is escaped for HTML.
"""

from __future__ import annotations

import html
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from assets.filtered.line_edits import edit_lines
from assets.filtered.normalize import normalize_text
from assets.filtered.passages import Span, listed_words, offending_spans, sample_keys, windows
from assets.filtered.rules.rules import Rule, rules_for
from assets.filtered.rules.threshold_replay import find_field, thresholds
from pipeline_defs.commands.look.whatif import (
    BATCH_ROWS,
    batches,
    decision_files,
    filter_data,
    other_version,
    pick_sources,
    rules_config,
    write_text,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError, unknown_name
from resources.settings.filter_steps import LinesConfig, NormalizeConfig
from resources.store.records import Manifest, required_file
from resources.store.store import StoreError

# C0 controls as their pictures; C1, zero-width and bidirectional controls (UAX 9) as one sign.
PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}
HIDDEN = [*range(0x80, 0xA0), 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F)]
SIGNS = PICTURES | dict.fromkeys([*HIDDEN, *range(0x2060, 0x2070), 0xFEFF], 0xFFFD)
JOINERS = (0x200C, 0x200D)  # Persian and emoji need them, and they hide nothing
ONE_LINE = {code: sign for code, sign in SIGNS.items() if code not in JOINERS}
ONE_LINE |= {ord("\n"): 0x240A, ord("\t"): 0x2409}
MANY_LINES = {code: sign for code, sign in ONE_LINE.items() if code not in (9, 10)}
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
    """A document, and the passages that break the rule (positions in the normalised text)."""

    facts: dict[str, str]
    text: str
    spans: list[Span]


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--source", required=True, metavar="S")
    parser.add_argument("--rule", required=True, metavar="R", help="such as length.too_short")
    parser.add_argument(
        "--near-threshold", action="store_true", help="those whose score is nearest the threshold"
    )
    parser.add_argument(
        "--kept", action="store_true", help="documents only just kept, instead of rejected ones"
    )
    parser.add_argument("--count", type=positive, default=5, help="documents (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other documents")
    parser.add_argument(
        "--width", type=positive, default=2000, help="characters of each (default: 2000)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page instead")


def positive(text: str) -> int:
    """Read a number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def run(options: Namespace) -> int:
    """Choose, show."""
    corpus = load_corpus()
    (source,) = pick_sources(corpus, [options.source])
    manifest = corpus.store.newest("filtered", source)
    rule = rule_in_force(corpus, manifest, options.rule)
    is_near = options.near_threshold or options.kept
    chosen = choose(corpus, manifest, rule, options, is_near)
    samples = list(read_samples(corpus, manifest, rule, chosen))
    verb = "only just kept" if options.kept else "rejected"
    title = f"{source}: {len(samples)} documents {verb} by {rule.name}"
    if options.html:
        write_text(options.html, to_html(title, samples, options.width))
    else:
        show(title, samples, options.width)
    return 0


def rule_in_force(corpus: Corpus, manifest: Manifest, key: str) -> Rule:
    """The rule of that name (or key in pipeline.yaml) among those that made the decisions."""
    custom = filter_data(corpus, manifest).custom
    rules = {rule.name: rule for rule in rules_for(rules_config(manifest), custom)}
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


def choose(
    corpus: Corpus, manifest: Manifest, rule: Rule, options: Namespace, is_near: bool
) -> pl.DataFrame:
    """The decisions to show: doc_id, reasons, score and path of the file that holds them."""
    score = pl.col(rule.score)
    distance = pl.lit(0.0)
    if is_near and not isinstance(rule.threshold, tuple):
        distance = (score.cast(pl.Float64) - rule.threshold).abs()
    is_wanted = pl.col("kept") if options.kept else pl.col("reasons").list.contains(rule.name)
    best: list[pl.DataFrame] = []
    for paths in batches(decision_files(corpus, manifest), BATCH_ROWS):
        decisions = pl.scan_parquet(paths, include_file_paths="path")
        if rule.score not in decisions.collect_schema():
            raise StoreError(other_version(manifest.partition, "a score is missing"))
        found = (
            decisions.filter(is_wanted)
            .select("doc_id", "path", distance.alias("distance"))
            .collect(engine="streaming")
        )
        found = found.with_columns(sample_keys(found["doc_id"], options.seed))
        best = [first_rows(pl.concat([*best, found]), options.count)]
    if not best or best[0].is_empty():
        return pl.DataFrame()
    rows = pl.scan_parquet(best[0]["path"].unique().to_list())
    rows = rows.filter(pl.col("doc_id").is_in(best[0]["doc_id"].implode()))
    return best[0].join(
        rows.select("doc_id", "reasons", score.alias("score")).collect(engine="streaming"),
        on="doc_id",
        maintain_order="left",
    )


def first_rows(found: pl.DataFrame, count: int) -> pl.DataFrame:
    """The rows nearest to the threshold, then first in the order of the seed."""
    return found.sort("distance", "key", "doc_id", nulls_last=True).head(count)


def read_samples(
    corpus: Corpus, manifest: Manifest, rule: Rule, chosen: pl.DataFrame
) -> Iterator[Sample]:
    """The documents of the decisions chosen, from the raw parts that they were made of."""
    if chosen.is_empty():
        return
    raw = raw_manifest(corpus, manifest)
    normalize = NormalizeConfig.model_validate(manifest.config.get("normalize", {}))
    lines = LinesConfig.model_validate(manifest.config.get("lines", {}))
    named = {file.path: part.name for part in manifest.parts for file in part.files}
    wanted = {named[Path(path).name] for path in chosen["path"]}
    paths = [
        corpus.store.path_of(raw, required_file(raw, part, "documents"))
        for part in raw.parts
        if part.name in wanted
    ]
    data = filter_data(corpus, manifest)
    documents = {
        row["doc_id"]: row
        for row in pl.scan_parquet(paths)
        .filter(pl.col("doc_id").is_in(chosen["doc_id"].implode()))
        .select("doc_id", "text", "origin", "url")
        .collect(engine="streaming")
        .iter_rows(named=True)
    }
    for decision in chosen.iter_rows(named=True):
        document = documents[decision["doc_id"]]
        text = normalize_text(pl.Series([document["text"]], dtype=pl.String), normalize)[0]
        if rule.group in AFTER_LINES:
            text = edit_lines(pl.Series([text]), lines)[0][0]
        spans = offending_spans(text, rule) or listed_words(text, rule, data)
        yield Sample(facts_of(decision, document, rule), text, spans)


def raw_manifest(corpus: Corpus, manifest: Manifest) -> Manifest:
    """The manifest of `raw` that the decisions were made of; StoreError if it is gone."""
    folder = corpus.store.partition("raw", manifest.partition)
    for number in reversed(folder.manifest_numbers()):
        raw = folder.read_manifest(number)
        if raw.fingerprint == manifest.provenance.get("raw"):
            return raw
    raise StoreError(
        f"filtered[{manifest.partition}] was made of raw documents that are no longer there. "
        f"Materialize `filtered` for {manifest.partition!r} again."
    )


def facts_of(decision: dict[str, Any], document: dict[str, Any], rule: Rule) -> dict[str, str]:
    """What is known about a document, one line each."""
    origin = document["origin"] or {}
    facts = {
        "document": decision["doc_id"],
        "origin": f"{origin.get('file')}, row {origin.get('row')}",
        "url": document["url"],
        rule.score: f"{decision['score']} (rejected {rule.direction} {rule.threshold})",
        "reasons": ", ".join(decision["reasons"]) or "none: kept",
    }
    return {name: str(fact).translate(ONE_LINE) for name, fact in facts.items() if fact is not None}


def pieces(sample: Sample, width: int) -> Iterator[tuple[str, bool]]:
    """(text, is marked): the windows to show, and notes of what lies between; safe to print."""
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
    """Print the samples; where there are no colours, passages stand in ⟦ ⟧."""
    console = Console(soft_wrap=True, highlight=False)
    opening, closing = ("", "") if console.is_terminal else ("⟦", "⟧")
    console.print(Text(title, "bold"))
    for sample in samples:
        console.rule()
        for name, fact in sample.facts.items():
            console.print(Text.assemble((f"{name}: ", "dim"), fact))
        shown = Text("\n")
        for text, is_marked in pieces(sample, width):
            if is_marked:
                shown.append(f"{opening}{text}{closing}", "black on yellow")
            else:
                shown.append(text)
        console.print(shown)


def to_html(title: str, samples: list[Sample], width: int) -> str:
    """A page of its own: no scripts, no links, nothing loaded."""
    body = ""
    for sample in samples:
        facts = "".join(
            f"<dt>{html.escape(name)}</dt><dd>{html.escape(fact)}</dd>"
            for name, fact in sample.facts.items()
        )
        shown = "".join(
            f"<mark>{html.escape(text)}</mark>" if is_marked else html.escape(text)
            for text, is_marked in pieces(sample, width)
        )
        body += f'<hr><dl>{facts}</dl><pre dir="auto">{shown}</pre>\n'
    return PAGE.format(title=html.escape(title), body=body)
