"""Bytes of a corpus that lies elsewhere: over http(s) by the standard library, else by obstore.

A transport gives the blocks of a file from an offset on, and the names in a folder if it can. It
raises FileNotFoundError where there is no such file, Interrupted where another attempt may help,
CorpusError where none will. `read_blocks` tries again, from where the last attempt was cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

from corpus_loader.errors import CorpusError

ATTEMPTS = 6  # without a byte in between: waits of 0.5, 1, 2, 4 and 8 seconds
FIRST_WAIT_SECONDS = 0.5
SILENCE_SECONDS = 45.0  # without a byte: no further attempt, so two for one that never answers
BLOCK_BYTES = 1 << 20


class Interrupted(ConnectionError):
    """The connection failed in a way that may pass."""


class Transport(Protocol):
    """Where bytes come from."""

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """The bytes of a file from `start` on."""

    def names(self, folder: str) -> list[str] | None:
        """Names of files and folders in a folder; None if that cannot be known."""


def read_blocks(transport: Transport, name: str) -> Iterator[bytes]:
    """All bytes of a file; CorpusError after ATTEMPTS attempts, or a time, that brought none."""
    done, failures, began = 0, 0, time.monotonic()
    while True:
        try:
            for block in transport.blocks(name, done):
                done, failures = done + len(block), 0
                yield block
                began = time.monotonic()
            return
        except Interrupted as error:
            failures += 1
            if failures == ATTEMPTS or time.monotonic() - began > SILENCE_SECONDS:
                raise CorpusError(
                    f"{name} could not be read: {error} (byte {done:,}, attempt {failures} of "
                    f"{ATTEMPTS}). Check the network and start again from the last state."
                ) from error
        pause(failures)


def pause(failures: int) -> None:
    """Wait before the next attempt, twice as long after every failure."""
    time.sleep(FIRST_WAIT_SECONDS * 2 ** (failures - 1))


def is_there(transport: Transport, name: str) -> bool:
    """True if there is such a file."""
    try:
        next(read_blocks(transport, name), b"")
    except FileNotFoundError:
        return False
    return True
