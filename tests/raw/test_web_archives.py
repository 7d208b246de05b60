"""WET files, and WARC and WET files that are read in slices."""

import gzip

from fastwarc.warc import ArchiveIterator
from input_files import COMPRESS, chunks, numbers, read, texts, write
from prelude import Callable, Counter, Path, given, pytest, settings, st

from assets.raw.readers.formats import find_borders
from assets.raw.readers.input_file import InputFile
from assets.raw.usable_raw_files import records_read
from resources.settings.sources import SourceConfig
from resources.store.records import Stats

DATE = "2024-02-20T21:10:00Z"


def record(kind: str, body: bytes, number: int = 0, more: str = "") -> bytes:
    uri = f"https://example.org/{number}"
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: {DATE}\r\n"
        f"WARC-Record-ID: <urn:uuid:{number:032x}>\r\n{more}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body + b"\r\n\r\n"


def wet_record(text: str, number: int = 0) -> bytes:
    more = "WARC-Identified-Content-Language: deu,eng\r\nContent-Type: text/plain\r\n"
    return record("conversion", text.encode(), number, more)


def page(text: str, number: int, status: str = "200 OK", kind: str = "text/html") -> bytes:
    html = f"<html><body><main><p>{text}</p></main></body></html>"
    http = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n\r\n{html}"
    more = "Content-Type: application/http; msgtype=response\r\n"
    return record("response", http.encode(), number, more)


def test_a_wet_file_has_a_document_per_conversion_record(tmp_path: Path) -> None:
    data = (
        record("warcinfo", b"software: x\r\n") + wet_record("Grüße\nzwei", 1) + wet_record("b", 2)
    )

    chunk = read(write(tmp_path, "CC-0.warc.wet.gz", gzip.compress(data)))

    assert texts(chunk) == ["Grüße\nzwei", "b"]
    assert chunk.documents["url"].to_list() == ["https://example.org/1", "https://example.org/2"]
    assert chunk.documents["meta"][0] == (
        '{"url":"https://example.org/1","language":"deu,eng","warc_date":"2024-02-20T21:10:00Z",'
        '"warc_record_id":"<urn:uuid:00000000000000000000000000000001>"}'
    )
    assert chunk.documents["lang"].to_list() == [None, None]
    assert chunk.documents["doc_id"][0] == "5f7458c5668a5b287ab96bd2b568d2ab"
    assert chunk.documents["origin"].struct.field("row").to_list() == [0, 1]


def test_wet_texts_are_those_of_fastwarc(tmp_path: Path) -> None:
    data = b"".join(wet_record(text, i) for i, text in enumerate(numbers(50)))
    file = write(tmp_path, "a.wet", data)

    with file.path.open("rb") as stream:
        expected = [each.reader.read().decode() for each in ArchiveIterator(stream)]

    assert texts(read(file)) == expected == numbers(50)


def test_a_damaged_wet_header_costs_the_bytes_up_to_the_next_record(tmp_path: Path) -> None:
    data = wet_record("a") + b"junk\r\n\r\n" + wet_record("b") + wet_record("cut")[:-6]

    chunk = read(write(tmp_path, "a.wet", data))

    assert texts(chunk) == ["a", "b"]
    assert chunk.quarantine["position"].to_list() == ["record 1", "record 3"]
    assert chunk.quarantine["error"].to_list() == [
        "no valid WARC header at this place",
        "WARC record ends after 258 of 260 bytes (truncated)",
    ]


def test_wet_text_that_is_not_utf_8_goes_to_quarantine(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.wet", record("conversion", b"\xff") + wet_record("b")))

    assert (texts(chunk), len(chunk.quarantine)) == (["b"], 1)
    assert "not valid UTF-8" in chunk.quarantine["error"][0]


def many_records(name: str) -> list[bytes]:
    if ".wet" in name:
        return [wet_record(text, i) for i, text in enumerate(numbers(100, width=50))]
    kinds = [("200 OK", "text/html"), ("404 Not Found", "text/html"), ("200 OK", "image/png")]
    pages = [page(t, i, *kinds[i % 3]) for i, t in enumerate(numbers(100, width=500))]
    return [each if i % 5 else record("request", each, i) for i, each in enumerate(pages)]


@pytest.mark.parametrize("name", ["a.wet", "a.wet.gz", "a.wet.zst", "a.warc", "a.warc.gz"])
def test_slices_of_a_web_archive_have_the_documents_of_the_whole(tmp_path: Path, name: str) -> None:
    pack = COMPRESS.get(name.rpartition(".")[2], bytes)
    parts = many_records(name)
    batches = [b"".join(parts[i : i + 5]) for i in range(0, 100, 5)]
    file = write(tmp_path, name, b"".join(map(pack, batches)))

    whole, sliced = read(file, 1 << 30), chunks(file, 1000)

    assert len(sliced) > 5
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()
    assert len(whole.documents) == (100 if ".wet" in name else 27)
    assert sum(each.rows_in for each in sliced) == whole.rows_in == 100
    assert sum((Counter(each.left_out) for each in sliced), Counter()) == whole.left_out


TYPES = ["warcinfo", "request", "metadata", "revisit", "continuation", "conversion", "wonder"]
KINDS = {
    **{f"{kind}_record": record(kind, b"<p>x</p>") for kind in TYPES[:-1]},
    "other_record": record("wonder", b"x"),
    "http_status": page("x", 0, "404 Not Found"),
    "other_content_type": page("x", 0, "200 OK", "image/png"),
    "document": page("A page of text.", 0),
    "error": record("response", b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\0\1\2"),
}


@settings(max_examples=30)
@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=20))
def test_every_record_is_read_or_left_out_by_reason(
    tmp_path_factory: pytest.TempPathFactory, kinds: list[str]
) -> None:
    file = write(tmp_path_factory.mktemp("kinds"), "a.warc", b"".join(KINDS[k] for k in kinds))

    chunk = read(file)

    read_of = {"document": len(chunk.documents), "error": len(chunk.quarantine)}
    assert Counter({**chunk.left_out, **read_of}) == Counter(kinds)
    assert chunk.rows_in == len(kinds)


