"""Calls that wait for other machines, side by side: a slow one delays none of the others.

for ended in rounds({name: call, ...}):
    ...                                   # name -> Future of each call that has ended since
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TypeVar

from corpus_loader.places.threads import LOOK_SECONDS, in_thread

Result = TypeVar("Result")
AT_ONCE = 16  # calls: more of them to one server would be throttled
PROMPT_SECONDS = 5.0  # a plan of files elsewhere takes 0.1 to 3 s


def rounds(calls: Mapping[str, Callable[[], Result]]) -> Iterator[dict[str, Future[Result]]]:
    """Begin calls side by side; return an iterator over those that have ended since, in order.

    The first round ends PROMPT_SECONDS after it is asked for, or with the last call; a later one
    begins when a call ends. The first may be empty.
    """
    places = threading.Semaphore(AT_ONCE)

    def in_turn(call: Callable[[], Result]) -> Result:
        with places:
            return call()

    return _ended({name: in_thread(partial(in_turn, call)) for name, call in calls.items()})


def _ended(waiting: Mapping[str, Future[Result]]) -> Iterator[dict[str, Future[Result]]]:
    while True:
        until = time.monotonic() + PROMPT_SECONDS
        while wait(waiting.values(), LOOK_SECONDS).not_done and time.monotonic() < until:
            pass
        ended = {name: future for name, future in waiting.items() if future.done()}
        yield ended
        waiting = {name: future for name, future in waiting.items() if name not in ended}
        if not waiting:
            return
        while not wait(waiting.values(), LOOK_SECONDS, FIRST_COMPLETED).done:
            pass
