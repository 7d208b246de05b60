"""Workers stay for the next passes and steps of a run, and end with it."""

from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext

import psutil
from prelude import Iterator, os, pl, pytest, time

from resources.engine.fork_server import fork_server
from resources.engine.workers import IDLE_SECONDS, WorkerPool, end_workers
from tests.engine.engine_workers import stay_idle

PRELOAD = ("tests.engine.engine_workers",)
NAMES = ("GONE", "LATE")


@pytest.fixture
def run() -> Iterator[None]:
    """A run: it has a fork server, and ends its workers."""
    with fork_server(PRELOAD, {}):
        yield
        end_workers()


def workers_of(pool: WorkerPool) -> list[int]:
    """The process ids of two calls that run side by side."""
    calls = [pool.submit(time.sleep, 0.1), pool.submit(time.sleep, 0.1)]
    for call in calls:
        call.result()
    return sorted(pid for pid, _ in pool._all)


def test_a_pool_takes_the_workers_that_another_has_left(run: None) -> None:
    with WorkerPool(2, 1) as first:
        earlier = workers_of(first)
    with WorkerPool(2, 1) as second:
        assert workers_of(second) == earlier
        assert earlier == sorted({second.submit(os.getpid).result() for _ in range(4)})


def test_pools_that_run_side_by_side_share_no_worker(run: None) -> None:
    with WorkerPool(2, 1) as first, WorkerPool(2, 1) as second:
        assert not set(workers_of(first)) & set(workers_of(second))


def test_a_worker_keeps_its_number_of_polars_threads(run: None) -> None:
    with WorkerPool(1, 1) as alone:
        assert alone.submit(pl.thread_pool_size).result() == 1
    with WorkerPool(1, 2) as wide:
        assert wide.submit(pl.thread_pool_size).result() == 2


@pytest.mark.parametrize("holder", [nullcontext(), fork_server(PRELOAD, {})], ids=["no run", "run"])
def test_a_call_has_the_environment_of_the_process_that_makes_it(
    holder: AbstractContextManager[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GONE", "1")
    with holder:
        with WorkerPool(1, 1) as first:
            assert [first.submit(os.getenv, name).result() for name in NAMES] == ["1", None]
        monkeypatch.delenv("GONE")
        monkeypatch.setenv("LATE", "2")
        with WorkerPool(1, 1) as second:
            assert [second.submit(os.getenv, name).result() for name in NAMES] == [None, "2"]
        end_workers()


def test_without_a_server_of_the_run_workers_end_with_their_pool() -> None:
    with WorkerPool(1, 1) as pool:
        worker = psutil.Process(pool.submit(os.getpid).result())
    assert psutil.wait_procs([worker], timeout=IDLE_SECONDS / 2)[1] == []


def test_an_error_of_a_call_is_raised_and_its_worker_goes_on(run: None) -> None:
    with WorkerPool(1, 1) as pool:
        pid = pool.submit(os.getpid).result()
        with pytest.raises(ValueError, match="invalid literal"):
            pool.submit(int, "x").result()
        with pytest.raises(TypeError, match="pickle"):
            pool.submit(open, os.devnull).result()
        assert pool.submit(os.getpid).result() == pid


def test_the_death_of_a_worker_ends_its_pool_and_leaves_none_of_it(run: None) -> None:
    with WorkerPool(2, 1) as pool:
        family = [psutil.Process(pid) for pid, _ in pool._all]
        with pytest.raises(BrokenProcessPool):
            pool.submit(os._exit, 1).result()
        with pytest.raises(BrokenProcessPool):
            pool.submit(os.getpid).result()
    assert psutil.wait_procs(family, timeout=20)[1] == []
    with WorkerPool(2, 1) as pool:
        assert not set(workers_of(pool)) & {each.pid for each in family}


def test_a_run_ends_its_workers_before_its_server() -> None:
    with fork_server(PRELOAD, {}):
        with WorkerPool(2, 1) as pool:
            pids = workers_of(pool)
        end_workers()
        assert not any(psutil.pid_exists(pid) for pid in pids)


def test_a_worker_that_no_step_takes_ends_and_a_new_one_comes(run: None) -> None:
    with WorkerPool(1, 1) as pool:
        pool.submit(stay_idle, 0.1).result()
        time.sleep(0.3)  # as while others compute: it is not idle yet
        earlier = psutil.Process(pool.submit(os.getpid).result())
    assert psutil.wait_procs([earlier], timeout=20)[1] == []
    with WorkerPool(1, 1) as pool:
        assert pool.submit(os.getpid).result() != earlier.pid
