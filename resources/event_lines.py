"""Events of runs as lines of JSON, in one file that all processes of all runs append to.

`logging.handlers.RotatingFileHandler` writes and rotates. It is made for one process: a lock around
each line makes it safe for several, and a process that finds the file rotated by another opens the
new one. A line has numbers, names and our own messages, and never the text of a document: of an
error that is not ours only its type is told, since its message may quote one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

import msgspec

from corpus_loader.places.url_secrets import redacted
from resources.corpus import Corpus
from resources.errors import InputError, UsageError
from resources.settings.operations import LoggingConfig
from resources.store.records import StoreError

LOGGER = logging.getLogger("tokenmill.events")
LOGGER.propagate = False
MOST_CHARS = 2000  # of a message
OURS = (InputError, UsageError, StoreError)
EventNumbers = dict[str, int | float]


class About(msgspec.Struct, frozen=True):
    """What an event is about: stage, partition and part, as far as it is about one."""

    stage: str = ""
    partition: str = ""
    part: str = ""


NOTHING = About()


class EventLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file."""

    time: str
    level: str
    event: str
    run: str
    host: str
    pid: int
    message: str = ""
    stage: str = ""
    partition: str = ""
    part: str = ""
    numbers: EventNumbers = {}


class SharedFile(RotatingFileHandler):
    """A rotating file that several processes append to, a whole line at a time."""

    def __init__(self, path: Path, config: LoggingConfig, run: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        sizes = {"maxBytes": config.max_bytes, "backupCount": config.keep_files}
        super().__init__(path, encoding="utf-8", delay=True, **sizes)  # type: ignore[arg-type]
        self.run = run
        self.lock_path = path.with_name(f".{path.name}.lock")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, while no other process writes or rotates."""
        with open(self.lock_path, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.follow()
            super().emit(record)

    def follow(self) -> None:
        """Open the file again if another process has rotated it."""
        if self.stream is None:
            return
        try:
            now = os.stat(self.baseFilename)
        except FileNotFoundError:
            now = None
        own = os.fstat(self.stream.fileno())
        if now is None or (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino):
            self.stream.close()
            self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:
        """Go on: a disk that takes no log is no reason to end a run, and is told by the store."""


def open_file() -> SharedFile | None:
    """Return the file that events are written to, None if they are not written."""
    return next((each for each in LOGGER.handlers if isinstance(each, SharedFile)), None)


@contextmanager
def events_written(corpus: Corpus, run: str) -> Iterator[None]:
    """Write the events of a run meanwhile, if the config names a file."""
    config = corpus.settings.logging
    if config.path is None or open_file() is not None:
        yield
        return
    handler = SharedFile(corpus.config.parent / config.path, config, run)
    LOGGER.setLevel(config.level.upper())
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        handler.close()


def write_event(
    event: str,
    message: str = "",
    about: About = NOTHING,
    numbers: EventNumbers | None = None,
    level: int = logging.INFO,
) -> None:
    """Write a line about an event, if the events of this run are written."""
    handler = open_file()
    if handler is None or not LOGGER.isEnabledFor(level):
        return
    line = EventLine(
        time=datetime.now(UTC).isoformat(timespec="milliseconds"),
        level=logging.getLevelName(level).lower(),
        event=event,
        run=handler.run,
        host=socket.gethostname(),
        pid=os.getpid(),
        message=redacted(message)[:MOST_CHARS],
        stage=about.stage,
        partition=about.partition,
        part=about.part,
        numbers=numbers or {},
    )
    LOGGER.log(level, "%s", msgspec.json.encode(line).decode())


def message_of(error: BaseException) -> str:
    """Return the message of an error of ours, and of any other its type."""
    if isinstance(error, OURS):
        return str(error)
    return f"{type(error).__name__}; Dagster's records have the rest"
