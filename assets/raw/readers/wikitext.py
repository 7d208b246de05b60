"""The plain text of wikitext, in the process of html_child.py: pages are known that take minutes.

Headings are lines, items of lists have bullets, links keep their labels, code and formulas stay as
they are. What needs the wiki itself to be shown, such as a template, is counted by its kind.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass, field

import mwparserfromhell
from mwparserfromhell import nodes
from mwparserfromhell.wikicode import Wikicode

LOST = "\0"  # stands where something is left out: XML has no such character
TAGS_LOST = {
    **dict.fromkeys(("ref", "references"), "references"),
    "table": "tables",
    **dict.fromkeys(("gallery", "imagemap", "mapframe", "maplink"), "files"),
    **dict.fromkeys(("timeline", "score", "graph", "hiero", "chart"), "drawings"),
}
VERBATIM = {"math", "chem", "ce", "syntaxhighlight", "source", "pre", "nowiki"}
HIDDEN = {"includeonly", "style", "script", "templatestyles", "indicator", "categorytree"}
BREAKS = {"br": "\n", "hr": "\n", "li": "•", "dd": "", "dt": ""}
BLOCKS = {"p", "div", "blockquote", "poem", "center"}
QUOTES = re.compile(r"'''''|'''|''")
SWITCH = re.compile(r"__[^\W\d_a-z]++(?:_[^\W\d_a-z]++)*+__")  # __NOTOC__
LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z-]+)?")
BRACKETS = re.compile(r" ?[(（][\s,;:/\0]*+[)）]")
BULLETS = re.compile(r"^(?:•[ \t]*+)++", re.MULTILINE)
EMPTY = " \t\n•:;,\0"


@dataclass
class _Page:
    """Names of namespaces in lower case, and what is left out so far, by kind."""

    files: frozenset[str]
    categories: frozenset[str]
    lost: Counter[str] = field(default_factory=Counter)

    def leave_out(self, kind: str) -> str:
        self.lost[kind] += 1
        return LOST


def plain_wikitext(
    wikitext: str, files: frozenset[str], categories: frozenset[str]
) -> tuple[str, dict[str, int]]:
    """Return the text of a page, and the number of things that are left out of it, by kind.

    `files` and `categories` are the names of these namespaces in lower case.
    """
    page = _Page(files, categories)
    shown = _text(mwparserfromhell.parse(wikitext, skip_style_tags=True), page)
    shown = BULLETS.sub("• ", SWITCH.sub("", shown))
    shown = BRACKETS.sub(lambda found: "" if LOST in found[0] else found[0], shown)
    lines = (line for line in shown.split("\n") if LOST not in line or line.strip(EMPTY))
    text = "\n".join(line.replace(LOST, "").rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip(), dict(sorted(page.lost.items()))


def _text(code: Wikicode | None, page: _Page) -> str:
    return "".join(_of_node(node, page) for node in code.nodes) if code else ""


def _of_node(node: nodes.Node, page: _Page) -> str:
    match node:
        case nodes.Text():
            return QUOTES.sub("", str(node))
        case nodes.HTMLEntity():
            return html.unescape(str(node))
        case nodes.Heading():
            return _text(node.title, page).strip()
        case nodes.Template() | nodes.Argument():
            return page.leave_out("templates")
        case nodes.ExternalLink():
            return _text(node.title, page) or ("" if node.brackets else str(node.url))
        case nodes.Wikilink():
            return _of_link(node, page)
        case nodes.Tag():
            return _of_tag(node, page)
    return ""  # a comment


def _of_link(link: nodes.Wikilink, page: _Page) -> str:
    title = str(link.title).strip()
    prefix, colon, _ = title.partition(":")
    name = prefix.strip().replace("_", " ").lower()
    if colon and (name in page.files or "|" in str(link.text or "")):  # names of old, too: Bild
        return page.leave_out("files")
    if colon and (name in page.categories or (link.text is None and LANGUAGE.fullmatch(prefix))):
        return ""
    return _text(link.text, page) or _text(link.title, page).removeprefix(":")


def _of_tag(tag: nodes.Tag, page: _Page) -> str:
    name = str(tag.tag).strip().lower()
    if name in TAGS_LOST:
        return page.leave_out(TAGS_LOST[name])
    if name in BREAKS and not tag.contents:
        return BREAKS[name]
    if name in HIDDEN:
        return ""
    if name in VERBATIM:
        return html.unescape(str(tag.contents or ""))
    inner = BREAKS.get(name, "") + _text(tag.contents, page)
    return f"\n{inner}\n" if name in BLOCKS else inner
