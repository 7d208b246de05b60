"""XML dumps of MediaWiki: pages, what is left out, slices, and what is damaged."""

import bz2

from input_files import COMPRESS, chunks, read, texts, write
from prelude import Path, given, json, pytest, settings, st

from assets.raw.readers.formats import find_borders, tell_format
from assets.raw.readers.read_xml import split_pages

HEAD = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation=\
"http://www.mediawiki.org/xml/export-0.11/ http://www.mediawiki.org/xml/export-0.11.xsd" \
version="0.11" xml:lang="de">
  <siteinfo>
    <sitename>Wikipedia</sitename>
    <dbname>dewiki</dbname>
    <base>https://de.wikipedia.org/wiki/Wikipedia:Hauptseite</base>
    <generator>MediaWiki 1.42.0-wmf.18</generator>
    <case>first-letter</case>
    <namespaces>
      <namespace key="0" case="first-letter" />
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""
PAGE = """\
  <page>
    <title>{title}</title>
    <ns>{ns}</ns>
    <id>{number}</id>{redirect}
    <revision>
      <id>24{number}</id>
      <parentid>23</parentid>
      <timestamp>2024-02-01T12:00:00Z</timestamp>
      <contributor>
        <username>E</username>
        <id>7</id>
      </contributor>
      <comment>/* a */ <![CDATA[]]></comment>
      <model>{model}</model>
      <format>text/x-wiki</format>
      <text bytes="1" sha1="x" xml:space="preserve">{text}</text>
      <sha1>x</sha1>
    </revision>
  </page>
"""
TAIL = "</mediawiki>\n"
TEXTS = {  # wikitext as the XML has it, and its text
    "Biene": ("'''Bienen''' sind [[Insekten]].", "Bienen sind Insekten."),
    "Zitat": ("A &lt;ref&gt;b&lt;/ref&gt;c", "A c"),
    "Zeichen": ("5 &lt; 6 &amp;amp; 7 &amp;nbsp;kg", "5 < 6 & 7 \xa0kg"),
    "Bild": ("a [[Datei:B.jpg|mini|Ein Bild]] b", "a  b"),
    "Kategorie": ("a\n\n[[Kategorie:Bienen]]", "a"),
    "Vorlage": ("Sie ({{IPA|x}}) fliegt.", "Sie fliegt."),
    "Tabelle": ("vor\n{|\n| a\n|}\nnach", "vor\nnach"),
    "Liste": ("* eins\n* zwei", "• eins\n• zwei"),
    "Gliederung": ("a\n\n== Leben ==\nb", "a\n\nLeben\nb"),
    "Formel": ("&lt;math&gt;E=mc^2&lt;/math&gt;", "E=mc^2"),
    "Quelltext": ("&lt;syntaxhighlight lang=c&gt;a &amp;lt; b&lt;/syntaxhighlight&gt;", "a < b"),
    "Verweis": ("[https://a.example dort]", "dort"),
    "Umbruch": ("a&lt;br /&gt;b", "a\nb"),
    "Kommentar": ("a&lt;!-- b --&gt;c", "ac"),
    "東京": ("'''東京'''は[[日本]]の[[首都]]。", "東京は日本の首都。"),
    "Москва": ("'''Москва́''' — [[столица]].", "Москва́ — столица."),
    "مصر": ("'''مصر''' [[دولة]] عربية.", "مصر دولة عربية."),
    "AT&amp;T": ("Firma.", "Firma."),
    "C++/CLI": ("Sprache.", "Sprache."),
    "Leer": ("a __NOTOC__", "a"),
    "Emoji": ("&#128029; fliegt.", "🐝 fliegt."),
}


def page(title: str, number: int, text: str, **changed: str) -> str:
    others = {"ns": "0", "model": "wikitext", "redirect": "", **changed}
    return PAGE.format(title=title, number=number, text=text, **others)


PAGES = [page(title, i, wikitext) for i, (title, (wikitext, _)) in enumerate(TEXTS.items())]
DUMP = HEAD + "".join(PAGES) + TAIL


