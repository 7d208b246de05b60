"""A process made ready for little work computes it, and costs nothing but time if it dies."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.engine import ready_process as ready
from resources.engine.map_parts import map_parts
from resources.engine.ready_process import NotThereError, first_found, iterate_there, ready_process
from resources.settings.engine import EngineConfig
from tests.engine.engine_workers import Part, die, fail, family_of, square, wait_for_ever

CONFIG = EngineConfig(kind="in_process", workers=2)
ROOT = Path(__file__).parents[2]
prepared: list[int] = []


def prepare() -> Iterator[int]:
    """A hundred steps that leave their numbers."""
    for number in range(100):
        prepared.append(number)
        yield number + 7


def slowly() -> Iterator[int]:
    """Two thousand steps of 10 ms."""
    for number in range(2000):
        prepared.append(number)
        time.sleep(0.01)
        yield number


def busy() -> Iterator[None]:
    yield
    time.sleep(600)
    yield


def dying() -> Iterator[None]:
    os._exit(1)
    yield


def steps_taken() -> Iterator[int]:
    yield len(prepared)


def named(name: str) -> Iterator[str | None]:
    yield os.environ.get(name)


def pids() -> Iterator[int]:
    while True:
        yield os.getpid()


@pytest.fixture
def process() -> Iterator[psutil.Process]:
    """A process that is ready, and to be gone at the end."""
    with ready_process(prepare):
        found = psutil.Process(ready._idle[0].process.pid)
        yield found
    assert not found.is_running()


def parts(folder: Path, *faults: str) -> list[Part]:
    return [Part(f"part-{number}", folder, fault) for number, fault in enumerate(faults)]


def mapped(function: Any, tasks: list[Part]) -> dict[int, Any]:
    return {ended.index: ended.result for ended in map_parts(function, tasks, CONFIG)}


def test_it_computes_what_threads_would(process: psutil.Process, tmp_path: Path) -> None:
    tasks = parts(tmp_path, *[""] * 5)
    for _ in range(2):
        assert set(mapped(family_of, tasks).values()) == {(process.pid, os.getpid())}
        assert mapped(square, tasks) == {n: n * n for n in range(5)}


def test_an_error_ends_its_own_part_only(process: psutil.Process, tmp_path: Path) -> None:
    assert mapped(fail, parts(tmp_path, "", "broken", "")) == {0: 0, 1: None, 2: 4}


def test_it_has_the_environment_of_the_process_that_asks(
    process: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATE", "2")
    assert [*iterate_there(named, "LATE")] == ["2"]
    monkeypatch.delenv("LATE")
    assert [*iterate_there(named, "LATE")] == [None]


def test_it_prepares_itself_while_nothing_is_asked(process: psutil.Process) -> None:
    first = [*iterate_there(steps_taken)]
    deadline = time.monotonic() + 20
    while [*iterate_there(steps_taken)] != [100] and time.monotonic() < deadline:
        time.sleep(0.01)

    assert first[0] >= 1 and [*iterate_there(steps_taken)] == [100]


def test_it_tells_what_its_first_step_found(process: psutil.Process, tmp_path: Path) -> None:
    assert first_found() == 7
    assert mapped(square, parts(tmp_path, "", "")) == {0: 0, 1: 1}
    assert first_found() == 7


def test_one_that_dies_in_its_first_step_has_found_nothing(tmp_path: Path) -> None:
    with ready_process(dying):
        assert first_found() is None
        assert mapped(family_of, parts(tmp_path, ""))[0][0] == os.getpid()
    assert first_found() is None


def test_what_is_asked_waits_for_one_step() -> None:
    with ready_process(slowly):
        (taken,) = iterate_there(steps_taken)

    assert 1 <= taken < 2000


def test_nobody_waits_for_a_step_at_the_end() -> None:
    with ready_process(busy):
        first_found()
        process = psutil.Process(ready._idle[0].process.pid)
        before = time.monotonic()

    assert not process.is_running() and time.monotonic() - before < 300


def test_what_has_ended_is_not_computed_again(process: psutil.Process, tmp_path: Path) -> None:
    one = CONFIG.model_copy(update={"workers": 1})
    ended = map_parts(die, parts(tmp_path, "", "", "once"), one)

    assert sorted(each.index for each in ended) == [0, 1, 2]
    assert len([*tmp_path.glob("part-0.*")]) == 1


def test_parts_of_one_that_died_are_computed_here(process: psutil.Process, tmp_path: Path) -> None:
    assert mapped(die, parts(tmp_path, "", "once", "")) == {0: 0, 1: 1, 2: 4}
    assert mapped(family_of, parts(tmp_path, ""))[0][0] == os.getpid()


def test_a_loop_that_ends_early_kills_it(process: psutil.Process) -> None:
    with closing(iterate_there(pids)) as there:
        assert next(there) == process.pid

    assert not process.is_running()
    with pytest.raises(NotThereError):
        next(iterate_there(pids))


def test_a_call_inside_a_loop_finds_none(process: psutil.Process, tmp_path: Path) -> None:
    outer = map_parts(family_of, parts(tmp_path, ""), CONFIG)
    assert next(outer).value()[0] == process.pid
    assert mapped(family_of, parts(tmp_path, ""))[0][0] == os.getpid()
    assert [*outer] == []
    assert mapped(family_of, parts(tmp_path, ""))[0][0] == process.pid


def test_a_fork_of_its_holder_does_not_have_it(process: psutil.Process) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            next(iterate_there(pids))
        except NotThereError:
            os._exit(7)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert [*iterate_there(steps_taken)]


def test_it_ends_with_its_holder(tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, __file__, tmp_path], cwd=ROOT, env=environment())
    while not (found := [*tmp_path.glob("*.pid")]):
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.wait()

    deadline = time.monotonic() + 20
    while psutil.pid_exists(int(found[0].stem)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def environment() -> dict[str, str]:
    return dict(os.environ) | {"PYTHONPATH": str(ROOT)}


if __name__ == "__main__":  # a run whose part takes for ever
    with ready_process(prepare):
        list(map_parts(wait_for_ever, [Part("part-0", Path(sys.argv[1]))], CONFIG))
