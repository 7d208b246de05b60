"""Dumps in XML, by their root: pages of MediaWiki, and Posts.xml of Stack Exchange.

An element, a page or a post, is cut out by its tags and parsed alone: what is damaged costs itself,
a slice may begin at any page, memory holds one of them, and no entity can be declared in it. A tag
in a text is escaped, so that none is cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import takewhile
from typing import NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

from assets.raw.readers.archive_names import (
    EMPTY_PAGE,
    OTHER_CONTENT_TYPE,
    OTHER_NAMESPACE,
    OTHER_XML,
    REDIRECT,
)
from assets.raw.readers.borders import start_borders
from assets.raw.readers.decompress import BrokenStream, FileFault, read_blocks
from assets.raw.readers.input_file import Border, InputFile, Slice
from assets.raw.readers.input_record import RAW_LIMIT_BYTES, InputRecord
from assets.raw.readers.page_child import PageError, wikitext_text
from assets.raw.readers.read_lines import Line
from assets.raw.readers.read_posts import read_posts
from resources.settings.sources import SourceConfig

START, END, LAST = b"<page>", b"</page>", b"</mediawiki>"
ROOT = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|<\?.*?\?>|<!--.*?-->)*+<([A-Za-z][\w:.-]*)", re.DOTALL)
NAMESPACE = re.compile(rb'<namespace key="(6|14)"[^>]*>([^<]+)<')
LANGUAGE = re.compile(rb'<mediawiki\b[^>]*\bxml:lang="([^"]+)"')
BASE = re.compile(rb"<base>([^<]+)/[^</]*</base>")
REDIRECTS = re.compile(r"\s*#redirect\s*:?\s*\[\[", re.IGNORECASE)
FILES, CATEGORIES = "file", "category"  # names that every wiki knows


class _Site(NamedTuple):
    """What the beginning of a dump tells of its wiki."""

    lang: str
    url: str
    names: tuple[str, str]  # of files and of categories, each with a bar between them


def read(file: InputFile, source: SourceConfig, cut: Slice) -> Iterator[InputRecord]:
    """Yield the records of a slice; a file with another root is left out."""
    try:
        head = next(read_blocks(file), b"")
    except BrokenStream as broken:
        yield InputRecord(0, None, broken.head, broken.reason)
        return
    match root_of(head):
        case "mediawiki":
            site = _site_of(head)
            yield from (_page_record(page, site, source) for page in _pages(file, source, cut))
        case "posts":
            yield from read_posts(file, source, cut)
        case "":
            if head:
                yield InputRecord(0, None, head, "XML is broken: no element begins the file")
        case name:
            yield InputRecord(0, None, f"root <{name[:100]}>".encode(), left_out=OTHER_XML)


def root_of(head: bytes) -> str:
    """Return the name of the root element; "" if there is none."""
    found = ROOT.match(head)
    return found[1].decode("utf-8", "replace") if found else ""


def find_borders(file: InputFile, source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    """Yield borders between pages of MediaWiki; BrokenStream for other files."""
    if root_of(next(read_blocks(file), b"")) != "mediawiki":
        raise BrokenStream("answers may be anywhere")

    def starts(blocks: Iterator[bytes]) -> Iterator[tuple[int, int]]:
        for page in split_pages(blocks, 0, source.max_record_bytes):
            if isinstance(page.error, FileFault):
                raise BrokenStream(page.error)
            yield page.offset, 0

    return start_borders(file, starts, part_bytes)


def _pages(file: InputFile, source: SourceConfig, cut: Slice) -> Iterator[Line]:
    span = cut.span
    blocks = read_blocks(file, span.first, span.end.place)
    pages = split_pages(blocks, span.first.offset, source.max_record_bytes)
    return takewhile(lambda page: page.offset < span.end.offset, pages)


def split_pages(blocks: Iterator[bytes], offset: int, max_bytes: int) -> Iterator[Line]:
    """Yield the pages of a dump, and errors: what stands between them, and an end that is missing.

    `offset` is the place of the first block; memory: `max_bytes` + two blocks.
    """
    ready, large, broken = b"", list[Line](), None  # large: the page that is being skipped
    error = f"page is above max_record_bytes={max_bytes:,}"
    try:
        for block in blocks:
            ready += block
            at = 0
            while (end := ready.find(END, at)) >= 0:
                end += len(END)
                yield from large or _split_page(ready[at:end], offset + at, max_bytes)
                at, large = end, []
            if len(ready) - at > max_bytes + len(block):
                large = large or [Line(offset + at, ready[at : at + RAW_LIMIT_BYTES], error)]
                at = len(ready) - len(END)
            ready, offset = ready[at:], offset + at
    except BrokenStream as raised:
        broken = raised
    rest = large[0].data if large else ready.strip()
    if broken or rest != LAST:
        reason = broken.reason if broken else FileFault("XML ends before </mediawiki> (truncated)")
        yield Line(offset, rest or (broken.head if broken else b""), reason)


def _split_page(data: bytes, offset: int, max_bytes: int) -> Iterator[Line]:
    """Yield a page, and what stands before it if that is neither blank nor the dump's beginning."""
    start = data.rfind(START)
    before = data[: max(start, 0)]
    if before.strip() and not (offset == 0 and root_of(before) == "mediawiki"):
        yield Line(offset, before, "XML is broken: no page begins at this place")
    if start < 0:
        yield Line(offset, data, "XML is broken: no page begins at this place")
    elif len(data) - start > max_bytes:
        error = f"page is above max_record_bytes={max_bytes:,}"
        yield Line(offset + start, data[start:][:RAW_LIMIT_BYTES], error)
    else:
        yield Line(offset + start, data[start:])


