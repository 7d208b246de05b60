"""A corpus behind a URL: faults of the network, a bounded cache, many processes, kill -9."""

import _thread
import errno
import fcntl
import pickle
import signal
import subprocess
import threading
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from typing import Any, ClassVar

from loader_corpus import every_sample, numbered_rows, write_phase
from prelude import Callable, Iterator, Path, hashlib, os, pytest, sys, time
from s3_server import s3_bucket
from served import Quiet, served

from corpus_loader import CorpusLoader, LoaderOptions
from corpus_loader.places import cache, http_client, transports
from corpus_loader.places.cache import Cache
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.remote import RemoteStore, open_files
from corpus_loader.places.threads import in_thread, map_in_threads

ROOT = Path(__file__).resolve().parents[2]
SIZE = 3_000_000  # of a shard: three blocks
Fault = Callable[["Handler", bytes], None]


class Handler(Quiet):
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

    with served(partial(Handler, directory=str(tmp_path / "there"))) as url:
        yield url


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
        *(([], 1), ([busy], 2), ([cut], 2), ([cut, busy, cut], 4), ([wrong], 2)),
        *(([cut, no_ranges], 2), ([busy] * 5, 6)),
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
    Handler.faults["/a.bin"] = [cut]
    store = RemoteStore(server, tmp_path / "cache")
    fetched(store, put(tmp_path, "a.bin"))
    assert Handler.asked == [("/a.bin", None), ("/a.bin", f"bytes={SIZE // 2}-")]
    with pytest.raises(CorpusError, match=r"gone\.bin is missing .*HTTP 404"):
        fetched(store, ("gone.bin", 5, "0" * 64))
    with pytest.raises(FileNotFoundError):
        store.read("gone.json")


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ([wrong] * 2, "came, not 3,000,000 of "),
        ([busy] * 999, "a.bin could not be read: HTTP 503 .*byte 0 .* attempts in 0.2 s"),
        ([cut, other_range], "another range than from byte 1500000"),
    ],
)
def test_what_cannot_be_fetched_is_said_and_leaves_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: list[Fault], message: str
) -> None:
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0.2")
    shard = put(tmp_path, "a.bin")
    Handler.faults["/a.bin"] = list(faults)
    with pytest.raises(CorpusError, match=message):
        fetched(RemoteStore(server, tmp_path / "cache"), shard)
    assert kept(tmp_path) == set()


def test_nobody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0.5")
    with pytest.raises(CorpusError, match=r"could not be read: .*refused.*attempts in 0\.5 s"):
        RemoteStore("http://127.0.0.1:9", tmp_path / "cache").read("a.json")


def test_a_server_that_never_answers_is_named_soon(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "READ_SECONDS", 0.4)
    monkeypatch.setenv(transports.RETRY_VARIABLE, "0.6")
    go_on = threading.Event()
    put(tmp_path, "a.json")
    Handler.faults["/a.json"] = [lambda *_: go_on.wait(10)] * 9
    with pytest.raises(CorpusError, match=r"timed out.*2 attempts in 0\.6 s"):
        RemoteStore(server, tmp_path / "cache").read("a.json")
    go_on.set()


def test_threads_give_results_in_order_or_the_first_error() -> None:
    assert map_in_threads(lambda n: n * n, range(20), 4) == [n * n for n in range(20)]
    assert map_in_threads(str, [], 4) == []
    begun: list[int] = []

    def fail(number: int) -> None:
        begun.append(number)
        raise CorpusError(f"no {number}")

    with pytest.raises(CorpusError, match="no 0"):
        map_in_threads(fail, range(10_000), 1)
    assert len(begun) < 10_000
    variable = ContextVar("variable", default=0)
    variable.set(7)
    assert in_thread(variable.get).result() == 7  # of the context of its caller


