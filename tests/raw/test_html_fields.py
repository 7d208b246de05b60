"""HTML in text fields: its text, what stays as it is, and bounds on hostile pages."""

import html

import yaml
from builders import Build, open_corpus, published, write_corpus, write_jsonl
from input_files import as_input, read, texts, write
from prelude import Path, given, pl, pytest, settings, st, time

from assets.raw.asset import NOT_IN_THE_BYTES, read_config
from assets.raw.readers.html_fields import plain_text
from resources.settings.full_source import Source

PAGE = """\
<h1>Salt &amp; bread</h1><style>p {color: red}</style>
<p>One <b>bold</b> word,<br>a new line.<p>Less: 5 &lt; 6&nbsp;kg
<ul><li>apples<li>pears</ul><table><tr><th>A<th>B<tr><td>1<td>2</table>
<script>var a = "<p>hidden</p>";</script><!-- <p>hidden</p> -->"""
TEXT = """\
Salt & bread

One bold word,
a new line.

Less: 5 < 6\xa0kg

  • apples
  • pears
A\t\tB
1\t\t2"""
UNTOUCHED = [
    *("a < b and c > d", "x<y and z", "vector<int> v;", "if (a<b) {", "AT&T", "<3", "a <!-- b"),
    *("", "a\n\n\n  b  ", "<T>(x: T)", "&copy", "&;", "<p", "< p >"),
]


def test_the_text_of_a_page_has_lines_lists_and_cells() -> None:
    assert plain_text(PAGE) == TEXT


@pytest.mark.parametrize("text", UNTOUCHED)
def test_a_text_without_tags_and_entities_stays(text: str) -> None:
    assert plain_text(text) == text


def test_entities_are_decoded_without_tags() -> None:
    assert plain_text("AT&amp;T &#8211; &quot;a<b&quot;\n  c") == 'AT&T – "a<b"\n  c'


def test_only_a_source_that_asks_loses_its_tags(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", 'text\n"<p>One <i>two</i></p>"\n')
    assert texts(read(file)) == ["<p>One <i>two</i></p>"]
    assert texts(read(file, html="text")) == ["One two"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_field_with_a_whole_page_gives_its_main_text(tmp_path: Path, name: str) -> None:
    menu = "<nav><ul><li><a href='/'>Home</a><li><a href='/b'>Bees</a></ul></nav>"
    page = f"<html><head><meta charset='latin-1'></head><body>{menu}<main><p>Größe &amp; Art.</p>"
    frame = pl.DataFrame({"id": [1, 2], "text": [page, "a < b &amp; c"]})
    path = tmp_path / name
    {"a.csv": frame.write_csv, "a.jsonl": frame.write_ndjson, "a.parquet": frame.write_parquet}[
        name
    ](path)

    assert texts(read(as_input(path), html="page")) == ["Größe & Art.", "a < b & c"]
    assert texts(read(as_input(path), html="text"))[0] != "Größe & Art."


def test_the_page_of_a_warc_file_is_not_stripped_twice(tmp_path: Path) -> None:
    body = (
        "<html><body><p>Write &lt;p&gt; for a paragraph, and close it with &lt;/p&gt;.</p></body>"
    )
    http = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"
    record = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n"
        "WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
        "Content-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(http)}\r\n\r\n{http}\r\n\r\n"
    )
    file = write(tmp_path, "a.warc", record)
    assert "Write <p> for a paragraph" in texts(read(file, html="text"))[0]


def test_the_fingerprint_changes_only_for_a_source_that_strips() -> None:
    keep = Source(name="a", where=("a.jsonl",))
    text = keep.model_copy(update={"html": "text"})

    assert "html" not in read_config(keep, NOT_IN_THE_BYTES)
    assert read_config(text, NOT_IN_THE_BYTES)["html"] == "text"
    assert "require_language" not in read_config(keep, NOT_IN_THE_BYTES)


def test_rows_and_ids_are_those_of_the_records(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"text": "<p>x</p>", "id": "7"}\n{"text": "y"}\n')
    stripped, kept = read(file, html="text").documents, read(file).documents

    assert stripped.drop("text").equals(kept.drop("text"))
    assert stripped["text"].to_list() == ["x", "y"]


HOSTILE = {
    "divs": "<div>", "styling": "<b><p>", "links": "<a><div>", "lists": "<ul><li>", "tags": "<",
    "script": "<script>", "comments": "<!--", "attributes": "<a ", "tables": "<table><td>",
    "entities": "&", "quotes": '<p x="', "svg": "<svg><g>", "buttons": "<button><p>",
    "ends": "</div></x>", "cdata": "<![CDATA[",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_no_faster_than_hostile_html(name: str) -> None:
    def seconds(count: int) -> float:
        page = "<p>" + "<ul><li>" * 90 + HOSTILE[name] * count + "end"
        start = time.process_time()
        found = plain_text(page)
        assert len(found) <= 2 * len(page) + 100
        return time.process_time() - start

    seconds(10)
    assert seconds(40_000) < 8 * max(seconds(10_000), 0.05)  # quadratic: 16 times


def test_a_page_nested_without_end_keeps_its_words() -> None:
    page = "<p>first &amp;</p>" + "<div>" * 5_000 + "last"
    assert plain_text(page).split() == ["first", "&", "last"]


WORDS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="<>&"), min_size=1)


@settings(max_examples=100)
@given(st.lists(WORDS, min_size=1, max_size=8), st.sampled_from(["p", "div", "li", "td", "h2"]))
def test_every_word_of_a_page_is_kept_in_order(words: list[str], tag: str) -> None:
    page = "".join(f"<{tag}>{html.escape(word)}</{tag}>" for word in words)
    found = "".join(plain_text(page).replace("•", "").split())
    assert found == "".join("".join(words).replace("•", "").split())


@settings(max_examples=200)
@given(st.text(st.sampled_from('<>/&;!-= "pbdiv\n')))
def test_any_text_has_a_plain_text(text: str) -> None:
    assert len(plain_text(text)) <= 2 * len(text) + 100


def test_stripped_documents_reach_the_corpus(tmp_path: Path, build: Build) -> None:
    config = write_corpus(tmp_path)
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["html"] = "text"
    config.write_text(yaml.safe_dump(content))
    corpus = open_corpus(config)
    write_jsonl(tmp_path / "input/notes/page.jsonl", [{"text": "<p>Salt &amp; bread</p>"}])

    build(corpus, "raw")

    assert "Salt & bread" in published(corpus, "notes")["text"].to_list()
