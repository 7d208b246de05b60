"""EPUB 2 and 3, laid out as the programs lay them out that most books are made with."""

import io
import zipfile

from input_files import read, texts, write
from prelude import Path, given, json, pytest, settings, st

from assets.raw.readers.formats import tell_format

Members = dict[str, str | bytes]
MIME = "application/epub+zip"
ENCRYPTED = (
    '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" '
    'xmlns:enc="http://www.w3.org/2001/04/xmlenc#"><enc:EncryptedData><enc:EncryptionMethod '
    'Algorithm="{0}"/><enc:CipherData><enc:CipherReference URI="{1}"/></enc:CipherData>'
    "</enc:EncryptedData></encryption>"
)
OBFUSCATION = "http://www.idpf.org/2008/embedding"
META = {"title": "Bees"}
EPUB_2, EPUB_3 = "2.0", "3.0"


def page(body: str, head: str = "<title>Bees</title>") -> str:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        f'<html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}</body></html>'
    )


def container(place: str) -> str:
    return (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        f'<rootfiles><rootfile full-path="{place}" media-type="application/oebps-package+xml"/>'
        "</rootfiles></container>"
    )


def package(items: dict[str, str], spine: str, version: str, more: str = "") -> str:
    """Return an OPF; an item is its href, and behind a blank its properties or media type."""
    manifest = ""
    for name, item in items.items():
        href, _, other = item.partition(" ")
        kind = other if "/" in other else "application/xhtml+xml"
        properties = f' properties="{other}"' if other and "/" not in other else ""
        manifest += f'<item id="{name}" href="{href}" media-type="{kind}"{properties}/>'
    refs = "".join(f'<itemref idref="{name}"/>' for name in spine.split())
    return (
        f'<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="{version}">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Bees</dc:title>'
        f"<dc:language>en-GB</dc:language></metadata><manifest>{manifest}</manifest>"
        f'<spine toc="ncx">{refs}</spine>{more}</package>'
    )


def epub(members: Members) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", MIME, zipfile.ZIP_STORED)
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def book(opf: str, content: str | bytes, pages: Members) -> bytes:
    return epub({"META-INF/container.xml": container(opf), opf: content, **pages})


ONE, TWO = page("<h1>One</h1><p>Bees <i>fly</i>.</p>"), page("<p>They sing.</p>")
TEXT = "One\n\nBees fly.\n\nThey sing."
COVER = page('<img src="c.jpg" alt=""/>')
AB = {"a": "a.xhtml", "b": "b.xhtml"}
GUIDE = (
    '<guide><reference type="cover" title="C" href="{0}"/><reference type="text" href="b"/></guide>'
)
NESTED = "<nav><ol><li><a href='a.xhtml'>One</a></li></ol></nav>"
ENCRYPTION, FONT = "META-INF/encryption.xml", ENCRYPTED.format(OBFUSCATION, "fonts/x.otf")
BOTH: Members = {"a.xhtml": ONE, "b.xhtml": TWO, "Cover.xhtml": COVER, "i.svg": "<svg/>"}
WIDE = package(AB, "a b", EPUB_2).replace('"1.0"?', '"1.0" encoding="UTF-16"?').encode("utf-16")
LEFT_OUT = {"navigation_document": 1}


def of_two(first: str | bytes, version: str) -> bytes:
    return book("c.opf", package(AB, "a b", version), {"a.xhtml": first, "b.xhtml": TWO})


