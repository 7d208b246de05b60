"""EPUB 2 and 3: a book as one document, its chapters in the order of reading.

The package names the documents and their order (EPUB 3.3, 5.7; OPF 2.0.1, 2.4): each becomes plain
text. What only leads through the book, its navigation, table of contents and cover, is left out. A
book with encrypted documents is one record in quarantine; obfuscated fonts are no obstacle (EPUB
3.3, 4.3).
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from urllib.parse import unquote
from xml.etree import ElementTree

from assets.raw.readers.archive_names import NAVIGATION, OTHER_CONTENT_TYPE
from assets.raw.readers.decode_page import decode_page
from assets.raw.readers.decompress import file_head, raise_unless_of_content
from assets.raw.readers.html_fields import plain_text
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.open_input import open_input
from assets.raw.readers.read_zip import UNREADABLE, open_archive, unpack
from resources.settings.sources import SourceConfig

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
DOCUMENTS = {"application/xhtml+xml", "text/html", "text/x-oeb1-document"}
LEADING = {"cover", "coverpage", "nav", "toc"}  # types of guides, and usual names of files
VOID = "area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr"  # HTML, 13.1.2
SELF_CLOSED = re.compile(rf"<(?!(?:{VOID})\b)([a-zA-Z][\w:.-]*+)((?:\s[^<>]*?)?)/>")
LANGUAGE = re.compile(r"([a-z]{2})(?:-.*)?", re.I)


def read(file: InputFile, source: SourceConfig, _cut: Slice) -> Iterator[InputRecord]:
    """Yield the record of a book, and one for each document of it that is left out."""
    with open_input(file) as stream:
        try:
            archive, _ = open_archive(stream, file)
            fields, left_out = _content(archive, source)
        except (*UNREADABLE, ElementTree.ParseError) as error:
            raise_unless_of_content(error)
            yield InputRecord(0, None, file_head(file), f"EPUB cannot be read: {error}")
            return
    for reason in left_out:
        yield InputRecord(0, None, left_out=reason)
    yield InputRecord(0, fields)


def _content(
    archive: zipfile.ZipFile, source: SourceConfig
) -> tuple[Mapping[str, object], list[str]]:
    """Return the fields of a book, and why documents of its spine are left out."""
    root = _parsed(archive, CONTAINER).find(".//{*}rootfile")
    place = "" if root is None else root.get("full-path", "")
    package = _parsed(archive, place)
    items = {each.get("id"): each for each in package.iterfind("{*}manifest/{*}item")}
    spine = [each.get("idref") for each in package.iterfind("{*}spine/{*}itemref")]
    guides = package.iterfind("{*}guide/{*}reference")
    leading = {_path(place, each) for each in guides if each.get("type", "").lower() in LEADING}
    chapters, left_out = list[str](), list[str]()
    for item in (items[name] for name in spine if name in items):
        path = _path(place, item)
        is_named = posixpath.splitext(posixpath.basename(path))[0].lower() in LEADING
        if item.get("media-type") not in DOCUMENTS:
            left_out.append(OTHER_CONTENT_TYPE)
        elif is_named or path in leading or "nav" in item.get("properties", "").split():
            left_out.append(NAVIGATION)
        else:
            chapters.append(path)
    if not chapters:
        raise ValueError("its spine names no document")
    _check_encryption(archive, chapters)
    texts, size = list[str](), 0
    for path in chapters:
        page = decode_page(unpack(archive, archive.getinfo(path)))
        texts.append(plain_text(SELF_CLOSED.sub(r"<\1\2></\1>", page)).strip("\n"))
        size += len(texts[-1])
        if size > source.max_record_bytes:
            raise ValueError(f"its text is above max_record_bytes={source.max_record_bytes:,}")
    text = "\n\n".join(filter(None, texts))
    return {**_metadata(package, source), source.text_field: text}, left_out


def _parsed(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """Return the XML of a member; expat refuses entities that explode, and fetches none."""
    return ElementTree.fromstring(unpack(archive, archive.getinfo(name)))


def _path(package: str, item: ElementTree.Element) -> str:
    href = unquote(item.get("href", "").partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(package), href))


def _check_encryption(archive: zipfile.ZipFile, chapters: list[str]) -> None:
    if ENCRYPTION not in archive.namelist():
        return
    references = _parsed(archive, ENCRYPTION).iterfind(".//{*}CipherReference")
    hidden = {unquote(each.get("URI", "")) for each in references}
    if number := sum(path in hidden for path in chapters):
        raise ValueError(f"its publisher has encrypted {number} of {len(chapters)} documents (DRM)")


def _metadata(package: ElementTree.Element, source: SourceConfig) -> dict[str, str]:
    """Return title and language, as far as they are there; one of ISO 639-1 as the document's."""
    title = " ".join((package.findtext("{*}metadata//{*}title") or "").split())
    language = (package.findtext("{*}metadata//{*}language") or "").strip()
    known = LANGUAGE.fullmatch(language)
    found = {"title": title, source.lang_field if known else "language": language}
    if known:
        found[source.lang_field] = known[1].lower()
    return {name: value for name, value in found.items() if value}
