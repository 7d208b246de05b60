"""Decode the bytes of an HTML page as browsers do (WHATWG HTML 13.2.3.2).

    byte order mark > HTTP header > meta element > valid UTF-8 > detection

A declaration is believed unless the bytes speak against it: they are valid UTF-8 beyond chance,
or more than half of what is not ASCII is malformed. Browsers would show such a page broken, and
leave it to the reader to choose another encoding; a corpus has nobody who could.

Labels mean what the WHATWG's table says, and not the standards that they name: iso-8859-1 is
windows-1252, gb2312 is GB18030. Decoders are Python's where they agree, with the differences here.
Price: 194 of Big5's 18,594 characters, nearly all of them of Hong Kong, and one of EUC-JP differ.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

LABELS = {  # by encoding; the name of each is a label, too
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866",
    "iso-8859-2": "csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": (
        "csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988"
    ),
    "iso-8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e "
        "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso-8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek"
    ),
    "iso-8859-8": (
        "csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
        "iso_8859-8 iso_8859-8:1988 visual"
    ),
    "iso-8859-8-i": "csiso88598i logical",
    "iso-8859-10": "csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso8859-13 iso885913",
    "iso-8859-14": "iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "",
    "koi8-r": "cskoi8r koi koi8 koi8_r",
    "koi8-u": "koi8-ru",
    "macintosh": "csmacintosh mac x-mac-roman",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "windows-1250": "cp1250 x-cp1250",
    "windows-1251": "cp1251 x-cp1251",
    "windows-1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 "
        "iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252"
    ),
    "windows-1253": "cp1253 x-cp1253",
    "windows-1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 "
        "l5 latin5 x-cp1254"
    ),
    "windows-1255": "cp1255 x-cp1255",
    "windows-1256": "cp1256 x-cp1256",
    "windows-1257": "cp1257 x-cp1257",
    "windows-1258": "cp1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-ukrainian",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk",
    "gb18030": "",
    "big5": "big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese x-euc-jp",
    "iso-2022-jp": "csiso2022jp",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis",
    "euc-kr": (
        "cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
        "windows-949"
    ),
    "replacement": "csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr",
    "utf-16be": "unicodefffe",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16",
    "x-user-defined": "",
}
ENCODINGS = {
    label: name for name, labels in LABELS.items() for label in (name, *labels.split(" ")) if label
}
WHITE_SPACE = "\t\n\f\r "
CODECS = {
    **{"ibm866": "cp866", "iso-8859-8-i": "iso8859-8", "macintosh": "mac-roman"},
    **{"windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic", "gbk": "gb18030"},
    **{"big5": "big5hkscs", "iso-2022-jp": "iso2022-jp-ext", "shift_jis": "cp932"},
    **{"euc-kr": "cp949", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le"},
}
WIDE = frozenset({"gb18030", "big5hkscs", "euc-jp", "iso2022-jp-ext", "cp932", "cp949"})
BYTE_FIXES = {
    "koi8-u": {0xAE: "ў", 0xBE: "Ў"},
    "windows-1255": {0xCA: "\u05ba"},
    "x-user-defined": {byte: chr(0xF700 + byte) for byte in range(0x80, 0x100)},
}
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


def _translation(given: str, wanted: str) -> dict[int, str]:
    return dict(zip(map(ord, given), wanted, strict=True))


_JAPANESE = _translation("〜‖−¢£¬", "～∥－￠￡￢")
_PRIVATE_USE = "\ue5e5\ue7c7\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864"
_FORMS = _translation(
    "\ue78d\ue78e\ue78f" + "".join(map(chr, range(0xE790, 0xE797))), "︐︒︑︓︔︕︖︗︘︙"
)
CHARACTER_FIXES: dict[str, dict[int, str]] = {
    "gb18030": _translation(_PRIVATE_USE, "\u3000ḿ龴龵龶龷龸龹龺龻") | _FORMS,
    "big5hkscs": _translation("•､‾∼♁☉¥¢£", "‧﹑¯～⊕⊙￥￠￡"),
    "euc-jp": _JAPANESE,
    "iso2022-jp-ext": _JAPANESE,
    "cp932": dict.fromkeys(range(0xF8F0, 0xF8F4), "\ufffd"),
}


def encoding_of(label: str) -> str | None:
    """Return the encoding that a label names; None if the standard does not know it."""
    return ENCODINGS.get(label.strip(WHITE_SPACE).lower())


def decode(data: bytes, encoding: str) -> str:
    """Decode bytes of an encoding of LABELS but "replacement"; what is malformed becomes U+FFFD."""
    codec = CODECS.get(encoding, encoding)
    if codec in WIDE:
        text = data.decode(codec, "web")
        return text.translate(CHARACTER_FIXES[codec]) if codec in CHARACTER_FIXES else text
    if codec.startswith("utf-"):
        return data.decode(codec, "replace")
    return codecs.charmap_decode(data, "replace", _byte_table(encoding))[0]


def _byte_table(encoding: str) -> str:
    """Return the character of each byte; U+FFFE has no meaning, and becomes U+FFFD."""
    codec = "ascii" if encoding == "x-user-defined" else CODECS.get(encoding, encoding)
    fixes = BYTE_FIXES.get(encoding, {})
    # Bytes that a codec does not know are controls below 0xA0, in every encoding.
    decoded = (bytes([byte]).decode(codec, "ignore") for byte in range(0x100))
    return "".join(
        fixes.get(byte) or text or (chr(byte) if byte < 0xA0 else "\ufffe")
        for byte, text in enumerate(decoded)
    )


def _malformed(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for bytes that Python's codec does not know, and where it goes on.

    Two bytes are skipped together unless the second is ASCII, which may be markup.
    """
    assert isinstance(error, UnicodeDecodeError)
    first, second = (*error.object[error.start : error.start + 2], 0)[:2]
    is_pair = second >= 0x80 and 0x81 <= first <= 0xFE
    if error.encoding in ("euc_jp", "iso2022_jp_ext"):
        row, cell = first & 0x7F, second & 0x7F
        if min(row, cell) > 0x20 and max(row, cell) < 0x7F and first >> 7 == second >> 7:
            return _jis_character(row, cell), error.start + 2
    if error.encoding == "gb18030" and first == 0x80:
        return "€", error.start + 1
    return "\ufffd", error.start + 1 + is_pair


def _jis_character(row: int, cell: int) -> str:
    """Return a character of JIS X 0208 with the vendors' extensions, which Shift_JIS has."""
    lead, trail = divmod((row - 0x21) * 94 + cell - 0x21, 188)
    pair = bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])
    return pair.decode("cp932", "replace")[0]


codecs.register_error("web", _malformed)