BOOKS: dict[str, tuple[bytes, str, dict[str, int]]] = {
    "flat": (of_two(ONE, EPUB_2), TEXT, {}),
    "order_of_spine": (
        book("c.opf", package(AB, "b a", EPUB_3), {"a.xhtml": TWO, "b.xhtml": ONE}), TEXT, {},
    ),
    "pandoc": (
        book(
            "EPUB/content.opf",
            package({"n": "nav.xhtml nav", "a": "text/1.xhtml", "b": "text/2.xhtml"}, "n a b",
                    EPUB_3),
            {"EPUB/nav.xhtml": page(NESTED), "EPUB/text/1.xhtml": ONE, "EPUB/text/2.xhtml": TWO},
        ), TEXT, LEFT_OUT,
    ),
    "calibre": (
        book(
            "content.opf",
            package(
                {"t": "titlepage.xhtml", "a": "text/p0.html", "b": "text/p1.html"},
                "t a b", EPUB_2, GUIDE.format("titlepage.xhtml"),
            ),
            {"titlepage.xhtml": COVER, "text/p0.html": ONE, "text/p1.html": TWO},
        ), TEXT, LEFT_OUT,
    ),
    "gutenberg": (
        book(
            "OEBPS/content.opf",
            package(
                {"w": "wrap0000.xhtml", "a": "h-0.htm.xhtml", "b": "h-1.htm.xhtml"},
                "w a b", EPUB_3, GUIDE.format("wrap0000.xhtml#x"),
            ),
            {"OEBPS/wrap0000.xhtml": COVER, "OEBPS/h-0.htm.xhtml": ONE, "OEBPS/h-1.htm.xhtml": TWO},
        ), TEXT, LEFT_OUT,
    ),
    "sigil": (
        book(
            "OEBPS/content.opf",
            package({"a": "Text/Section%200001.xhtml", "b": "Text/B.xhtml"}, "a b", EPUB_2),
            {"OEBPS/Text/Section 0001.xhtml": ONE, "OEBPS/Text/B.xhtml": TWO},
        ), TEXT, {},
    ),
    "paths_above": (
        book(
            "OPS/p/c.opf",
            package({"a": "../a.xhtml", "b": "./b.xhtml"}, "a b", EPUB_2),
            {"OPS/a.xhtml": ONE, "OPS/p/b.xhtml": TWO},
        ), TEXT, {},
    ),
    "cover_by_name": (
        book("c.opf", package({"c": "Cover.xhtml", **AB}, "c a b", EPUB_2), BOTH), TEXT, LEFT_OUT,
    ),
    "no_text_on_a_page": (
        book("c.opf", package({"i": "i.xhtml", **AB}, "i a b", EPUB_2), BOTH | {"i.xhtml": COVER}),
        TEXT, {},
    ),
    "picture_in_spine": (
        book("c.opf", package({"i": "i.svg image/svg+xml", **AB}, "i a b", EPUB_3), BOTH), TEXT,
        {"other_content_type": 1},
    ),
    "unknown_in_spine": (
        book("c.opf", package(AB, "x a b", EPUB_2), {"a.xhtml": ONE, "b.xhtml": TWO}), TEXT, {},
    ),
    "oeb": (
        book(
            "c.opf",
            package({"a": "a.xhtml text/x-oeb1-document", "b": "b.xhtml text/html"}, "a b", EPUB_2),
            BOTH,
        ), TEXT, {},
    ),
    "obfuscated_font": (
        book("c.opf", package(AB, "a b", EPUB_3), BOTH | {ENCRYPTION: FONT}), TEXT, {},
    ),
    "closed_title": (
        of_two(page("<h1>One</h1><p>Bees <i>fly</i>.</p>", "<title/><script src='x'/>"), EPUB_3),
        TEXT, {},
    ),
    "closed_anchors": (
        of_two(page('<h1><a id="p1"/>One</h1><p>Bees<br/>fly.</p><hr/>'), EPUB_2),
        "One\n\nBees\nfly.\n\nThey sing.", {},
    ),
    "entities": (
        of_two(page("<p>Caf&#233; &amp; th&eacute;&nbsp;vert</p>"), EPUB_2),
        "Café & thé\xa0vert\n\nThey sing.", {},
    ),
    "poem": (
        of_two(page("<div><p>O bee,<br/>O sea.</p><ul><li>x</li></ul></div>"), EPUB_2),
        "O bee,\nO sea.\n\n  • x\n\nThey sing.", {},
    ),
    "latin": (
        of_two(page("<p>Grüße</p>").replace("UTF-8", "iso-8859-1").encode("latin-1"), EPUB_2),
        "Grüße\n\nThey sing.", {},
    ),
    "utf_16": (
        of_two(page("<p>Grüße</p>").replace("UTF-8", "UTF-16").encode("utf-16"), EPUB_2),
        "Grüße\n\nThey sing.", {},
    ),
    "chinese": (
        of_two(page("<p>蜜蜂飞。</p>"), EPUB_3),
        "蜜蜂飞。\n\nThey sing.", {},
    ),
    "package_in_utf_16": (
        book("c.opf", WIDE, BOTH), TEXT, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOOKS)
def test_the_chapters_of_a_book_are_one_document(tmp_path: Path, name: str) -> None:
    data, text, left_out = BOOKS[name]

    chunk = read(write(tmp_path, f"{name}.epub", data))

    assert (texts(chunk), chunk.quarantine["error"].to_list()) == ([text], [])
    assert (chunk.left_out, chunk.rows_in) == (left_out, 1 + len(left_out))
    assert json.loads(chunk.documents["meta"][0]) == META
    assert chunk.documents["lang"].to_list() == ["en"]


@pytest.mark.parametrize(("language", "lang"), [("DE", "de"), ("zh-Hant-TW", "zh"), ("eng", None)])
def test_a_language_of_two_letters_is_that_of_the_document(
    tmp_path: Path, language: str, lang: str | None
) -> None:
    opf = package(AB, "a b", EPUB_2).replace("en-GB", language)

    chunk = read(write(tmp_path, "a.epub", book("c.opf", opf, {"a.xhtml": ONE, "b.xhtml": TWO})))

    assert chunk.documents["lang"].to_list() == [lang]
    assert json.loads(chunk.documents["meta"][0]) == META | ({} if lang else {"language": "eng"})


def test_a_book_in_an_archive_is_read(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("books/a.epub", BOOKS["flat"][0])

    chunk = read(write(tmp_path, "a.zip", sink.getvalue()))

    assert texts(chunk) == [TEXT]
    assert json.loads(chunk.documents["meta"][0]) == {"member": "books/a.epub", **META}


DRM = ENCRYPTED.format("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "a.xhtml")
BOMB = "<!DOCTYPE p [<!ENTITY a '" + "a" * 9999 + "'>" + "".join(
    f"<!ENTITY {name} '{f'&{old};' * 50}'>" for old, name in zip("abcde", "bcdef", strict=True)
) + "]><p>&f;</p>"  # fmt: skip
GOOD = package(AB, "a b", EPUB_3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (book("c.opf", GOOD, BOTH | {ENCRYPTION: DRM}),
         "its publisher has encrypted 1 of 2 documents (DRM)"),
        (epub({"a.txt": "x"}), "no item named 'META-INF/container.xml'"),
        (epub({"META-INF/container.xml": "<container/>"}), "no item named ''"),
        (epub({"META-INF/container.xml": "<contai"}), "EPUB cannot be read: unclosed token"),
        (book("c.opf", BOMB, {}), "amplification"),
        (book("c.opf", GOOD, {"a.xhtml": ONE}), "no item named 'b.xhtml'"),
        (book("c.opf", package({}, "", EPUB_3), {}), "its spine names no document"),
        (book("c.opf", GOOD, {"a.xhtml": page("<p>" + "x " * 5000), "b.xhtml": TWO}),
         "its text is above max_record_bytes=5,000"),
        (BOOKS["flat"][0][:-40], "EPUB cannot be read: File is not a zip file"),
        (BOOKS["flat"][0].replace(b"a.xhtmlPK", b"c.xhtmlPK"), "EPUB cannot be read"),
        (b"%PDF-1.4 no book", "EPUB cannot be read"),
    ],
)  # fmt: skip
def test_what_is_no_sound_book_is_one_record_in_quarantine(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    chunk = read(write(tmp_path, "a.epub", data), max_record_bytes=5000)

    [error] = chunk.quarantine["error"]
    assert (texts(chunk), reason in error) == ([], True), error


def test_names_tell_the_format() -> None:
    assert tell_format("A Book.EPUB") == ("epub", None)


@settings(max_examples=100)
@given(st.integers(0, len(BOOKS["pandoc"][0]) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_book_ends_in_a_document_or_quarantine(
    tmp_path_factory: pytest.TempPathFactory, at: int, other: bytes
) -> None:
    data = BOOKS["pandoc"][0]
    damaged = data[:at] + other + data[at + len(other) :]
    chunk = read(write(tmp_path_factory.mktemp("any"), "a.epub", damaged))

    assert len(chunk.documents) + len(chunk.quarantine) == 1
