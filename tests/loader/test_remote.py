"""A corpus behind a URL: faults of the network, a bounded cache, many processes, kill -9."""

import fcntl
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from corpus_loader import cache, transports
from corpus_loader.cache import Cache
from corpus_loader.files import CorpusError
from corpus_loader.remote import RemoteStore

ROOT = Path(__file__).resolve().parents[2]
SIZE = 3_000_000  # of a shard: three blocks
Fault = Callable[["Handler", bytes], None]


class Handler(SimpleHTTPRequestHandler):
    """Files of a folder with ranges; faults that were planted for a path happen once each."""

    faults: ClassVar[dict[str, list[Fault]]] = {}
    asked: ClassVar[list[tuple[str, str | None]]] = []
    has_pages = True

    def do_GET(self) -> None:
        begins = self.headers.get("Range")
        self.asked.append((self.path, begins))
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.has_pages:
            super().do_GET()
            return
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        planted = self.faults.get(self.path)
        (planted.pop(0) if planted else answer)(self, content)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def answer(request: Handler, content: bytes, stop: int | None = None) -> None:
    """All that was asked for, or as if, up to `stop`."""
    start = int((request.headers.get("Range") or "bytes=0-")[6:-1])
    request.send_response(206 if start else 200)
    if start:
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    request.send_header("Content-Length", str(len(content) - start))
    request.end_headers()
    request.wfile.write(content[start:stop])


