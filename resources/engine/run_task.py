"""One part in a worker of any engine: what a task needs to have, and how it can end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import polars as pl

from resources.engine.cost import Cost, begin_part
from resources.engine.system_errors import Explanation, causes_of, errno_of, explain, is_final
from resources.store.scratch import computing

Result = TypeVar("Result")


class PartTask(Protocol):
    """The part of a task that the engine needs: names, and its amount of work."""

    @property
    def partition(self) -> str:
        """Name of the source, or of another partition, that it belongs to."""
        ...

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
    """A part that could not be computed; the message names the part and the reason.

    `errno` is the number of the system's error, None if it was another; `explanation` is of the
    machine where a final one was raised.
    """

    errno: int | None = None
    explanation: Explanation | None = None


class PartUseError(PartError, ValueError):
    """A part that no retry can compute: its input or config is wrong, or a disk is full."""


class NodeFault(PartUseError):
    """A part that its machine refuses: another one may have room, the package or the right time."""


@dataclass(frozen=True)
class Ended(Generic[Result]):
    """A task that has ended: with a result, or with an error that names its part."""

    index: int
    result: Result | None
    error: PartError | None
    cost: Cost

    def value(self) -> Result:
        """Return the result; raise the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]


def run_task(function: Callable[[Task], Result], index: int, task: Task) -> Ended[Result]:
    """Run one task in a worker; an error names the task's part."""
    end_part = begin_part()
    try:
        with computing():
            result, fault = result_of(function, task)
    finally:
        cost = end_part()
    return Ended(index, result, fault, cost)


def result_of(
    function: Callable[[Task], Result], task: Task
) -> tuple[Result | None, PartError | None]:
    """Return what a function gives for a task, or the error, which names the task's part."""
    try:
        return function(task), None
    except NodeFault as of_part:  # of a batch
        return None, of_part
    except Exception as error:  # noqa: BLE001 - it is yielded, and its caller raises it
        number = errno_of(error)
        kind = PartUseError if isinstance(error, ValueError) else PartError
        lacks_package = any(isinstance(each, ImportError) for each in causes_of(error))
        fault = (NodeFault if is_final(number) or lacks_package else kind)(
            f"{task.title}: {type(error).__name__}: {error}"
        )
        fault.errno = number
        if number is not None and is_final(number):
            fault.explanation = explain(error, number, getattr(task, "root", None))
        return None, fault


def use_threads(number: int) -> None:
    """Let Polars use a number of threads in this process.

    It reads the number when it is imported, and again here; it makes its threads at the first
    computation.
    """
    pl.Config.load(f'{{"environment": {{"POLARS_MAX_THREADS": "{number}"}}}}')
