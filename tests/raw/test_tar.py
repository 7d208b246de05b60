"""Tar archives: samples of WebDataset, and archives that are hostile or damaged."""

import io
import tarfile

from format_folders import peer
from input_files import COMPRESS, chunks, numbers, read, texts, write
from prelude import Path, given, json, pairwise, pytest, settings, st

from assets.raw.readers.decompress import BlockStream
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_tar import read_tar, tar_members
from resources.settings.sources import SourceConfig

Members = dict[str, bytes]


def tar(members: Members, form: int = tarfile.PAX_FORMAT) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as archive:
        for name, data in members.items():
            archive.addfile(info(name, len(data)), io.BytesIO(data))
    return sink.getvalue()


def info(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = size, kind, "/etc/passwd"
    return member


def special(*members: tarfile.TarInfo) -> bytes:
    return b"".join(member.tobuf() for member in members) + tar({"a.txt": b"a"})


def test_the_members_of_a_key_are_one_document(tmp_path: Path) -> None:
    members = {
        "d/1.txt": b"one",
        "d/1.json": b'{"url":"https://example.org/1","n":1}',
        "d/1.cls": b"7\n",
        "d/2.v.json": b"{}",
        "d/3.json": b'{"text":"three","lang":"en"}',
        "d/4.HTML": b"<main><p>A page of text.</p></main>",
        "d/5.seg.png": b"\x89PNG",
    }

    chunk = read(write(tmp_path, "a.tar", tar(members)))

    assert texts(chunk) == ["one", "three", "A page of text."]
    assert chunk.documents["meta"].to_list() == [
        '{"member":"d/1.txt","url":"https://example.org/1","n":1,"cls":7}',
        '{"member":"d/3.json"}',
        '{"member":"d/4.HTML"}',
    ]
    assert chunk.documents["url"].to_list() == ["https://example.org/1", None, None]
    assert chunk.documents["origin"].struct.field("row").to_list() == [0, 4, 5]
    assert chunk.documents["doc_id"][0] == "41e978c6074df6bd344538fdcaa5d2a6"
    assert (chunk.rows_in, chunk.left_out) == (5, {"other_member": 2})


def test_a_field_that_two_members_of_a_sample_have_stays_twice(tmp_path: Path) -> None:
    members = {
        "1.json": b'{"text":"of json","text_2":"x","cls":"a","member":"m","title":"t"}',
        "1.txt": b"of txt",
        "1.cls": b"b",
        "2.json": b'{"text":"same","title":"of json"}',
        "2.md": b"---\ntitle: of md\n---\nsame",
    }

    chunk = read(write(tmp_path, "a.tar", tar(members)))

    assert texts(chunk) == ["of txt", "same"]
    assert [json.loads(meta) for meta in chunk.documents["meta"]] == [
        {
            **{"text_2": "x", "text_3": "of json", "cls_2": "a", "cls": "b"},
            **{"member": "m", "member_2": "1.json", "title": "t"},
        },
        {"member": "2.json", "title_2": "of json", "title": "of md"},
    ]


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tgz", "tar.zst", "tar.bz2", "tar.xz"])
def test_a_packed_tar_is_read_alike(tmp_path: Path, suffix: str) -> None:
    pack = COMPRESS.get(suffix.rpartition(".")[2].replace("tgz", "gz"), bytes)
    assert texts(read(write(tmp_path, f"a.{suffix}", pack(tar({"1.txt": b"one"}))))) == ["one"]


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_members_are_those_of_tarfile(form: int) -> None:
    long = {} if form == tarfile.USTAR_FORMAT else {f"{'é' * 200}.txt": b"x" * 1000}
    members = {"a.txt": b"", f"{'d' * 90}/{'n' * 80}.txt": b"y" * 512, **long, "b": b"z" * 513}
    data = tar(members, form)

    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        expected = [(each.name, each.size) for each in archive]

    found = [(each.name, each.num_bytes) for each in tar_members(BlockStream(iter([data])))]
    assert found == expected == [(name, len(text)) for name, text in members.items()]


def test_samples_are_those_of_webdataset(tmp_path: Path) -> None:
    names = ["a/0.txt", "a/0.json", "a/1.json", "a/1.txt", "b.c/1.txt", "b.c/1.TXT2", "b.c/2.txt"]
    members = {
        name: json.dumps({"n": name}).encode() if name.endswith("json") else name.encode()
        for name in names
    }
    file = write(tmp_path, "a.tar", tar(members))
    tariterators = peer("webdataset.tariterators")

    with file.path.open("rb") as stream:
        samples = tariterators.group_by_keys(
            tariterators.tar_file_expander([{"url": "a.tar", "stream": stream}])
        )
        expected = [each["txt"].decode() for each in samples if "txt" in each]

    assert texts(read(file)) == expected


@pytest.mark.parametrize("suffix", ["tar", "tar.gz", "tar.zst"])
def test_slices_of_a_tar_have_the_documents_of_the_whole(tmp_path: Path, suffix: str) -> None:
    members: Members = {}
    for i, text in enumerate(numbers(60, width=300)):
        members |= {f"{i:04d}.json": b'{"n":%d}' % i, f"{i:04d}.txt": text.encode()}
        members |= {f"{i:04d}.png": b"\0" * 100}
    data = tar(members)
    pack = COMPRESS.get(suffix.rpartition(".")[2], bytes)
    packed = b"".join(pack(data[i : i + 4000]) for i in range(0, len(data), 4000))
    file = write(tmp_path, f"a.{suffix}", packed)

    whole, sliced = read(file, 1 << 30), chunks(file, 5000)

    assert len(sliced) > 4  # frames of zst that are smaller than 64 KiB are told together
    assert [row for each in sliced for row in each.documents.rows()] == whole.documents.rows()
    assert len(whole.documents) == 60 and whole.left_out == {"other_member": 60}
    assert sum(each.left_out["other_member"] for each in sliced) == 60


def test_links_devices_and_archives_are_left_out_by_reason(tmp_path: Path) -> None:
    kinds = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE]
    data = special(*(info(f"m{i}.txt", kind=kind) for i, kind in enumerate(kinds)))
    more = tar({"in.tar": tar({"x.txt": b"x"}), "b.tar.gz": b"", ".hid.txt": b"h", "no": b"n"})

    chunk = read(write(tmp_path, "a.tar", data + more))

    assert texts(chunk) == ["a"]
    expected = {"link_member": 2, "device_member": 2, "nested_archive": 2, "other_member": 2}
    assert chunk.left_out == expected