@pytest.fixture
def is_interruptible() -> Iterator[None]:
    """Undo what a shell does to programs in its background, and they to theirs: SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("is_interruptible")
def test_ctrl_c_does_not_wait_for_a_download(server: str, tmp_path: Path) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def stall(*_: Any) -> None:
        reached.set()
        go_on.wait(10)

    shards = [put(tmp_path, f"{n}.bin") for n in range(2)]
    Handler.faults |= {f"/{name}": [stall] for name, _, _ in shards}
    named = [f"{name}:{sha256}" for name, _, sha256 in shards]
    user = start(TOGETHER, server, str(tmp_path / "cache"), *named)
    assert reached.wait(30)
    user.send_signal(signal.SIGINT)
    assert user.wait(5) != 0
    go_on.set()


@pytest.mark.usefixtures("is_interruptible")
def test_ctrl_c_is_seen_even_if_it_does_not_wake_the_wait() -> None:
    go_on = threading.Event()

    def interrupt(_: int) -> None:
        time.sleep(0.5)  # the caller waits by now
        _thread.interrupt_main()  # the signal without the wake-up, as when it comes to a thread
        go_on.wait(10)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        map_in_threads(interrupt, [0], 1)
    go_on.set()
    assert time.monotonic() - begun < 9


@pytest.mark.parametrize("has_pages", [True, False])
@pytest.mark.parametrize("numbers", [range(1, 4), range(15, 18), range(0), range(3, 46, 42)])
def test_the_newest_manifest_is_found(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pages: bool, numbers: range
) -> None:
    monkeypatch.setattr(Handler, "has_pages", has_pages)
    monkeypatch.setattr("corpus_loader.places.remote.MOST_MISSES", 64)
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


def test_a_cache_that_cannot_serve_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RemoteStore("http://127.0.0.1:9", tmp_path / "cache", 100)
    with pytest.raises(CorpusError, match="101 bytes does not fit a cache of 100"):
        fetched(store, ("a", 101, "0" * 64))
    (tmp_path / "file").touch()
    with pytest.raises(CorpusError, match="Use another folder"):
        RemoteStore("http://127.0.0.1:9", tmp_path / "file")

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(CorpusError, match=r"cannot be locked.*Use a local disk for the cache"):
        fetched(store, ("a", 1, "0" * 64))


@pytest.mark.parametrize("damage", [b"short", b"?" * SIZE])
def test_a_damaged_copy_is_fetched_again(server: str, tmp_path: Path, damage: bytes) -> None:
    shard = put(tmp_path, "a.bin")
    stores = [RemoteStore(server, tmp_path / "cache") for _ in range(2)]
    fetched(stores[0], shard)
    # What this process checked is not hashed again, but its size is looked at.
    for store in stores[damage != b"short" :]:
        (tmp_path / "cache/shards" / shard[2]).write_bytes(damage)
        assert fetched(store, shard) == (tmp_path / "there/a.bin").read_bytes()


def test_a_file_is_hashed_once_by_a_process(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard, hashed = put(tmp_path, "a.bin"), []
    fetched(RemoteStore(server, tmp_path / "cache"), shard)
    hash_of = cache.hash_of
    monkeypatch.setattr(cache, "hash_of", lambda each: hashed.append(each) or hash_of(each))
    store = RemoteStore(server, tmp_path / "cache")
    for _ in range(3):
        fetched(store, shard)
    assert len(hashed) == 1 and len(Handler.asked) == 1


def test_an_answer_without_an_end_is_cut_off(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0

    def endless(*_: Any) -> Iterator[bytes]:
        nonlocal taken
        while taken < 100:
            taken += 1
            yield bytes(1 << 20)

    monkeypatch.setattr("corpus_loader.places.remote.read_blocks", endless)
    shard = put(tmp_path, "a.bin")
    with pytest.raises(CorpusError, match=r"3,145,728 bytes of sha256 \w+ came, not 3,000,000"):
        fetched(RemoteStore(server, tmp_path / "cache"), shard)
    assert taken == 2 * 3 and kept(tmp_path) == set()


def test_of_two_that_find_one_damaged_file_none_fails(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = put(tmp_path, "a.bin")
    fetched(RemoteStore(server, tmp_path / "cache"), shard)
    path, is_at = tmp_path / "cache/shards" / shard[2], cache.is_at
    path.write_bytes(b"?" * SIZE)
    looks = list[Path]()

    def late(descriptor: int, at: Path) -> bool:
        found = is_at(descriptor, at)
        looks.append(at)
        if at == path and looks.count(path) == 2:  # the first look is that of the lock
            at.unlink(missing_ok=True)  # by the other, between the look and the removal
        return found

    monkeypatch.setattr(cache, "is_at", late)
    before = len(os.listdir("/proc/self/fd"))
    assert len(fetched(RemoteStore(server, tmp_path / "cache"), shard)) == SIZE
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("times", [1, 9])
def test_a_full_disk(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    store = RemoteStore(server, tmp_path / "cache")
    old, new = put(tmp_path, "old.bin"), put(tmp_path, "new.bin")
    fetched(store, old)
    write_all, full = cache.write_all, [OSError(errno.ENOSPC, "no space left")] * times

    def write(descriptor: int, block: bytes) -> None:
        if full:
            raise full.pop()
        write_all(descriptor, block)

    monkeypatch.setattr(cache, "write_all", write)
    if times == 1:  # what nobody uses makes room
        assert len(fetched(store, new)) == SIZE and kept(tmp_path) == {new[2]}
    else:
        with pytest.raises(CorpusError, match=r"cannot be kept: no space left\. Use another"):
            fetched(store, new)
        assert kept(tmp_path) == set()


@pytest.mark.parametrize("refusing", ["utime", "unlink"])
def test_files_of_another_user_are_used(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusing: str
) -> None:
    shards = [put(tmp_path, f"{n}.bin", 1000) for n in range(2)]
    fetched(RemoteStore(server, tmp_path / "cache"), shards[0])
    theirs = tmp_path / "cache/shards" / shards[0][2]
    unlink = Path.unlink

    def refuse(path: Any, *_: Any, missing_ok: bool = False) -> None:
        if refusing == "utime" or path == theirs:
            raise PermissionError(errno.EPERM, "not yours")
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(*((os, "utime") if refusing == "utime" else (Path, "unlink")), refuse)
    store = RemoteStore(server, tmp_path / "cache", 1500)
    assert [len(fetched(store, shard)) for shard in shards] == [1000, 1000]
    assert theirs.exists() == (refusing == "unlink")


def test_what_may_only_be_read_is_locked_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").touch()
    opened, os_open = [], os.open

    def refuse(path: Path, flags: int, mode: int = 0) -> int:
        opened.append((flags, mode))
        if flags & os.O_RDWR:
            raise PermissionError
        return os_open(path, flags)

    monkeypatch.setattr(os, "open", refuse)
    descriptor = cache.locked(tmp_path / "a", fcntl.LOCK_EX, create=True)
    assert descriptor is not None
    os.close(descriptor)
    assert opened == [(os.O_RDWR | os.O_CREAT, 0o666), (os.O_RDONLY, 0)]


def test_a_lock_counts_only_on_the_file_that_is_still_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock = tmp_path / "a", fcntl.flock
    path.write_text("removed by another process before it is locked here")

    def late(descriptor: int, how: int) -> None:
        path.unlink()
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    assert cache.locked(path, fcntl.LOCK_SH) is None


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "a\\..\\b", ""])
def test_names_outside_the_corpus_are_refused(tmp_path: Path, name: str) -> None:
    for url in ("http://127.0.0.1:9", tmp_path.as_uri()):
        with pytest.raises(CorpusError, match="no name inside a corpus"):
            open_files(url, "first", tmp_path / "cache", None).read(name)
    with pytest.raises(CorpusError, match="is no sha256"):
        fetched(RemoteStore("http://127.0.0.1:9", tmp_path / "cache"), ("a", 1, "../../x"))


def test_a_file_url_is_read_in_place(tmp_path: Path) -> None:
    name, size, sha256 = put(tmp_path, "a b.bin")
    put(tmp_path, "m/00000007.json", 5)
    store = open_files((tmp_path / "there").as_uri(), "first", tmp_path / "cache", None)
    with store.local_path(name, size, sha256) as path:
        assert path == tmp_path / "there/a b.bin"
    assert store.newest("m") == "m/00000007.json" and len(store.read("m/00000007.json")) == 5
    assert not (tmp_path / "cache").exists()


def numbered(folder: Path, shards: int) -> Path:
    """A phase of shards of 16 rows, each token of which is the row's number."""
    rows = [numbered_rows(1 + 16 * number, 16, 64) for number in range(shards)]
    return write_phase(folder / "there", {"web": rows}, sequence_length=64)


