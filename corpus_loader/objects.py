"""Objects behind s3://, gs:// and az:// URLs, through obstore.

The one layer over object storage: the loader reads through it, ingest and the store also list and
write. Keys are relative to the URL. Credentials, regions and endpoints come from the environment.
obstore is imported when a URL is opened: a training job needs it only for such URLs (the extra
`remote`).

Every operation raises CorpusError with the key and what to check if the request is refused or
fails for good, and FileNotFoundError if a key or bucket to read does not exist.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from corpus_loader.errors import CorpusError
from corpus_loader.transports import BLOCK_BYTES, Interrupted, pause
from corpus_loader.url_secrets import redacted, shown

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import RetryConfig

# Of obstore itself, besides ours: by its default of 10 in 3 minutes, a server that never answers
# would be named after a quarter of an hour.
RETRIES: RetryConfig = {"max_retries": 1, "retry_timeout": timedelta(seconds=30)}
ATTEMPTS = 3  # of an operation other than `blocks`, each with obstore's own retries
Result = TypeVar("Result")
used_by: list[int] = []  # the process that used obstore first, if any


@dataclass(frozen=True)
class ObjectInfo:
    """An object as listed: `etag` changes with its content; `modified` is in UTC."""

    key: str
    num_bytes: int
    etag: str | None
    modified: datetime


class Objects:
    """The objects below a URL; also a Transport of the loader (transports.py)."""

    def __init__(self, url: str) -> None:
        """Raises CorpusError if obstore is not installed, or if it cannot open the URL."""
        try:
            import obstore
            from obstore import exceptions
            from obstore.store import from_url
        except ImportError:
            raise CorpusError(
                f"{url!r} needs the package obstore: pip install 'tokenmill[remote]', or copy the "
                "corpus to a local disk."
            ) from None
        self.url = url.rstrip("/")
        self.obstore = obstore
        self.exceptions = exceptions
        check_process()
        try:
            self.store = from_url(url, retry_config=RETRIES)
        except (exceptions.BaseError, ValueError) as error:
            raise CorpusError(
                f"{url!r} is no place of a corpus ({first_line(error)}). Give a folder, or a URL "
                "that begins with http, https, file, s3, gs or az."
            ) from None

    def __reduce__(self) -> tuple[type[Objects], tuple[str]]:
        """A copy in another process connects by itself: modules and clients cannot be sent."""
        return Objects, (self.url,)

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """Yield the bytes of an object from `start` on, once; raises Interrupted if cut."""
        with self.clear_errors(name, "read"):
            yield from self.stream(name, start)

    def stream(self, key: str, start: int) -> Iterator[bytes]:
        """`blocks`, with obstore's own errors."""
        options: GetOptions | None = {"range": {"offset": start}} if start else None
        answer = self.obstore.get(self.store, key, options=options)
        for block in answer.stream(min_chunk_size=BLOCK_BYTES):
            yield bytes(block)

    def names(self, folder: str) -> list[str]:
        """List the names of objects and folders directly in a folder, sorted."""
        listing = self.retried(
            folder, "listed", lambda: self.obstore.list_with_delimiter(self.store, f"{folder}/")
        )
        paths = [info["path"] for info in listing["objects"]] + list(listing["common_prefixes"])
        return sorted(path.rstrip("/").rsplit("/", 1)[-1] for path in paths)

    def list_objects(self, prefix: str = "") -> list[ObjectInfo]:
        """List all objects below a folder, at any depth, sorted by key."""

        def pages() -> list[ObjectInfo]:
            listing = self.obstore.list(self.store, prefix=prefix or None)
            return [object_info(info) for page in listing for info in page]

        return sorted(self.retried(prefix, "listed", pages), key=lambda info: info.key)

    def get_range(self, key: str, start: int, num_bytes: int) -> bytes:
        """Read `num_bytes` bytes of an object from `start` on; fewer at its end."""

        def get() -> bytes:
            return bytes(self.obstore.get_range(self.store, key, start=start, length=num_bytes))

        return self.retried(key, "read", get)

    def get_to_file(self, key: str, path: Path) -> None:
        """Copy an object to a local file, which appears under its name when it is complete."""
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")

        def get() -> None:
            file.seek(0)
            file.truncate()
            for block in self.stream(key, 0):
                file.write(block)

        try:
            with temporary.open("wb") as file:
                self.retried(key, "read", get)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def put_from_file(self, key: str, path: Path) -> None:
        """Write an object from a local file, over any that is there; readers never see a part."""

        def put() -> None:
            file.seek(0)
            self.obstore.put(self.store, key, file)

        with path.open("rb") as file:
            self.retried(key, "written", put)

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless the key is taken; False if it has other content.

        Of several writers with different contents exactly one gets True. Equal content counts as
        written: it may be an earlier attempt of this call whose answer was lost.
        """
        try:
            self.retried(
                key, "written", lambda: self.obstore.put(self.store, key, content, mode="create")
            )
        except FileExistsError:
            return b"".join(self.blocks(key, 0)) == content
        return True

    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""
        self.retried(key, "deleted", lambda: self.obstore.delete(self.store, key))

    def retried(self, key: str, done: str, request: Callable[[], Result]) -> Result:
        """Send a request, again after errors that may pass; `done` is the participle for errors."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self.clear_errors(key, done):
                    return request()
            except Interrupted as error:
                fact = str(error)
            if attempt < ATTEMPTS:
                pause(attempt)
        raise CorpusError(
            f"{fact} (attempt {ATTEMPTS} of {ATTEMPTS}). Check the network, the bucket and the "
            "region."
        )

    @contextmanager
    def clear_errors(self, key: str, done: str) -> Iterator[None]:
        """Translate obstore's errors to ours, with the object's URL and the first line of each."""
        check_process()
        url, errors = f"{shown(self.url)}/{key}", self.exceptions
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{url} could not be {done}: {first_line(error)}. Check the key and the bucket."
            ) from None
        except errors.AlreadyExistsError:
            raise FileExistsError(f"{url} exists already") from None
        except (errors.PermissionDeniedError, errors.UnauthenticatedError) as error:
            raise CorpusError(
                f"{url} may not be {done}: {first_line(error)}. Check the keys."
            ) from None
        except (errors.InvalidPathError, ValueError) as error:
            raise CorpusError(
                f"{key!r} is no valid key: {first_line(error)}. Keys are relative, without '..'."
            ) from None
        except errors.BaseError as error:
            raise Interrupted(f"{url} could not be {done}: {first_line(error)}") from None


def check_process() -> None:
    """Raise CorpusError in a fork of a process that used obstore.

    obstore's threads do not survive the fork: a request would wait for them for ever.
    """
    if not used_by:
        used_by.append(os.getpid())
    if used_by[0] != os.getpid():
        raise CorpusError(
            "this process was forked from one that reads object storage (s3, gs, az), which does "
            "not survive that. Spawn the workers: DataLoader(multiprocessing_context='spawn')."
        )


def object_info(info: ObjectMeta) -> ObjectInfo:
    """Convert a listed object."""
    return ObjectInfo(info["path"], info["size"], info["e_tag"], info["last_modified"])


def first_line(error: Exception) -> str:
    """Return the first line of an error without secrets; obstore's go on with its internals."""
    return redacted(str(error).split("\n", 1)[0])
