"""Zip archives: members of any text format, and archives that are hostile or damaged."""

import gzip
import io
import zipfile

from input_files import chunks, jsonl, numbers, read, texts, write
from prelude import Path, given, json, pytest, settings, st

Members = dict[str, bytes]


def packed(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return sink.getvalue()


def test_each_member_of_a_text_format_is_read_as_its_file(tmp_path: Path) -> None:
    members = {
        "d/": b"",
        "d/a.jsonl": jsonl("one", "two"),
        "d/b.csv": b"id,text\n1,three\n",
        "d/c.txt": b"four",
        "d/d.md": b"---\ntitle: T\n---\n# five\n",
        "d/e.html": b"<main><p>A page of text.</p></main>",
        "d/f.json": b'[{"text":"six"}]',
        "d/g.tsv": b"text\nseven\n",
        "d/h.png": b"\x89PNG",
    }

    chunk = read(write(tmp_path, "a.zip", packed(members)))

    found = ["one", "two", "three", "four", "# five\n", "A page of text.", "six", "seven"]
    assert texts(chunk) == found
    assert chunk.documents["meta"].to_list()[:5] == [
        '{"member":"d/a.jsonl"}',
        '{"member":"d/a.jsonl"}',
        '{"member":"d/b.csv","id":"1"}',
        '{"member":"d/c.txt"}',
        '{"member":"d/d.md","title":"T"}',
    ]
    rows = chunk.documents["origin"].struct.field("row").to_list()
    assert rows[:4] == [10**12, 10**12 + 16, 2 * 10**12, 3 * 10**12]
    assert chunk.documents["doc_id"][0] == "89a29855c5055fec7ffd6ce8e42f23fe"
    assert (chunk.rows_in, chunk.left_out) == (9, {"other_member": 1})


def test_slices_of_a_zip_have_the_documents_of_the_whole(tmp_path: Path) -> None:
    members = {f"{i:03d}.jsonl": jsonl(*numbers(5, width=300)) + b"{" for i in range(40)}
    file = write(tmp_path, "a.zip", packed(members))

    whole, sliced = read(file, 1 << 30), chunks(file, 5000)

    assert len(sliced) > 8
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()
    assert [row for each in sliced for row in each.quarantine.rows()] == whole.quarantine.rows()
    assert (len(whole.documents), len(whole.quarantine)) == (200, 40)
    assert whole.quarantine["position"][1] == "member 1, row 1670"


@pytest.mark.parametrize("name", ["../../x.txt", "/etc/x.txt", "..\\x.txt"])
def test_a_member_that_leads_out_goes_to_quarantine(tmp_path: Path, name: str) -> None:
    chunk = read(write(tmp_path, "a.zip", packed({name: b"evil", "b.txt": b"b"})))

    assert texts(chunk) == ["b"]
    assert "archive" in chunk.quarantine["error"][0] or "absolute" in chunk.quarantine["error"][0]
    assert not (tmp_path.parent / "x.txt").exists()


def test_links_and_archives_are_left_out_by_reason(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        link = zipfile.ZipInfo("link.txt")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("in.zip", packed({"x.txt": b"x"}))
        archive.writestr("a.jsonl.gz", b"")
        archive.writestr("b.txt", b"b")

    chunk = read(write(tmp_path, "a.zip", sink.getvalue()))

    assert texts(chunk) == ["b"]
    assert chunk.left_out == {"link_member": 1, "nested_archive": 2}


def edited(*edits: tuple[bytes, int, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Pack two members, with other bytes at places behind the first, or "last", of some marks."""
    data = bytearray(packed({"a.txt": b"x" * 1000, "b.txt": b"b"}, method))
    for mark, place, new in edits:
        at = (data.rindex(mark) if place == 42 else data.index(mark)) + place
        data[at : at + len(new)] = new
    return bytes(data)


HEADER, ENTRY = b"PK\3\4", b"PK\1\2"  # of a member, and of its entry in the directory
TEN, FLAG = (10).to_bytes(4, "little"), b"\1"
UNPACK, PASSWORD = "Unpack the file to read it anyway.", "Unpack the archive with its password"
DAMAGED = [
    (packed({"a.txt": b"\0" * (100 << 20), "b.txt": b"b"}), ["b"], "decompression bomb", UNPACK),
    (edited((HEADER, 22, TEN), (ENTRY, 24, TEN)), ["b"], "Bad CRC-32", ""),
    (edited((ENTRY, 42, bytes(4))), [], "members overlap", "Do not read the archive"),
    (edited((HEADER, 6, FLAG), (ENTRY, 8, FLAG)), ["b"], "'a.txt' cannot be read: it is", PASSWORD),
    (edited(method=zipfile.ZIP_LZMA), [], "compression method 14 is not supported", "Write the a"),
    (edited((b"xxxx", 0, b"y"), method=zipfile.ZIP_STORED), ["b"], "Bad CRC-32", ""),
    (edited()[:-10], [], "zip archive cannot be opened: ", "Get the file again, or write it again"),
    (gzip.compress(edited()), [], "this is gzip", "Add .gz to the file's name"),
]


@pytest.mark.parametrize(("data", "kept", "error", "step"), DAMAGED)
def test_damage_costs_a_member_or_the_archive(
    tmp_path: Path, data: bytes, kept: list[str], error: str, step: str
) -> None:
    chunk = read(write(tmp_path, "a.zip", data), max_record_bytes=1 << 30)

    assert texts(chunk) == kept
    assert error in chunk.quarantine["error"][0]
    assert chunk.quarantine["next_step"][0].startswith(step)
    assert chunk.rows_in == len(kept) + len(chunk.quarantine)


def test_a_compressed_zip_says_what_to_do(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.zip.gz", b"\x1f\x8b"))
    assert "unpack the .gz" in chunk.quarantine["error"][0]


def test_names_that_come_twice_are_two_documents(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr("a.txt", "one")
            archive.writestr("a.txt", "two")

    chunk = read(write(tmp_path, "a.zip", sink.getvalue()))

    assert texts(chunk) == ["one", "two"]
    assert chunk.documents["doc_id"].n_unique() == 2


@settings(max_examples=60)
@given(st.binary(max_size=500), st.integers(0, 5000), st.integers(0, 7))
def test_no_damage_of_a_zip_ends_the_reading(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, bit: int
) -> None:
    member = json.dumps({"text": "a" * 100}).encode() + b"\n"
    data = bytearray(packed({"a.jsonl": member, "b.txt": b"b" * 50, "c.csv": b"text\nc\n"}))
    data[place % len(data)] ^= 1 << bit
    folder = tmp_path_factory.mktemp("fuzz")
    mixed = data[: place % len(data)] + junk + data[place % len(data) :]
    for name, each in (("a", data), ("b", data[: place % len(data)]), ("c", junk), ("d", mixed)):
        read(write(folder, f"{name}.zip", bytes(each)), 100)
