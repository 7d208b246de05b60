"""Markdown and HTML files."""

import gzip

from input_files import read, texts, write
from prelude import Path, given, pytest, settings, st

from assets.raw.readers import html_child, page_child
from assets.raw.readers.page_child import PageError, page_text
from assets.raw.readers.read_pages import split_front_matter

PAGE = "<html><head><title>T</title></head><body><nav>menu</nav><main><p>{}</p></main></body>"
HANGS = b"<div>" * 3_000_000


def test_a_markdown_file_is_one_document_with_its_front_matter_as_fields(tmp_path: Path) -> None:
    data = (
        "---\ntitle: Grüße\ntags: [a, b]\ndate: 2024-02-03\nurl: https://x.org\n---\n# Hi\n\ntext\n"
    )

    chunk = read(write(tmp_path, "a.md", data))

    assert texts(chunk) == ["# Hi\n\ntext\n"]
    assert chunk.documents["url"][0] == "https://x.org"
    assert chunk.documents["meta"][0] == (
        '{"date":"2024-02-03","tags":["a","b"],"title":"Grüße","url":"https://x.org"}'
    )
    assert chunk.documents["doc_id"][0] == "a4bbcfbaa6d553a25ae69fb0e5fb331b"


@pytest.mark.parametrize(
    "text",
    [
        "# Hi\n---\na: 1\n---\n",
        "---\nnot closed: 1\n",
        "---\n- a list\n---\nx",
        "---\n---\nx",
        "---\na: !!python/object/apply:os.system [ls]\n---\nx",
        "---\na: [\n---\nx",
        "---\na: &a [*a]\n---\nx",
        "---\na: " + "[" * 60_000 + "\n---\nx",
        "---\n" + "- " * 30_000 + "\n---\nx",
        "---\nn: " + "9" * 5000 + "\n---\nx",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(tmp_path: Path, text: str) -> None:
    chunk = read(write(tmp_path, "a.md", text))

    assert texts(chunk) == [text]
    assert chunk.documents["meta"].to_list() == ["{}"]


def test_aliases_of_front_matter_do_not_explode() -> None:
    lines = ["a: &a [x,x,x,x,x,x,x,x,x]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [{','.join(['*' + before] * 9)}]")
    data = "\n".join(["---", *lines, "---", "x"]).encode()

    assert split_front_matter(data) == ({}, data)


@settings(max_examples=200)
@given(st.text(max_size=200))
def test_any_front_matter_leaves_the_text_whole(front: str) -> None:
    data = f"---\n{front}\n---\nend".encode()
    fields, text = split_front_matter(data)
    assert text == data or (data.endswith(text) and text.endswith(b"end") and fields)


@pytest.mark.parametrize("name", ["a.html", "a.htm", "a.html.gz"])
def test_an_html_file_is_the_main_text_of_its_page(tmp_path: Path, name: str) -> None:
    data = PAGE.format("A page of text: Grüße.").encode()

    chunk = read(write(tmp_path, name, gzip.compress(data) if name.endswith("gz") else data))

    assert texts(chunk) == ["A page of text: Grüße."]
    assert chunk.documents["meta"].to_list() == ["{}"]


def test_the_charset_of_a_page_is_the_one_it_names(tmp_path: Path) -> None:
    page = PAGE.format("Grüße aus Köln, schöne Wörter.").replace(
        "<head>", '<head><meta charset="iso-8859-1">'
    )
    chunk = read(write(tmp_path, "a.html", page.encode("latin-1")))
    assert texts(chunk) == ["Grüße aus Köln, schöne Wörter."]


@pytest.mark.parametrize("order", ["le", "be"])
def test_a_page_in_utf_16_is_read_by_its_mark(tmp_path: Path, order: str) -> None:
    data = ("\ufeff" + PAGE.format("Grüße aus Köln, schöne Wörter.")).encode(f"utf-16-{order}")
    chunk = read(write(tmp_path, "a.html", data))
    assert texts(chunk) == ["Grüße aus Köln, schöne Wörter."]


def test_the_text_of_a_page_is_not_stripped_twice(tmp_path: Path) -> None:
    page = PAGE.format("Use &lt;b&gt; for <b>bold</b> text.")
    chunk = read(write(tmp_path, "a.html", page), html="text")
    assert texts(chunk) == ["Use <b> for bold text."]


@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_an_empty_page_has_no_document(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path, name, b"")).rows_in == 0


@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_a_page_above_the_bound_goes_to_quarantine(tmp_path: Path, name: str) -> None:
    chunk = read(write(tmp_path, name, b"x" * 200), max_record_bytes=100)
    assert (texts(chunk), len(chunk.quarantine)) == ([], 1)
    assert "max_record_bytes=100" in chunk.quarantine["error"][0]


def test_markdown_that_is_not_utf_8_goes_to_quarantine(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.md", b"\xff"))
    assert chunk.quarantine["error"][0].startswith("not valid UTF-8")


def test_a_page_that_hangs_its_parser_costs_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_child, "SCRIPT", impatient_child(tmp_path))
    monkeypatch.setattr(page_child, "_of_thread", type(page_child._of_thread)())

    chunk = read(write(tmp_path, "a.html", HANGS))
    after = read(write(tmp_path, "b.html", PAGE.format("The next page is read.")))

    assert chunk.quarantine["error"].to_list() == [page_child.ENDED]
    assert chunk.quarantine["next_step"].to_list() == ["Leave the page out, or save its text."]
    assert texts(after) == ["The next page is read."]


def impatient_child(folder: Path) -> Path:
    script = Path(html_child.__file__).read_text().replace("CPU_SECONDS = 10", "CPU_SECONDS = 0")
    (folder / "html_child.py").write_text(script)
    return folder / "html_child.py"


def test_a_page_that_needs_all_memory_costs_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Path(html_child.__file__).read_text().replace("2 << 30", "400 << 20")
    (tmp_path / "html_child.py").write_text(script)
    monkeypatch.setattr(page_child, "SCRIPT", tmp_path / "html_child.py")
    monkeypatch.setattr(page_child, "_of_thread", type(page_child._of_thread)())

    with pytest.raises(PageError):
        page_text(b"<p>x</p>" * (8 << 20))
    assert page_text(PAGE.format("The next page is read.").encode()) == "The next page is read."


@settings(max_examples=100)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_page_or_an_error(data: bytes) -> None:
    try:
        assert isinstance(page_text(b"<main>" + data), str)
    except PageError as error:
        assert str(error).startswith("page cannot be read: ")
