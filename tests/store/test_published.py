"""A published file is compared with its hash before it is used; of an array, the blocks read."""

from prelude import Any, Path, np, pytest

from assets.deduped.index.index_files import entries_of_keys
from resources.store import published
from resources.store.disk import BLOCK_BYTES
from resources.store.published import PublishedArray, PublishedFile
from resources.store.records import DamagedFileError, Stats
from resources.store.store import PartWriter, Store, published_file

VALUES = BLOCK_BYTES // 8  # of a block
NUM_BLOCKS = 4


def write(folder: Path, *arrays: Any) -> PublishedFile:
    """Publish arrays in one file."""
    partition = Store(folder).partition("band_index", "all")
    writer = PartWriter(partition, "part", "f" * 32)
    writer.write_arrays("entries", *arrays)
    [file] = writer.publish(Stats()).files
    return published_file(partition.folder / file.path, file)


@pytest.fixture
def large(tmp_path: Path) -> PublishedArray:
    """Return an array of the even numbers, in four blocks."""
    values = np.arange(0, 2 * NUM_BLOCKS * VALUES, 2, dtype=np.uint64)
    return PublishedArray(write(tmp_path, values), np.uint64, len(values))


def flip_bit(file: PublishedFile, offset: int) -> None:
    """Flip a bit of the byte at an offset."""
    with file.unchecked_path.open("r+b") as content:
        content.seek(offset)
        byte = content.read(1)[0]
        content.seek(offset)
        content.write(bytes([byte ^ 4]))


def test_a_whole_file_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, np.arange(9))
    hashed: list[Path] = []
    real = published.xxh3_of
    monkeypatch.setattr(published, "xxh3_of", lambda path: hashed.append(path) or real(path))
    assert file.blocks == ""
    assert [file.checked() for _ in range(3)] == [file.unchecked_path] * 3
    assert hashed == [file.unchecked_path]


def test_a_flipped_bit_a_cut_end_and_a_lost_file_are_named(tmp_path: Path) -> None:
    file = write(tmp_path, np.arange(9))
    file.checked()
    flip_bit(file, 5)
    with pytest.raises(DamagedFileError, match="changed since it was published: its xxh3 is"):
        file.checked()
    file.unchecked_path.write_bytes(b"short")
    with pytest.raises(DamagedFileError, match="has 5 bytes, where 72 were published"):
        file.checked()
    file.unchecked_path.unlink()
    with pytest.raises(DamagedFileError, match="is missing") as caught:
        file.checked()
    assert str(file.unchecked_path) in str(caught.value)
    assert "`corpus verify --repair` makes it again" in str(caught.value)


def test_only_the_blocks_that_are_read_are_compared(large: PublishedArray) -> None:
    assert len(large.file.blocks) == 16 * NUM_BLOCKS
    flip_bit(large.file, 2 * BLOCK_BYTES + 100)
    assert large.read(10, 12).tolist() == [20, 22]
    assert len(large.read(0, 2 * VALUES - 1)) == 2 * VALUES - 1
    with pytest.raises(DamagedFileError, match="block 2 of 4 MiB has the xxh3"):
        large.read(2 * VALUES + 50, 2 * VALUES + 51)
    with pytest.raises(DamagedFileError, match="block 2 of 4 MiB"):
        large.read(0, 2 * VALUES)  # its neighbour proves where it ends


def test_a_file_without_blocks_is_compared_as_a_whole(large: PublishedArray) -> None:
    file = PublishedFile(large.file.unchecked_path, large.file.bytes, large.file.xxh3)
    flip_bit(file, file.bytes - 1)
    with pytest.raises(DamagedFileError, match="its xxh3 is"):
        PublishedArray(file, np.uint64, large.count).read(0, 1)


def test_places_found_in_damaged_blocks_are_never_used(tmp_path: Path) -> None:
    """Whatever a bisection meets on its way, its result is right, or the damage is named."""
    count = NUM_BLOCKS * VALUES // 2
    keys = np.arange(0, 2 * count, 2, dtype=np.uint64)
    file = write(tmp_path, keys, keys + 1)
    segments = [(0, [(file, count)])]
    random = np.random.default_rng(12)
    named = 0
    for _ in range(60):
        wanted = np.sort(random.integers(0, 2 * count, 3)).astype(np.uint64)
        offset = int(random.integers(0, 8 * count) // 8 * 8 + 2)  # a high bit of a key
        flip_bit(file, offset)
        try:
            [(found, rows)] = entries_of_keys(segments, wanted, 0, 0)
            assert found.tolist() == sorted({key for key in wanted.tolist() if key % 2 == 0})
            assert (rows == found + 1).all()
        except DamagedFileError:
            named += 1
        flip_bit(file, offset)
    assert 0 < named < 60
