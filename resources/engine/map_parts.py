"""Map a function over parts, in threads of this process or in worker processes.

`in_process` starts at once and shares memory; Polars, numba and the tokenizer release the GIL, so
its threads use every core. `processes` costs about a second a step (its fork server imports Polars
afresh) and gives isolation: a worker that dies takes one part with it, which is tried again.
`auto` takes processes from `AUTO_PROCESS_BYTES` of work on. Workers come from a fork server, never
from fork(2) of this process: Polars' threads do not survive it.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from importlib import import_module
from typing import Protocol, TypeVar

from resources.settings.engine import EngineConfig

AUTO_PROCESS_BYTES = 2 << 30
WORKER_MODULE = "resources.engine.worker"

Result = TypeVar("Result")


class PartTask(Protocol):
    """The part of a task that the engine needs: a name for messages, and its amount of work."""

    @property
    def title(self) -> str:
        """Stage, partition and part, for messages."""
        ...

    @property
    def work_bytes(self) -> int:
        """Bytes that the part reads."""
        ...


Task = TypeVar("Task", bound=PartTask)


class PartError(RuntimeError):
    """A part that could not be computed; the message names the part and the reason."""


class PartUseError(PartError, ValueError):
    """A part that no retry can compute: its input or config is wrong."""


def map_parts(
    function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
) -> Iterator[tuple[int, Result, float]]:
    """Yield (index of the task, result, seconds) as parts finish, in any order.

    `function` must be importable by name and its tasks picklable. Raises PartError, which names the
    part, after everything that had been started has ended.
    """
    if not tasks:
        return
    total_bytes = sum(task.work_bytes for task in tasks)
    is_large = config.kind == "auto" and total_bytes >= AUTO_PROCESS_BYTES
    workers = min(config.num_workers(), len(tasks))
    if config.kind == "processes" or is_large:
        yield from map_in_processes(function, tasks, workers, config.retries)
    else:
        with ThreadPoolExecutor(workers) as pool:
            yield from map_in_pool(pool, function, list(enumerate(tasks)), workers)


def map_in_processes(
    function: Callable[[Task], Result], tasks: Sequence[Task], workers: int, retries: int
) -> Iterator[tuple[int, Result, float]]:
    """Map over worker processes; when a worker dies, retry its contemporaries one by one.

    It is not known which of the running parts killed the worker, so that death counts for none.
    Alone, a part can only kill its own worker; afterwards the rest runs on all workers again.
    """
    waiting = list(enumerate(tasks))
    deaths: Counter[int] = Counter()
    num_suspects = 0
    while waiting:
        width = 1 if num_suspects else workers
        done: set[int] = set()
        try:
            with process_pool(function.__module__, width) as pool:
                for outcome in map_in_pool(pool, function, waiting[: num_suspects or None], width):
                    done.add(outcome[0])
                    yield outcome
            has_died = False
        except BrokenProcessPool:
            has_died = True
        waiting = [item for item in waiting if item[0] not in done]
        num_suspects = max(num_suspects - len(done), width if has_died else 0)
        if has_died and width == 1:
            index, task = waiting[0]
            deaths[index] += 1
            if deaths[index] > retries:
                raise PartError(
                    f"{task.title}: its worker process died {deaths[index]} times with no other "
                    "part beside it (killed, or out of memory). Lower `part_bytes`, or find more "
                    "memory, then run again: finished parts are kept."
                )


def map_in_pool(
    pool: Executor, function: Callable[[Task], Result], tasks: list[tuple[int, Task]], workers: int
) -> Iterator[tuple[int, Result, float]]:
    """Keep `workers` tasks running, in order, and yield each result as it ends."""
    waiting = iter(tasks)
    running: dict[Future[tuple[Result, float]], tuple[int, Task]] = {}
    while True:
        while len(running) < workers and (item := next(waiting, None)) is not None:
            running[pool.submit(timed, function, item[1])] = item
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            index, _ = running.pop(future)
            yield index, *future.result()


def timed(function: Callable[[Task], Result], task: Task) -> tuple[Result, float]:
    """Run one task; an error names the task's part."""
    start = time.perf_counter()
    try:
        result = function(task)
    except Exception as error:
        kind = PartUseError if isinstance(error, ValueError) else PartError
        raise kind(f"{task.title}: {type(error).__name__}: {error}") from error
    return result, time.perf_counter() - start


def process_pool(module: str, workers: int) -> ProcessPoolExecutor:
    """Return a pool of workers that have one Polars thread each and end with their parent."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([WORKER_MODULE, module])  # imported once, not once a worker
    return ProcessPoolExecutor(workers, mp_context=context, initializer=start_worker)


def start_worker() -> None:
    """Set up a worker: one Polars thread, and an end when its parent ends.

    A pool's workers would otherwise wait for ever after a kill -9 of their parent.
    """
    import_module(WORKER_MODULE)  # where the fork server runs in another folder, it cannot
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