def rows_of(loader: CorpusLoader) -> Iterator[int]:
    for batch in loader:
        yield from batch.tokens[:, 0].tolist()


def test_several_loaders_stay_within_the_cache(server: str, tmp_path: Path) -> None:
    expected = [*rows_of(every_sample(numbered(tmp_path, 20)))]
    one = 16 * 64 * 2  # bytes of a shard
    options = LoaderOptions(cache=tmp_path / "cache", cache_bytes=8 * one)
    loaders = [rows_of(every_sample(server, options=options)) for _ in range(3)]
    found, largest = [], 0
    for rows in zip(*loaders, strict=True):
        found.append(rows)
        sizes = [path.stat().st_size for path in (tmp_path / "cache/shards").iterdir()]
        largest = max(largest, sum(sizes))
    assert found == [(row, row, row) for row in expected]
    assert 7 * one <= largest <= 8 * one


def test_a_loader_gives_up_what_it_does_not_need_if_the_cache_is_full(
    server: str, tmp_path: Path
) -> None:
    numbered(tmp_path, 4)
    one = 16 * 64 * 2
    options = LoaderOptions(cache=tmp_path / "cache", cache_bytes=5 * one)
    store = RemoteStore(server, tmp_path / "cache", 5 * one)
    loader = every_sample(server, options=options)
    shards = loader.reader.shards
    shards.get([0, 1, 2])
    with store.local_path(*put(tmp_path, "other.bin", 2 * one)):
        shards.get([3])
        assert [*shards.opened] == [3]
    shards.get([0, 1])
    shards.get([2])
    assert len(shards.opened) == 4


