"""Published parts are whole, all others do not exist, and of two writers one commits."""

import fcntl
import threading

import xxhash
from prelude import Path, assert_frame_equal, hashlib, json, pl, pytest

from assets.sharded.pinned_shards import pinned_places
from resources.store.disk import HASH_BLOCK_BYTES, hash_file, try_lock_alone
from resources.store.records import Manifest, PartRecord, Stats
from resources.store.store import Partition, PartWriter, Store, StoreError

ROWS = pl.DataFrame({"doc_id": ["a", "b"], "tokens": [[1, 2], [3]]})


@pytest.fixture
def web(tmp_path: Path) -> Partition:
    return Store(tmp_path).partition("filtered", "web")


def publish(web: Partition, name: str, fingerprint: str) -> PartRecord:
    writer = PartWriter(web, name, fingerprint)
    writer.write_parquet("documents", ROWS)
    return writer.publish(Stats(2, 2))


def manifest(*parts: PartRecord, fingerprint: str = "f") -> Manifest:
    return Manifest("filtered", "web", fingerprint, "1", {}, parts, Stats())


def files_in(web: Partition) -> set[str]:
    found = (path for path in web.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(web.folder)) for path in found} - {".lock"}


def leave_temporary(web: Partition) -> Path:
    """What a killed attempt leaves."""
    temporary, _ = PartWriter(web, "p", "f").new_file("documents", "parquet")
    temporary.write_text("half")
    return temporary


def test_published_part_is_found_with_its_files_and_no_others(
    web: Partition, tmp_path: Path
) -> None:
    record = publish(web, "p", "0123456789abcdef-more")

    assert web.find_part("p", "0123456789abcdef-more") == record
    assert record.files[0].path == "p-0123456789abcdef.documents.parquet"
    path = Store(tmp_path).path_of(manifest(record), record.files[0])
    assert_frame_equal(pl.read_parquet(path), ROWS)
    assert (record.files[0].rows, record.files[0].bytes) == (2, path.stat().st_size)
    assert (record.files[0].sha256, record.files[0].xxh3) == hash_file(path)
    web.commit(manifest(record))
    names = {"_parts/p-0123456789abcdef.json", "_manifests/00000001.json"}
    assert files_in(web) == {record.files[0].path, *names}


def test_part_of_several_kinds_of_files(web: Partition) -> None:
    writer = PartWriter(web, "p", "f")
    writer.write_arrow("tokens", ROWS)
    writer.write_text("tokenizer", "json", "{é}")
    record = writer.publish(Stats())

    assert [file.kind for file in record.files] == ["tokens", "tokenizer"]
    assert_frame_equal(pl.read_ipc(web.folder / record.files[0].path), ROWS)
    assert (web.folder / record.files[1].path).read_text(encoding="utf-8") == "{é}"


def test_same_content_gives_the_same_bytes(web: Partition, tmp_path: Path) -> None:
    other = Store(tmp_path / "other").partition("filtered", "web")
    assert publish(web, "p", "f") == publish(other, "p", "f")
    for name in files_in(web):
        assert (web.folder / name).read_bytes() == (other.folder / name).read_bytes()


def test_another_name_or_fingerprint_is_not_found(web: Partition) -> None:
    publish(web, "p", "f" * 32)
    for other in (("p", "other"), ("q", "f" * 32), ("p", "f" * 16 + "0" * 16)):
        assert web.find_part(*other) is None


def test_part_whose_file_was_cut_or_removed_is_not_found(web: Partition) -> None:
    path = web.folder / publish(web, "p", "f").files[0].path
    path.write_bytes(path.read_bytes()[:-1])
    assert web.find_part("p", "f") is None
    path.unlink()
    assert web.find_part("p", "f") is None
    publish(web, "p", "f")
    assert web.find_part("p", "f") is not None


def test_part_is_unpublished_until_its_record_is_there(web: Partition) -> None:
    writer = PartWriter(web, "p", "f")
    writer.write_parquet("documents", ROWS)
    assert web.find_part("p", "f") is None
    with pytest.raises(StoreError, match=r"filtered\[web\] part p lost rows.*rows_in=3"):
        writer.publish(Stats(3, 2))
    assert all(name.startswith(".tmp-") for name in files_in(web))
    publish(web, "p", "f")
    (web.records / "p-f.json").unlink()
    assert web.find_part("p", "f") is None


