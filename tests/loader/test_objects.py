"""The layer over object storage, against a local S3 server."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from s3_server import s3_bucket

from corpus_loader import transports
from corpus_loader.errors import CorpusError
from corpus_loader.objects import Objects

LARGE = 11_000_000  # bytes: an upload of three parts


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    """The objects below s3://corpora/mine, none so far."""
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    with s3_bucket(monkeypatch):
        yield Objects("s3://corpora/mine/")


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("size", [0, 5, LARGE])
def test_files_come_back_as_they_were_put(objects: Objects, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    objects.put_from_file("a/b c#.bin", write(tmp_path / "in", b"before"))
    objects.put_from_file("a/b c#.bin", write(tmp_path / "in", content))

    (tmp_path / "folder").mkdir()
    objects.get_to_file("a/b c#.bin", tmp_path / "folder/out")

    assert (tmp_path / "folder/out").read_bytes() == content
    assert len(list((tmp_path / "folder").iterdir())) == 1
    assert b"".join(objects.blocks("a/b c#.bin", 0)) == content


def test_ranges_end_with_the_object(objects: Objects, tmp_path: Path) -> None:
    objects.put_from_file("a", write(tmp_path / "in", b"0123456789"))

    assert objects.get_range("a", 2, 3) == b"234"
    assert objects.get_range("a", 8, 30) == b"89"
    assert b"".join(objects.blocks("a", 7)) == b"789"


def test_objects_below_a_folder_are_listed(objects: Objects, tmp_path: Path) -> None:
    for key in ("web/2.jsonl", "web/1.jsonl", "web/deep/3.jsonl", "website/4.jsonl"):
        objects.put_from_file(key, write(tmp_path / "in", key.encode()))

    listed = objects.list_objects("web")

    assert [(info.key, info.num_bytes) for info in listed] == [
        ("web/1.jsonl", 11),
        ("web/2.jsonl", 11),
        ("web/deep/3.jsonl", 16),
    ]
    assert len({info.etag for info in listed}) == 3
    assert all(info.modified.utcoffset() is not None for info in listed)
    assert len(objects.list_objects()) == 4
    assert objects.list_objects("none") == []
    assert objects.names("web") == ["1.jsonl", "2.jsonl", "deep"]


def test_only_the_first_creates_an_object(objects: Objects) -> None:
    assert objects.create("00000001.json", b"mine")
    assert not objects.create("00000001.json", b"theirs")
    assert objects.create("00000001.json", b"mine")  # as after an answer that was lost

    assert objects.get_range("00000001.json", 0, 10) == b"mine"


def test_of_many_that_create_one_object_one_succeeds(objects: Objects) -> None:
    created: list[bool] = []

    def create(number: int) -> None:
        created.append(objects.create("lock", b"%d" % number))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(created) == [False] * 7 + [True]


def test_a_deleted_object_is_gone_and_may_be_deleted_again(objects: Objects) -> None:
    objects.create("a", b"")
    for _ in range(2):
        objects.delete("a")

    assert objects.list_objects() == []


def test_a_missing_object_is_named_and_leaves_no_file(objects: Objects, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for read in (
        lambda: objects.get_range("none.bin", 0, 1),
        lambda: objects.get_to_file("none.bin", folder / "out"),
        lambda: next(objects.blocks("none.bin", 0)),
    ):
        with pytest.raises(FileNotFoundError, match=r"^s3://corpora/mine/none\.bin could not be"):
            read()
    assert not list(folder.iterdir())


def test_a_missing_bucket_is_named(objects: Objects, tmp_path: Path) -> None:
    elsewhere = Objects("s3://nothing")
    with pytest.raises(FileNotFoundError, match=r"s3://nothing/a could not be written.*the bucket"):
        elsewhere.put_from_file("a", write(tmp_path / "in", b""))
    with pytest.raises(CorpusError, match=r"s3://nothing/a could not be listed.*attempt 3 of 3"):
        elsewhere.list_objects("a")


def test_a_key_that_leaves_its_folder_is_refused(objects: Objects) -> None:
    with pytest.raises(CorpusError, match=r"'\.\./secret' is no valid key"):
        objects.get_range("../secret", 0, 1)


def test_local_faults_are_not_those_of_the_object(objects: Objects, tmp_path: Path) -> None:
    objects.create("a", b"x")
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "gone"))) as error:
        objects.put_from_file("b", tmp_path / "gone")
    assert error.value.errno == errno.ENOENT
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "no"))) as error:
        objects.get_to_file("a", tmp_path / "no/out")
    assert error.value.errno == errno.ENOENT


def test_refused_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuse(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuse) as server, s3_bucket(monkeypatch):
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        try:
            with pytest.raises(CorpusError, match=r"s3://corpora/a may not be read.*the keys"):
                Objects("s3://corpora").get_range("a", 0, 1)
        finally:
            server.shutdown()
