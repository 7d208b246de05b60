"""Reading of remote files, with attempts that resume where the last was cut.

A transport yields the blocks of a file from an offset on, and lists a folder if it can. It raises
FileNotFoundError if there is no such file, Interrupted if another attempt may help, CorpusError if
none will.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

from corpus_loader.errors import CorpusError
from corpus_loader.url_secrets import redacted

ATTEMPTS = 6  # without a byte in between: waits of 0.5, 1, 2, 4 and 8 seconds
FIRST_WAIT_SECONDS = 0.5
SILENCE_SECONDS = 45.0  # without a byte: no further attempt, so two for one that never answers
BLOCK_BYTES = 1 << 20


class Interrupted(ConnectionError):
    """The connection failed in a way that may pass; the message has no secrets."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class Transport(Protocol):
    """A client of remote files (http_client.py, objects.py)."""

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """Yield the bytes of a file from `start` on."""

    def names(self, folder: str) -> list[str] | None:
        """List the files and folders in a folder; None if the server does not list."""


def read_blocks(transport: Transport, name: str) -> Iterator[bytes]:
    """Yield all bytes of a file, by several attempts if needed.

    Raises CorpusError after ATTEMPTS attempts in a row, or SILENCE_SECONDS, without a byte.
    """
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
    """Check that a file exists."""
    try:
        next(read_blocks(transport, name), b"")
    except FileNotFoundError:
        return False
    return True