def test_a_failed_run_leaves_its_finished_parts_and_nothing_else_after_the_next_one(
    web: Partition,
) -> None:
    with pytest.raises(ZeroDivisionError), web.writing(keep_manifests=3):
        publish(web, "done", "f")
        raise ZeroDivisionError
    with web.writing(keep_manifests=3):
        assert web.find_part("done", "f") is not None
        web.commit(manifest(publish(web, "old", "f")))
    before = files_in(web)
    with pytest.raises(ZeroDivisionError), web.writing(keep_manifests=3):
        PartWriter(web, "new", "f").write_parquet("documents", ROWS)
        raise ZeroDivisionError

    assert web.find_part("new", "f") is None
    assert len(files_in(web)) == len(before) + 1
    with web.writing(keep_manifests=3):
        assert files_in(web) == before


def test_newest_manifest_is_the_last_committed(web: Partition, tmp_path: Path) -> None:
    assert web.newest_manifest() is None
    states = [*map(str, range(1, 12)), "1"]  # and back to an older one
    for number, state in enumerate(states, 1):
        for _ in range(2):  # the newest again changes nothing
            web.commit(Manifest("filtered", "web", state, "1", {"edges": (1, 2)}, (), Stats()))
        assert web.manifest_numbers() == list(range(1, number + 1))
    newest = Store(tmp_path).newest("filtered", "web")
    assert (newest.fingerprint, newest.config["edges"]) == ("1", [1, 2])


def test_nothing_materialized_says_what_to_materialize(tmp_path: Path) -> None:
    missing = r"filtered\[web\] is not materialized .*_manifests/\*\.json"
    with pytest.raises(StoreError, match=missing) as error:
        Store(tmp_path).newest("filtered", "web")
    assert "Materialize `filtered` for 'web' first." in str(error.value)


def test_partitions_are_those_with_a_manifest(web: Partition, tmp_path: Path) -> None:
    store = Store(tmp_path)
    publish(store.partition("raw", "books"), "p", "f")
    for stage, name in [("raw", "web"), ("deduped", "web")]:
        store.partition(stage, name).commit(manifest())
    found = [(partition.stage, partition.name) for partition in store.partitions()]
    assert found == [("deduped", "web"), ("raw", "web")]


class Late(Partition):
    """A writer that looked before the other one committed."""

    def manifest_numbers(self) -> list[int]:
        return []


def test_second_writer_is_told_and_overwrites_nothing(web: Partition) -> None:
    late = Late(web.folder, web.stage, web.name)
    web.commit(manifest(fingerprint="first"))

    with pytest.raises(StoreError, match=r"filtered\[web\]: another run committed manifest 1"):
        late.commit(manifest(fingerprint="second"))

    assert web.newest_manifest() == manifest(fingerprint="first")
    assert late.commit(manifest(fingerprint="first")) == manifest(fingerprint="first")
    assert files_in(web) == {"_manifests/00000001.json"}


def test_writer_with_an_old_view_is_told(web: Partition) -> None:
    with web.writing(keep_manifests=3):
        other = Partition(web.folder, web.stage, web.name)
        other.commit(manifest(fingerprint="other"))

        with pytest.raises(StoreError, match="another run committed manifest 1"):
            web.commit(manifest(fingerprint="mine"))


def test_manifest_that_cannot_be_read_is_named(web: Partition) -> None:
    web.commit(manifest())
    web.manifest_path(1).write_bytes(b"{")

    with pytest.raises(StoreError, match=r"00000001\.json: not a manifest"):
        web.newest_manifest()