@pytest.mark.parametrize("packing", ["", *COMPRESS])
def test_a_dump_gives_its_pages(tmp_path: Path, packing: str) -> None:
    data = COMPRESS[packing](DUMP.encode()) if packing else DUMP.encode()
    name = "dewiki-20240201-pages-articles.xml" + (f".{packing}" if packing else "")

    chunk = read(write(tmp_path, name, data))

    assert texts(chunk) == [text for _, text in TEXTS.values()]
    first, meta = chunk.documents.row(0, named=True), json.loads(chunk.documents["meta"][0])
    assert first["url"] == "https://de.wikipedia.org/wiki/Biene"
    assert first["lang"] == "de"
    assert {key: meta[key] for key in ("id", "title", "revision", "date", "left_out")} == {
        **{"id": "0", "title": "Biene", "revision": "240"},
        **{"date": "2024-02-01T12:00:00Z", "left_out": {}},
    }
    assert chunk.documents["url"][17] == "https://de.wikipedia.org/wiki/AT%26T"
    assert json.loads(chunk.documents["meta"][5])["left_out"] == {"templates": 1}


def test_other_pages_are_counted_by_reason(tmp_path: Path) -> None:
    others = [
        page("Diskussion:A", 1, "a", ns="1"),
        page("Alt", 2, "#REDIRECT [[A]]", redirect='\n    <redirect title="A" />'),
        page("Older", 3, "#redirect: [[A]]"),
        page("Leer", 4, ""),
        page("Q1", 5, "{}", model="wikibase-item"),
        page("Gelöscht", 6, "x").replace('preserve">x</text>', 'preserve" deleted="deleted" />'),
        page("Da", 7, "Text."),
    ]

    chunk = read(write(tmp_path, "a.xml", HEAD + "".join(others) + TAIL))

    assert texts(chunk) == ["Text."]
    assert chunk.left_out == {
        **{"other_namespace": 1, "redirect": 2, "empty_page": 2, "other_content_type": 1}
    }


def test_of_a_history_the_last_revision_is_read(tmp_path: Path) -> None:
    revision = "    <revision>\n      <id>1</id>\n      <text>Old.</text>\n    </revision>\n"
    changed = page("A", 1, "New.").replace("    <revision>", f"{revision}    <revision>", 1)
    assert texts(read(write(tmp_path, "a.xml", HEAD + changed + TAIL))) == ["New."]


def multistream() -> bytes:
    streams = [HEAD, *("".join(PAGES[i : i + 3]) for i in range(0, len(PAGES), 3)), TAIL]
    return b"".join(bz2.compress(each.encode()) for each in streams)


@pytest.mark.parametrize("part_bytes", [1, 700, 2500, 100_000])
@pytest.mark.parametrize("is_packed", [False, True])
def test_slices_of_any_size_give_the_documents_of_the_whole(
    tmp_path: Path, part_bytes: int, is_packed: bool
) -> None:
    data, ending = (multistream(), ".bz2") if is_packed else (DUMP.encode(), "")
    file = write(tmp_path, f"dewiki-20240201-pages-articles-multistream.xml{ending}", data)
    whole = read(file).documents

    cut = chunks(file, part_bytes)

    assert part_bytes > 2500 or len(cut) > 3
    assert [row for c in cut for row in c.documents["doc_id"]] == whole["doc_id"].to_list()
    assert [text for c in cut for text in texts(c)] == [text for _, text in TEXTS.values()]
    assert sum(len(c.quarantine) for c in cut) == 0


def test_a_part_of_a_dump_is_known_by_its_name() -> None:
    name = "enwiki-20240201-pages-articles-multistream1.xml-p1p41242.bz2"
    assert tell_format(name) == ("xml", "bz2")
    assert tell_format("a.xml-p1") == (None, None)


