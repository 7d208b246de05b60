"""Snapshots of Wikimedia Enterprise: a page in HTML per JSON line, in members of a tar archive."""

import gzip
import io
import tarfile

from input_files import chunks, read, texts, write
from prelude import Any, Path, json, pytest

from assets.raw.readers.input_record import position_row, position_text

# A page as Parsoid writes it, shortened.
HEAD = """<!DOCTYPE html>
<html prefix="dc: http://purl.org/dc/terms/ mw: http://mediawiki.org/rdf/"><head>\
<meta charset="utf-8"/><meta property="mw:pageNamespace" content="0"/><title>{name}</title>\
<link rel="stylesheet" href="/w/load.php?lang=en&amp;modules=ext.cite"/></head>\
<body id="mwAA" lang="en" class="mw-content-ltr mw-body-content parsoid-body mw-parser-output">\
<section data-mw-section-id="0"><div class="shortdescription nomobile" style="display:none" \
typeof="mw:Transclusion" data-mw='{{"parts":[{{"template":{{"target":{{"wt":"Short"}}}}}}]}}'>\
Of {name}</div>"""
TAIL = """</section><div role="navigation" class="navbox"><table><tbody><tr><td>\
<a href="./Other">Other pages</a></td></tr></tbody></table></div>\
<link rel="mw:PageProp/Category" href="./Category:All"/></body></html>"""
REFERENCE = """<sup class="mw-ref reference" typeof="mw:Extension/ref"><a href="./A#cite_note-1">\
<span class="mw-reflink-text">[1]</span></a></sup>"""
PAGES = {  # the body of a page, and a part of its text
    "Bee": ("<p><b>Bees</b> are <a href='./I'>winged insects</a>.</p>", "Bees are winged insects."),
    "Speed": ("<p>It runs <span typeof='mw:Transclusion'>70 km/h</span>.</p>", "It runs 70 km/h."),
    "Cited": (f"<p>Bees dance.{REFERENCE}</p>", "Bees dance.[1]"),
    "Heads": ("<h2 id='A'>A head</h2><p>What follows it.</p>", "A head\n\nWhat follows it."),
    "List": ("<ul><li>plasterer bees of old</li><li>sweat bees</li></ul>", "plasterer bees of old"),
    "Steps": ("<ol><li>first of all</li><li>then the rest</li></ol>", "1. first of all"),
    "Infobox": ("<table class='infobox'><tr><th>Order</th><td>Apis</td></tr></table>", "Apis"),
    "Table": ("<table class='wikitable'><tr><td>Apis</td><td>8</td></tr></table>", "Apis\t\t8"),
    "Math": ("<p>So <math><annotation>E=mc^2</annotation></math> holds.</p>", "E=mc^2"),
    "Code": ("<pre>def bee():\n    fly()</pre>", "fly()"),
    "Quote": ("<blockquote><p>To bee or not to bee.</p></blockquote>", "To bee or not to bee."),
    "Figure": ("<figure><img src='a.jpg'/><figcaption>A bee</figcaption></figure>", "A bee"),
    "Entity": ("<p>Salt &amp; bread, 5 &lt; 6</p>", "Salt & bread, 5 < 6"),
    "日本": ("<p><b>日本国</b>は東アジアに位置する国。</p>", "東アジアに位置する国。"),
    "مصر": ("<p dir='rtl'><b>مصر</b> دولة عربية تقع في أفريقيا.</p>", "دولة عربية تقع في أفريقيا."),
    "Москва": ("<p><b>Москва́</b> — столица России.</p>", "столица России."),
    "Ελλάδα": ("<p>Η <b>Ελλάδα</b> είναι χώρα της Ευρώπης.</p>", "είναι χώρα της Ευρώπης."),
    "Hidden": ("<p>Seen.</p><style>p {color: red}</style><script>a()</script>", "Seen."),
    "Nested": ("<div><div><section><p>Deep inside.</p></section></div></div>", "Deep inside."),
    "Stub": ("<p>A village.</p><p><i>This article is a stub.</i></p>", "A village."),
    "Notes": ("<p>A note.<span title='x'>abbr.</span></p>", "A note.abbr."),
}
SETTINGS = {
    "text_field": "article_body.html",
    "html": "page",
    "id_field": "identifier",
    "lang_field": "in_language.identifier",
    "license_field": "license.0.identifier",
}