def test_of_many_writers_each_commits_or_is_told(web: Partition) -> None:
    start, committed, told = threading.Barrier(8), [], []

    def commit(fingerprint: str) -> None:
        start.wait()
        try:
            committed.append(web.commit(manifest(fingerprint=fingerprint)).fingerprint)
        except StoreError:
            told.append(fingerprint)

    threads = [threading.Thread(target=commit, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    numbers = web.manifest_numbers()
    assert numbers == list(range(1, len(committed) + 1))
    assert sorted(web.read_manifest(n).fingerprint for n in numbers) == sorted(committed)
    assert len(committed) + len(told) == 8


def test_garbage_collection_keeps_the_last_manifests_and_what_they_name(web: Partition) -> None:
    shared = publish(web, "shared", "f")
    for number in range(1, 5):
        web.commit(manifest(shared, publish(web, f"part{number}", "f"), fingerprint=str(number)))
    publish(web, "unnamed", "f")

    removed = web.collect_garbage(keep_manifests=2)

    assert files_in(web) == files_of("shared", "part3", "part4", manifests=(3, 4))
    assert len(removed) == 2 + 3 * 2
    assert web.find_part("part1", "f") is None
    for number in (5, 6):  # a writer does it when it ends
        with web.writing(keep_manifests=1):
            web.commit(manifest(publish(web, f"part{number}", "f"), fingerprint=str(number)))
    assert files_in(web) == files_of("part6", manifests=(6,))


def files_of(*parts: str, manifests: tuple[int, ...]) -> set[str]:
    files = {f"{part}-f.documents.parquet" for part in parts}
    records = {f"_parts/{part}-f.json" for part in parts}
    return files | records | {f"_manifests/{number:08d}.json" for number in manifests}


def test_folders_that_something_else_needs_stay(web: Partition) -> None:
    for number in range(3):
        with web.writing(1, keep=lambda partition: {partition.folder / "megatron-1"}):
            writer = PartWriter(web, "p", f"f{number}")
            temporary, final = writer.new_file_in(f"megatron-{number}", "shard-0.bin")
            temporary.write_bytes(b"abc")
            writer.add_file("megatron.bin", temporary, final, 1)
            record = writer.publish(Stats(1, 1))
            web.commit(manifest(record, fingerprint=str(number)))
    shards = {"megatron-1/shard-0.bin", "megatron-2/shard-0.bin"}
    assert files_in(web) == shards | {"_parts/p-f2.json", "_manifests/00000003.json"}


def test_folders_of_shards_that_a_kept_mixture_names(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert pinned_places(store.partition("sharded", "web")) == set()
    for number, text in enumerate([mixture("web", "1"), mixture("books", "2"), "{", "{}"]):
        phase = store.partition("mixed", f"phase{number}")
        writer = PartWriter(phase, "mix", "f")
        writer.write_text("mixture", "json", text)
        record = writer.publish(Stats())
        phase.commit(Manifest("mixed", phase.name, "f", "1", {}, (record,), Stats()))
        if number == 0:
            phase.commit(Manifest("mixed", phase.name, "g", "1", {}, (record,), Stats()))

    found = pinned_places(store.partition("sharded", "web"))

    assert found == {tmp_path / "sharded/web/megatron-1"}


def mixture(source: str, fingerprint: str) -> str:
    """A mixture that draws from two shards of a source."""
    paths = [f"sharded/{source}/megatron-{fingerprint}/shard-{n}" for n in range(2)]
    return json.dumps({"sources": [{"shards": [{"path": path} for path in paths]}]})


def test_writer_alone_sweeps_what_a_killed_one_left_and_a_second_one_nothing(
    web: Partition,
) -> None:
    left = leave_temporary(web)
    left_too = web.manifests / ".tmp-0-00000001.json"
    left_too.parent.mkdir()
    left_too.touch()
    with web.writing(keep_manifests=1):
        assert not left.exists() and not left_too.exists()
        temporary = leave_temporary(web)
        publish(web, "unnamed", "f")
        with web.writing(keep_manifests=1):
            web.commit(manifest())
        assert temporary.exists()
        assert web.find_part("unnamed", "f") is not None
    assert files_in(web) == {"_manifests/00000001.json"}


def test_lock_is_alone_only_without_others(tmp_path: Path) -> None:
    with open(tmp_path / "lock", "ab") as first, open(tmp_path / "lock", "ab") as second:
        assert try_lock_alone(first.fileno())
        assert not try_lock_alone(second.fileno())
        fcntl.flock(first, fcntl.LOCK_UN)
        assert try_lock_alone(second.fileno())


@pytest.mark.parametrize("content", [b"", b"abc", b"x" * (HASH_BLOCK_BYTES + 1)])
def test_hashes_are_of_the_whole_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    expected = (hashlib.sha256(content).hexdigest(), xxhash.xxh3_128_hexdigest(content))
    assert hash_file(tmp_path / "file") == expected
