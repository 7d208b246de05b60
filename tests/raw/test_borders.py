"""Large files are cut into slices by members, frames, rows and paragraphs; the outcome stays."""

import gzip
import random
import struct

from input_files import COMPRESS, as_input, chunks, jsonl, numbers, read, texts, write, zst
from many_examples import many_examples
from prelude import Any, Path, given, pairwise, pytest, st

from assets.raw.readers import borders as finding
from assets.raw.readers import decompress
from assets.raw.readers.formats import find_borders
from assets.raw.readers.read_chunks import plan_slices
from resources.settings.sources import SourceConfig

KIB = 1 << 10
SKIPPABLE = struct.pack("<II", 0x184D2A5E, 5) + b"table"
TWO_MEMBERS = [b'{"text":"a"}\n{"te', b'xt":"b"}\n' * 9]
BLANKS = ["\n", "\n", "\n\n", "\r\n", "\r", "\0", "é"]
PIECES = {
    "jsonl": [*BLANKS, '{"text":"a"}', '{"text":"é\\nb","n":1}', "  ", "oops", "\xff"],
    "csv": [*BLANKS, "text,id\n", "a,1\n", "b", '"', '""', ",", '"é\nf",2\n', "x" * 50],
    "tsv": [*BLANKS, "text\tid\n", "a\t1\n", '"', "\t", ","],
    "txt": [*BLANKS, "a", "b c", " ", "\t\r\n", "\x0b", "\x85", "w" * 50, " " * 50],
}


def options_of(file_format: str) -> dict[str, object]:
    return {"text_documents": "blank_line", "max_record_bytes": 40, "format": file_format}


def borders(path: Path, part_bytes: int, **options: object) -> list[Any]:
    source = SourceConfig.model_validate({"name": "s", "where": "x", **options})
    return find_borders(as_input(path), source, part_bytes)


@st.composite
def contents(draw: st.DrawFn) -> tuple[str, bytes]:
    """Some content of a format, most of it well-formed, and with any byte at times."""
    file_format = draw(st.sampled_from(sorted(PIECES)))
    pieces = draw(st.lists(st.sampled_from(PIECES[file_format]), max_size=40))
    head = draw(st.sampled_from(["", "\ufeff", "text,id\n", "\n\ntext,id\n"]))
    data = (head + "".join(pieces)).encode()
    return file_format, data + draw(st.binary(max_size=3))


@st.composite
def members(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    return [data[i:j] for i, j in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def assert_same_in_slices(path: Path, part_bytes: int, options: dict[str, object]) -> None:
    file = as_input(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decompress, "BLOCK_BYTES", 16)
        patch.setattr(decompress, "LEAST_APART", 1)
        cut, in_one = read(file, part_bytes, **options), read(file, 1 << 30, **options)

    assert cut.documents.to_dicts() == in_one.documents.to_dicts()
    assert cut.quarantine.rows() == in_one.quarantine.rows()
    assert cut.rows_in == in_one.rows_in


@pytest.mark.slow
@many_examples(200)
@given(data=st.data())
def test_documents_and_faults_do_not_depend_on_the_slices(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file_format, content = data.draw(contents())
    compression = data.draw(st.sampled_from(["", "", "gz", "bz2", "xz", "zst"]))
    if compression:
        packed = [COMPRESS[compression](each) for each in data.draw(members(content))]
        padding = SKIPPABLE if compression == "zst" else b""
        content = padding.join(packed)
        if data.draw(st.integers(0, 4)) == 0 and content:
            at = data.draw(st.integers(0, len(content) - 1))
            content = content[:at] + data.draw(st.binary(max_size=2)) + content[at + 1 :]
    path = tmp_path_factory.mktemp("d") / f"a.{file_format}{compression and '.'}{compression}"
    path.write_bytes(content)
    part_bytes = data.draw(st.integers(1, 60))
    table: dict[str, object] = {"separator": None if file_format == "csv" else ","}
    table |= data.draw(st.sampled_from([{"quoting": "none"}, {"column_names": ["text", "id"]}]))
    is_table = file_format in ("csv", "tsv") and data.draw(st.booleans())

    assert_same_in_slices(path, part_bytes, options_of(file_format) | (table if is_table else {}))


ROWS = b"".join(b"row %d,%d\n" % (i, i) for i in range(20))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b'text,id\n"x\ny"b,1\n' + ROWS),  # broken behind a closing quote
        ("a.csv", b'text,id\na\rb,1\n"c\rd",2\n' + ROWS),
        ("a.csv", b'text,id\na,\r"a\nb"\n' + ROWS),
        ("a.csv", b'text,id\n"a\n' + ROWS + b'b",3\n' + ROWS),  # above max_record_bytes
        ("a.csv", b"\xef\xbb\xbftext,id\n\n\r\n\n" + ROWS),
        ("a.csv", b"text,body\n" + ROWS + b'"unclosed,\n' + ROWS),
        ("a.csv", b"body,id\n" + ROWS),  # no text: one fault, not one per slice
        ("a.txt", b"a\n" + b" " * 50 + b"\nb\n\nc\n\nd\n\ne"),  # too long to count as blank
        ("a.txt", b"\xef\xbb\xbf\n\na\n\nb\n \nc"),
        ("a.jsonl.gz", b"".join(gzip.compress(each, mtime=0) for each in TWO_MEMBERS)),
        ("a.jsonl.zst", zst(jsonl("a")) + SKIPPABLE + zst(jsonl("b", "c")) + zst(jsonl("d"))),
    ],
)
@pytest.mark.parametrize("part_bytes", [1, 9, 30, 70])
def test_awkward_contents_do_not_depend_on_the_slices(
    tmp_path: Path, name: str, content: bytes, part_bytes: int
) -> None:
    (tmp_path / name).write_bytes(content)
    file_format = name.split(".")[1]

    assert_same_in_slices(tmp_path / name, part_bytes, options_of(file_format))


