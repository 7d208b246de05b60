"""Errors of the system are recognised, whoever raises them, and say what to do."""

import errno
import pickle
import socket
import sqlite3

from prelude import Path, np, os, pl, pytest

from resources.engine.run_task import PartError, PartUseError, run_task
from resources.engine.system_errors import (
    SystemFault,
    causes_of,
    concerns_all,
    errno_of,
    explain,
    final_errors_explained,
)
from resources.run_tasks import explained
from tests.engine.engine_workers import Part

FULL = "/dev/full"  # the kernel's file on which every write fails with ENOSPC


def write_with_polars() -> None:
    pl.DataFrame({"n": [1]}).write_parquet(FULL)


def write_with_numpy() -> None:
    with open(FULL, "wb", buffering=0) as file:
        np.zeros(100_000).tofile(file)


def write_with_python() -> None:
    with open(FULL, "wb", buffering=0) as file:
        file.write(b"0")


@pytest.mark.parametrize("write", [write_with_polars, write_with_numpy, write_with_python])
def test_a_full_disk_is_recognised(write: object) -> None:
    with pytest.raises(Exception) as raised:
        write()  # type: ignore[operator]
    assert errno_of(raised.value) == errno.ENOSPC


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(errno.EIO, "Input/output error"), errno.EIO),
        (MemoryError(), errno.ENOMEM),
        (OSError("Read-only file system (os error 30): /store/a.parquet"), errno.EROFS),
        (sqlite3.OperationalError("database or disk is full"), errno.ENOSPC),
        (sqlite3.OperationalError("attempt to write a readonly database"), errno.EROFS),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), errno.ENOSPC),
        (pl.exceptions.ComputeError("no such column"), None),
        (ValueError("400 requested and 128 written, or so"), None),
    ],
)
def test_the_number_of_an_error_is_known(error: Exception, number: int | None) -> None:
    assert errno_of(error) == number


def test_a_part_is_tried_again_unless_it_fails_for_the_disk(tmp_path: Path) -> None:
    def full(_part: Part) -> None:
        write_with_python()

    def wrong(_part: Part) -> None:
        raise RuntimeError("a bug")

    ended = run_task(full, 0, Part("part-0", tmp_path))
    assert isinstance(ended.error, PartUseError)
    assert ended.error.errno == errno.ENOSPC
    ended = run_task(wrong, 0, Part("part-0", tmp_path))
    assert isinstance(ended.error, PartError)
    assert not isinstance(ended.error, PartUseError)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "MB are free); about 12 MB more are needed. Make room, or move the"),
        (errno.EROFS, "Read-only file system for user"),
        (errno.EIO, "Input/output error: the disk of "),
        (errno.EFBIG, "`ulimit -f`"),
        (errno.EMFILE, "`ulimit -n`"),
        (errno.ENOMEM, "Lower `part_bytes`"),
    ],
)
def test_what_to_do_is_said(number: int, words: str, tmp_path: Path) -> None:
    error = OSError(number, os.strerror(number))
    sentence = explain(error, number, tmp_path).sentence(needed=12_000_000)
    assert words in sentence and f" on {socket.gethostname()}" in sentence
    assert sentence.endswith("then run the same command again: it continues with what is missing.")


def test_the_path_that_an_error_names_is_told_and_what_else_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    name = str(tmp_path / "home/history/runs.db")
    try:
        raise RuntimeError("records") from OSError(errno.EROFS, "Read-only file system", name)
    except RuntimeError as error:
        told = explain(error, errno.EROFS, tmp_path / "store").sentence()
    assert f"Read-only file system for user {os.geteuid()} in {name} on " in told
    assert "or name another folder in DAGSTER_HOME" in told


def test_an_error_is_explained_on_the_machine_where_it_was_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a worker of a node sends it."""
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7")

    def work(_part: Part) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "a.parquet"))

    error = pickle.loads(pickle.dumps(run_task(work, 0, Part("part-0", tmp_path)).error))
    monkeypatch.undo()
    with pytest.raises(SystemFault, match=rf"The disk of {tmp_path}/a\.parquet on node-7 is full"):
        explained(error, needed=0)


def test_an_error_outside_of_parts_is_explained_and_another_passes(tmp_path: Path) -> None:
    told = pytest.raises(SystemFault, match=r"No space left on device.*run the same command again")
    with told, final_errors_explained(tmp_path):
        write_with_python()
    with pytest.raises(FileNotFoundError), final_errors_explained(tmp_path):
        os.stat(tmp_path / "missing")
    # What concerns one file is no reason to stop the others.
    assert concerns_all(errno.ENOSPC) and not concerns_all(errno.EIO)


def test_errors_that_are_due_to_each_other_are_gone_through_once() -> None:
    first, second = ValueError("first"), OSError(errno.ENOSPC, "No space left on device")
    first.__cause__, second.__context__ = second, first  # `raise first from second`, caught there
    assert [*causes_of(first)] == [first, second]
    assert "is full" in explain(first, errno.ENOSPC, None).fact
