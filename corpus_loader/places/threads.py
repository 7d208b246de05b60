"""Calls in daemon threads, which no exit waits for: a call that hangs ends with the process.

`concurrent.futures` joins its threads at the end of a `with` and at exit: Ctrl-C would wait for all
downloads that have begun, up to the time-out of a read.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

LOOK_SECONDS = 0.2  # between two looks at whether a signal came, which may not end a wait


def in_thread(call: Callable[[], Result]) -> Future[Result]:
    """Make a call in a daemon thread."""
    answer: Future[Result] = Future()
    context = copy_context()

    def answer_it() -> None:
        try:
            answer.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001  raised by who asks for the result
            answer.set_exception(error)

    threading.Thread(target=answer_it, name="side by side", daemon=True).start()
    return answer


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], most: int
) -> list[Result]:
    """[function(item), ...], by up to `most` threads; the first error ends it, and is raised."""
    left, results = deque(enumerate(items)), dict[int, Result]()

    def work() -> None:
        while True:
            try:
                number, item = left.popleft()
            except IndexError:  # all are taken
                return
            results[number] = function(item)

    running = {in_thread(work) for _ in range(min(most, len(items)))}
    try:
        while running:
            ended, running = wait(running, LOOK_SECONDS, FIRST_EXCEPTION)
            for thread in ended:
                thread.result()
    finally:
        left.clear()  # an error abandons the threads, which begin no more
    return [results[number] for number in range(len(items))]
