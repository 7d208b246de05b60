"""Keep the page of `corpus report` in the store up to date, without what writes it if it is."""

from __future__ import annotations

from pipeline_defs.commands.look.report_inputs import has_current_page
from resources.corpus import Corpus
from resources.store.preview_files import page_path
from resources.store.scratch import place_of


def update_report(corpus: Corpus) -> str:
    """Write the page of the store unless it is there as it would be now; return its place."""
    if has_current_page(corpus):
        return place_of(page_path(corpus.store.root))
    from pipeline_defs.commands.look.report import write_report

    return write_report(corpus)


def report_line(corpus: Corpus) -> str:
    """Return a line on where the page is, which is brought up to date."""
    try:
        return f"Report: {update_report(corpus)}"
    except Exception as error:  # noqa: BLE001 - the corpus is built, whatever it is
        return f"The report was not written: {error!r}"
