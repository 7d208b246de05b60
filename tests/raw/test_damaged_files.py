"""Files that are cut, damaged or no text: what is kept of them, and what is said."""

import bz2
import gzip
import lzma
import zlib
from contextlib import suppress
from random import Random

import msgspec
from backports import zstd
from builders import Build, open_corpus, published, write_corpus
from input_files import COMPRESS, as_input, jsonl, numbers, read, texts, write, zst
from prelude import Any, Callable, Path, json, pytest

from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers import decompress
from assets.raw.readers.decompress import Damage, FileFault
from assets.raw.readers.file_content import zstd_window
from resources.settings.sources import SourceConfig

RECORDS = 800
RANDOM = Random(3)
VALUES = [RANDOM.randbytes(300).hex() for _ in range(RECORDS)]


def decodable(data: bytes, suffix: str) -> bytes:
    """The bytes that Python's own decoder gives, fed byte by byte."""
    make: dict[str, Callable[[], Any]] = {
        "gz": lambda: zlib.decompressobj(31),
        "bz2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    decoder, good = make[suffix](), list[bytes]()
    with suppress(zlib.error, OSError, lzma.LZMAError):
        good.extend(decoder.decompress(bytes([byte])) for byte in data)
    return b"".join(good)


@pytest.mark.parametrize("last", [8, 4, 1])
def test_a_wrong_gzip_checksum_or_length_costs_no_record(tmp_path: Path, last: int) -> None:
    data = bytearray(gzip.compress(jsonl(*VALUES), mtime=0))
    data[-last] ^= 1

    chunk = read(write(tmp_path, "a.jsonl.gz", bytes(data)))

    assert texts(chunk) == VALUES
    assert "checksum" in chunk.quarantine["error"].item()
    assert chunk.quarantine["raw"].item() == b""


def test_members_behind_a_wrong_checksum_are_read(tmp_path: Path) -> None:
    members = [
        bytearray(gzip.compress(jsonl(*VALUES[i : i + 100]), mtime=0))
        for i in range(0, RECORDS, 100)
    ]
    members[1][-8] ^= 1
    members[2][-4] ^= 1

    chunk = read(write(tmp_path, "a.jsonl.gz", b"".join(members)))

    assert (texts(chunk), chunk.quarantine.height) == (VALUES, 1)
    end_of_second = len(members[0] + members[1])
    assert f"near byte {end_of_second:,} of the file" in chunk.quarantine["error"].item()


def test_a_last_line_without_newline_is_kept_where_the_checksum_is_wrong(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(jsonl("a", "b").rstrip()))
    data[-8] ^= 1

    assert texts(read(write(tmp_path, "a.jsonl.gz", bytes(data)))) == ["a", "b"]


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("fault", ["cut", "flipped"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_all_records_that_decode_are_kept(
    tmp_path: Path, suffix: str, fault: str, share: float
) -> None:
    whole = COMPRESS[suffix](jsonl(*VALUES))
    at = int(len(whole) * share)
    flipped = whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :]
    data = whole[:at] if fault == "cut" else flipped

    chunk = read(write(tmp_path, f"a.jsonl.{suffix}", data))

    good = decodable(data, suffix).split(b"\n")[:-1]
    assert f"{suffix} stream is broken" in chunk.quarantine["error"][-1]
    assert texts(chunk) == [text for text in map(text_of, good) if text is not None]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_whole_blocks_of_a_cut_zst_frame_are_kept(tmp_path: Path, share: float) -> None:
    whole = jsonl(*VALUES)
    packed = zst(whole)

    found = texts(read(write(tmp_path, "a.jsonl.zst", packed[: int(len(packed) * share)])))

    blocks = int(len(whole) * share) // (128 << 10)  # RFC 8878: a block holds 128 KiB at most
    assert found == VALUES[: len(found)]
    assert len(found) >= blocks * (128 << 10) // len(jsonl(VALUES[0])) - 1 > 0


def text_of(line: bytes) -> str | None:
    try:
        return str(json.loads(line)["text"])
    except (ValueError, KeyError, TypeError):
        return None


def test_frames_before_a_damaged_zst_frame_are_kept(tmp_path: Path) -> None:
    first, second = zst(jsonl(*VALUES[:300])), bytearray(zst(jsonl(*VALUES[300:])))
    second[4] |= 8  # a reserved bit of the frame's header

    chunk = read(write(tmp_path, "a.jsonl.zst", first + bytes(second)))

    assert (texts(chunk), chunk.quarantine.height) == (VALUES[:300], 1)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.jsonl", gzip.compress(jsonl("a"), mtime=0), "this is gzip: add .gz to the file's name"),
        ("a.csv", zst(b"text\na\n"), "this is zstd: add .zst to the file's name"),
        ("a.txt", bz2.compress(b"a"), "this is bzip2: add .bz2 to the file's name"),
        ("a.json", lzma.compress(b"[]"), "this is xz: add .xz to the file's name"),
        (
            "a.jsonl.gz",
            zst(jsonl("a")),
            "this is zstd: add .zst to the file's name in place of .gz",
        ),
        ("a.jsonl.gz", gzip.compress(gzip.compress(b"{}", mtime=0), mtime=0), "this is gzip"),
        ("a.jsonl.gz", jsonl("a"), "this is plain JSON: remove .gz from the file's name"),
        (
            "a.txt.xz",
            b"plain words \xc3\xa4",
            "this is plain text: remove .xz from the file's name",
        ),
        ("a.parquet", gzip.compress(b"x", mtime=0), "this is gzip"),
        ("a.jsonl", jsonl("a", "b").decode().encode("utf-16"), "this is UTF-16: convert it with"),
        ("a.csv", "text\nwords\n".encode("utf-16-le"), "iconv -f UTF-16LE -t UTF-8"),
        ("a.txt", "some words".encode("utf-16-be"), "iconv -f UTF-16BE -t UTF-8"),
        ("a.txt", "some words".encode("utf-16"), "iconv -f UTF-16 -t UTF-8"),
        ("a.html", "<p>some words".encode("utf-32"), "iconv -f UTF-32 -t UTF-8"),
        ("a.json.gz", gzip.compress("[]".encode("utf-32"), mtime=0), "this is UTF-32"),
    ],
)
def test_a_file_of_another_kind_is_one_row_that_says_what_it_is(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    chunk = read(write(tmp_path, name, data), part_bytes=16)

    assert (chunk.documents.height, chunk.quarantine.height) == (0, 1)
    assert said in chunk.quarantine["error"].item()
    remedy = chunk.quarantine["error"].item().split(": ")[-1]
    assert chunk.quarantine["next_step"].item() == f"{remedy[0].upper()}{remedy[1:]}."


LFS = "version https://git-lfs.{}/spec/v1\noid sha256:{}\nsize 12345\n".format(
    "github.com", "4d7a2146" * 8
).encode()
PAGE = b"<!-- a --> <!-- b -->\n<!DOCTYPE html><html><head><title>Sign in:\n now</title></head>"
DENIED = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>AccessDenied</Code></Error>'
ALL = [
    "jsonl",
    "json",
    "csv",
    "parquet",
    "arrow",
    "warc",
    "wet",
    "tar",
    "zip",
    "jsonl.gz",
    "tsv.zst",
]


@pytest.mark.parametrize("name", [*ALL, "txt", "md", "html", "txt.xz"])
def test_a_pointer_is_named_for_what_it_is(tmp_path: Path, name: str) -> None:
    for data, tool in ((LFS, "git lfs pull"), (b"/annex/objects/SHA256E-s1--a.gz\n", "annex get")):
        chunk = read(write(tmp_path, f"a.{name}", data), part_bytes=16)

        assert (chunk.documents.height, chunk.quarantine.height) == (0, 1)
        assert "pointer" in chunk.quarantine["error"].item()
        assert tool in chunk.quarantine["next_step"].item()


@pytest.mark.parametrize("name", ALL)
def test_a_saved_page_is_named_for_what_it_is(tmp_path: Path, name: str) -> None:
    saved = (
        (PAGE, "an HTML page", "(its title is 'Sign in: now')"),
        (DENIED, "store", "AccessDenied"),
    )
    for data, kind, title in saved:
        chunk = read(write(tmp_path, f"a.{name}", data), part_bytes=16)

        [error] = chunk.quarantine["error"]
        assert (chunk.documents.height, kind in error, title in error) == (0, True, True)
        assert chunk.quarantine["next_step"].item().startswith("Get the file again from its own")


def test_a_page_saved_as_text_is_refused_if_it_is_about_an_error(tmp_path: Path) -> None:
    ordinary = b"<!doctype html><html><title>How bees fly</title><p>Bees fly."
    for name in ("a.txt", "a.md"):
        assert read(write(tmp_path, name, ordinary)).documents.height == 1
        assert read(write(tmp_path, name, PAGE)).quarantine.height == 1
    assert read(write(tmp_path, "a.html", PAGE + b"<p>Please sign in.")).quarantine.is_empty()
    assert read(write(tmp_path, "b.txt", LFS * 10)).documents.height == 1


def test_a_window_of_two_gigabytes_is_named_with_the_command_that_helps(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd\x00" + bytes([(31 - 10) << 3]) + (2 << 3 | 1).to_bytes(3, "little")

    error = read(write(tmp_path, "a.jsonl.zst", frame + b"{}")).quarantine["error"].item()

    assert "this window is 2,147,483,648 bytes, above 134,217,728" in error
    assert "set `zstd_window_log: 31` of the source if you trust the file" in error
    assert "zstd -dc --long=31 a.jsonl.zst | zstd -o new-a.jsonl.zst" in error


def long_window(data: bytes, log: int = 28) -> bytes:
    """Compress to a frame that needs a window of 2 to the power of `log`, and does not say less."""
    options = {
        zstd.CompressionParameter.window_log: log,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    packer = zstd.ZstdCompressor(options=options)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("part_bytes", [1 << 20, 300])
def test_long_windows_are_read_where_the_source_allows_them(
    tmp_path: Path, part_bytes: int
) -> None:
    data = b"".join(long_window(jsonl(*VALUES[i : i + 100])) for i in range(0, 300, 100))
    refused = read(write(tmp_path, "a.jsonl.zst", data), part_bytes)
    write(tmp_path, "b.jsonl.zst", data[:-9])
    source = SourceConfig(name="s", where=("*.zst",), zstd_window_log=28)
    files = find_inputs(source, tmp_path, tmp_path / "store/d").files

    found, cut = (read(file, part_bytes) for file in files)

    assert "Set `zstd_window_log: 28` of the source" in refused.quarantine["next_step"].item()
    assert (texts(found), found.quarantine.height) == (VALUES[:300], 0)
    assert texts(cut)[:200] == VALUES[:200]
    assert "truncated" in cut.quarantine["error"].item()


def test_a_frame_of_one_segment_has_the_window_of_its_content() -> None:
    assert zstd_window(b"\x28\xb5\x2f\xfd\xa0" + (3 << 28).to_bytes(4, "little")) == 3 << 28
    assert zstd_window(zstd.compress(b"short")) == 5


def test_short_texts_are_not_taken_for_another_encoding(tmp_path: Path) -> None:
    for data in (b"", b"a", b"\0", b"ab\0", "äö".encode(), b"BZh9 is a magic number", b"\x1f"):
        assert read(write(tmp_path, "a.txt", data)).quarantine.is_empty()


def test_quarantine_has_line_numbers_in_every_slice_of_a_file(tmp_path: Path) -> None:
    lines = [json.dumps({"text": "x" * (i % 7)}) if i % 5 else f"broken {i}" for i in range(1, 60)]
    lines[20] = ""
    file = write(tmp_path, "a.jsonl", "\n".join(lines) + "\n")

    for part_bytes in (10_000, 97, 31):
        chunk = read(file, part_bytes=part_bytes)
        assert chunk.quarantine["line"].to_list() == list(range(5, 60, 5))


def test_line_numbers_count_lines_and_not_rows_of_csv_and_text(tmp_path: Path) -> None:
    table = write(tmp_path, "a.csv", 'text,n\n"two\nlines",1\n\nshort\n"open,2\nend,3\nx\n')
    paragraphs = write(tmp_path, "a.txt", b"one\n\n\ntwo\n\xff\n\nthree")
    as_lines = write(tmp_path, "a.json", b'{"text":"a"}\n\n{"text":"b"}\noops\n')

    assert read(table).quarantine["line"].to_list() == [5, 6, 8]
    assert read(paragraphs, text_documents="blank_line").quarantine["line"].to_list() == [4]
    assert read(as_lines).quarantine["line"].to_list() == [4]


def test_formats_without_lines_have_no_line_numbers(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a.json", b'[{"text":1}]')).quarantine["line"].to_list() == [None]


def test_every_fault_has_a_next_step(tmp_path: Path) -> None:
    lines = b'{"text":1}\n{"text":"\xff"}\n{"text":"\\ud800"}\n{"text"\n{"body":"a"}\n'
    steps = read(write(tmp_path, "a.jsonl", lines)).quarantine["next_step"]

    assert len(steps) == 5 and steps.str.ends_with(".").all()
    assert "Convert the file to UTF-8." in steps.to_list()


# The stage


def damaged_corpus(folder: Path, **keys: object) -> Any:
    """A corpus whose notes have a sound file and a larger one with a wrong checksum."""
    config = write_corpus(folder, part_bytes=8192)
    data = bytearray(gzip.compress(jsonl(*numbers(300, width=100))))
    data[-8] ^= 1
    (folder / "input/notes/z.jsonl.gz").write_bytes(data)
    settings = msgspec.yaml.decode(config.read_bytes())
    settings["sources"][1] |= keys
    config.write_bytes(msgspec.yaml.encode(settings))
    return open_corpus(config)


def test_rows_of_a_damaged_file_say_so_and_others_keep_their_bytes(
    tmp_path: Path, build: Build
) -> None:
    corpus = damaged_corpus(tmp_path)
    build(corpus, "raw")
    documents, manifest = published(corpus, "notes"), corpus.store.newest("raw", "notes")

    is_damaged = documents["meta"].str.contains('"damaged":true')
    files = documents["origin"].struct.field("file")
    assert (is_damaged == files.str.ends_with("z.jsonl.gz")).all()
    assert (is_damaged.sum(), (~is_damaged).sum()) == (300, 41)
    assert len([part for part in manifest.parts if part.stats.numbers.get("faulty_files")]) > 3
    assert manifest.stats.numbers["faulty_files"] == {"input/notes/z.jsonl.gz": 300}
    assert not list(corpus.store.root.rglob("*tmp-*"))


def test_on_damage_drop_leaves_out_every_row_of_the_file(tmp_path: Path, build: Build) -> None:
    corpus = damaged_corpus(tmp_path, on_damage="drop")
    build(corpus, "raw")
    documents, manifest = published(corpus, "notes"), corpus.store.newest("raw", "notes")

    assert documents.height == 41
    assert manifest.stats.rejected == {"damaged_file": 300}
    assert manifest.stats.quarantined == 1


def test_a_mark_follows_the_fields_of_the_record(tmp_path: Path) -> None:
    from assets.raw.part_files import mark_damaged

    lines = b'{"text":"a"}\n{"text":"b","k":{"x":"}"}}\n'
    marked = mark_damaged(read(write(tmp_path, "a.jsonl", lines)).documents, ["a.jsonl"])

    assert marked["meta"].to_list() == ['{"damaged":true}', '{"k":{"x":"}"},"damaged":true}']


def test_a_bomb_is_a_fault_of_the_file_and_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "BOMB_BYTES", 4 << 20)
    packed = write(tmp_path, "a.jsonl.gz", gzip.compress(b" " * (64 << 20), mtime=0))

    with pytest.raises(decompress.BrokenStream) as raised:
        list(decompress.read_blocks(packed))

    assert isinstance(raised.value.reason, FileFault)
    assert not isinstance(raised.value.reason, Damage)
    assert as_input(packed.path).compression == "gz"