USER = """
import random, sys
from corpus_loader.places.remote import RemoteStore
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

TOGETHER = """
import sys
from corpus_loader.places.remote import RemoteStore
from corpus_loader.places.threads import map_in_threads
url, cache, *shards = sys.argv[1:]
store = RemoteStore(url, cache)
def fetch(shard):
    name, sha256 = shard.split(":")
    with store.local_path(name, 3_000_000, sha256):
        pass
map_in_threads(fetch, shards, 2)
"""

FETCHER = """
import sys
from corpus_loader.places.remote import RemoteStore
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


def test_a_slow_download_is_waited_for_as_long_as_it_grows(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = put(tmp_path, "a.bin")
    monkeypatch.setattr(cache, "PATIENCE_SECONDS", 0.2)

    def slow(request: Handler, content: bytes) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(SIZE))
        request.end_headers()
        for start in range(0, SIZE, SIZE // 6):
            time.sleep(0.12)
            request.wfile.write(content[start : start + SIZE // 6])

    monkeypatch.setattr(http_client, "BLOCK_BYTES", SIZE // 6)
    Handler.faults["/a.bin"] = [slow]
    stores = [RemoteStore(server, tmp_path / "cache") for _ in range(3)]
    assert map_in_threads(lambda store: len(fetched(store, shard)), stores, 3) == [SIZE] * 3
    assert len(Handler.asked) == 1


def test_one_that_hangs_does_not_stop_the_others(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = put(tmp_path, "a.bin")
    monkeypatch.setattr(cache, "PATIENCE_SECONDS", 0.1)
    store = RemoteStore(server, tmp_path / "cache")
    fetching = tmp_path / "cache/shards" / f".fetch-{shard[2]}"
    descriptor = cache.locked(fetching, fcntl.LOCK_EX, create=True)
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
    with s3_bucket(monkeypatch):
        look_at_s3(tmp_path)


def look_at_s3(folder: Path) -> None:
    import obstore
    from obstore.store import from_url

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
    look_at_a_fork(store)


def look_at_a_fork(store: RemoteStore) -> None:
    """It would hang: threads do not come along."""
    process = os.fork()
    if process == 0:
        signal.alarm(20)
        try:
            store.read("mixed/main/_manifests/00000009.json")
        except CorpusError as error:
            os._exit("multiprocessing_context='spawn'" in str(error))
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 1
