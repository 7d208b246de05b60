"""JSON lines with commas between them, ended by carriage returns, or as RFC 7464 has them."""

from collections.abc import Callable

from input_files import COMPRESS, chunks, read, texts, write
from prelude import Path, given, json, pytest, settings, st

from assets.raw.readers.decompress import BrokenStream
from assets.raw.readers.plain_lines import LEAST_BYTES
from assets.raw.readers.read_lines import as_lines

FORMS: dict[str, Callable[[list[bytes]], bytes]] = {
    "commas": lambda lines: b",\n".join(lines) + b",\n",
    "commas, CRLF": lambda lines: b",\r\n".join(lines),
    "array of lines": lambda lines: b"[\n" + b",\n".join(lines) + b"\n]\n",
    "indented array": lambda lines: b"[\n  " + b",\n  ".join(lines) + b"\n]\n",
    "array, brackets beside": lambda lines: b"[" + b",\n".join(lines) + b"]",
    "CR": lambda lines: b"\r".join(lines) + b"\r",
    "CR, no last": lambda lines: b"\r".join(lines),
    "CR and LF": lambda lines: b"\r".join(lines[:2]) + b"\n" + b"\r".join(lines[2:]),
    "RFC 7464": lambda lines: b"".join(b"\x1e" + line + b"\n" for line in lines),
    "RFC 7464 without LF": lambda lines: b"".join(b"\x1e" + line for line in lines),
}
RECORDS = [{"text": f"Grüße {i}: [{{x}},] {'abc ' * (i % 7)}", "n": i, "o": {}} for i in range(9)]
LINES = [json.dumps(record, ensure_ascii=i % 2 == 0).encode() for i, record in enumerate(RECORDS)]
FOUND = [record["text"] for record in RECORDS]


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson.gz", ".json-seq", ".json", ".jsonl.zst"])
@pytest.mark.parametrize("form", FORMS)
def test_each_record_of_a_form_is_a_document(tmp_path: Path, form: str, ending: str) -> None:
    data = FORMS[form](LINES)
    packed = COMPRESS.get(ending.rpartition(".")[2], bytes)(data)

    chunk = read(write(tmp_path, f"a{ending}", packed))

    assert (texts(chunk), chunk.quarantine.height) == (FOUND, 0)
    assert chunk.documents["meta"][3] == '{"n":3,"o":{}}'
    if ending != ".json":
        rows = chunk.documents["origin"].struct.field("row")
        assert [data[row:].lstrip(b"\x1e[ ")[:9] for row in rows] == [line[:9] for line in LINES]


@pytest.mark.parametrize("form", FORMS)
def test_slices_have_the_documents_of_the_whole_file(tmp_path: Path, form: str) -> None:
    file = write(tmp_path, "a.jsonl", FORMS[form]([*LINES[:4], b'{"text":1}', *LINES[4:]]))
    whole = read(file, 1 << 20)

    assert len(whole.documents) == 9
    for part_bytes in (1, 2, 3, 11, 60, 61):
        sliced = chunks(file, part_bytes)
        rows = [row for chunk in sliced for row in chunk.documents.rows()]
        broken = [row for chunk in sliced for row in chunk.quarantine.rows()]
        assert (rows, broken) == (whole.documents.rows(), whole.quarantine.rows())


@pytest.mark.parametrize("form", FORMS)
def test_a_broken_record_of_a_form_is_alone_in_quarantine(tmp_path: Path, form: str) -> None:
    data = FORMS[form]([*LINES[:4], b'{"text": "cut }', *LINES[4:]])

    chunk = read(write(tmp_path, "a.jsonl", data))

    assert texts(chunk) == FOUND
    [row] = chunk.quarantine.rows(named=True)
    unit, _, place = row["position"].partition(" ")
    assert row["raw"].strip(b", \r") == b'{"text": "cut }'
    assert (unit, data[int(place) :].lstrip(b"\x1e [")[:15]) == ("byte", b'{"text": "cut }')


@pytest.mark.parametrize("form", FORMS)
def test_many_lines_of_a_form_are_as_those_read_alone(tmp_path: Path, form: str) -> None:
    many = [json.dumps({"text": f"{i} }},", "id": str(i)}).encode() for i in range(9000)]
    data = FORMS[form](many)
    assert len(data) > LEAST_BYTES  # those are read by the compiled reader

    chunk = read(write(tmp_path, "a.jsonl", data), 1 << 30)

    assert texts(chunk) == [f"{i} }}," for i in range(9000)]
    plain = read(write(tmp_path, "b.jsonl", b"\n".join(many)), 1 << 30)
    assert chunk.documents["meta"].equals(plain.documents["meta"])


@pytest.mark.parametrize(
    "line", [b"[1,2]", b'[{"text":"a"}]', b'{"text":"a"},,', b'{"text":"a"}{}']
)
def test_a_line_of_more_than_one_record_stays_broken(tmp_path: Path, line: bytes) -> None:
    chunk = read(write(tmp_path, "a.jsonl", line + b"\n" + LINES[0]))

    assert texts(chunk) == FOUND[:1]
    assert chunk.quarantine["raw"].to_list() == [line]


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=9)), st.data())
def test_line_ends_depend_on_no_block(blocks: list[bytes], data: st.DataObject) -> None:
    marks = st.lists(st.sampled_from([b"}", b"{", b"\r", b"\n", b"\x1e", b"a"]), max_size=12)
    blocks = [*blocks, *data.draw(marks)]

    whole, pieces = b"".join(as_lines([b"".join(blocks)])), b"".join(as_lines(filter(None, blocks)))

    assert whole == pieces
    assert len(whole) == len(b"".join(blocks))


def test_what_is_before_a_break_stays() -> None:
    def blocks() -> object:
        yield b'{"a":1}\r'
        raise BrokenStream("cut")

    found = list[bytes]()
    with pytest.raises(BrokenStream):
        found.extend(as_lines(blocks()))  # type: ignore[arg-type]