@pytest.mark.parametrize("compression", sorted(COMPRESS))
def test_a_file_of_many_members_is_cut_behind_every_part(tmp_path: Path, compression: str) -> None:
    random_texts = [random.Random(i).randbytes(100 * KIB).hex() for i in range(10)]
    lines = jsonl(*random_texts)
    middle = len(lines) // 20
    packed = [lines[i * middle : (i + 1) * middle] for i in range(21)]
    content = b"".join(COMPRESS[compression](each) for each in packed)
    file = write(tmp_path, f"a.jsonl.{compression}", content)

    found = borders(file.path, 300 * KIB)

    sizes = [b.offset - a.offset for a, b in pairwise(found)]
    assert found[-1].offset == len(lines)
    assert len(found) == 5
    assert all(300 * KIB <= size < 700 * KIB for size in sizes[:-1])
    assert texts(read(file, 300 * KIB)) == random_texts


def test_a_file_of_one_member_is_not_decompressed_for_its_borders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = jsonl(*numbers(1000))
    files = [write(tmp_path, f"a.jsonl.{c}", pack(data)) for c, pack in COMPRESS.items()]
    monkeypatch.delattr(finding, "placed_blocks")

    assert [borders(file.path, 100) for file in files] == [[]] * len(files)


def test_a_damaged_file_is_read_as_one_stream(tmp_path: Path) -> None:
    packed = [gzip.compress(jsonl(value)) for value in numbers(9)]
    packed[5] = packed[5][:-8] + bytes(8)
    file = write(tmp_path, "a.jsonl.gz", b"".join(packed))

    assert borders(file.path, 30) == []


def test_bytes_that_look_like_a_member_do_not_cut_one(tmp_path: Path) -> None:
    inner = gzip.compress(jsonl("inner"))
    stored = gzip.compress(b'{"text":"' + inner.hex().encode() + b'"}\n' + inner, compresslevel=0)
    file = write(tmp_path, "a.jsonl.gz", stored)

    assert inner in stored
    assert len(borders(file.path, 1)) == 0


def test_a_slice_whose_borders_are_far_apart_is_read_in_chunks(tmp_path: Path) -> None:
    packed = [gzip.compress(jsonl(*numbers(n))) for n in (1, 300)]
    file = write(tmp_path, "a.jsonl.gz", b"".join(packed))
    [*_, last] = plan_slices(file, 20, borders(file.path, 20))

    assert last.stop - last.start > 5000
    assert len(chunks(file, 20)) > 100
