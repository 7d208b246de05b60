"""Documents with marked passages, on a terminal and as a page (HTML).

Texts are untrusted: control and bidirectional characters are shown as signs, nothing in a text is
markup for the terminal, and everything is escaped for HTML.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from pipeline_defs.commands.terminal import MANY_LINES, print_json, print_named, write_text


class Look(NamedTuple):
    """Look of a kind of passage: colour, signs where there are no colours, and HTML tag."""

    style: str
    opening: str
    closing: str
    tag: str


LOOKS = {
    "removed": Look("red strike", "[-", "-]", "del"),
    "added": Look("green", "{+", "+}", "ins"),
    "passage": Look("black on yellow", "⟦", "⟧", "mark"),
    "omitted": Look("dim", "", "", "small"),
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:.1em 1em}}dt{{color:#666}}
dd{{margin:0;overflow-wrap:anywhere}}h2{{font-size:1.1em;border-top:1px solid #ccc;padding-top:1em}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:1em}}
del{{background:#fbd5c5;color:#8a2a00}}ins{{background:#cfe8dd;color:#00553c;text-decoration:none}}
mark{{background:#ffd54a}}small{{color:#666;font-style:italic}}</style></head>
<body><h1>{title}</h1>
{body}</body></html>
"""

Segment = tuple[str, str]  # kind of passage, and text


class ShownDocument(NamedTuple):
    """A document: its title, lines by name that are safe to print, and its text in segments."""

    title: str
    lines: Mapping[str, str]
    segments: list[Segment]


def show_documents(
    title: str,
    lines: Mapping[str, str],
    documents: Iterable[ShownDocument],
    *,
    page: Path | None = None,
    end: str = "",
    json: bool = False,
) -> None:
    """Print documents, also as JSON; or write a page: self-contained, without scripts or links."""
    if page is not None:
        body = as_list(lines) + "".join(map(as_html, documents))
        body += f"<p>{html.escape(end)}</p>\n" if end else ""
        write_text(page, PAGE.format(title=html.escape(title), body=body))
        return
    if json:
        told = [each._asdict() for each in documents]
        print_json({"title": title, "lines": lines, "documents": told, "end": end})
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(title, "bold"))
    print_named(console, lines)
    for document in documents:
        console.rule()
        console.print(Text(document.title, "bold"))
        print_named(console, document.lines)
        if document.segments:
            segments = (as_text(*each, console.is_terminal) for each in document.segments)
            console.print(Text.assemble("\n", *segments))
    if end:
        console.rule()
        console.print(Text(end))


def as_text(kind: str, text: str, is_terminal: bool) -> Text:
    """Return a segment for the terminal."""
    look = LOOKS.get(kind, Look("", "", "", ""))
    signs = ("", "") if is_terminal else (look.opening, look.closing)
    return Text(f"{signs[0]}{shown(kind, text)}{signs[1]}", look.style)


def as_html(document: ShownDocument) -> str:
    """Return a document for the page."""
    page = f"<h2>{html.escape(document.title)}</h2>{as_list(document.lines)}"
    if not document.segments:
        return page
    texts = []
    for kind, text in document.segments:
        escaped = html.escape(shown(kind, text))
        tag = LOOKS[kind].tag if kind in LOOKS else ""
        texts.append(f"<{tag}>{escaped}</{tag}>" if tag else escaped)
    return f'{page}<pre dir="auto">{"".join(texts)}</pre>\n'


def as_list(lines: Mapping[str, str]) -> str:
    """Return lines as a definition list."""
    rows = (f"<dt>{html.escape(n)}</dt><dd>{html.escape(line)}</dd>" for n, line in lines.items())
    return f"<dl>{''.join(rows)}</dl>"


def shown(kind: str, text: str) -> str:
    """Return the text of a segment; of what is omitted, a note in brackets."""
    return f" [... {text} ...] " if kind == "omitted" else text.translate(MANY_LINES)
