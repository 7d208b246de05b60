"""No flipped bit of a manifest or of a part's record goes unseen, and older records are read."""

import random

from prelude import Callable, Iterator, Path, json, pytest

from corpus_loader.find_mixture import find_mixture
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.local_files import LocalFiles
from corpus_loader.seal import sealed, unsealed
from resources.store.records import FileRecord, Manifest, PartRecord, Stats, to_json, to_line
from resources.store.store import Partition, PartWriter, Store, StoreError

SAMPLED = 3000  # bits of a large manifest


@pytest.fixture
def web(tmp_path: Path) -> Partition:
    """Return a partition with one published part, and a manifest of it."""
    folder = Store(tmp_path).partition("filtered", "web")
    writer = PartWriter(folder, "part-0000", "f" * 32)
    writer.write_text("documents", "txt", "text")
    part = writer.publish(Stats(3, 2, {"too_short": 1}, numbers={"documents": 2}))
    config = {"rules": None, "min": 0.5}
    folder.commit(
        Manifest("filtered", "web", "e" * 32, "1", config, (part,), part.stats, {"raw": "a" * 32})
    )
    return folder


def flipped(path: Path, bits: range | list[int]) -> Iterator[int]:
    """Flip one bit of a file after another; yield each, and restore it."""
    content = path.read_bytes()
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        yield bit
    path.write_bytes(content)


def test_no_bit_of_a_small_manifest_flips_unseen(web: Partition) -> None:
    path = web.manifest_path(1)
    unseen = []
    for bit in flipped(path, range(8 * path.stat().st_size)):
        try:
            web.read_manifest(1)
        except StoreError as error:
            assert str(path) in str(error) and "corpus verify --repair" in str(error)
        else:
            unseen.append(bit)
    assert unseen == []
    assert web.read_manifest(1).stage == "filtered"


def test_no_bit_of_a_record_flips_unseen(web: Partition) -> None:
    [path] = web.records.glob("*.json")
    bits = range(8 * path.stat().st_size)
    unseen = [bit for bit in flipped(path, bits) if web.find_part("part-0000", "f" * 32)]
    assert unseen == []
    assert web.find_part("part-0000", "f" * 32) is not None


def test_no_sampled_bit_of_a_large_manifest_flips_unseen(tmp_path: Path) -> None:
    folder = Store(tmp_path).partition("raw", "web")
    files = (FileRecord("documents", "p.parquet", 2, 90, "a" * 64, "b" * 32, "c" * 160),)
    parts = tuple(PartRecord(f"part-{n:04}", f"{n:032}", files, Stats(n, n)) for n in range(300))
    folder.commit(Manifest("raw", "web", "e" * 32, "1", {}, parts, Stats(), {"files": {}}))
    path = folder.manifest_path(1)
    bits = random.Random(12).sample(range(8 * path.stat().st_size), SAMPLED)
    for bit in flipped(path, bits):
        with pytest.raises(StoreError):
            folder.read_manifest(1)
            pytest.fail(f"bit {bit} went unseen")


def test_the_loader_sees_every_flipped_bit_of_a_manifest(tmp_path: Path) -> None:
    folder = Store(tmp_path).partition("mixed", "main")
    part = PartRecord("mix", "f" * 32, (), Stats())
    folder.commit(Manifest("mixed", "main", "e" * 32, "1", {}, (part,), Stats()))
    path = folder.manifest_path(1)
    for bit in flipped(path, range(8 * path.stat().st_size)):
        with pytest.raises(CorpusError, match="is not a manifest"):
            find_mixture(LocalFiles(tmp_path), "main")
            pytest.fail(f"bit {bit} went unseen")


def test_a_manifest_of_another_place_is_refused(web: Partition, tmp_path: Path) -> None:
    other = Store(tmp_path).partition("filtered", "books")
    other.manifests.mkdir(parents=True)
    other.manifest_path(1).write_bytes(web.manifest_path(1).read_bytes())
    with pytest.raises(StoreError, match=r"it says that it is of filtered\[web\]"):
        other.read_manifest(1)


def test_a_record_of_another_part_is_not_that_part(web: Partition) -> None:
    [path] = web.records.glob("*.json")
    path.rename(path.with_name(path.name.replace("part-0000", "part-0001")))
    assert web.find_part("part-0001", "f" * 32) is None


@pytest.mark.parametrize("seal", [lambda content: content, sealed], ids=["without", "sealed"])
def test_indented_records_of_earlier_versions_are_read_and_stay(
    web: Partition, seal: Callable[[bytes], bytes]
) -> None:
    """Their stores are not computed again; the first of them sealed nothing."""
    [record] = web.records.glob("*.json")
    manifest = web.read_manifest(1)
    record.write_bytes(seal(to_json(manifest.parts[0])))
    web.manifest_path(1).write_bytes(seal(to_json(manifest)))
    assert web.read_manifest(1) == manifest
    assert web.find_part("part-0000", "f" * 32) == manifest.parts[0]
    web.commit(manifest)
    assert web.manifest_numbers() == [1]
    assert web.manifest_path(1).read_bytes() == seal(to_json(manifest))


def test_no_sampled_bit_of_an_indented_manifest_flips_unseen(web: Partition) -> None:
    path, manifest = web.manifest_path(1), web.read_manifest(1)
    path.write_bytes(sealed(to_json(manifest)))
    bits = random.Random(14).sample(range(8 * path.stat().st_size), SAMPLED // 10)
    for bit in flipped(path, bits):
        with pytest.raises(StoreError):
            web.read_manifest(1)
            pytest.fail(f"bit {bit} went unseen")


@pytest.mark.parametrize("form", [to_json, to_line])
def test_a_seal_is_the_last_key_and_comes_off_again(form: Callable[[object], bytes]) -> None:
    content = form({"stage": "raw", "about": {}})
    assert sealed(content).startswith(content.rstrip(b"}\n")) and b'"sha256":' in sealed(content)
    assert list(json.loads(sealed(content))) == ["about", "stage", "sha256"]
    assert unsealed(sealed(content)) == content


def test_a_record_on_one_line_needs_its_seal() -> None:
    with pytest.raises(ValueError, match="its seal"):
        unsealed(to_line({"stage": "raw"}))
