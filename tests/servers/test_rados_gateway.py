"""The layer over object storage and the loader, against a Ceph RADOS gateway that is disturbed."""

import gzip
import shutil
import subprocess
import threading

from builders import Build, hashes, open_corpus, published, sentence, write_corpus, write_jsonl
from flaky_proxy import flaky_proxy
from loader_corpus import numbered_rows, write_phase
from prelude import Callable, Path, hashlib, json, os, pl, pytest, sys, time
from rados_gateway import ACCESS_KEY, SECRET_KEY, Gateway

from corpus_loader.places import transports
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.objects import Objects
from resources.store.store_place import ScratchConfig, root_of

ROOT = Path(__file__).resolve().parents[2]
SIZE = 3_000_000


def content_of(name: str, size: int = SIZE) -> bytes:
    return hashlib.shake_128(name.encode()).digest(size)


class Worker(threading.Thread):
    """Puts and reads files of its own until told to end; `fault` is the error that ended it."""

    def __init__(self, url: str, name: str, folder: Path) -> None:
        super().__init__(daemon=True)
        self.objects, self.name, self.folder = Objects(url), name, folder
        self.is_done, self.rounds, self.fault = False, 0, ""
        self.start()

    def run(self) -> None:
        while not (self.is_done or self.fault):
            key = f"{self.name}/{self.rounds}"
            try:
                self.round(key, content_of(key))
            except Exception as error:  # noqa: BLE001  the test compares it
                self.fault = f"{type(error).__name__}: {error}"
            self.rounds += 1

    def round(self, key: str, content: bytes) -> None:
        """Put, list, read and create something."""
        source, copy = self.folder / f"{self.name}.in", self.folder / f"{self.name}.out"
        source.write_bytes(content)
        self.objects.put_from_file(key, source)
        assert self.objects.list_folder(self.name)[0][str(self.rounds)] == SIZE
        self.objects.get_to_file(key, copy)
        assert copy.read_bytes() == content
        assert b"".join(transports.read_blocks(self.objects, key)) == content
        assert self.objects.create(f"{key}.json", content[:100])


def work_through(url: str, folder: Path, disturb: Callable[[], None]) -> None:
    """Have four workers at work before, during and after a disturbance."""
    workers = [Worker(url, f"worker-{number}", folder) for number in range(4)]
    wait_for_rounds(workers, 1)
    disturb()
    wait_for_rounds(workers, max(worker.rounds for worker in workers) + 2)
    for worker in workers:
        worker.is_done = True
    for worker in workers:
        worker.join(60)
    assert [worker.fault for worker in workers] == [""] * 4


