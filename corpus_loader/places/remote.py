"""A corpus behind a URL: small files are read over the network, shards through a cache.

http, https    by the standard library; the newest manifest by the server's page of the folder,
               or by requesting one number after the other
s3, gs, az     by obstore (the extra `remote`); keys and regions come from the environment
file           read in place: a cache never holds the only copy of anything
"""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import compress
from pathlib import Path

from corpus_loader.places.cache import Cache
from corpus_loader.places.errors import CorpusError, repair
from corpus_loader.places.files import (
    DIGITS,
    Files,
    Verify,
    inside,
    manifest_path,
    newest_number,
)
from corpus_loader.places.local_files import LocalFiles
from corpus_loader.places.object_stores import open_objects
from corpus_loader.places.stage_names import MIXED
from corpus_loader.places.threads import map_in_threads
from corpus_loader.places.transports import Transport, read_blocks

DEFAULT_BYTES = 64 << 30
ASKED_AT_ONCE = 16
MOST_MISSES = 1024  # numbers in a row without a manifest: three years of nights
SMALL_BYTES = 1 << 28


def open_files(
    path: str | Path, verify: Verify, cache: str | Path | None, cache_bytes: int | None
) -> Files:
    """Open a store by its folder or URL; the cache is for URLs, whose files are always verified.

    Raises CorpusError if there is no such folder, or if the URL has no store.
    """
    if not isinstance(path, Path) and path.startswith("file:"):
        return LocalFiles(urllib.parse.unquote(urllib.parse.urlsplit(path).path), verify)
    if not isinstance(path, Path) and "://" in path:
        return RemoteStore(path, cache, cache_bytes)
    root = Path(path)
    if not root.is_dir():
        raise CorpusError(
            f"no folder {os.fspath(root)!r} (looked in {Path.cwd()}). Give the store's folder, "
            "or its URL."
        )
    if not (root / MIXED).is_dir():
        outer = next((up for up in root.resolve().parents[:3] if (up / MIXED).is_dir()), None)
        if outer is not None:
            raise CorpusError(
                f"{os.fspath(root)!r} is a folder inside of the corpus {os.fspath(outer)!r}. Give "
                "that folder."
            )
    return LocalFiles(root, verify)


def open_transport(url: str) -> Transport:
    """Return the transport for a URL's scheme.

    The clients are imported here: a corpus in a folder pays for neither.
    """
    if urllib.parse.urlsplit(url).scheme in ("http", "https"):
        from corpus_loader.places.http_transport import HttpTransport

        return HttpTransport(url)
    return open_objects(url)


class RemoteStore:
    """A store behind a URL, as Files (files.py); all names are relative to it."""

    def __init__(
        self, url: str, cache_dir: str | Path | None = None, max_bytes: int | None = None
    ) -> None:
        self.url = url
        self.transport = open_transport(url)
        folder = default_folder() if cache_dir is None else Path(cache_dir)
        self.cache = Cache(folder, DEFAULT_BYTES if max_bytes is None else max_bytes)

    def read(self, relative: str) -> bytes:
        """The content of a small file; FileNotFoundError if there is none."""
        name, content = inside(relative), bytearray()
        for block in read_blocks(self.transport, name):
            content += block
            if len(content) > SMALL_BYTES:
                raise CorpusError(f"{name} has over {SMALL_BYTES:,} bytes: it is no manifest")
        return bytes(content)

    def names(self, folder: str) -> list[str]:
        """List the names in a folder, sorted; none if the server does not list."""
        return self.transport.names(inside(folder)) or []

    def newest(self, folder: str) -> str | None:
        """The newest manifest in a folder `_manifests`, None if there is none."""
        folder = inside(folder)
        names = self.transport.names(folder)
        number = self.last_number(folder) if names is None else newest_number(names)
        return manifest_path(folder, number)

    def last_number(self, folder: str) -> int:
        """Return the last manifest's number; 0: none. Tags keep old ones below a gap."""
        last, number = 0, 0
        while number - last < MOST_MISSES:
            numbers = range(number + 1, number + 1 + ASKED_AT_ONCE)
            names = [f"{folder}/{candidate:0{DIGITS}d}.json" for candidate in numbers]
            there = map_in_threads(partial(is_there, self.transport), names, ASKED_AT_ONCE)
            last = max([last, *compress(numbers, there)])
            number += ASKED_AT_ONCE
        return last

    def has_room(self, files: Mapping[str, int]) -> bool:
        """Check that files (bytes by sha256) fit the cache, once all unused files are removed."""
        missing = [size for sha256, size in files.items() if not self.cache.has(sha256)]
        return not missing or self.cache.make_room(sum(missing))

    @contextmanager
    def local_path(self, relative: str, num_bytes: int, sha256: str) -> Iterator[Path]:
        """Provide a local path while this is open; the file's bytes have that sha256."""
        name = inside(relative)
        blocks = partial(read_blocks, self.transport, name)
        with ExitStack() as stack:
            try:
                path = stack.enter_context(self.cache.file(sha256, num_bytes, blocks))
            except FileNotFoundError as error:
                raise CorpusError(
                    f"{self.url}: {name} is missing ({error}). {repair(name)}. If `sharded` was "
                    "built again since, run the job `mix_corpus`."
                ) from None
            except CorpusError as error:
                raise CorpusError(f"{self.url}: {name}: {error}") from error
            yield path


def is_there(transport: Transport, name: str) -> bool:
    """Check that a file exists."""
    try:
        next(read_blocks(transport, name), b"")
    except FileNotFoundError:
        return False
    return True


def default_folder() -> Path:
    """Return the default cache folder: TOKENMILL_CACHE, or one in the user's cache folder."""
    if folder := os.environ.get("TOKENMILL_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tokenmill"
