"""Reading of remote files, with attempts that resume where the last was cut.

A transport yields the blocks of a file from an offset on, and lists a folder if it can. It raises
FileNotFoundError if there is no such file, Interrupted if another attempt may help, CorpusError if
none will.
"""

from __future__ import annotations

import logging
import os
import random
import time
from collections.abc import Iterator
from typing import Protocol

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.url_secrets import redacted

FIRST_WAIT_SECONDS = 0.5
MOST_WAIT_SECONDS = 20.0
RETRY_VARIABLE = "TOKENMILL_RETRY_SECONDS"
RETRY_SECONDS = 600.0  # without a byte: a restart or a throttled hour must not end a training job
SOON_SECONDS = 30.0  # of RETRY_SECONDS, for what passes soon or never
REPORTED_FAILURES = (4, 12)  # after about 5 s and 2 minutes, for whoever waits
BLOCK_BYTES = 1 << 20
jitter = random.SystemRandom()  # the user's seeds and forks have no part in it
logger = logging.getLogger(__name__)


class Interrupted(ConnectionError):
    """The connection failed in a way that may pass, or that passes soon or never.

    The message has no secrets. `retry_after` is the pause in seconds that the server asks for.
    """

    def __init__(
        self, message: str, *, soon_or_never: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(redacted(message))
        self.soon_or_never = soon_or_never
        self.retry_after = retry_after


class Transport(Protocol):
    """A client of remote files (http_client.py, objects.py)."""

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """Yield the bytes of a file from `start` on."""

    def names(self, folder: str) -> list[str] | None:
        """List the files and folders in a folder; None if the server does not list."""


class Patience:
    """Pauses between attempts of one operation, growing, for a limited time without success."""

    def __init__(self) -> None:
        self.most_seconds = retry_seconds()
        self.renew()

    def renew(self) -> None:
        """Start the time again: bytes have come."""
        self.failures, self.began = 0, time.monotonic()

    def wait(self, fault: str, error: Interrupted, advice: str) -> None:
        """Wait before the next attempt; CorpusError with the fault if the time is up."""
        self.failures += 1
        limit = min(self.most_seconds, SOON_SECONDS) if error.soon_or_never else self.most_seconds
        left = limit - (time.monotonic() - self.began)
        if left <= 0:
            raise CorpusError(
                f"{fault} ({self.failures} attempts in {limit:g} s, {RETRY_VARIABLE} is "
                f"{self.most_seconds:g}). {advice}"
            ) from error
        if self.failures in REPORTED_FAILURES:
            logger.warning("%s; trying again for up to %.0f s", redacted(fault), left)
        time.sleep(min(left, max(error.retry_after, wait_seconds(self.failures))))


def retry_seconds() -> float:
    """Return the time for which a request is repeated; CorpusError if the setting is no number."""
    text = os.environ.get(RETRY_VARIABLE, "")
    try:
        seconds = float(text or RETRY_SECONDS)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise CorpusError(f"{RETRY_VARIABLE}={text!r} is no number of seconds. Set one, or none.")
    return seconds


def wait_seconds(failures: int) -> float:
    """Return a time to wait after so many failures: twice as long each, with jitter."""
    longest = FIRST_WAIT_SECONDS * 2.0 ** min(failures - 1, 16)
    return min(longest, MOST_WAIT_SECONDS) * jitter.uniform(0.5, 1.0)


def read_blocks(transport: Transport, name: str) -> Iterator[bytes]:
    """Yield all bytes of a file, by several attempts if needed.

    Raises CorpusError if no byte comes for the time of `retry_seconds`.
    """
    done, patience = 0, Patience()
    while True:
        try:
            for block in transport.blocks(name, done):
                done += len(block)
                yield block
                patience.renew()  # after the yield: the reader may have taken its time
            return
        except Interrupted as error:
            fault = f"{name} could not be read: {error}, at byte {done:,}"
            patience.wait(fault, error, "Check the network, then start again from the last state.")


def pause(failures: int) -> None:
    """Wait before the next attempt, longer after every failure."""
    time.sleep(wait_seconds(failures))
