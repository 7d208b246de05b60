"""Output of steps on the terminal, beside the file that Dagster's web UI shows.

Dagster lets a `tail` copy that file to the terminal, and a Python process watch the `tail`, two of
each for every step: 0.07 s of CPU, and as much wall time. A thread of the step does it here, which
also copies what was written last.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from threading import Event, Thread
from typing import IO

from dagster._core.execution import compute_logs

PAUSE_SECONDS = 0.1


def show_output_by_threads() -> None:
    """Let this process, and its forks, show the output of steps as said above."""
    compute_logs.tail_to_stream = copied_to_stream


@contextmanager
def copied_to_stream(path: str, stream: IO[str]) -> Iterator[tuple[None, None]]:
    """Copy what is appended to a file to where a stream writes to now, until the end."""
    try:
        place = os.dup(stream.fileno())
    except UnsupportedOperation:  # a stream that only Python knows is not redirected
        yield None, None
        return
    is_ended = Event()

    def copy() -> None:
        with open(path, "rb") as file, open(place, "wb", buffering=0) as shown:
            is_last = False
            while not is_last:
                is_last = is_ended.wait(PAUSE_SECONDS)
                with suppress(OSError):  # the reader of a pipe has ended
                    shutil.copyfileobj(file, shown)

    thread = Thread(target=copy, daemon=True)
    thread.start()
    try:
        yield None, None
    finally:
        is_ended.set()
        thread.join()
