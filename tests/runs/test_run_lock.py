"""The lock of a store, held by real processes."""

import fcntl
import threading

from command_line import until
from lock_holder import holder_process
from prelude import Path, os, pytest, time

from resources.runs import run_lock as run_lock_module
from resources.runs.run_lock import LOCK_NAME, read_holder, release, run_lock, this_holder, try_take


class Stopped(Exception):
    """The wait is ended from outside."""


def stop(_: float) -> None:
    raise Stopped


def is_free(store: Path) -> bool:
    """Take the lock and give it up, without a wait."""
    try:
        with run_lock(store, this_holder("", "test"), print, stop):
            return True
    except Stopped:
        return False


def test_a_run_waits_for_another_and_says_for_whom(tmp_path: Path) -> None:
    told: list[str] = []
    with holder_process(tmp_path) as process:
        threading.Timer(1.2, process.kill).start()
        start = time.monotonic()
        with run_lock(tmp_path, this_holder("abc", "mix_corpus"), told.append, time.sleep):
            waited = time.monotonic() - start
            named = read_holder(tmp_path / LOCK_NAME)
    assert 1 < waited < 10
    assert f"run 01234567 of build_corpus (process {process.pid} on " in told[0]
    assert "since 2" in told[0] and str(tmp_path) in told[0]
    assert len(told) == 2 and told[1].startswith("The store is free after")
    assert named is not None and (named.job, named.pid) == ("mix_corpus", os.getpid())


def test_a_killed_process_gives_its_lock_up(tmp_path: Path) -> None:
    with holder_process(tmp_path) as process:
        assert not is_free(tmp_path)
        process.kill()
        process.wait()
        assert is_free(tmp_path)


def test_a_forked_child_that_lives_on_does_not_hold_the_lock(tmp_path: Path) -> None:
    with holder_process(tmp_path, "forking") as process:
        assert not is_free(tmp_path)
        process.kill()
        process.wait()
        until(lambda: is_free(tmp_path))  # the child may only just have begun


def test_the_wait_can_be_ended(tmp_path: Path) -> None:
    told: list[str] = []
    holder = this_holder("abc", "mix_corpus")
    with (
        holder_process(tmp_path),
        pytest.raises(Stopped),
        run_lock(tmp_path, holder, told.append, stop),
    ):
        told.append("in spite of it")
    assert len(told) == 1 and "Waiting for run 01234567" in told[0]


def test_nothing_of_the_lock_stays_in_the_store(tmp_path: Path) -> None:
    with run_lock(tmp_path / "store", this_holder("abc", "mix"), print, time.sleep):
        assert (tmp_path / "store" / LOCK_NAME).exists()
    assert list((tmp_path / "store").iterdir()) == []


def test_of_many_only_one_holds_the_lock_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(20):
            with run_lock(tmp_path, this_holder(str(number), "w"), print, quick):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    def quick(_: float) -> None:
        time.sleep(0.001)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 120 and max(most) == 1


def test_a_lock_whose_file_its_holder_has_just_removed_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / LOCK_NAME
    held, real_flock = [try_take(path)], fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        while held:  # between the opening and the locking
            release(path, held.pop() or -1)
        real_flock(descriptor, how)

    monkeypatch.setattr(run_lock_module.fcntl, "flock", flock)
    taken = try_take(path, b"mine")
    assert taken is not None and path.read_bytes() == b"mine"
    release(path, taken)
