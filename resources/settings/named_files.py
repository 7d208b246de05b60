"""Read the files that a user names: pipeline.yaml, word lists, tokenizers, ledgers.

Each is read whole, so each has a bound. What is no regular file is refused before it is opened: a
pipe without a writer would hang, and a device such as /dev/zero never ends.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NamedFileError(ValueError):
    """A file that cannot be read whole; the message names it and what to do."""


def check_named_file(path: Path, most_bytes: int) -> None:
    """Refuse what is no regular file, or larger than `most_bytes`."""
    try:
        status = path.stat()
    except OSError as error:
        raise NamedFileError(f"{path}: cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise NamedFileError(f"{path}: {kind_of(status.st_mode)}; name a regular file")
    if status.st_size > most_bytes:
        raise NamedFileError(
            f"{path}: {status.st_size:,} bytes, and at most {most_bytes:,} are read; name a "
            "smaller file"
        )


def read_named_file(path: Path, most_bytes: int) -> bytes:
    """Return a file's content; NamedFileError for what `check_named_file` refuses."""
    check_named_file(path, most_bytes)
    try:
        with open(path, "rb", opener=open_at_once) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise NamedFileError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise NamedFileError(f"{path}: grows beyond {most_bytes:,} bytes; name another file")
    return content


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, should it have become a pipe since it was looked at."""
    return os.open(path, flags | os.O_NONBLOCK)


def kind_of(mode: int) -> str:
    """Name what a path is that is no regular file."""
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")
