"""Writing to disk begins when a file is published, and is waited for once."""

import ctypes
import errno

from prelude import Path, pytest

from resources.store.disk import LARGE_BYTES, LIBC, begin_to_flush


@pytest.mark.parametrize(
    ("num_bytes", "has_begun"), [(0, False), (LARGE_BYTES - 1, False), (LARGE_BYTES, True)]
)
def test_a_large_file_begins_to_be_written(tmp_path: Path, num_bytes: int, has_begun: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(num_bytes))
    assert begin_to_flush(path) is has_begun
    assert path.read_bytes() == bytes(num_bytes)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        begin_to_flush(tmp_path / "file")


def test_a_call_of_the_system_that_fails_tells_its_error() -> None:
    ctypes.set_errno(0)
    assert LIBC.syncfs(-1) == -1
    assert ctypes.get_errno() == errno.EBADF
