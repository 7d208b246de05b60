"""WET files, and WARC and WET files that are read in slices."""

import gzip
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator
from hypothesis import given, settings
from hypothesis import strategies as st
from input_files import COMPRESS, chunks, numbers, read, texts, write

from assets.raw.readers.find_borders import find_borders
from assets.raw.readers.input_file import InputFile
from resources.settings.sources import SourceConfig

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
    return [page(t, i, *kinds[i % 3]) for i, t in enumerate(numbers(100, width=500))]


@pytest.mark.parametrize("name", ["a.wet", "a.wet.gz", "a.wet.zst", "a.warc", "a.warc.gz"])
def test_slices_of_a_web_archive_have_the_documents_of_the_whole(tmp_path: Path, name: str) -> None:
    pack = COMPRESS.get(name.rpartition(".")[2], bytes)
    parts = many_records(name)
    batches = [b"".join(parts[i : i + 5]) for i in range(0, 100, 5)]
    file = write(tmp_path, name, b"".join(map(pack, batches)))

    whole, sliced = read(file, 1 << 30), chunks(file, 1000)

    assert len(sliced) > 5
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()
    assert len(whole.documents) == (100 if ".wet" in name else 34)


def borders(file: InputFile, part_bytes: int = 1000) -> list[int]:
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    return [border.row for border in find_borders(file, source, part_bytes)]


def test_borders_carry_the_rows_of_the_pages_before(tmp_path: Path) -> None:
    parts = many_records("a.warc")
    assert borders(write(tmp_path, "a.warc", b"".join(parts)))[:3] == [4, 8, 12]


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
