"""`corpus report`: the corpus as one page, which needs nothing but itself.

The page is a file of the store, since it quotes documents: takedowns remove it, and the next build
writes it again.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from corpus_loader.places import stage_names
from corpus_loader.places.url_secrets import masked
from pipeline_defs.commands.answers import answer_lines, as_table
from pipeline_defs.commands.look import report_facts as facts
from pipeline_defs.commands.look.report_inputs import failures, fingerprint_line
from pipeline_defs.commands.look.summary import mix_table, source_lines, source_table
from pipeline_defs.commands.marked_texts import as_html
from pipeline_defs.commands.terminal import MANY_LINES, Json, write_text
from pipeline_defs.corpus_tables import newest_tables
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.preview_files import page_path, write_preview
from resources.store.scratch import place_of
from resources.tasks import GLOBAL

MOST_BYTES = 2_000_000
CHARTED = 20  # sources with pictures of their own
SOURCE_PICTURES = (
    (stage_names.FILTERED, "funnel", "languages"),
    (stage_names.BUCKETED, "sequence_plots"),
)
LINES = ("notes", "failures", "warnings")
DUPLICATES = ("duplicates_per_source", "duplicates_between_sources", "cluster_sizes")


def report(
    *,
    out: Annotated[
        Path | None, Parameter(help="Write it to this file (default: one in the store).")
    ] = None,
    json: Json = False,
) -> int:
    """Write the corpus as one page (HTML); print where it is, as JSON with the page's tables."""
    corpus = load_corpus()
    if not newest_tables(corpus).manifests:
        raise UsageError(f"Nothing is built yet in {corpus.store}. Run: corpus build")
    known = facts_of(corpus)
    if out is None:
        place = write_report(corpus, known)
    else:
        write_text(out, page_of(known))
        place = str(out)
    told = {name: of for name, of in known.items() if name in LINES or isinstance(of, pl.DataFrame)}
    answer_lines([place], {"page": place} | told, json=json)
    return 0


def write_report(corpus: Corpus, known: Mapping[str, Any] | None = None) -> str:
    """Write the page of the store; return its place."""
    path = page_path(corpus.store.root)
    write_preview(path, page_of(known or facts_of(corpus)))
    return place_of(path)


def page_of(known: Mapping[str, Any]) -> str:
    """Return the page, with as many excerpts as its size allows."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters["document"] = lambda document: Markup(as_html(document))
    environment.filters["shown"] = shown
    environment.globals["as_table"] = as_table
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text("utf-8"))
    page = ""
    for most in (facts.EXCERPTS, 5, 2, 0):
        page = template.render(known, most=most)
        if len(page.encode()) < MOST_BYTES:
            break
    return page


def shown(cell: Any) -> str:
    """Return a cell of a table, or a number."""
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else str(cell).translate(MANY_LINES)


def facts_of(corpus: Corpus) -> dict[str, Any]:
    """Return what the page says."""
    tables, sources = newest_tables(corpus), corpus.settings.source_names()
    stages = tables["stages"].drop_nulls("source")
    built = stages["source"].unique(maintain_order=True).to_list()
    lines = (line for line in source_lines(tables) if "could not be read" not in line)
    return {
        "fingerprint": fingerprint_line(corpus),
        "title": f"Corpus of {corpus.config.name}",
        "store": place_of(corpus.store.root),
        "overview": source_table(tables),
        "notes": [*lines],
        "changes": facts.changes(corpus, built),
        "failures": failures(corpus, sources),
        "warnings": facts.warnings(corpus, built),
        "funnel": facts.funnel(stages),
        "funnel_rows": facts.funnel_table(stages),
        "reasons": facts.fate_table(tables["fates"]),
        "excerpts": [*facts.excerpts(corpus, built)],
        "unreadable": facts.unreadable(corpus, built),
        "sources": [*charts_by_source(corpus, built)],
        stage_names.DUPLICATES: facts.pictures(corpus, stage_names.DUPLICATES, GLOBAL, *DUPLICATES),
        "clusters": facts.clusters(corpus),
        "evaluation": tables["contaminated"],
        "annotated": tables["annotated"],
        "topics": facts.topic_table(tables["topics"]),
        "fit": facts.fit_table(corpus, built),
        "mix": [
            each
            for phase in corpus.settings.phase_names()
            for each in facts.pictures(corpus, stage_names.MIXED, phase, "mix_over_position")
        ],
        "mix_rows": mix_table(tables["mix"]),
        "versions": facts.versions(tables.manifests),
        "version": version("tokenmill"),
        "python": platform.python_version(),
        "config_name": corpus.config.name,
        "config": masked(corpus.config.read_text("utf-8")).translate(MANY_LINES),
    }


def charts_by_source(
    corpus: Corpus, sources: list[str]
) -> Iterator[tuple[str, list[facts.Picture]]]:
    """Yield the pictures of each source, of the first CHARTED."""
    for source in sources[:CHARTED]:
        found = (facts.pictures(corpus, stage, source, *of) for stage, *of in SOURCE_PICTURES)
        yield source, [each for pictures in found for each in pictures]
