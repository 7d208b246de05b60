"""Where a corpus lies: a folder of this machine, read in place, or a URL, read through a cache.

Both give the same three things: the bytes of a small file, the newest manifest of a folder, and a
path on this machine for a big file, checked before it is used.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

DIGITS = 8  # a manifest is _manifests/00000003.json


class CorpusError(RuntimeError):
    """The corpus, or what was asked of it, is not right; the message says what to do."""


class Files(Protocol):
    """What the loader needs of a store; every name is relative to its root."""

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""

    def names(self, folder: str) -> list[str]:
        """Names in a folder, sorted; none where nobody says."""

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder `_manifests`, None if there is none."""

    def local_path(
        self, relative: str, num_bytes: int, sha256: str
    ) -> AbstractContextManager[Path]:
        """A path of this machine that stays while the context is open; checked."""


class LocalFiles:
    """A store on a local disk. Files are read where they lie and never changed.

    With `verify` the sha256 of a file is checked when it is first used (1.5 GB/s), its size always.
    """

    def __init__(self, root: str | Path, verify: bool = True) -> None:
        self.root = Path(root)
        self.verify = verify
        self.verified: set[str] = set()

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""
        return (self.root / relative).read_bytes()

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder, None if there is none."""
        names = [path.stem for path in (self.root / folder).glob("[0-9]*.json")]
        numbers = [int(name) for name in names if name.isdigit()]
        return f"{folder}/{max(numbers):0{DIGITS}d}.json" if numbers else None

    def names(self, folder: str) -> list[str]:
        """The folders inside a folder, sorted."""
        return sorted(path.name for path in (self.root / folder).glob("*/"))

    @contextmanager
    def local_path(self, relative: str, num_bytes: int, sha256: str) -> Iterator[Path]:
        """Where the file lies; CorpusError if it is missing or not what it should be."""
        path = self.root / relative
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            raise CorpusError(f"{path} is missing. {repair(relative)}") from None
        if found != num_bytes:
            raise CorpusError(
                f"{path} has {found:,} bytes, the mixture says {num_bytes:,}. {repair(relative)}"
            )
        if self.verify and relative not in self.verified:
            check_sha256(path, relative, sha256)
            self.verified.add(relative)
        yield path


def check_sha256(path: Path, relative: str, expected: str) -> None:
    """CorpusError if the file's bytes are not those that were hashed."""
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise CorpusError(
            f"{path} changed since it was written: sha256 is {found}, the mixture says "
            f"{expected}. {repair(relative)}"
        )


def repair(relative: str) -> str:
    """What to do about a broken file."""
    return f"`corpus verify --repair` writes {relative} again; then start again from the last state"


def open_files(
    path: str | Path, verify: bool, cache: str | Path | None, cache_bytes: int | None
) -> Files:
    """The files of a folder or URL; the cache is for URLs, whose files are always verified."""
    if isinstance(path, Path) or "://" not in path:
        root = Path(path)
        if not root.is_dir():
            raise CorpusError(
                f"no folder {os.fspath(root)!r} (looked in {Path.cwd()}). Give the store's folder, "
                "or its URL."
            )
        return LocalFiles(root, verify)
    from corpus_loader.remote import RemoteStore

    return RemoteStore(path, cache, cache_bytes)