def cut(request: Handler, content: bytes) -> None:
    answer(request, content, stop=len(content) // 2)


def busy(request: Handler, content: bytes) -> None:
    request.send_error(503)


def wrong(request: Handler, content: bytes) -> None:
    answer(request, content[:-1] + b"?")


def no_ranges(request: Handler, content: bytes) -> None:
    del request.headers["Range"]
    answer(request, content)


def other_range(request: Handler, content: bytes) -> None:
    request.send_response(206)
    request.send_header("Content-Range", f"bytes 0-{len(content) - 1}/{len(content)}")
    request.end_headers()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server of the folder `there`."""
    monkeypatch.setattr(Handler, "faults", {})
    monkeypatch.setattr(Handler, "asked", [])
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    (tmp_path / "there").mkdir()

    class Here(Handler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(tmp_path / "there"))

    class Server(ThreadingHTTPServer):
        request_queue_size = 64  # of 5, some of 16 at once would wait a second to be let in

    with Server(("127.0.0.1", 0), Here) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def put(folder: Path, name: str, size: int = SIZE) -> tuple[str, int, str]:
    """A file of bytes that its name decides; what local_path is asked with."""
    content = bytes(hashlib.shake_128(name.encode()).digest(size))
    path = folder / "there" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return name, size, hashlib.sha256(content).hexdigest()


def kept(folder: Path) -> set[str]:
    """Names in the cache."""
    return {path.name for path in (folder / "cache/shards").iterdir()}


def fetched(store: RemoteStore, shard: tuple[str, int, str]) -> bytes:
    with store.local_path(*shard) as path:
        return path.read_bytes()


@pytest.mark.parametrize(
    ("faults", "requests"),
    [
        ([], 1),
        ([busy], 2),
        ([cut], 2),
        ([cut, busy, cut], 4),
        ([wrong], 2),
        ([cut, no_ranges], 2),
        ([busy] * 5, 6),
    ],
    ids=["none", "503", "cut", "several", "wrong bytes", "no ranges", "many 503"],
)
def test_a_shard_comes_whole_whatever_happens_on_the_way(
    server: str, tmp_path: Path, faults: list[Fault], requests: int
) -> None:
    shard = put(tmp_path, "sharded/web/a b#.bin")
    Handler.faults["/sharded/web/a%20b%23.bin"] = list(faults)
    store = RemoteStore(server, tmp_path / "cache")

    assert fetched(store, shard) == (tmp_path / "there" / shard[0]).read_bytes()
    assert kept(tmp_path) == {shard[2]}

    assert len(Handler.asked) == requests
    fetched(store, shard)
    assert len(Handler.asked) == requests  # not asked for again


def test_a_cut_download_goes_on_where_it_was_cut(server: str, tmp_path: Path) -> None:
    shard = put(tmp_path, "a.bin")
    Handler.faults["/a.bin"] = [cut]
    fetched(RemoteStore(server, tmp_path / "cache"), shard)
    assert Handler.asked == [("/a.bin", None), ("/a.bin", f"bytes={SIZE // 2}-")]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([wrong] * 2, "came, not 3,000,000 of "),
        ([busy] * 9, "a.bin could not be read: HTTP 503 .*byte 0, attempt 6 of 6"),
        ([cut, other_range], "another range than from byte 1500000"),
    ],
)
def test_what_cannot_be_fetched_is_said_and_leaves_nothing(
    server: str, tmp_path: Path, faults: list[Fault], message: str
) -> None:
    shard = put(tmp_path, "a.bin")
    Handler.faults["/a.bin"] = list(faults)
    with pytest.raises(CorpusError, match=message):
        fetched(RemoteStore(server, tmp_path / "cache"), shard)
    assert kept(tmp_path) == set()


def test_a_shard_that_is_not_there_is_named(server: str, tmp_path: Path) -> None:
    store = RemoteStore(server, tmp_path / "cache")
    with pytest.raises(CorpusError, match=r"gone\.bin is missing .*HTTP 404"):
        fetched(store, ("gone.bin", 5, "0" * 64))
    with pytest.raises(FileNotFoundError):
        store.read("gone.json")


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "FIRST_WAIT_SECONDS", 0.001)
    with pytest.raises(CorpusError, match=r"could not be read: .*refused.*attempt 6"):
        RemoteStore("http://127.0.0.1:9", tmp_path / "cache").read("a.json")


@pytest.mark.parametrize("has_pages", [True, False])
@pytest.mark.parametrize("numbers", [range(1, 4), range(15, 18), range(0)])
def test_the_newest_manifest_is_found(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pages: bool, numbers: range
) -> None:
    monkeypatch.setattr(Handler, "has_pages", has_pages)
    monkeypatch.setattr("corpus_loader.remote.MOST_MISSES", 16)
    (tmp_path / "there/mixed/main/_manifests").mkdir(parents=True)
    for number in numbers:
        put(tmp_path, f"mixed/main/_manifests/{number:08d}.json", 10)
    store = RemoteStore(server, tmp_path / "cache")

    newest = store.newest("mixed/main/_manifests")

    assert newest == (f"mixed/main/_manifests/{numbers[-1]:08d}.json" if numbers else None)
    assert store.names("mixed") == (["main"] if has_pages else [])
    if newest:
        assert store.read(newest) == (tmp_path / "there" / newest).read_bytes()


def test_the_least_recently_used_goes_first_but_never_what_is_in_use(
    server: str, tmp_path: Path
) -> None:
    shards = [put(tmp_path, f"{n}.bin", 1000) for n in range(5)]
    store = RemoteStore(server, tmp_path / "cache", 3100)
    hashes = [sha256 for _, _, sha256 in shards]
    (tmp_path / "cache/shards/notes.txt").write_text("not ours")

    for each in (0, 1, 2, 0):
        fetched(store, shards[each])
        time.sleep(0.01)  # the clock of files ticks every 4 ms
    fetched(store, shards[3])
    assert kept(tmp_path) & set(hashes) == {hashes[0], hashes[2], hashes[3]}

    with ExitStack() as uses:
        paths = [uses.enter_context(store.local_path(*shard)) for shard in shards]
        assert all(path.exists() for path in paths)  # over the limit, for a moment
    fetched(store, put(tmp_path, "new.bin", 1000))
    assert len(kept(tmp_path)) == 4 and "notes.txt" in kept(tmp_path)


def test_a_file_larger_than_the_cache_is_refused(tmp_path: Path) -> None:
    store = RemoteStore("http://127.0.0.1:9", tmp_path / "cache", 100)
    with pytest.raises(CorpusError, match="101 bytes does not fit a cache of 100"):
        fetched(store, ("a", 101, "0" * 64))


@pytest.mark.parametrize("damage", [b"short", b"?" * SIZE])
def test_a_damaged_copy_is_fetched_again(server: str, tmp_path: Path, damage: bytes) -> None:
    shard = put(tmp_path, "a.bin")
    stores = [RemoteStore(server, tmp_path / "cache") for _ in range(2)]
    fetched(stores[0], shard)
    # What this process checked is not hashed again, but its size is looked at.
    for store in stores[damage != b"short" :]:
        (tmp_path / "cache/shards" / shard[2]).write_bytes(damage)
        assert fetched(store, shard) == (tmp_path / "there/a.bin").read_bytes()


def test_a_lock_counts_only_on_the_file_that_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = tmp_path / "a", fcntl.flock
    path.write_text("removed by another process before it is locked here")

    def late(descriptor: int, how: int) -> None:
        path.unlink()
        flock(descriptor, how)

    monkeypatch.setattr(cache.fcntl, "flock", late)
    assert cache.locked(path, os.O_RDONLY, fcntl.LOCK_SH) is None


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "a\\..\\b", ""])
def test_names_outside_the_corpus_are_refused(tmp_path: Path, name: str) -> None:
    for url in ("http://127.0.0.1:9", tmp_path.as_uri()):
        with pytest.raises(CorpusError, match="no name inside a corpus"):
            RemoteStore(url, tmp_path / "cache").read(name)
    with pytest.raises(CorpusError, match="is no sha256"):
        fetched(RemoteStore("http://127.0.0.1:9", tmp_path / "cache"), ("a", 1, "../../x"))


def test_a_file_url_is_read_in_place(tmp_path: Path) -> None:
    name, size, sha256 = put(tmp_path, "a b.bin")
    put(tmp_path, "m/00000007.json", 5)
    store = RemoteStore((tmp_path / "there").as_uri(), tmp_path / "cache")
    with store.local_path(name, size, sha256) as path:
        assert path == tmp_path / "there/a b.bin"
    assert store.newest("m") == "m/00000007.json" and len(store.read("m/00000007.json")) == 5
    assert not (tmp_path / "cache").exists()


USER = """
import random, sys
from corpus_loader.remote import RemoteStore
url, cache, seed, *shards = sys.argv[1:]
store = RemoteStore(url, cache, 4000)
picks = random.Random(seed)
for _ in range(60):
    name, sha256 = picks.choice(shards).split(":")
    with store.local_path(name, 1000, sha256) as path:
        assert len(path.read_bytes()) == 1000
        if picks.random() < 0.3:
            with store.local_path(*[(n, 1000, s) for n, s in [picks.choice(shards).split(":")]][0]):
                assert path.stat().st_size == 1000
"""

FETCHER = """
import sys
from corpus_loader.remote import RemoteStore
url, cache, name, num_bytes, sha256 = sys.argv[1:]
with RemoteStore(url, cache).local_path(name, int(num_bytes), sha256):
    pass
"""


def start(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_processes_share_a_tiny_cache(server: str, tmp_path: Path) -> None:
    shards = [put(tmp_path, f"{n}.bin", 1000) for n in range(9)]
    named = [f"{name}:{sha256}" for name, _, sha256 in shards]
    users = [start(USER, server, str(tmp_path / "cache"), str(n), *named) for n in range(4)]

    assert [user.wait(60) for user in users] == [0] * 4
    assert kept(tmp_path) <= {sha256 for _, _, sha256 in shards}
    fetched(RemoteStore(server, tmp_path / "cache", 4000), put(tmp_path, "new.bin", 1000))
    assert len(kept(tmp_path)) <= 4


def test_two_that_want_the_same_file_fetch_it_once(server: str, tmp_path: Path) -> None:
    shard = put(tmp_path, "a.bin")

    def slow(request: Handler, content: bytes) -> None:
        time.sleep(0.3)
        answer(request, content)

    Handler.faults["/a.bin"] = [slow]
    stores = [RemoteStore(server, tmp_path / "cache") for _ in range(4)]
    threads = [threading.Thread(target=fetched, args=(store, shard)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(Handler.asked) == 1 and kept(tmp_path) == {shard[2]}


def test_one_that_hangs_does_not_stop_the_others(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = put(tmp_path, "a.bin")
    monkeypatch.setattr(cache, "PATIENCE_SECONDS", 0.1)
    store = RemoteStore(server, tmp_path / "cache")
    fetching = tmp_path / "cache/shards" / f".fetch-{shard[2]}"
    descriptor = cache.locked(fetching, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX)
    assert descriptor is not None

    assert len(fetched(store, shard)) == SIZE

    os.close(descriptor)


def test_kill_9_leaves_what_the_next_start_removes(server: str, tmp_path: Path) -> None:
    shard = put(tmp_path, "a.bin")
    reached, go_on = threading.Event(), threading.Event()

    def stall(request: Handler, content: bytes) -> None:
        answer(request, content, stop=len(content) // 2)
        request.wfile.flush()
        reached.set()
        go_on.wait(30)

    Handler.faults["/a.bin"] = [stall]
    name, size, sha256 = shard
    user = start(FETCHER, server, str(tmp_path / "cache"), name, str(size), sha256)
    assert reached.wait(30)

    Cache(tmp_path / "cache", 10**9)
    assert len(kept(tmp_path)) == 2  # temporary and lock of one that lives stay
    user.send_signal(signal.SIGKILL)
    user.wait()
    go_on.set()
    assert len(kept(tmp_path)) == 2

    store = RemoteStore(server, tmp_path / "cache")
    assert kept(tmp_path) == set()
    assert len(fetched(store, shard)) == SIZE


def test_an_unknown_scheme_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    with pytest.raises(CorpusError, match="begins with http, https, file, s3, gs or az"):
        RemoteStore("gopher://a/b", tmp_path / "cache")


def test_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    for key, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(key, value)
    try:
        look_at_s3(tmp_path, f"http://{host}:{port}")
    finally:
        server.stop()


def look_at_s3(folder: Path, endpoint: str) -> None:
    import urllib.request

    import obstore
    from obstore.store import from_url

    bucket = urllib.request.Request(f"{endpoint}/corpora", method="PUT")
    urllib.request.urlopen(bucket).close()
    bucket_store = from_url("s3://corpora/mine")
    shard = put(folder, "sharded/web/a b.bin")
    obstore.put(bucket_store, shard[0], (folder / "there" / shard[0]).read_bytes())
    for number in (9, 10):
        obstore.put(bucket_store, f"mixed/main/_manifests/{number:08d}.json", b"{}")
    store = RemoteStore("s3://corpora/mine/", folder / "cache")

    assert fetched(store, shard) == (folder / "there" / shard[0]).read_bytes()
    assert store.newest("mixed/main/_manifests") == "mixed/main/_manifests/00000010.json"
    assert store.newest("mixed/none/_manifests") is None
    assert store.names("mixed") == ["main"]
    assert b"".join(transports.read_blocks(store.transport, "mixed/main/_manifests/00000009.json"))
    assert b"".join(store.transport.blocks(shard[0], SIZE - 5)) == fetched(store, shard)[-5:]
    assert fetched(pickle.loads(pickle.dumps(store)), shard) == fetched(store, shard)
    with pytest.raises(CorpusError, match="missing"):
        fetched(store, ("nope", 3, "0" * 64))