def test_dots_in_names_belong_to_the_key_unless_they_end_in_a_format(tmp_path: Path) -> None:
    members = {
        **{"22.05.txt": b"one", "22.05.json": b'{"n":1}', "22.05.png": b"-"},
        **{"Track 2.0 (clean).md": b"two", "v1.2/3.txt": b"three", "a.b.json": b'{"text":"four"}'},
        **{"5.jpg": b"-", "5.info.json": b"[1]", "5.txt": b"five", "5.v.json": b'{"v":1}'},
        **{"notes.v2.rst": b"six", "b.jsonl.gz": b"seven", ".hidden.txt": b"eight"},
    }

    chunk = read(write(tmp_path, "a.tar", tar(members)))

    assert texts(chunk) == ["one", "two", "three", "four", "five"]
    assert json.loads(chunk.documents["meta"][0]) == {"member": "22.05.txt", "n": 1}
    assert chunk.left_out == {"other_member": 6, "nested_archive": 1}
    assert chunk.unread == {
        "a.tar: notes.v2.rst": "other_member",
        "a.tar: b.jsonl.gz": "nested_archive",
    }
    assert (chunk.num_unread, chunk.rows_in) == (2, 12)
    assert chunk.containers == {
        "a.tar": {"documents": 5, "other_member": 6, "nested_archive": 1},
    }


@given(st.lists(st.sampled_from(["a.txt", "b.c.txt", "b.c.json", "b.png", "d.e.json", "f"])))
def test_every_member_is_read_or_left_out(names: list[str]) -> None:
    sink, data = io.BytesIO(), b'{"n":1}'
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for name in names:
            archive.addfile(info(name, len(data)), io.BytesIO(data))
    file = InputFile("a", "a", "tar", None, 0, "", content=sink.getvalue())
    source = SourceConfig.model_validate({"name": "s", "where": "x"})

    records = list(read_tar(file, source))

    read_names = [name for name in names if name not in ("b.png", "f")]
    pairs = sum({*pair} == {"b.c.txt", "b.c.json"} for pair in pairwise(read_names))
    assert len(names) - pairs <= len(records) <= len(names)


