"""`corpus report`: the corpus as one page, which needs nothing but itself.

The page is a file of the store, since it quotes documents: takedowns remove it, and the next build
writes it again.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from corpus_loader.places.url_secrets import masked
from pipeline_defs.commands.look import report_facts as facts
from pipeline_defs.commands.look.report_inputs import failures, fingerprint_line
from pipeline_defs.commands.look.summary import mix_rows, source_lines, source_table, summarize
from pipeline_defs.commands.marked_texts import as_html
from pipeline_defs.commands.terminal import MANY_LINES, say, write_text
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.errors import UsageError
from resources.store.preview_files import page_path, write_preview
from resources.store.scratch import place_of
from resources.tasks import GLOBAL

MOST_BYTES = 2_000_000
CHARTED = 20  # sources with pictures of their own
SOURCE_PICTURES = (("filtered", "funnel", "languages"), ("bucketed", "sequence_plots"))
DUPLICATES = ("duplicates_per_source", "duplicates_between_sources", "cluster_sizes")


def report(
    *,
    out: Annotated[
        Path | None, Parameter(help="Write it to this file (default: one in the store).")
    ] = None,
) -> int:
    """Write the corpus as one page (HTML), and print where it is."""
    corpus = load_corpus()
    if summarize(corpus).is_empty:
        raise UsageError(f"Nothing is built yet in {corpus.store}. Run: corpus build")
    if out is None:
        say(write_report(corpus))
    else:
        write_text(out, page_of(corpus))
        say(str(out))
    return 0


def write_report(corpus: Corpus) -> str:
    """Write the page of the store; return its place."""
    path = page_path(corpus.store.root)
    write_preview(path, page_of(corpus))
    return place_of(path)


def page_of(corpus: Corpus) -> str:
    """Return the page, with as many excerpts as its size allows."""
    from jinja2 import Environment
    from markupsafe import Markup

    known = facts_of(corpus)
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters["document"] = lambda document: Markup(as_html(document))
    environment.filters["shown"] = shown
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
    numbers, sources = summarize(corpus), corpus.settings.source_names()
    built = [source for source in sources if numbers.sources[source]]
    lines = (line for line in source_lines(numbers) if "could not be read" not in line)
    return {
        "fingerprint": fingerprint_line(corpus),
        "title": f"Corpus of {corpus.config.name}",
        "store": place_of(corpus.store.root),
        "overview": source_table(numbers),
        "notes": [*lines],
        "changes": [*facts.changes(corpus, built)],
        "failures": failures(corpus, sources),
        "warnings": facts.warnings(corpus, built),
        "funnel": facts.funnel(numbers),
        "funnel_rows": [*facts.funnel_rows(corpus, numbers)],
        "reasons": [*facts.reason_rows(numbers)],
        "excerpts": [*facts.excerpts(corpus, built)],
        "unreadable": [*facts.unreadable(corpus, built)],
        "sources": [*charts_by_source(corpus, built)],
        "duplicates": facts.pictures(corpus, "duplicates", GLOBAL, *DUPLICATES),
        "clusters": facts.clusters(corpus),
        "evaluation": [*facts.evaluation_rows(corpus, built)],
        "fit": [*facts.fit_rows(corpus, built)],
        "mix": [
            each
            for phase in corpus.settings.phase_names()
            for each in facts.pictures(corpus, "mixed", phase, "mix_over_position")
        ],
        "mix_rows": mix_rows(numbers),
        "versions": [*facts.versions(corpus)],
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