def test_damage_costs_the_page_and_is_named(tmp_path: Path) -> None:
    pages = [page(title, i, "Text.") for i, title in enumerate("ABCDE")]
    pages[1] = pages[1].replace("</text>", "</txt>")
    pages[2] = pages[2].replace("<page>", "<qage>")
    pages[3] = pages[3].replace("Text.", "Te\xff\x00xt.")
    data = (HEAD + "".join(pages) + TAIL).encode("latin-1")
    file = write(tmp_path, "a.xml", data)

    chunk = read(file)

    assert [json.loads(meta)["title"] for meta in chunk.documents["meta"]] == ["A", "E"]
    errors = chunk.quarantine["error"].to_list()
    assert len(errors) == 3 and all(error.startswith("XML is broken: ") for error in errors)
    assert errors[1] == "XML is broken: no page begins at this place"
    positions = chunk.quarantine["position"].to_list()
    assert positions[0] == f"byte {data.find(b'<page>', data.find(b'</page>'))}"
    assert "Get the file again; the other records are read." in chunk.quarantine["next_step"]


@pytest.mark.parametrize("end", [len(DUMP.encode()) - 20, 2000, len(HEAD) + 5])
def test_a_cut_dump_gives_what_came_before(tmp_path: Path, end: int) -> None:
    chunk = read(write(tmp_path, "a.xml", DUMP.encode()[:end]))
    assert texts(chunk) == [text for _, text in TEXTS.values()][: len(chunk.documents)]
    assert "(truncated)" in chunk.quarantine["error"][0]


def test_a_cut_archive_gives_what_came_before(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.xml.bz2", multistream()[:-300]))
    assert 9 < len(chunk.documents) < len(TEXTS)
    assert "bz2 stream is broken" in chunk.quarantine["error"][0]


def test_a_page_above_the_bound_costs_the_page(tmp_path: Path) -> None:
    large = page("B", 2, "x" * (3 << 20))
    data = HEAD + page("A", 1, "a") + large + page("C", 3, "c") + TAIL

    chunk = read(write(tmp_path, "a.xml", data), max_record_bytes=2000)

    assert texts(chunk) == ["a", "c"]
    assert chunk.quarantine["error"].to_list() == ["page is above max_record_bytes=2,000"]


def test_entities_of_a_dump_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE mediawiki [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]>\n'
    chunk = read(write(tmp_path, "a.xml", bomb + HEAD + page("A", 1, "x &b; y") + TAIL))
    assert texts(chunk) == []
    assert "XML is broken" in chunk.quarantine["error"][0]


@pytest.mark.parametrize("root", ["project", "urlset", "users", "tei:TEI"])
def test_other_xml_is_left_out_and_named(tmp_path: Path, root: str) -> None:
    data = f'<?xml version="1.0"?>\n<!-- a <page> -->\n<{root} a="b"><x>text</x></{root}>'
    chunk = read(write(tmp_path, "a.xml", data))
    assert (len(chunk.documents), chunk.left_out) == (0, {"other_xml": 1})
    assert chunk.unread == {f"a.xml: root <{root}>": "other_xml"}


def test_what_is_no_xml_goes_to_quarantine(tmp_path: Path) -> None:
    assert "no element begins" in read(write(tmp_path, "a.xml", "text")).quarantine["error"][0]
    assert read(write(tmp_path, "b.xml", "")).rows_in == 0


def test_a_posts_file_has_no_borders(tmp_path: Path) -> None:
    from resources.settings.sources import SourceConfig

    file = write(tmp_path, "Posts.xml", "<posts>\n</posts>\n")
    assert find_borders(file, SourceConfig(name="s", where=("x",)), 1) == []


@settings(max_examples=200)
@given(st.lists(st.integers(1, 60), max_size=200), st.binary(max_size=30))
def test_any_blocks_give_the_same_pages(sizes: list[int], noise: bytes) -> None:
    data = HEAD.encode() + b"<page>a</page>\n" * 3 + noise + b"<page>b</page></mediawiki>"
    cuts = [0]
    for size in sizes:
        cuts.append(min(cuts[-1] + size, len(data)))
    blocks = [data[a:b] for a, b in zip(cuts, [*cuts[1:], len(data)], strict=True) if a < b]
    assert [*split_pages(iter(blocks), 0, 1000)] == [*split_pages(iter([data]), 0, 1000)]