def test_records_that_are_left_out_do_not_dilute_the_share_of_bad_ones() -> None:
    stats = Stats(rows_in=9, quarantined=1, rejected={"request_record": 6, "field_filter": 1})
    assert records_read(stats) == 3


@pytest.mark.parametrize("version", ["0.17", "0.18", "1.0", "1.1"])
@pytest.mark.parametrize("line_end", [b"\r\n", b"\n"])
@pytest.mark.parametrize("change", [str.title, str.lower, str.upper])
def test_a_page_is_read_in_every_dialect(
    tmp_path: Path, version: str, line_end: bytes, change: Callable[[str], str]
) -> None:
    names = ["WARC-Type", "WARC-Target-URI", "Content-Length", "Content-Type"]
    data = page("A page of text.", 1).decode().replace("WARC/1.0", f"WARC/{version}")
    for name in names:
        data = data.replace(f"{name}:", f"{change(name)}:")
    data = data.replace("https://example.org/1", "<https://example.org/1>")

    chunk = read(write(tmp_path, "a.warc", data.encode().replace(b"\r\n", line_end) * 2))

    assert (texts(chunk), len(chunk.quarantine)) == (["A page of text."] * 2, 0)
    assert chunk.documents["url"].to_list() == ["https://example.org/1"] * 2


HTML = "<html><body><p>A page of text.</p></body></html>"


@pytest.mark.parametrize(
    "data",
    [
        record("response", f"HTTP/1.0 200\nContent-Type: text/html\n\n{HTML}".encode()),
        record("response", f"HTTP/2 200 \r\ncontent-type:Text/HTML\r\n\r\n{HTML}".encode()),
        record("response", f"HTTP/1.1 200 OK\r\n\r\n\n <!DOCTYPE html>{HTML}".encode()),
        record("response", f"HTTP/1.1 200 OK\r\nContent-Type: */*\r\n\r\n{HTML}".encode()),
        page("A page of text.", 0, kind="application/xhtml+xml; charset=utf-8"),
        page("A page of text.", 0, kind="image/png\r\nContent-Type: text/html"),
        page("A page of text.", 0, kind="text/html;\r\n charset=utf-8"),
        record("resource", HTML.encode(), more="Content-Type: text/html\r\n"),
        record("resource", HTML.encode()),
    ],
)
def test_a_page_is_found_by_its_type_or_its_beginning(tmp_path: Path, data: bytes) -> None:
    chunk = read(write(tmp_path, "a.warc", data + record("request", b"")))
    assert (texts(chunk), chunk.left_out) == (["A page of text."], {"request_record": 1})


def test_the_charset_of_the_header_comes_before_that_of_the_page(tmp_path: Path) -> None:
    head = b'HTTP/1.1 200 OK\r\nContent-Type: text/html; charset="KOI8-R"\r\n\r\n'
    html = "<meta charset=cp1251><p>Старый рынок</p>".encode("koi8-r")
    chunk = read(write(tmp_path, "a.warc", record("response", head + html)))
    assert texts(chunk) == ["Старый рынок"]


def test_a_left_out_record_that_is_cut_is_an_error(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.warc", record("request", b"x" * 50)[:-20]))
    assert chunk.quarantine["error"].to_list() == [
        "WARC record ends after 220 of 236 bytes (truncated)"
    ]


def borders(file: InputFile, part_bytes: int = 1000) -> list[int]:
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    return [border.row for border in find_borders(file, source, part_bytes)]


def test_borders_carry_the_rows_of_the_pages_before(tmp_path: Path) -> None:
    parts = many_records("a.warc")
    assert borders(write(tmp_path, "a.warc", b"".join(parts)))[:3] == [2, 4, 7]


def test_a_damaged_web_archive_is_read_in_one_piece(tmp_path: Path) -> None:
    parts = many_records("a.warc")
    assert borders(write(tmp_path, "a.warc", b"".join([*parts[:70], b"junk", *parts[70:]]))) == []


@settings(max_examples=30)
@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 7))
def test_no_damage_of_a_web_archive_ends_the_reading(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, bit: int
) -> None:
    data = bytearray(b"".join(wet_record(text, i) for i, text in enumerate(numbers(5))))
    data[place % len(data)] ^= 1 << bit
    folder = tmp_path_factory.mktemp("fuzz")
    for name, each in (("a", bytes(data)), ("b", data[: place % len(data)]), ("c", junk)):
        for suffix in ("wet", "warc"):
            read(write(folder, f"{name}.{suffix}", bytes(each)), 100)


def test_statements_on_use_in_the_headers_of_a_page_are_kept(tmp_path: Path) -> None:
    http = (
        "HTTP/1.1 200 OK\r\ncontent-usage: train-ai=n\r\nContent-Usage: search=y\r\n"
        "Content-Signal: ai-train=no\r\nContent-Type: text/html\r\n\r\n<p>A page of text.</p>"
    )
    more = "Content-Type: application/http; msgtype=response\r\n"

    chunk = read(write(tmp_path, "a.warc", record("response", http.encode(), 1, more)))

    meta = chunk.documents["meta"]
    stated = [meta.str.json_path_match(f"$.content_{name}").item() for name in ("usage", "signal")]
    assert stated == ["train-ai=n, search=y", "ai-train=no"]