def wait_for_rounds(workers: list[Worker], rounds: int) -> None:
    deadline = time.monotonic() + 120
    while any(worker.rounds < rounds and not worker.fault for worker in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_of_sixteen_that_create_one_object_one_succeeds(bucket: str) -> None:
    objects = Objects(bucket)
    for number in range(20):
        created = objects.each(
            lambda n, key=f"{number:08d}.json": objects.create(key, b"%d" % n), range(16)
        )
        assert sorted(created) == [False] * 15 + [True]
        assert objects.get(f"{number:08d}.json") == b"%d" % created.index(True)


def test_objects_are_what_was_put(bucket: str, tmp_path: Path) -> None:
    objects = Objects(f"{bucket}/a prefix")
    content = content_of("large", 40_000_000)
    (tmp_path / "in").write_bytes(content)
    objects.put_from_file("web/b c#.bin", tmp_path / "in")

    info = objects.get_to_file("web/b c#.bin", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == content
    assert info == objects.head("web/b c#.bin") == objects.list_objects("web")[0]
    assert info.num_bytes == len(content)
    assert info.etag == f'"{hashlib.md5(content).hexdigest()}"'  # of one PUT, without parts
    assert objects.get_range("web/b c#.bin", 39_999_990, 10) == content[-10:]
    objects.delete("web/b c#.bin")
    objects.delete("web/b c#.bin")
    assert objects.list_objects() == []


def test_a_gateway_that_is_killed_and_restarted_loses_no_request(
    gateway: Gateway, bucket: str, tmp_path: Path
) -> None:
    def restart() -> None:
        for _ in range(2):
            gateway.kill()
            time.sleep(3)
            gateway.start()

    work_through(bucket, tmp_path, restart)


def test_a_store_that_answers_503_for_20_seconds_loses_no_request(
    gateway: Gateway, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flaky_proxy(gateway.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.endpoint)

        def throttle() -> None:
            proxy.refuse(503, "<Error><Code>SlowDown</Code></Error>")
            time.sleep(20)
            proxy.recover()

        work_through(bucket, tmp_path, throttle)
        assert proxy.refused > 8


def test_refused_credentials_are_named_at_once_and_without_secrets(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Objects(bucket).put("a", b"")
    for variable, code in {
        "AWS_SECRET_ACCESS_KEY": "SignatureDoesNotMatch",
        "AWS_ACCESS_KEY_ID": "InvalidAccessKeyId",
    }.items():
        monkeypatch.setenv(variable, "hunter2")
        objects = Objects(bucket)
        for request in requests(objects):
            with pytest.raises(CorpusError) as error:
                request()
            assert code in str(error.value) and "Check the credentials" in str(error.value)
            assert not any(
                secret in str(error.value) for secret in ("hunter2", ACCESS_KEY, SECRET_KEY)
            )
            assert "attempts" not in str(error.value)


def test_a_missing_bucket_is_named_at_once(bucket: str) -> None:
    for request in requests(Objects(f"{bucket}-not/there")):
        with pytest.raises(CorpusError, match=rf"{bucket}-not/there/.*: no such bucket\. Check"):
            request()


def requests(objects: Objects) -> list[Callable[[], object]]:
    return [
        lambda: objects.get("a"),
        lambda: objects.put("a", b""),
        lambda: objects.create("a", b""),
        lambda: objects.list_objects(),
        lambda: objects.names("a"),
        lambda: objects.delete("a"),
        lambda: b"".join(transports.read_blocks(objects, "a")),
    ]


READ_ONE = """
import sys
from corpus_loader.places.objects import Objects
Objects(sys.argv[1]).get("a")
"""


def test_a_wrong_clock_is_named(bucket: str) -> None:
    assert shutil.which("faketime"), "apt-get install faketime"
    Objects(bucket).put("a", b"")
    done = subprocess.run(
        ["faketime", "-f", "-2h", sys.executable, "-c", READ_ONE, bucket],
        env=os.environ | {"TOKENMILL_RETRY_SECONDS": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    last = done.stderr.splitlines()[-1]
    assert "RequestTimeTooSkewed: this machine's clock differs from the store's" in last
    assert SECRET_KEY not in done.stderr and ACCESS_KEY not in done.stderr


TRAIN = """
import sys
from corpus_loader import CorpusLoader, LoaderOptions
loader = CorpusLoader(sys.argv[1], batch_size=4, options=LoaderOptions(cache=sys.argv[2]))
for batch in loader:
    print(batch.tokens.tolist(), flush=True)
    sys.stdin.readline()
"""


def test_a_training_job_goes_on_when_the_gateway_is_restarted(
    gateway: Gateway, bucket: str, tmp_path: Path
) -> None:
    shards = [numbered_rows(8 * number, 8) for number in range(12)]
    store = write_phase(tmp_path / "store", {"web": shards}, window_shards=2)
    objects = Objects(f"{bucket}/corpus")
    for path in store.rglob("*"):
        if path.is_file():
            objects.put_from_file(str(path.relative_to(store)), path)
    expected = train(str(store), tmp_path / "none", lambda go_on: go_on())

    def restart(go_on: Callable[[], None]) -> None:
        assert len(list((tmp_path / "cache/shards").glob("[0-9a-f]*"))) < 20  # of 36
        gateway.kill()
        go_on()
        time.sleep(5)
        gateway.start()

    assert train(f"{bucket}/corpus", tmp_path / "cache", restart) == expected


def train(url: str, cache: Path, disturb: Callable[[Callable[[], None]], None]) -> list[str]:
    """Return the batches of a training job, which waits after the first until `disturb` is done."""
    command = [sys.executable, "-c", TRAIN, url, str(cache)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdin and job.stdout
        batches = [job.stdout.readline()]
        job.stdin.write("\n" * 1000)  # for all other batches, while the store is away
        disturb(job.stdin.flush)
        out, _ = job.communicate(timeout=120)
    assert job.returncode == 0
    return [*batches, *out.splitlines(keepends=True)]


def test_a_corpus_on_the_gateway_is_that_of_a_disk_night_after_night(
    bucket: str, tmp_path: Path, build: Build
) -> None:
    objects = Objects(bucket)
    config = write_corpus(tmp_path, engine={"kind": "in_process", "workers": 1})
    for night in range(2):
        here = open_corpus(config)
        build(here)
        machine = ScratchConfig(folder=str(tmp_path / f"machine-{night}"))  # without copies
        there = open_corpus(config, root_of(f"{bucket}/corpus", tmp_path, machine))
        build(there)

        listed = [info.key for info in objects.list_objects("corpus")]
        keys = [key for key in listed if "_previews" not in key]  # as `hashes` does
        contents = objects.each(objects.get, keys)
        published = {
            f"corpus/{name}": digest
            for name, digest in hashes(here.store.root).items()
            if not name.endswith(".lock")
        }
        assert dict(zip(keys, map(digest_of, contents), strict=True)) == published

        new = [{"text": sentence(500 + number)} for number in range(30)]
        write_jsonl(tmp_path / "input/prose/c.jsonl", new)
        (tmp_path / "input/prose/b.jsonl").unlink(missing_ok=True)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_source_on_the_gateway_is_read_where_it_is_new(
    bucket: str, tmp_path: Path, build: Build
) -> None:
    objects = Objects(bucket)
    for number in range(3):
        objects.put(f"web/{number}.jsonl", json.dumps({"text": sentence(number)}).encode())
    sources = [
        {"name": "prose", "where": f"{bucket}/web/*.jsonl"},
        {"name": "notes", "where": "input/notes/*"},
    ]
    config = write_corpus(tmp_path, sources=sources, engine={"kind": "in_process", "workers": 1})
    corpus = open_corpus(config)
    build(corpus, "raw")
    before = corpus.store.newest("raw", "prose")
    build(corpus, "raw")
    assert corpus.store.newest("raw", "prose") == before

    objects.put("web/1.jsonl", json.dumps({"text": sentence(7)}).encode())
    build(corpus, "raw")
    after = corpus.store.newest("raw", "prose")
    assert after.fingerprint != before.fingerprint and after.stats.rows_kept == 3


def test_a_source_is_read_by_ranges_while_the_gateway_is_restarted(
    gateway: Gateway, bucket: str, tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents are those of the same files on a disk, and nothing is copied to one."""
    texts = [f"{number} {sentence(number % 500)} " * 20 for number in range(6000)]
    folder = tmp_path / "input/web"
    folder.mkdir(parents=True)
    lines = [json.dumps({"text": text}).encode() + b"\n" for text in texts]
    (folder / "a.jsonl").write_bytes(b"".join(lines[:2000]))
    members = [gzip.compress(b"".join(lines[i : i + 250]), 1) for i in range(2000, 4000, 250)]
    (folder / "b.jsonl.gz").write_bytes(b"".join(members))
    pl.DataFrame({"text": texts[4000:]}).write_parquet(folder / "c.parquet", row_group_size=250)
    objects = Objects(bucket)
    for path in folder.iterdir():
        objects.put_from_file(f"web/{path.name}", path)

    found = []
    for name, where in (("local", "../input/web"), ("remote", f"{bucket}/web")):
        sources = [{"name": "prose", "where": where}, {"name": "notes", "where": "input/notes/*"}]
        corpus = open_corpus(
            write_corpus(
                tmp_path / name,
                sources=sources,
                engine={"kind": "in_process", "workers": 2},
                part_bytes=1 << 20,
            )
        )
        is_built = threading.Event()
        restarts = threading.Thread(target=restart_soon, args=(gateway, is_built))
        if name == "remote":
            restarts.start()
        try:
            build(corpus, "raw")
        finally:
            is_built.set()
        if name == "remote":
            restarts.join()
            gateway.start()  # of this thread, for the tests that follow
        assert not corpus.downloads.exists()
        found.append(published(corpus)["text"].to_list())
    assert found[0] == found[1] == texts


def restart_soon(gateway: Gateway, is_over: threading.Event) -> None:
    """Restart the gateway three times; a daemon ends with the thread that started it."""
    for _ in range(3):
        time.sleep(0.3)
        gateway.kill()
        time.sleep(1)
        gateway.start()
    is_over.wait()
    gateway.kill()
