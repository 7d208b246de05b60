"""A snapshot finds the parts that single looks find, from a manifest and a listing."""

from prelude import Callable, Path, pytest

from resources.store.records import Manifest, PartRecord, Stats
from resources.store.snapshot import Snapshot
from resources.store.store import Partition, PartWriter, Store
from resources.tasks import FEW, Task, look_up, stream_name

FINGERPRINT = "f" * 32


@pytest.fixture
def web(tmp_path: Path) -> Partition:
    return Store(tmp_path).partition("filtered", "web")


def publish(web: Partition, name: str, **numbers: bool) -> PartRecord:
    writer = PartWriter(web, name, FINGERPRINT)
    writer.write_text("documents", "txt", name)
    temporary, final = writer.new_file_in("folder-f", f"{name}.bin")
    temporary.write_bytes(b"abc")
    writer.add_file("rows", temporary, final, 1)
    return writer.publish(Stats(1, 1, numbers=numbers))


def commit(web: Partition, *parts: PartRecord) -> None:
    web.commit(Manifest("filtered", "web", "f", "1", {}, parts, Stats()))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def test_parts_inside_and_outside_of_the_newest_manifest_are_found(web: Partition) -> None:
    named, unnamed = publish(web, "named"), publish(web, "unnamed")
    commit(web, named)
    snapshot = Snapshot(web)
    assert snapshot.find_part("named", FINGERPRINT) == named
    assert snapshot.find_part("unnamed", FINGERPRINT) == unnamed
    assert snapshot.find_part("named", "0" * 32) is None
    assert snapshot.find_part("named", FINGERPRINT[:-1] + "0") is None  # in the same file
    assert snapshot.find_part("other", FINGERPRINT) is None


@pytest.mark.parametrize("damage", [cut, Path.unlink])
@pytest.mark.parametrize("place", ["p-*.txt", "folder-f/p.bin", "_parts/p-*.json"])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_part_with_a_lost_or_cut_file_is_not_found(
    web: Partition, place: str, damage: Callable[[Path], None], is_named: bool
) -> None:
    part = publish(web, "p")
    commit(web, *[part] * is_named)
    [path] = web.folder.glob(place)
    damage(path)
    is_read_elsewhere = is_named and damage is cut and place.startswith("_parts")
    assert (Snapshot(web).find_part("p", FINGERPRINT) is None) is not is_read_elsewhere


def test_a_manifest_that_cannot_be_read_hides_no_part(web: Partition) -> None:
    part = publish(web, "p")
    commit(web, part)
    cut(web.manifest_path(1))
    assert Snapshot(web).find_part("p", FINGERPRINT) == part


@pytest.mark.parametrize("others", [0, FEW])
def test_streams_are_looked_up_to_their_last_part(web: Partition, others: int) -> None:
    whole = [publish(web, stream_name("whole", n), is_last=n == 2) for n in range(3)]
    open_end = [publish(web, stream_name("open", n), is_last=False) for n in range(3)]
    commit(web, *whole, *open_end)
    root = web.folder.parent.parent
    names = ["whole", "open", *(f"other-{n}" for n in range(others))]
    tasks = [Task(root, "filtered", "web", name, FINGERPRINT, 1, is_stream=True) for name in names]
    assert look_up(tasks) == [whole, None, *[None] * others]
