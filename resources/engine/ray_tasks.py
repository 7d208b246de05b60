"""Map a function over parts on a Ray cluster, by way of a driver process.

The driver (ray_driver.py) is connected to the cluster for this process, and lives as long as it:
one connection serves all passes of a step. It is a process of its own, since Ray ends a driver
without an exception when its node or the head is lost, takes two minutes to say that no one
answers, and cannot be stopped meanwhile. Killed, it takes all that it has submitted with it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Generic

from resources.engine.cost import NO_COST, Cost
from resources.engine.fork_server import is_served
from resources.engine.ray_cluster import SILENT_SECONDS
from resources.engine.ray_driver import Message, drive
from resources.engine.run_task import Ended, NodeFault, PartUseError, Result, Task, result_of
from resources.engine.system_errors import CONTINUES, SystemFault
from resources.settings.engine import EngineConfig

END_SECONDS = 10.0
MOST_TASKS = 50_000  # of a pass: a driver submits 800 in a second


@dataclass(frozen=True)
class Batch(Generic[Task]):
    """Parts that one task of the cluster computes, one after the other."""

    parts: Sequence[tuple[int, Task]]

    @property
    def partition(self) -> str:
        """The partition of the first part."""
        return self.parts[0][1].partition

    @property
    def title(self) -> str:
        """The title of the first part, and the number of the others."""
        return f"{self.parts[0][1].title} and {len(self.parts) - 1} more"

    @property
    def work_bytes(self) -> int:
        """Bytes that the largest part reads."""
        return max(task.work_bytes for _, task in self.parts)


@dataclass(frozen=True)
class InBatches(Generic[Task, Result]):
    """A function that is applied to each part of a batch."""

    function: Callable[[Task], Result]

    def __call__(self, batch: Batch[Task]) -> list[Ended[Result]]:
        """Return how each part ended; raise what another node may not refuse."""
        found = []
        for index, task in batch.parts:
            result, error = result_of(self.function, task)
            if isinstance(error, NodeFault):
                raise error
            found.append(Ended(index, result, error, NO_COST))
        return found


class Driver:
    """The process that submits tasks to a cluster, connected."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        context = multiprocessing.get_context("forkserver")
        if not is_served():
            context.set_forkserver_preload(["resources.engine.ray_driver"])
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=drive, args=(theirs, config, dict(os.environ)), daemon=True
        )
        self.process.start()
        theirs.close()
        self.ending = Finalize(self, end, args=(self.pipe, self.process), exitpriority=1)
        self.connect()

    def connect(self) -> None:
        """Wait until the process is connected; raise SystemFault when that takes too long."""
        seconds = self.config.ray.connect_seconds
        if not self.pipe.poll(seconds):
            self.kill()
            raise SystemFault(
                f"engine.ray.address: {place_of(self.config)} cannot be reached within {seconds:g} "
                "s. Check that it runs (`ray status`), that this machine is one of its nodes (from "
                "elsewhere: ray://HEAD:10001), and RAY_AUTH_TOKEN_PATH, or raise "
                f"`engine.ray.connect_seconds`, {CONTINUES}"
            )
        self.receive()

    def map(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
    ) -> Iterator[Ended[Result]]:
        """Yield each task as it ends, and log notices of the cluster as warnings."""
        try:
            self.pipe.send((function, tasks, config))
        except OSError:
            raise self.lost() from None
        while (message := self.receive()) is not None:
            if isinstance(message, Ended):
                yield message
            else:
                logging.getLogger("tokenmill").warning(message)

    def receive(self) -> Message:
        """Return the next message; raise the fault of the cluster if there is one."""
        try:
            message: Message = self.pipe.recv()
        except (EOFError, OSError):
            raise self.lost() from None
        if isinstance(message, SystemFault):
            raise message
        return message

    def lost(self) -> SystemFault:
        """Return the error of a driver that Ray has ended."""
        return SystemFault(
            f"The connection to {place_of(self.config)} was lost: its head, or Ray on this "
            f"machine, has ended, or has not answered for {SILENT_SECONDS:g} s. Start the cluster "
            f"again, {CONTINUES}"
        )

    def kill(self) -> None:
        """End the process, and with it all tasks that it has submitted."""
        self.process.kill()
        self.ending()

    def serves(self, config: EngineConfig) -> bool:
        """Return whether the driver is alive, and connected as a config says."""
        return self.process.is_alive() and self.config.ray.is_same_cluster(config.ray)


def map_on_ray(
    function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
) -> Iterator[Ended[Result]]:
    """Yield each task as it ends, in any order; tasks that run are cancelled if no one waits.

    Raises SystemFault if there is no cluster, or no longer.
    """
    driver = _idle.pop() if _idle else None
    if driver is not None and not driver.serves(config):
        driver.kill()
        driver = None
    driver = driver or Driver(config)
    try:
        alone = dict(enumerate(tasks))
        if len(tasks) > MOST_TASKS:
            for ended in map_batches(driver, function, tasks, config):
                del alone[ended.index]
                yield ended
        indices = [*alone]
        for ended in driver.map(function, [*alone.values()], config):
            yield replace(ended, index=indices[ended.index])
    except BaseException:
        driver.kill()
        raise
    _idle.append(driver)


def map_batches(
    driver: Driver, function: Callable[[Task], Result], tasks: Sequence[Task], config: EngineConfig
) -> Iterator[Ended[Result]]:
    """Yield the tasks that end well, or with an error of their own, each with its share of cost."""
    parts = [*enumerate(tasks)]
    batches = [Batch(parts[first::MOST_TASKS]) for first in range(MOST_TASKS)]
    for ended in driver.map(InBatches(function), batches, config):
        cost, found = ended.cost, ended.result or []
        for place, each in enumerate(found):
            seconds, cpu_seconds = cost.seconds / len(found), cost.cpu_seconds / len(found)
            start, traffic = cost.start + place * seconds, Counter() if place else cost.traffic
            own = Cost(start, start + seconds, cpu_seconds, cost.peak_bytes, cost.process, traffic)
            if each.error is None or isinstance(each.error, PartUseError):
                yield replace(each, cost=own)


def end(pipe: Connection, process: BaseProcess) -> None:
    """Close the connection of a driver, and with it the cluster that it has started."""
    pipe.close()
    process.join(END_SECONDS)
    process.kill()
    process.join()


def end_drivers() -> None:
    """End the connection of this process before the process ends."""
    while _idle:
        _idle.pop().ending()


def place_of(config: EngineConfig) -> str:
    """Name the cluster of a config, for messages."""
    address = config.ray.address
    return f"the Ray cluster at {address}" if address else "the Ray cluster of this process"


_idle: list[Driver] = []
