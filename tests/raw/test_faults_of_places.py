"""Faults of a server, a disk or the machine while a file is read are raised, never recorded."""

import errno
import gzip
import io
import tarfile
import zipfile
from itertools import product

import pyarrow as pa
from input_files import COMPRESS, chunks, jsonl, texts, write
from prelude import Path, json, pl, pytest

from assets.raw.places.local_files import search
from assets.raw.readers import open_input as opening
from assets.raw.readers.decompress import BOMB_BYTES, raise_unless_of_content
from assets.raw.readers.open_input import RangeFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.transports import Interrupted
from resources.errors import InputError

WORDS = [
    f"{number:02d} words of a text that is long enough to fill some windows" for number in range(45)
]
FAULTS = [
    CorpusError("HTTP 503"),
    InputError("refused"),
    Interrupted("cut"),
    OSError(errno.EMFILE, "Too many open files"),
    RuntimeError("can't start new thread"),
    MemoryError(),
]


def of_zip() -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        for number in range(0, 45, 15):
            archive.writestr(f"{number}.jsonl", jsonl(*WORDS[number : number + 15]))
    return file.getvalue()


def of_tar() -> bytes:
    with tarfile.open(fileobj=(file := io.BytesIO()), mode="w") as archive:
        for number, text in enumerate(WORDS):
            member = tarfile.TarInfo(f"{number:02d}.txt")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return file.getvalue()


def of_arrow(new: object) -> bytes:
    table = pa.table({"text": WORDS})
    with new(sink := pa.BufferOutputStream(), table.schema) as writer:  # type: ignore[operator]
        writer.write_table(table, 10)
    return bytes(sink.getvalue())


def of_parquet() -> bytes:
    pl.DataFrame({"text": WORDS}).write_parquet(file := io.BytesIO(), row_group_size=30)
    return file.getvalue()


def of_warc(kind: str, text: str) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
    mime = "Content-Type: application/http; msgtype=response"
    return f"{head}{mime}\r\n\r\n{text}\r\n\r\n".encode()


PAGE = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<main><p>{}</p></main>"
CONTENTS = {
    "a.jsonl": jsonl(*WORDS),
    **{f"a.jsonl.{name}": compress(jsonl(*WORDS)) for name, compress in COMPRESS.items()},
    "a.json": json.dumps([{"text": text} for text in WORDS]).encode(),
    "a.csv": "\n".join(["text", *WORDS]).encode(),
    "a.txt": "\n".join(WORDS).encode(),
    "a.parquet": of_parquet(),
    "a.parquet.gz": gzip.compress(of_parquet()),
    "a.arrow": of_arrow(pa.ipc.new_file),
    "b.arrow": of_arrow(pa.ipc.new_stream),
    "a.tar": of_tar(),
    "a.zip": of_zip(),
    "a.warc": b"".join(of_warc("response", PAGE.format(text)) for text in WORDS),
    "a.wet": b"".join(of_warc("conversion", text) for text in WORDS),
    "a.md": "\n".join(WORDS).encode(),
}


class Server:
    """Answers so many requests for ranges, then fails."""

    def __init__(self, data: bytes, fault: BaseException, most: int) -> None:
        self.data, self.fault, self.left = data, fault, most

    def fetch(self, start: int, stop: int) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise self.fault
        return self.data[start:stop]

    def opened(self, _fetch: object, size: int, stop: int, **_: object) -> RangeFile:
        return RangeFile(self.fetch, size, stop, 1 << 10)


@pytest.mark.parametrize("name", CONTENTS)
def test_no_record_tells_of_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    local = write(tmp_path, name, CONTENTS[name])
    remote = local._replace(place=f"s3://bucket/{name}", fetch_of=lambda _: bytes)
    expected = [text for chunk in chunks(local, 2000) for text in texts(chunk)]
    assert "\n".join(expected).split("\n") == WORDS
    for fault, most in product(FAULTS, (0, 1, 3, 8, 1000)):
        server = Server(CONTENTS[name], fault, most)
        monkeypatch.setattr(opening, "RangeFile", server.opened)
        try:
            found = [text for chunk in chunks(remote, 2000) for text in texts(chunk)]
        except type(fault) as raised:
            assert raised is fault and server.left < 0
        else:
            assert found == expected and server.left >= 0


def test_memory_that_a_hostile_size_asks_for_is_a_fault_of_the_file() -> None:
    raise_unless_of_content(pa.ArrowMemoryError(f"malloc of size {BOMB_BYTES + 1} failed"), 1000)
    for text in (f"malloc of size {BOMB_BYTES} failed", "malloc failed"):
        with pytest.raises(MemoryError):
            raise_unless_of_content(pa.ArrowMemoryError(text), 1000)
    with pytest.raises(OSError, match="not enough memory"):
        raise_unless_of_content(OSError("ZSTD: Allocation error : not enough memory"), 1000)


def test_a_folder_that_cannot_be_listed_now_leaves_no_file_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path, "a.jsonl", jsonl(*WORDS))

    def fail(_: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("os.scandir", fail)
    with pytest.raises(OSError, match="Too many open files"):
        search(str(tmp_path), tmp_path, follow_links=False)
