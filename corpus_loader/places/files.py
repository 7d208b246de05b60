"""Access to a store's files: a local folder, read in place, or a URL, read through a cache.

Both (local_files.py, remote.py) provide three things: the bytes of a small file, the newest
manifest of a folder, and a local path for a large file, checked before it is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, Protocol

from corpus_loader.places.errors import CorpusError

DIGITS = 8  # a manifest is _manifests/00000003.json
MANIFEST = re.compile(r"([0-9]{8})\.json")
TAGS = "_tags"  # folder of the store: a file per tag, which names a manifest of every partition
TAKEDOWNS = "_takedowns"  # folder of the store: a file per request
TEMPORARY_PREFIX = (
    ".tmp-"  # begins the name of a file that is being written, in the folder of its place
)
IS_TAG_NAME = re.compile(r"(?![0-9a-f]{32}\Z)[A-Za-z][A-Za-z0-9._-]{0,63}\Z")
Verify = Literal["background", "first", False]  # when a file's sha256 is checked


class FileState(NamedTuple):
    """What is another one after any write to a file.

    `written_ns` alone is not: `cp -p`, rsync and tar set it back, and nothing sets `changed_ns`.
    """

    bytes: int
    written_ns: int
    changed_ns: int
    inode: int


def state_of(status: os.stat_result) -> FileState:
    """Return the state of a file of which `status` was asked."""
    return FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class Files(Protocol):
    """The loader's view of a store; every name is relative to its root."""

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""

    def names(self, folder: str) -> list[str]:
        """List the names in a folder, sorted; none if the server does not list."""

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder `_manifests`, None if there is none."""

    def has_room(self, files: Mapping[str, int]) -> bool:
        """True if files (bytes by sha256) fit beside those that are in use."""

    def local_path(
        self, relative: str, num_bytes: int, sha256: str
    ) -> AbstractContextManager[Path]:
        """Provide a checked local path while the context is open."""


def newest_number(names: Iterable[str]) -> int:
    """Return the largest number of a manifest among names; 0: none is one."""
    return max((int(match[1]) for name in names if (match := MANIFEST.fullmatch(name))), default=0)


def manifest_path(folder: str, number: int) -> str | None:
    """Return the path of a manifest by its number, None for 0."""
    return f"{folder}/{number:0{DIGITS}d}.json" if number else None


def is_tag_name(name: str) -> bool:
    """Return whether a text may be the name of a tag: no path, no number, no fingerprint."""
    return IS_TAG_NAME.match(name) is not None


def inside(relative: str) -> str:
    """Return a name inside the store; CorpusError otherwise: a mixture is not trusted."""
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts or "\\" in relative or not path.parts:
        raise CorpusError(f"{relative!r} is no name inside a corpus: the mixture is damaged")
    return str(path)