def page(name: str, number: int) -> dict[str, Any]:
    return {
        "name": name,
        "identifier": number,
        "date_modified": "2024-02-01T12:00:00Z",
        "version": {"identifier": 1199, "comment": "a comment", "editor": {"name": "E"}},
        "url": f"https://en.wikipedia.org/wiki/{name}",
        "namespace": {"name": "Article", "identifier": 0},
        "in_language": {"name": "English", "identifier": "en"},
        "is_part_of": {"name": "Wikipedia", "identifier": "enwiki"},
        "article_body": {"html": HEAD.format(name=name) + PAGES[name][0] + TAIL},
        "license": [{"name": "Share Alike 3.0", "identifier": "CC-BY-SA-3.0", "url": "https://c"}],
    }


def lines(names: list[str]) -> bytes:
    pages = (page(name, [*PAGES].index(name)) for name in names)
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in pages)


def archive(members: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as made:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
    return sink.getvalue()


def snapshot() -> bytes:
    names = [*PAGES]
    return archive({f"enwiki_{i}.ndjson": lines(names[7 * i : 7 * i + 7]) for i in range(3)})


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_its_main_text(tmp_path: Path, name: str) -> None:
    chunk = read(write(tmp_path, "a.ndjson", lines([name])), **SETTINGS)
    [text] = texts(chunk)
    assert PAGES[name][1] in text
    assert not any(junk in text for junk in ("<", "Other pages", "red", "a()")) or name == "Entity"


def test_a_snapshot_gives_each_page_with_its_fields(tmp_path: Path) -> None:
    name = "enwiki-NS0-20240220-ENTERPRISE-HTML.json.tar.gz"

    found = read(write(tmp_path, name, gzip.compress(snapshot())), **SETTINGS).documents

    assert [json.loads(meta)["name"] for meta in found["meta"]] == [*PAGES]
    first, meta = found.row(0, named=True), json.loads(found["meta"][0])
    assert {key: first[key] for key in ("id", "url", "lang", "license")} == {
        **{"id": "0", "url": "https://en.wikipedia.org/wiki/Bee"},
        **{"lang": "en", "license": "CC-BY-SA-3.0"},
    }
    assert meta["date_modified"] == "2024-02-01T12:00:00Z"
    assert meta["member"] == "enwiki_0.ndjson"
    assert found["doc_id"].n_unique() == len(PAGES)


def test_any_slices_of_a_plain_archive_give_the_same_documents(tmp_path: Path) -> None:
    file = write(tmp_path, "a.tar", archive({"a.txt": b"text", "b.ndjson": b'{"text":"line"}\n'}))
    whole = chunks(file)
    cut = chunks(file, part_bytes=512)
    assert len(cut) == 2
    assert [t for c in cut for t in texts(c)] == [t for c in whole for t in texts(c)]
    assert texts(whole[0]) == ["text", "line"]


def test_broken_lines_and_a_cut_member_go_to_quarantine_with_their_place(tmp_path: Path) -> None:
    data = archive({"a.jsonl": b'{"text":"one"}\n{"text":\n\n{"text":"two"}\n' + b" " * 600})
    chunk = read(write(tmp_path, "a.tar", data[: 512 + 500]))
    assert texts(chunk) == ["one", "two"]
    places = ["member 0, byte 15", "member 0, byte 40", "member 1"]  # the last: of the archive
    assert chunk.quarantine["position"].to_list() == places
    assert "ends after 500 of 640 bytes (truncated)" in chunk.quarantine["error"][1]


def test_a_line_above_the_bound_costs_the_line(tmp_path: Path) -> None:
    data = archive({"a.jsonl": b'{"text":"' + b"x" * 200 + b'"}\n{"text":"two"}\n'})
    chunk = read(write(tmp_path, "a.tar", data), max_record_bytes=100)
    assert (texts(chunk), len(chunk.quarantine)) == (["two"], 1)
    assert "max_record_bytes=100" in chunk.quarantine["error"][0]


@pytest.mark.parametrize("row", [0, 7, 10**12, 3 * 10**12 + 512])
def test_the_place_in_a_member_leads_back_to_its_row(row: int) -> None:
    assert position_row(position_text("member", row)) == row
