"""Map a function over parts, in threads of this process, in worker processes, or on a Ray cluster.

`in_process` starts at once and shares memory; Polars, numba and the tokenizer release the GIL, so
its threads use every core. `processes` gives isolation: a worker that dies takes one part with it,
which is tried again. `auto` takes processes from `AUTO_PROCESS_BYTES` of work on. Workers come from
a fork server, never from fork(2) of this process: Polars' threads do not survive it. It is that of
the run (fork_server.py), or where there is none, in tests, one that is started for them. `ray` has
workers on many machines (ray_tasks.py).
"""

from __future__ import annotations

import multiprocessing
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from resources.engine.cost import NO_COST
from resources.engine.fork_server import is_served
from resources.engine.ray_tasks import map_on_ray
from resources.engine.run_task import (
    Ended,
    PartError,
    PartTask,
    Result,
    Task,
    run_task,
)
from resources.engine.workers import WorkerPool
from resources.settings.engine import EngineConfig

# Of `auto`. On two cores, 100 MB of text took 33 s either way; more gains from processes, which
# also survive the death of a worker.
AUTO_PROCESS_BYTES = 128 << 20
PRELOAD = ("resources.engine.fork_server", "resources.store.store")  # of a server of our own

Pool = TypeVar("Pool", bound=Executor)


def map_parts(
    function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
) -> Generator[Ended[Result], None, None]:
    """Yield each task as it ends, in any order; an error ends its own task only.

    `function` must be importable by name and its tasks picklable.
    """
    if not tasks:
        return
    if config.kind == "ray":
        yield from map_on_ray(function, tasks, config)
        return
    work_bytes = sum(task.work_bytes for task in tasks)
    if config.kind == "in_process" or (config.kind == "auto" and work_bytes < AUTO_PROCESS_BYTES):
        workers = min(config.num_workers(), len(tasks))
        with stopped_at_once(ThreadPoolExecutor(workers)) as pool:
            yield from map_in_pool(pool, function, [*enumerate(tasks)], workers)
    else:
        yield from map_in_processes(function, tasks, config)


def map_in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
) -> Iterator[Ended[Result]]:
    """Map over worker processes; when a worker dies, retry its contemporaries one by one.

    It is not known which of the running parts killed the worker, so that death counts for none.
    Alone, a part can only kill its own worker; afterwards the rest runs on all workers again.
    """
    workers = min(config.num_workers(), len(tasks))
    threads = config.num_workers() // workers
    if not is_served():  # imported once, not once a worker
        preload = [*PRELOAD, function.__module__]
        multiprocessing.get_context("forkserver").set_forkserver_preload(preload)
    waiting = list(enumerate(tasks))
    deaths: Counter[int] = Counter()
    num_suspects = 0
    while waiting:
        width = 1 if num_suspects else workers
        done: set[int] = set()
        try:
            with stopped_at_once(WorkerPool(width, threads)) as pool:
                for outcome in map_in_pool(pool, function, waiting[: num_suspects or None], width):
                    done.add(outcome.index)
                    yield outcome
            has_died = False
        except BrokenProcessPool:
            has_died = True
        waiting = [item for item in waiting if item[0] not in done]
        num_suspects = max(num_suspects - len(done), width if has_died else 0)
        if has_died and width == 1:
            index, task = waiting[0]
            deaths[index] += 1
            if deaths[index] > config.retries:
                del waiting[0]
                num_suspects = max(num_suspects - 1, 0)
                yield Ended(index, None, death_of(task, deaths[index]), NO_COST)


@contextmanager
def stopped_at_once(pool: Pool) -> Iterator[Pool]:
    """Wait for the running parts of a pool at its end, unless the run was interrupted.

    Then processes are killed; threads, which nothing can stop, end with their process.
    """
    try:
        yield pool
    except (Exception, GeneratorExit):
        pool.shutdown()
        raise
    except BaseException:
        if isinstance(pool, WorkerPool):
            pool.kill()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def death_of(task: PartTask, deaths: int) -> PartError:
    """Return the error of a part whose worker process died, alone, more often than is retried."""
    return PartError(
        f"{task.title}: its worker process died {deaths} times with no other part beside it "
        "(killed, or out of memory). Lower `part_bytes`, or find more memory, then run again: "
        "finished parts are kept."
    )


def map_in_pool(
    pool: Executor, function: Callable[[Task], Result], tasks: list[tuple[int, Task]], workers: int
) -> Iterator[Ended[Result]]:
    """Keep `workers` tasks running, and yield each one as it ends.

    The next one is the first of the partition with the fewest running: a source whose reading waits
    for a slow server leaves workers to the others. Of several such, it is of one that has begun, so
    that partitions end, and are committed, one after the other.
    """
    waiting: dict[str, deque[tuple[int, int, Task]]] = {}
    for place, (index, task) in enumerate(tasks):
        waiting.setdefault(task.partition, deque()).append((place, index, task))
    fresh, begun = deque(waiting), set[str]()  # of those that wait: to look at all is quadratic
    running: dict[Future[Ended[Result]], str] = {}
    ended: set[Future[Ended[Result]]] = set()
    while True:
        while len(running) < workers and waiting:
            busy = Counter(running.values())
            partition = min(
                [*begun, *islice(fresh, 1)],
                key=lambda name: (busy[name], name not in begun, waiting[name][0][0]),
            )
            if partition not in begun:
                begun.add(fresh.popleft())
            _, index, task = waiting[partition].popleft()
            if not waiting[partition]:
                del waiting[partition]
                begun.remove(partition)
            running[pool.submit(run_task, function, index, task)] = partition
        for future in ended:  # not before workers are busy again: who takes it may need a while
            yield future.result()
        if not running:
            return
        ended = wait(running, return_when=FIRST_COMPLETED).done
        for future in ended:
            del running[future]
