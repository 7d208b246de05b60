"""After a power cut, parts that no manifest names are compared before they are believed."""

from prelude import Path, pytest

from resources.store import disk
from resources.store.records import Manifest, PartRecord, Stats
from resources.store.store import Partition, PartWriter, Store


@pytest.fixture
def web(tmp_path: Path) -> Partition:
    return Store(tmp_path / "store").partition("filtered", "web")


def publish(web: Partition, name: str) -> PartRecord:
    writer = PartWriter(web, name, "f" * 32)
    writer.write_text("documents", "txt", "text")
    return writer.publish(Stats(1, 1))


def lose(web: Partition, part: PartRecord) -> None:
    """Leave zeros where the text was: the size was on disk, the content was not."""
    (web.folder / part.files[0].path).write_bytes(bytes(4))


def start_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, boot: str) -> None:
    path = tmp_path / boot
    path.write_text(f"{boot}\n")
    monkeypatch.setattr(disk, "BOOT_ID", path)


def test_a_part_without_its_content_is_dropped_after_a_power_cut(
    web: Partition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_again(tmp_path, monkeypatch, "first")
    with pytest.raises(ZeroDivisionError), web.writing(keep_manifests=3):
        lost, kept = publish(web, "lost"), publish(web, "kept")
        lose(web, lost)
        raise ZeroDivisionError
    start_again(tmp_path, monkeypatch, "second")

    with web.writing(keep_manifests=3):
        assert web.find_part("lost", "f" * 32) is None
        assert web.find_part("kept", "f" * 32) == kept


def test_parts_of_manifests_and_of_this_boot_are_not_read_again(
    web: Partition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_again(tmp_path, monkeypatch, "first")
    with web.writing(keep_manifests=3):
        named = publish(web, "named")
        web.commit(Manifest("filtered", "web", "e", "1", {}, (named,), Stats()))
    lose(web, named)
    start_again(tmp_path, monkeypatch, "second")
    with pytest.raises(ZeroDivisionError), web.writing(keep_manifests=3):
        assert web.find_part("named", "f" * 32) == named  # whoever reads it compares it
        lose(web, publish(web, "unnamed"))
        raise ZeroDivisionError

    with web.writing(keep_manifests=3):
        assert web.find_part("unnamed", "f" * 32) is not None


def test_the_boot_is_noted_once(web: Partition) -> None:
    for _ in range(2):
        with web.writing(keep_manifests=3):
            assert (web.folder / ".lock").read_bytes() == disk.BOOT_ID.read_bytes()