def damaged(members: Members, place: int) -> bytes:
    data = bytearray(tar(members))
    data[place] ^= 1
    return bytes(data)


TWO: Members = {"1.txt": b"a" * 600, "2.txt": b"b"}
HUGE = info("PaxHeader", 1 << 50, b"x").tobuf(tarfile.GNU_FORMAT) + b"\0" * 2048
NO_HEADER = "no valid tar header at this place"
CASES: list[tuple[bytes, list[str], list[str], list[str]]] = [
    (
        *(tar({name: b"evil", "b.txt": b"b"}), ["b"], ["member 0"]),
        [f"member {name!r} {fault}"],
    )
    for name, fault in (
        ("../../x.txt", "leads out of its archive"),
        ("a/..\\..\\x.txt", "leads out of its archive"),
        ("/etc/x.txt", "has an absolute name"),
        ("C:\\x.txt", "has an absolute name"),
    )
]
CASES += [
    (
        *(tar({"1.txt": b"one", "1.md": b"two", "2.txt": b"three"}), ["one", "three"]),
        *(["member 1"], ["member '1.md': its sample has a text member before"]),
    ),
    (
        tar({"1.txt": b"one"}) + tar({"2.txt": b"two"}) + tar({"1.txt": b"3"}),
        ["one", "two", "3"],
        [],
        [],
    ),
    (damaged({**TWO, "3.txt": b"c"}, 1536 + 20), ["a" * 600, "c"], ["member 1"], [NO_HEADER]),
    (tar(TWO)[:700], [], ["member 0"], ["tar member ends after 188 of 600 bytes (truncated)"]),
    (
        *(tar(TWO)[:1536], ["a" * 600], ["member 1"]),
        ["tar archive ends without its end mark (truncated)"],
    ),
    (tar({"1.txt": b"a", "1.json": b"[1]", "2.txt": b"b"}), ["b"], ["member 0"], ["Expected `obj"]),
    (tar({"1.txt": b"a"})[:1024] + HUGE, ["a"], ["member 1"], ["tar archive ends without its end"]),
]


@pytest.mark.parametrize(("data", "kept", "places", "errors"), CASES)
def test_a_fault_costs_its_member(
    tmp_path: Path, data: bytes, kept: list[str], places: list[str], errors: list[str]
) -> None:
    chunk = read(write(tmp_path, "a.tar", data))

    assert texts(chunk) == kept and chunk.documents["doc_id"].is_unique().all()
    assert bool(chunk.quarantine.height) == bool(places)
    assert chunk.quarantine["position"].to_list()[: len(places)] == places
    for found, expected in zip(chunk.quarantine["error"], errors, strict=False):
        assert found.startswith(expected)


def test_a_large_member_is_not_held(tmp_path: Path) -> None:
    chunk = read(write(tmp_path, "a.tar", tar(TWO)), max_record_bytes=500)

    assert texts(chunk) == ["b"]
    assert "above max_record_bytes=500" in chunk.quarantine["error"][0]


def test_an_extended_header_above_the_bound_is_not_held(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = info("ü.txt", 1)
        member.pax_headers = {"comment": "x" * (2 << 20)}
        archive.addfile(member, io.BytesIO(b"a"))

    chunk = read(write(tmp_path, "a.tar", sink.getvalue()))

    assert chunk.documents["meta"].to_list() == ['{"member":"?.txt"}']


@settings(max_examples=60)
@given(st.binary(max_size=2000), st.integers(0, 5000), st.integers(0, 7))
def test_no_damage_of_a_tar_ends_the_reading(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, place: int, bit: int
) -> None:
    data = bytearray(tar({"1.txt": b"a" * 600, "1.json": b"{}", "ü" * 120 + ".txt": b"b"}))
    data[place % len(data)] ^= 1 << bit
    folder = tmp_path_factory.mktemp("fuzz")
    for name, each in (("a", data), ("b", data[: place % len(data)]), ("c", junk)):
        read(write(folder, f"{name}.tar", bytes(each)), 600)
