"""A session lists a store once, and misses nothing that it, its workers or others write."""

import subprocess

from builders import records, sentence, write_corpus, write_jsonl
from command_line import start
from prelude import Callable, Counter, Iterator, Path, pytest, re
from s3_server import s3_bucket

from corpus_loader.places.objects import Objects
from corpus_loader.places.traffic import REQUESTS, SENT
from resources.store.medium import medium_of
from resources.store.object_store import ObjectStore
from resources.store.records import Manifest, Stats
from resources.store.scratch import open_scratch
from resources.store.store import Partition, PartWriter, Store

URL = "s3://corpora/web"
VERBS = "pipeline_defs.commands.main"
NO_ROWS: Stats = Stats(0, 0)


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """The scratches of two machines."""
    with s3_bucket(monkeypatch):
        yield open_scratch(URL, tmp_path / "a", 1 << 30), open_scratch(URL, tmp_path / "b", 1 << 30)


def objects_of(root: Path) -> ObjectStore:
    medium = medium_of(root)
    assert isinstance(medium, ObjectStore)
    return medium


def commit(root: Path, source: str, fingerprint: str, keep: int = 3) -> Partition:
    folder = Store(root).partition("filtered", source)
    with folder.writing(keep):
        writer = PartWriter(folder, "p", fingerprint)
        writer.write_text("notes", "txt", fingerprint)
        part = writer.publish(NO_ROWS)
        folder.commit(Manifest("filtered", source, fingerprint, "1", {}, (part,), NO_ROWS))
    return folder


def requests_of(action: Callable[[], object]) -> int:
    before = Counter(SENT)
    action()
    return (Counter(SENT) - before)[URL, REQUESTS]


def newest(root: Path, *sources: str) -> list[str]:
    return [Store(root).newest("filtered", source).fingerprint for source in sources]


def test_a_stage_is_listed_once_and_a_manifest_read_once(roots: tuple[Path, Path]) -> None:
    here, there = roots
    for source in "abc":
        commit(there, source, f"of {source}")
    store = Store(here)
    with store.session():
        assert requests_of(lambda: newest(here, *"abc")) == 1 + 3
        assert requests_of(lambda: newest(here, *"abc")) == 0
        folder = store.partition("filtered", "a")
        assert requests_of(lambda: folder.find_part("p", "of a")) == 1, "its record"
        assert requests_of(lambda: (folder.garbage(3), folder.find_part("p", "no"))) == 2, "tags"
        assert [each.name for each in store.partitions()] == ["a", "b", "c"]
    with store.session():
        assert requests_of(lambda: newest(here, *"abc")) == 1
    assert newest(here, *"abc") == ["of a", "of b", "of c"]


def test_a_step_that_has_the_lease_of_its_run_asks_for_nothing_at_its_start(
    roots: tuple[Path, Path],
) -> None:
    run = objects_of(roots[0])
    with run.session():
        step = ObjectStore(run.scratch)

        def be_a_step() -> None:
            with step.session(run.lease_key()):
                assert step.lease is not None
                step.lease.check()

        assert requests_of(be_a_step) == 0


def test_what_a_session_writes_it_sees_and_others_at_the_next_step(
    roots: tuple[Path, Path],
) -> None:
    here, there = roots
    with Store(here).session():
        commit(here, "a", "1")
        assert newest(here, "a") == ["1"]
        medium_of(here).write_to(here / "filtered/a")
        commit(there, "a", "2")  # as a worker does
        assert newest(here, "a") == ["2"]
        medium_of(here).settle(here / "filtered/a")
        assert newest(here, "a") == ["2"]
        commit(there, "a", "3")
        assert newest(here, "a") == ["2"]
        medium_of(here).begin_step("filtered")
        assert newest(here, "a") == ["3"]
        commit(here, "b", "4", keep=1)
        folder = commit(here, "b", "5", keep=1)
        assert folder.manifest_numbers() == [2]
        assert medium_of(here).sizes(folder.records).keys() == {"p-5.json"}
        assert medium_of(here).names(here / "filtered") == ["a", "b"]
    assert objects_of(here).objects.list_objects("_writers") == []


def test_a_manifest_that_was_repaired_is_read_again(roots: tuple[Path, Path]) -> None:
    here, there = roots
    path = commit(there, "a", "1").manifest_path(1)
    key, objects = "filtered/a/_manifests/00000001.json", objects_of(there).objects
    whole = objects.get(key)
    objects.put(key, whole.replace(b"filtered", b"damaged!"))
    here_path = here / path.relative_to(there)
    with Store(here).session():
        assert medium_of(here).read(here_path) != whole
        objects.put(key, whole)
        medium_of(here).begin_step("filtered")
        assert medium_of(here).read(here_path) == whole


def test_no_copy_is_kept_of_text_beside_the_stages(roots: tuple[Path, Path]) -> None:
    here, _ = roots
    objects_of(here).objects.put("_patches/web/00000001.json", b"a text")
    with Store(here).session():
        assert medium_of(here).read(here / "_patches/web/00000001.json") == b"a text"
    assert not [path for path in here.rglob("*") if path.is_file() and "_patches" in str(path)]


def test_one_lease_is_for_all_and_only_it_lets_others_wait(roots: tuple[Path, Path]) -> None:
    here, there = roots
    commit(here, "a", "1")
    with Store(here).session():
        first, second = (Store(here).partition("filtered", name) for name in "ab")
        with first.writing(3), second.writing(3):
            assert len(objects_of(here).objects.list_objects("_writers")) == 1
        assert Store(there).partition("filtered", "a").sweep(1, is_dry=True) is None
    assert Store(there).partition("filtered", "a").sweep(1, is_dry=True) == {}


@pytest.mark.slow
def test_a_build_with_nothing_to_do_sends_few_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = {"folder": str(tmp_path / "scratch")}
    config = write_corpus(tmp_path, store="s3://corpora/mine", scratch=scratch)
    with s3_bucket(monkeypatch):
        first, second = requests_in(config), requests_in(config)
        assert first > second
        assert second <= 5 * 2 + 50, "two sources"
        keys = {info.key for info in Objects("s3://corpora/mine").list_objects()}
        assert not [key for key in keys if "_writers" in key]
        write_jsonl(tmp_path / "input/prose/c.jsonl", records(sentence(500, 40)))
        assert requests_in(config) > second
        assert succeeded(start(config, VERBS, "verify"))


def requests_in(config: Path) -> int:
    """Build; return the number of requests that the build prints."""
    assert succeeded(start(config, VERBS, "build"))
    found = re.search(
        r"^Object store: ([\d,]+) requests", (config.parent / "out.log").read_text(), re.M
    )
    assert found
    return int(found[1].replace(",", ""))


def succeeded(process: subprocess.Popen[str]) -> bool:
    return process.wait(300) == 0
