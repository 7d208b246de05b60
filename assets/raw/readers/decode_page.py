"""Decode the bytes of an HTML page as browsers do (WHATWG HTML 13.2.3.2).

    byte order mark > HTTP header > meta element > valid UTF-8 > detection

A declaration is believed unless the bytes speak against it: they are valid UTF-8 beyond chance,
or more than half of what is not ASCII is malformed. Browsers would show such a page broken, and
leave it to the reader to choose another encoding; a corpus has nobody who could.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assets.raw.readers.encodings import LABELS, decode, encoding_of

MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16le", b"\xfe\xff": "utf-16be"}
WIDE_XML = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}
PRESCAN_BYTES = 1024
LATE_BYTES = 1 << 16  # a meta element behind the first 1024 bytes makes browsers start again
XML_ENCODING = re.compile(rb"""<\?xml[^>]*?[ \t\r\n]encoding\s*=\s*["']([^"'>]+)["']""")
CONTENT_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.I)
SHIFTS = (b"\0", b"\x1b", b"~{")  # of UTF-16, ISO-2022 and HZ, whose bytes are ASCII
# Characters of GBK may be valid UTF-8 by chance, as those of "联通" are, but not ten in a row.
BEYOND_CHANCE = 10  # bytes more than characters
LATIN = "windows-1252"  # servers name it by default; no text of it looks like UTF-8, "Â©" included
NOT_DECODED = "replacement"  # encodings that hide markup from other programs
NAMES = LABELS[NOT_DECODED].replace(" ", ", ")
CONTROLS = re.compile("[\x80-\x9f]")
FEW = 100  # one malformed character in so many leaves a page readable


def decode_page(body: bytes, header_label: str = "") -> str:
    """Return the text of a page; ValueError if it is damaged in every encoding that is likely."""
    texts = list[tuple[str, str]]()
    for encoding in _likely_encodings(body, header_label):
        if encoding == NOT_DECODED:
            raise ValueError(f"the page names an encoding that is not decoded, one of {NAMES}")
        text = decode(body, encoding).removeprefix("\ufeff")
        num_bad = _count_bad(text, encoding)
        if not num_bad or 2 * num_bad <= _count_wide(text):
            return text
        texts.append((encoding, text))
    encoding, text = texts[0]
    num_bad = _count_bad(text, encoding)
    if num_bad * FEW <= len(text):
        return text
    raise ValueError(
        f"{num_bad:,} of {_count_wide(text):,} characters beyond ASCII are malformed in the "
        f"encoding {encoding}"
    )


def _likely_encodings(body: bytes, header_label: str) -> Iterator[str]:
    """Yield the encodings to try, the most likely first."""
    mark = next((mark for mark in MARKS if body.startswith(mark)), None)
    if mark:
        yield MARKS[mark]
        return
    num_more, is_shifted = _bytes_beyond_characters(body), any(each in body for each in SHIFTS)
    if num_more is not None and not is_shifted and not 0 < num_more < BEYOND_CHANCE:
        yield "utf-8"  # whatever it says, as ASCII is the same in all
        return
    for encoding in (encoding_of(header_label), _meta_encoding(body[:PRESCAN_BYTES])):
        if not encoding or (encoding.startswith("utf-16") and b"\0" not in body):
            continue  # markup in UTF-16 has zeros
        yield "utf-8" if num_more and encoding == LATIN else encoding
    if num_more or (num_more == 0 and not is_shifted):
        yield "utf-8"
        return
    if late := _meta_encoding(body[:LATE_BYTES]):
        yield late
    from resiliparse.parse.encoding import detect_encoding

    yield encoding_of(detect_encoding(body) or "") or "utf-8"


def _bytes_beyond_characters(body: bytes) -> int | None:
    """Return how many bytes more than characters there are in UTF-8; None if it is none."""
    try:
        return len(body) - len(body.decode())
    except UnicodeDecodeError:
        return None


def _count_wide(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _count_bad(text: str, encoding: str) -> int:
    """Count malformed bytes, and of bytes without a meaning the controls that stand for them."""
    num_bad = text.count("\ufffd")
    return num_bad if encoding == "utf-8" else num_bad + len(CONTROLS.findall(text))


def _meta_encoding(head: bytes) -> str | None:
    """Return the encoding that the first meta element with a known label names, or the XML."""
    from resiliparse.parse.html import HTMLTree

    for opening, encoding in WIDE_XML.items():
        if head.startswith(opening):
            return encoding
    document = HTMLTree.parse(head.decode("latin-1")).document
    for meta in document.query_selector_all("meta") if document else ():
        if found := encoding_of(_meta_label({name: meta[name] or "" for name in meta.attrs})):
            return _as_declared_in_ascii(found)
    xml = XML_ENCODING.match(head)
    found = encoding_of(xml[1].decode("latin-1")) if xml else None
    return found and _as_declared_in_ascii(found)


def _meta_label(attributes: dict[str, str]) -> str:
    if "charset" in attributes:
        return attributes["charset"]
    if attributes.get("http-equiv", "").lower() != "content-type":
        return ""
    named = CONTENT_CHARSET.search(attributes.get("content", ""))
    return next(filter(None, named.groups()), "") if named else ""


def _as_declared_in_ascii(encoding: str) -> str:
    """Return what is meant by an encoding whose name could be read as ASCII."""
    if encoding.startswith("utf-16"):
        return "utf-8"
    return LATIN if encoding == "x-user-defined" else encoding
