"""Zeros and other bytes where a file goes on or ends: downloads into files of full size."""

import gzip
import io
import tarfile

import pyarrow as pa
from input_files import COMPRESS, jsonl, read, slices, texts, write
from prelude import Callable, Path, pytest
from pyarrow import ipc

from resources.settings.sources import SourceConfig

A, B, BOTH = ["a1", "a2"], ["b1", "b2"], ["a1", "a2", "b1", "b2"]
Pack = Callable[[list[str]], bytes]


def tar(values: list[str]) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        for value in values:
            member = tarfile.TarInfo(f"{value}.txt")
            member.size = len(value)
            archive.addfile(member, io.BytesIO(value.encode()))
    return sink.getvalue()


def arrow_stream(values: list[str]) -> bytes:
    sink, table = io.BytesIO(), pa.table({"text": values})
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_file(values: list[str]) -> bytes:
    sink, table = io.BytesIO(), pa.table({"text": values})
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def packed(suffix: str) -> Pack:
    return lambda values: COMPRESS[suffix](jsonl(*values))


def lines(values: list[str]) -> bytes:
    return jsonl(*values)


END = "behind its end mark"
AT_MEMBER = "zeros stand where a member or the end should"
NO_HEADER = "no valid tar header"
NO_JSON = "JSON is malformed"
IN_TAR = "zeros stand in place of a tar header"
BROKEN = " stream is broken near byte"
TABLE = [  # name, how it is made, and the fault behind which bytes: of 8,192, of 7 zeros, of text
    ("a.jsonl.gz", packed("gz"), None, None, BROKEN),  # gzip(1) ignores zeros at the end
    ("a.jsonl.bz2", packed("bz2"), AT_MEMBER, AT_MEMBER, BROKEN),
    ("a.jsonl.xz", packed("xz"), None, AT_MEMBER, BROKEN),  # padding by four
    ("a.jsonl.zst", packed("zst"), AT_MEMBER, AT_MEMBER, BROKEN),
    ("a.tar", tar, None, None, NO_HEADER),
    ("a.arrow", arrow_stream, None, None, END),
    ("b.arrow", arrow_file, None, None, END),
    ("a.jsonl", lines, NO_JSON, NO_JSON, NO_JSON),
]


@pytest.mark.parametrize(("name", "pack", "many", "seven", "text"), TABLE)
def test_what_follows_the_end_is_padding_or_a_fault(
    tmp_path: Path, name: str, pack: Pack, many: str | None, seven: str | None, text: str
) -> None:
    for rest, fault in ((bytes(8192), many), (bytes(7), seven), (b"some text", text)):
        chunk = read(write(tmp_path, name, pack(A) + rest))

        assert texts(chunk) == A
        assert chunk.quarantine.height == bool(fault) or name == "a.tar"
        assert (fault or "") in "".join(chunk.quarantine["error"])


MIDDLE: list[tuple[str, Pack, list[str], str | None]] = [
    ("a.jsonl.gz", packed("gz"), BOTH, AT_MEMBER),
    ("a.jsonl.bz2", packed("bz2"), BOTH, AT_MEMBER),
    ("a.jsonl.xz", packed("xz"), BOTH, None),  # padding by four
    ("a.jsonl.zst", packed("zst"), BOTH, AT_MEMBER),
    ("a.tar", tar, BOTH, IN_TAR),
    ("a.arrow", arrow_stream, A, END),
    ("b.arrow", arrow_file, A, END),
    ("a.jsonl", lines, ["a1", "a2", "b2"], NO_JSON),
]


@pytest.mark.parametrize(("name", "pack", "kept", "fault"), MIDDLE)
def test_zeros_in_the_middle_hide_nothing(
    tmp_path: Path, name: str, pack: Pack, kept: list[str], fault: str | None
) -> None:
    chunk = read(write(tmp_path, name, pack(A) + bytes(16384) + pack(B)))

    assert texts(chunk) == kept
    assert chunk.quarantine.height == bool(fault)
    assert (fault or "") in "".join(chunk.quarantine["error"])


@pytest.mark.parametrize("pack", [arrow_stream, arrow_file])
def test_a_second_arrow_stream_is_a_fault(tmp_path: Path, pack: Pack) -> None:
    chunk = read(write(tmp_path, "a.arrow", pack(A) + pack(B)))

    assert texts(chunk) == A and END in chunk.quarantine["error"].item()


def test_later_zst_frames_of_zeros_are_a_fault(tmp_path: Path) -> None:
    frames = [packed("zst")([f"{i:04d} {i * 2654435761 % 2**64:020d}"]) for i in range(2000)]
    whole = b"".join(frames)
    cut = sum(map(len, frames[:1000]))

    chunk = read(write(tmp_path, "a.jsonl.zst", whole[:cut].ljust(len(whole), b"\0")))

    assert chunk.documents.height == 1000
    assert f"near byte {cut:,} of the file" in chunk.quarantine["error"].item()


def test_a_file_with_zeros_between_its_members_is_one_stream(tmp_path: Path) -> None:
    source = SourceConfig.model_validate({"name": "s", "where": "x"})
    members = [gzip.compress(jsonl(f"{i:04d} {i * 2654435761 % 2**64:020d}")) for i in range(200)]
    whole = write(tmp_path, "a.jsonl.gz", b"".join(members))
    holed = write(tmp_path, "b.jsonl.gz", b"".join([*members[:100], bytes(512), *members[100:]]))

    assert (len(slices(whole, source, 2000)) > 1, len(slices(holed, source, 2000))) == (True, 1)
    assert read(holed, 2000).quarantine.height == 1
