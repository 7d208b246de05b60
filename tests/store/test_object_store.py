"""A store on an object store is as one on a disk, and its scratch is bounded and can go."""

import threading

from prelude import Any, Iterator, Path, assert_frame_equal, os, pl, pytest, time
from s3_server import s3_bucket

from corpus_loader.places.objects import Objects
from corpus_loader.places.traffic import REQUESTS, SENT
from resources.store import object_store, scratch
from resources.store.loader_files import StoreFiles
from resources.store.medium import Medium, medium_of
from resources.store.object_store import ObjectStore, WriterLease
from resources.store.records import DamagedFileError, Manifest, PartRecord, Stats, StoreError
from resources.store.scratch import Scratch, computing, make_room, open_scratch, scratch_of
from resources.store.snapshot import Snapshot
from resources.store.store import Partition, PartWriter, Store
from resources.store.summed_files import sum_of_files

URL = "s3://corpora/web"
ROWS = pl.DataFrame({"doc_id": ["a", "b"]})


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with s3_bucket(monkeypatch):
        yield


@pytest.fixture(params=[0.0, 0.1], ids=["near", "far"])
def root(
    request: pytest.FixtureRequest, bucket: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The scratch of this machine; a store that is far away answers after 100 ms."""
    retried = Objects.retried

    def late(*arguments: Any) -> Any:
        time.sleep(request.param)
        return retried(*arguments)

    monkeypatch.setattr(Objects, "retried", late)
    return open_scratch(URL, tmp_path / "here", 1 << 30)


@pytest.fixture
def elsewhere(bucket: None, tmp_path: Path) -> Path:
    """The scratch of another machine."""
    return open_scratch(URL, tmp_path / "elsewhere", 1 << 30)


@pytest.fixture(params=["disk", "objects"])
def medium_root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "disk":
        return tmp_path / "disk"
    request.getfixturevalue("bucket")
    return open_scratch(URL, tmp_path / "here", 1 << 30)


def objects_of(root: Path) -> ObjectStore:
    medium = medium_of(root)
    assert isinstance(medium, ObjectStore)
    return medium


def scratch_at(root: Path) -> Scratch:
    found = scratch_of(root)
    assert found is not None
    return found


def publish(partition: Partition, name: str = "p", fingerprint: str = "f") -> PartRecord:
    writer = PartWriter(partition, name, fingerprint)
    writer.write_parquet("documents", ROWS)
    return writer.publish(Stats(2, 2))


def manifest(*parts: PartRecord) -> Manifest:
    return Manifest("filtered", "web", "f", "1", {}, parts, Stats())


def web(root: Path) -> Partition:
    return Store(root).partition("filtered", "web")


def put(medium: Medium, path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(".tmp-1")
    temporary.write_bytes(content)
    medium.publish(temporary, path)


def test_both_media_answer_alike(medium_root: Path, tmp_path: Path) -> None:
    medium, folder = medium_of(medium_root), medium_root / "raw" / "web"
    put(medium, folder / "a", b"12345")
    put(medium, folder / "inner" / "b", b"1")

    assert medium.names(folder) == ["a", "inner"]
    assert medium.sizes(folder) == {"a": 5}
    assert sorted(medium.files_below(folder)) == ["a", "inner/b"]
    assert (medium.size(folder / "a"), medium.size(folder / "none")) == (5, None)
    assert medium.read(folder / "a") == b"".join(medium.blocks(folder / "a")) == b"12345"
    assert (medium.bring(folder / "a"), medium.bring(folder / "none")) == (True, False)
    with pytest.raises(FileNotFoundError):
        medium.read(folder / "none")
    medium.take_away(folder / "a", tmp_path / "aside")
    assert medium.size(folder / "a") is None
    medium.publish(tmp_path / "aside", folder / "a")
    assert medium.read(folder / "a") == b"12345"
    medium.remove_all([folder / "a", folder / "inner" / "b"])
    assert (medium.names(folder / "inner"), medium.sizes(folder / "nowhere")) == ([], {})


def test_a_name_is_created_once(medium_root: Path) -> None:
    medium, path = medium_of(medium_root), medium_root / "raw" / "web" / "_manifests" / "1.json"
    assert medium.create(path, b"first")
    assert not medium.create(path, b"second")
    assert medium.create(path, b"first"), "an attempt whose answer was lost"
    assert medium.read(path) == b"first"


def test_a_part_published_here_is_read_elsewhere(root: Path, elsewhere: Path) -> None:
    record = publish(web(root))
    web(root).commit(manifest(record))

    there = Store(elsewhere)
    found = there.newest("filtered", "web")
    assert found.parts == (record,)
    assert web(elsewhere).find_part("p", "f") == Snapshot(web(elsewhere)).find_part("p", "f")
    assert [place.name for place in there.partitions()] == ["web"]
    file = there.file_of(found, record.files[0])
    assert not file.unchecked_path.exists()
    assert_frame_equal(pl.read_parquet(file.checked()), ROWS)
    assert StoreFiles(elsewhere).newest("filtered/web/_manifests") is not None
    assert str(there) == URL


def test_files_of_many_parts_are_copied_side_by_side_and_come_in_order(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [publish(web(root), f"p{number}", "f") for number in range(5)]
    there, found = Store(elsewhere), manifest(*parts)
    together = threading.Barrier(5, timeout=20)
    objects, get = objects_of(elsewhere).objects, Objects.get_to_file

    def wait_for_others(self: Objects, key: str, path: Path) -> Any:
        together.wait()
        return get(self, key, path)

    monkeypatch.setattr(type(objects), "get_to_file", wait_for_others)

    paths = [*there.checked_files(found, parts, "documents")]

    assert paths == [there.part_file(found, part, "documents").unchecked_path for part in parts]
    assert all(path.exists() for path in paths)
    assert [*there.checked_files(found, parts, "of another kind")] == []
    paths[3].write_bytes(b"damaged")  # a copy: it is made again
    monkeypatch.setattr(type(objects), "get_to_file", get)
    assert pl.read_parquet([*there.checked_files(found, parts, "documents")][3]).equals(ROWS)


def test_a_sum_over_parts_is_read_with_one_request_until_the_parts_are_others(
    root: Path, elsewhere: Path
) -> None:
    parts = [publish(web(root), f"p{number}", f"f{number}") for number in range(5)]

    def total(files: Iterator[Path]) -> bytes:
        return b"%d" % sum(pl.read_parquet(file).height for file in files)

    def read_again(_: Iterator[Path]) -> bytes:
        raise AssertionError("it is kept")

    of_five, of_four = manifest(*parts), manifest(*parts[:4])
    kept = sum_of_files(Store(root), of_five, "documents", total)
    before = SENT[URL, REQUESTS]
    assert sum_of_files(Store(elsewhere), of_five, "documents", read_again) == kept
    assert SENT[URL, REQUESTS] - before == 1
    assert int(sum_of_files(Store(elsewhere), of_four, "documents", total)) * 5 == int(kept) * 4
    path = "_previews/filtered/web.sum"
    objects_of(root).objects.put(path, objects_of(root).objects.get(path)[:-1] + b"?")
    assert int(sum_of_files(Store(root), of_four, "documents", total)) * 5 == int(kept) * 4


def test_of_two_writers_one_commits(root: Path, elsewhere: Path) -> None:
    mine, other = web(root), web(elsewhere)
    with mine.writing(3), other.writing(3):
        other.commit(manifest(publish(other, "q")))
        with pytest.raises(StoreError, match="another run committed manifest 1 meanwhile"):
            mine.commit(manifest(publish(mine)))
    assert [part.name for part in other.read_manifest(1).parts] == ["q"]


def test_a_damaged_copy_is_fetched_again_and_a_damaged_object_is_named(root: Path) -> None:
    record = publish(web(root))
    file = Store(root).file_of(manifest(record), record.files[0])
    copy, size = file.unchecked_path, record.files[0].bytes
    copy.write_bytes(bytes(size))
    assert_frame_equal(pl.read_parquet(file.checked()), ROWS)
    objects_of(root).objects.put("filtered/web/p-f.documents.parquet", bytes(size))
    copy.unlink()
    with pytest.raises(DamagedFileError, match=rf"{URL}/filtered/web/p-f\.documents.* changed"):
        file.checked()
    objects_of(root).remove_all([copy])
    with pytest.raises(DamagedFileError, match=f"{URL}/filtered/web/p-f.* is missing"):
        file.checked()


def copies(root: Path, number: int) -> list[Path]:
    """Copies of 1,000 bytes each, the first used longest ago."""
    paths = [root / "raw" / "web" / f"{each}.bin" for each in range(number)]
    for age, path in enumerate(reversed(paths)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(1000))
        os.utime(path, (time.time() - 1000 - age,) * 2)
    return paths


def test_the_copies_used_longest_ago_go_first(tmp_path: Path) -> None:
    root = open_scratch(URL, tmp_path, 10_000)
    paths = copies(root, 10)
    make_room(scratch_at(root), 0)
    assert all(path.exists() for path in paths)
    assert scratch.use(scratch_at(root), paths[0])
    make_room(scratch_at(root), 3_000)
    assert [path.exists() for path in paths] == [True, *[False] * 4, *[True] * 5]


def test_copies_that_a_part_uses_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "GRACE_SECONDS", 0.0)
    root = open_scratch(URL, tmp_path, 1_000)
    paths = copies(root, 3)
    with computing():
        assert scratch.use(scratch_at(root), paths[0])
        make_room(scratch_at(root), 0)
        assert [path.exists() for path in paths] == [True, False, False]
    time.sleep(0.01)
    make_room(scratch_at(root), 1_000)
    assert not paths[0].exists()
    assert not list((root / scratch.USERS).iterdir()), "the locks of ended parts go"


def test_what_a_writer_builds_on_is_not_removed(root: Path, elsewhere: Path) -> None:
    mine, other = web(root), web(elsewhere)
    with other.writing(3):
        unnamed = publish(other, "q")
        with mine.writing(3):
            mine.commit(manifest(publish(mine)))
        assert other.find_part("q", "f") == unnamed
    with mine.writing(3):
        pass
    assert other.find_part("q", "f") is None, "no manifest names it, and no writer is left"
    assert mine.find_part("p", "f") is not None


def test_the_lease_of_a_dead_writer_is_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = objects_of(root).objects
    dead = WriterLease(objects)
    dead.renew()
    with WriterLease(objects).held() as lease:
        assert not lease.is_alone()
        time.sleep(1.1)  # the times of objects are in seconds
        monkeypatch.setitem(object_store.STALE_SECONDS, object_store.WRITER, 0.5)
        assert lease.is_alone()
    assert objects.list_objects() == []


def test_a_writer_without_its_lease_does_not_commit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = web(root)
    with mine.writing(3):
        record = publish(mine)
        monkeypatch.setitem(object_store.STALE_SECONDS, object_store.WRITER, 0.0)
        with pytest.raises(StoreError, match="the lease of this run could not be renewed"):
            mine.commit(manifest(record))
        monkeypatch.undo()
    assert mine.manifest_numbers() == []


def test_parts_of_a_large_object_are_read_without_a_copy(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(range(256)) * 40
    (root / "new").write_bytes(content)
    objects_of(root).publish(root / "new", root / "sharded/web/piles.bin")
    path = elsewhere / "sharded/web/piles.bin"
    monkeypatch.setattr(object_store, "WHOLE_BYTES", 1000)

    with medium_of(elsewhere).open(path) as file:
        assert file.seek(0, os.SEEK_END) == len(content)
        assert file.read(5) == b""
        file.seek(len(content) - 3)
        assert file.read(10) == content[-3:]
        file.seek(256)
        assert file.read(7) + file.read(3) == content[256:266]
        assert file.seek(-6, os.SEEK_CUR) == 260
    assert not path.exists()

    monkeypatch.setattr(object_store, "WHOLE_BYTES", len(content))
    with medium_of(elsewhere).open(path) as file:
        assert file.read() == content
    assert path.exists()
    with pytest.raises(FileNotFoundError):
        medium_of(elsewhere).open(elsewhere / "sharded/web/none.bin")


def test_a_writer_waits_for_one_that_removes_files(root: Path) -> None:
    objects = objects_of(root).objects
    sweeper = WriterLease(objects)
    assert sweeper.is_alone()
    began = time.monotonic()
    threading.Timer(1.0, sweeper.share).start()
    with WriterLease(objects).held():
        assert time.monotonic() - began >= 1.0


def test_a_sweeper_that_died_keeps_no_one_waiting_for_long(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(object_store.STALE_SECONDS, object_store.SWEEPER, 0.5)
    objects = objects_of(root).objects
    assert WriterLease(objects).is_alone()
    time.sleep(1.1)  # the times of objects are in seconds
    with WriterLease(objects).held():
        kinds = [info.key.rpartition(".")[2] for info in objects.list_objects("_writers")]
    assert kinds == ["writer", "writer"], "that of the dead writer stays until it is stale"
