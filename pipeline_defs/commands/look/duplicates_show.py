"""Show a duplicate cluster as text and as a page: the survivor, and how the others differ from it.

Texts are untrusted: control and bidirectional characters are shown as signs, nothing in a text is
markup for the terminal, and everything is escaped for HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from rich.console import Console
from rich.text import Text

from pipeline_defs.commands.look.document_lines import likeness, print_lines
from pipeline_defs.commands.look.word_diff import diff_texts, fold
from pipeline_defs.commands.terminal.output import MANY_LINES, new_table, one_line, table_console

CHANGED_CHARS = 2000  # shown of a stretch that only one text has
EXCERPT_CHARS = 500  # of a text that several documents have
SIGNS = {"removed": ("[-", "-]"), "added": ("{+", "+}")}
COLOURS = {"removed": "red strike", "added": "green", "omitted": "dim"}
TAGS = {"removed": "del", "added": "ins", "omitted": "small"}
UNITS = {
    "words": "",
    "lines": "The texts are too long for a comparison by words: whole lines are compared.\n",
    "text": "The texts have too many lines for a comparison.\n",
}
GONE = "{} text is not among the newest filtered documents: materialize `duplicates` again.\n"
SAME = "The same text.\n"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em}}dt{{color:#666}}
dd{{margin:0;overflow-wrap:anywhere}}h2{{font-size:1.1em;border-top:1px solid #ccc;padding-top:1em}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:1em}}
del{{background:#fbd5c5;color:#8a2a00}}ins{{background:#cfe8dd;color:#00553c;text-decoration:none}}
small{{color:#666;font-style:italic}}</style></head><body><h1>{title}</h1>
{body}</body></html>
"""


@dataclass(frozen=True)
class Copy:
    """Document of a cluster; the survivor has no method, and a lost document has no text."""

    doc_id: str
    source: str
    origin: dict[str, Any] | None
    url: str | None
    similarity: float | None
    method: str | None
    text: str | None

    def lines(self) -> dict[str, str]:
        """Source, origin and likeness, one line each, safe to print."""
        place = self.origin and f"{self.origin.get('file')}, row {self.origin.get('row')}"
        lines = {
            "source": self.source,
            "origin": place,
            "url": self.url,
            "method": self.method,
            "similarity": self.method and likeness(self.similarity),
        }
        return {name: one_line(line) for name, line in lines.items() if line}


def heading(copy: Copy) -> str:
    """Return the doc_id and the fate of a document."""
    return f"{copy.doc_id}: {'removed' if copy.method else 'stays'}"


def shown(copies: Sequence[Copy], copy: Copy, context: int) -> Iterator[tuple[str, str]]:
    """Compare a copy with the survivor, which is the first.

    For the survivor itself: yield the beginning of its text if a copy has the same text.
    """
    survivor = copies[0]
    if copy is not survivor:
        yield from compared(survivor, copy, context)
    elif survivor.text and any(other.text == survivor.text for other in copies[1:]):
        yield "same", survivor.text[:EXCERPT_CHARS].translate(MANY_LINES)
        if more := len(survivor.text[EXCERPT_CHARS:]):
            yield "omitted", f"{more:,} characters"


def compared(survivor: Copy, copy: Copy, context: int) -> Iterator[tuple[str, str]]:
    """Yield (change, text) of differences from the survivor, safe to print; "note" is a remark."""
    if survivor.text is None or copy.text is None:
        yield "note", GONE.format("The survivor's" if survivor.text is None else "The")
        return
    if survivor.text == copy.text:
        yield "note", SAME
        return
    diff = diff_texts(survivor.text, copy.text)
    yield "note", UNITS[diff.unit]
    for change, text in fold(diff.segments, context, CHANGED_CHARS):
        yield change, text.translate(MANY_LINES)


def print_cluster(
    lines: Mapping[str, str], copies: Sequence[Copy], not_shown: int, context: int
) -> None:
    """Print a cluster; without colours, changes are marked [-removed-] and {+added+}."""
    console = Console(soft_wrap=True, highlight=False)
    print_lines(console, lines)
    for copy in copies:
        console.rule()
        console.print(Text(heading(copy), "bold"))
        print_lines(console, copy.lines())
        is_terminal = console.is_terminal
        texts = [as_text(*segment, is_terminal) for segment in shown(copies, copy, context)]
        if texts:
            console.print(Text.assemble("\n", *texts))
    if not_shown:
        console.rule()
        console.print(f"and {not_shown:,} more: --most shows more")


def as_text(change: str, text: str, is_terminal: bool) -> Text:
    """Return a segment for the terminal."""
    if change == "omitted":
        return Text(f" [... {text} ...] ", COLOURS[change])
    opening, closing = ("", "") if is_terminal else SIGNS.get(change, ("", ""))
    return Text(f"{opening}{text}{closing}", COLOURS.get(change, ""))


def cluster_page(
    lines: Mapping[str, str], copies: Sequence[Copy], not_shown: int, context: int
) -> str:
    """Return a self-contained page: no scripts, no links, nothing loaded."""
    body = as_list(lines)
    body += "<p>Against the survivor: <del>only there</del>, <ins>only here</ins>.</p>\n"
    for copy in copies:
        body += f"<h2>{html.escape(heading(copy))}</h2>{as_list(copy.lines())}"
        segments = [as_html(*segment) for segment in shown(copies, copy, context)]
        if segments:
            body += f'<pre dir="auto">{"".join(segments)}</pre>\n'
    if not_shown:
        body += f"<p>and {not_shown:,} more</p>\n"
    return PAGE.format(title="Duplicates", body=body)


def as_list(lines: Mapping[str, str]) -> str:
    """Return lines as a definition list."""
    rows = (f"<dt>{html.escape(n)}</dt><dd>{html.escape(line)}</dd>" for n, line in lines.items())
    return f"<dl>{''.join(rows)}</dl>"


def as_html(change: str, text: str) -> str:
    """Return a segment for the page."""
    shown = html.escape(f" [... {text} ...] " if change == "omitted" else text)
    tag = TAGS.get(change)
    return f"<{tag}>{shown}</{tag}>" if tag else shown


def print_clusters(clusters: pl.DataFrame) -> None:
    """Print clusters (cluster_id, cluster_size, kept_doc_id, kept_source) as a table."""
    table = new_table("clusters", ["cluster", "survivor", "of source"], ["documents"])
    for row in clusters.iter_rows(named=True):
        table.add_row(
            row["cluster_id"], row["kept_doc_id"], row["kept_source"], f"{row['cluster_size']:,}"
        )
    table_console().print(table)