def _site_of(head: bytes) -> _Site:
    lang, base = (
        found[1] if found else b"" for found in (LANGUAGE.search(head), BASE.search(head))
    )
    names = {b"6": [FILES, "image", "media"], b"14": [CATEGORIES]}
    for key, name in NAMESPACE.findall(head):
        names[key].append(unescape(name.decode("utf-8", "replace")).lower())
    joined = "|".join(names[b"6"]), "|".join(names[b"14"])
    return _Site(lang.decode("utf-8", "replace"), base.decode("utf-8", "replace"), joined)


def _page_record(line: Line, site: _Site, source: SourceConfig) -> InputRecord:
    if line.error:
        return InputRecord(line.offset, None, line.data, line.error)
    try:
        page = ElementTree.fromstring(line.data)
        if reason := _why_left_out(page):
            return InputRecord(line.offset, None, left_out=reason)
        revision = page.findall("revision")[-1]  # the newest
        text, lost = wikitext_text(revision.findtext("text", ""), site.names)
    except (ElementTree.ParseError, PageError) as error:
        said = str(error) if isinstance(error, PageError) else f"XML is broken: {error}"
        return InputRecord(line.offset, None, line.data, said)
    title = page.findtext("title", "")
    url = f"{site.url}/{quote(title.replace(' ', '_'), safe='/:,()')}" if site.url else ""
    fields = {
        "id": page.findtext("id", ""),
        "title": title,
        "url": url,
        source.lang_field: site.lang,
        "revision": revision.findtext("id", ""),
        "date": revision.findtext("timestamp", ""),
    }
    known = {key: value for key, value in fields.items() if value}
    return InputRecord(line.offset, {source.text_field: text, **known, "left_out": lost})


def _why_left_out(page: ElementTree.Element) -> str:
    """Return why a page is left out; "" if it is not."""
    revisions = page.findall("revision")
    text = revisions[-1].findtext("text", "") if revisions else ""
    if page.findtext("ns", "0") != "0":
        return OTHER_NAMESPACE
    if page.find("redirect") is not None or REDIRECTS.match(text):
        return REDIRECT
    if revisions and revisions[-1].findtext("model", "wikitext") != "wikitext":
        return OTHER_CONTENT_TYPE
    return "" if text.strip() else EMPTY_PAGE
