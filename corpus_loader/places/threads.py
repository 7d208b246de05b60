"""Work on several files at a time, in threads that are abandoned when one fails.

`concurrent.futures` joins its threads at the end of a `with` and at exit: Ctrl-C would wait for all
downloads that have begun, up to the time-out of a read. Threads of this module are daemons.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

LOOK_SECONDS = 0.2  # between two looks at whether a signal came


def map_in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], most: int
) -> list[Result]:
    """[function(item), ...], by up to `most` threads; the first error ends it, and is raised."""
    left: SimpleQueue[tuple[int, Item]] = SimpleQueue()
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
    for numbered in enumerate(items):
        left.put(numbered)
    for _ in range(min(most, len(items))):
        threading.Thread(target=work, args=(function, left, done), daemon=True).start()
    results: dict[int, Result] = {}
    try:
        while len(results) < len(items):
            number, result, error = next_of(done)
            if error is not None:
                raise error
            results[number] = result
    finally:
        drain(left)
    return [results[number] for number in range(len(items))]


def next_of(done: SimpleQueue[Result]) -> Result:
    """Wait for the next item, and let Ctrl-C in.

    A signal that comes just before `get` begins to wait, or to another thread, does not wake it.
    """
    while True:
        with suppress(Empty):
            return done.get(timeout=LOOK_SECONDS)


def work(
    function: Callable[[Item], Any],
    left: SimpleQueue[tuple[int, Item]],
    done: SimpleQueue[tuple[int, Any, BaseException | None]],
) -> None:
    """Take items until there are none."""
    while True:
        try:
            number, item = left.get_nowait()
        except Empty:
            return
        try:
            done.put((number, function(item), None))
        except BaseException as error:  # noqa: BLE001  raised by who waits
            done.put((number, None, error))


def drain(left: SimpleQueue[Any]) -> None:
    """Take out all items that no thread has begun."""
    with suppress(Empty):
        while True:
            left.get_nowait()
