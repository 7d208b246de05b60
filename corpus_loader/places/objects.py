"""Objects behind s3://, gs:// and az:// URLs, through obstore.

The one layer over object storage: the loader reads through it, ingest and the store also list and
write. Keys are relative to the URL. Credentials, regions and endpoints come from the environment
or the machine's role, never from a URL. obstore is imported when a URL is opened: a training job
needs it only for such URLs (the extra `remote`).

Only whole PUT, PUT of a new key, GET, LIST and DELETE are used. Every request but `blocks` is
repeated for the time of `retry_seconds` if its failure may pass. CorpusError names the key and the
remedy of one that is refused or does not pass; FileNotFoundError a key to read that does not exist.
"""

from __future__ import annotations

import mmap
import os
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.files import TEMPORARY_PREFIX
from corpus_loader.places.threads import map_in_threads
from corpus_loader.places.traffic import READ, REQUESTS, WRITTEN, count
from corpus_loader.places.transports import BLOCK_BYTES, Interrupted, Patience
from corpus_loader.places.url_secrets import redacted, shown
from corpus_loader.places.urls import Url

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

RETRIES: RetryConfig = {"max_retries": 0}  # ours are the only ones
CONNECT_SECONDS, READ_SECONDS = 10, 30  # the second for each answer and each block
MOST_SECONDS = 3600  # of a request; a GET that is cut goes on where it was
PUT_BYTES_PER_SECOND = 1_000_000  # at least: READ_SECONDS bound a PUT from its beginning
PUT_BYTES = 5 << 30  # most that S3 takes in one PUT; larger files are sent in parts
SMALL_BYTES = 1 << 24
IN_FLIGHT = 32  # requests at a time of `each`
# Settings of the client that obstore does not take from the environment if others are given.
CLIENT_VARIABLES = (
    "ALLOW_HTTP",
    "ALLOW_INVALID_CERTIFICATES",
    "PROXY_URL",
    "PROXY_EXCLUDES",
    "PROXY_CA_CERTIFICATE",
)
PREFIXES = {"s3": "AWS", "s3a": "AWS", "gs": "GOOGLE"}  # others are Azure's
METADATA_SERVICE = re.compile(r"//(169\.254\.|metadata\.google|\[fd00:ec2::)")
STATUS = re.compile(r"status code: (\d{3})(?: ([A-Za-z' -]+))?")
CODE = re.compile(r"<Code>(\w{1,64})</Code>|\"(?:code|error)\": ?\"(\w{1,64})\"")
CLOCK_CODES = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
INTERNALS = re.compile(
    r"Generic \w+ error: |Error performing list request: |Error performing [A-Z]+ \S+ in \S+ - "
)
CONFLICT_CODES = frozenset({"ConditionalRequestConflict", "OperationAborted"})
PASSING = frozenset({"408", "409", "425", "429"})  # 409: two writers at a time, on AWS
NEVER = {
    "builder error": "the endpoint is http, which needs AWS_ALLOW_HTTP=true",
    "Received redirect": "a redirect, as from another region",
    "InvalidCertificate(": "the endpoint's certificate is not valid",
}
KIND = re.compile(r"kind: (Connect|Timeout)\b")
KINDS = {"Connect": "no connection to the endpoint", "Timeout": "no answer in time"}
UNSATISFIABLE = "HTTP 416"
CHECK = "the credentials, the bucket, the region and this machine's clock."
Item = TypeVar("Item")
Result = TypeVar("Result")
used_by: list[int] = []  # the process that used obstore first, if any


@dataclass(frozen=True)
class ObjectInfo:
    """An object: `etag` changes with its content; `modified`, in UTC, is of the last PUT.

    Objects with the same key, size and etag are equal: the precision of `modified` differs between
    requests.
    """

    key: str
    num_bytes: int
    etag: str | None
    modified: datetime = field(compare=False)


class Objects:
    """The objects below a URL; also a Transport of the loader (transports.py)."""

    def __init__(self, url: str) -> None:
        """Raises CorpusError if obstore is not installed, or if it cannot open the URL."""
        try:
            import obstore
            from obstore import exceptions
        except ImportError:
            raise CorpusError(
                f"{shown(url)!r} needs the package obstore: pip install "
                "'tokenmill-loader[remote]', or copy the corpus to a local disk."
            ) from None
        check_url(url)
        self.url = url.rstrip("/")
        self.obstore = obstore
        self.exceptions = exceptions
        self.patient: dict[int, ObjectStore] = {}
        check_process()
        try:
            self.store = self.connect(READ_SECONDS)
        except (exceptions.BaseError, ValueError) as error:
            raise CorpusError(
                f"{url!r} is no place of a corpus ({first_line(error)}). Give a folder, or a URL "
                "that begins with http, https, file, s3, gs or az."
            ) from None

    def __reduce__(self) -> tuple[type[Objects], tuple[str]]:
        """A copy in another process connects by itself: modules and clients cannot be sent."""
        return type(self), (self.url,)

    def connect(self, read_seconds: int) -> ObjectStore:
        """Return a client of obstore that waits so long for an answer."""
        return open_store(self.url, read_seconds)

    def blocks(self, name: str, start: int) -> Iterator[bytes]:
        """Yield the bytes of an object from `start` on, once; raises Interrupted if cut."""
        count(self.url, REQUESTS)
        with self.clear_errors(name, "read"):
            for block in self.answer(name, start).stream(min_chunk_size=BLOCK_BYTES):
                count(self.url, READ, len(block))
                yield bytes(block)

    def answer(self, key: str, start: int) -> Any:
        """Begin to read an object from `start` on, with obstore's own errors."""
        options: GetOptions | None = {"range": {"offset": start}} if start else None
        return self.obstore.get(self.store, key, options=options)

    def names(self, folder: str) -> list[str]:
        """List the names of objects and folders directly in a folder, sorted."""
        objects, folders = self.list_folder(folder)
        return sorted([*objects, *folders])

    def list_folder(self, folder: str = "") -> tuple[dict[str, int], list[str]]:
        """Return what is directly in a folder: bytes by name of each object, names of folders."""
        prefix = f"{folder}/" if folder else None
        listing = self.retried(
            folder, "listed", lambda: self.obstore.list_with_delimiter(self.store, prefix)
        )
        sizes = {name_of(info["path"]): info["size"] for info in listing["objects"]}
        folders = [name_of(path.rstrip("/")) for path in listing["common_prefixes"]]
        return dict(sorted(sizes.items())), sorted(folders)

    def list_objects(self, prefix: str = "") -> list[ObjectInfo]:
        """List all objects below a folder, at any depth, sorted by key."""
        return sorted(self.each_object(prefix), key=lambda info: info.key)

    def each_object(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield all objects below a folder, page by page: there may be millions.

        A listing that is cut goes on behind the last key of its last page.
        """
        listing: Iterator[Sequence[ObjectMeta]] | None = None
        last: str | None = None

        def next_page() -> Sequence[ObjectMeta]:
            nonlocal listing
            listing = listing or iter(
                self.obstore.list(self.store, prefix=prefix or None, offset=last, chunk_size=1000)
            )
            try:
                page = next(listing, ())
                if not page and last:  # the end of the listing took no request
                    count(self.url, REQUESTS, -1)
                return page
            except BaseException:
                listing = None
                raise

        while page := self.retried(prefix, "listed", next_page):
            yield from map(object_info, page)
            last = page[-1]["path"]

    def head(self, key: str) -> ObjectInfo | None:
        """Return size and etag of an object; None if there is none."""
        try:
            return self.retried(
                key, "read", lambda: object_info(self.obstore.head(self.store, key))
            )
        except FileNotFoundError:
            return None

    def get(self, key: str) -> bytes:
        """Read a whole object into memory."""
        return self.retried(key, "read", lambda: bytes(self.answer(key, 0).bytes()))

    def get_range(self, key: str, start: int, num_bytes: int) -> bytes:
        """Read `num_bytes` bytes of an object from `start` on; fewer at its end."""

        if not num_bytes:
            return b""

        def get() -> bytes:
            return bytes(self.obstore.get_range(self.store, key, start=start, length=num_bytes))

        return self.retried(key, "read", get)

    def get_part(self, key: str, start: int, stop: int) -> tuple[bytes, ObjectInfo]:
        """Read bytes [start, stop) of an object, and what the object is in the same answer.

        Past the end of one that has shrunk there are no bytes.
        """

        def get() -> tuple[bytes, ObjectInfo]:
            answer = self.obstore.get(self.store, key, options={"range": (start, stop)})
            content = bytes(answer.bytes())
            count(self.url, READ, len(content))
            return content, object_info(answer.meta)

        try:
            return self.retried(key, "read", get)
        except CorpusError as error:
            if UNSATISFIABLE not in str(error) or (now := self.head(key)) is None:
                raise
            return b"", now

    def get_to_file(self, key: str, path: Path) -> ObjectInfo:
        """Copy an object to a local file, which appears under its name when it is complete.

        A cut transfer goes on where it was, or from the start if the object changed meanwhile.
        """
        temporary = path.with_name(f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{path.name}")
        patience = Patience()
        before: list[ObjectInfo] = []

        def get() -> ObjectInfo:
            start = file.tell()
            answer = self.answer(key, start)
            info = object_info(answer.meta)
            if start and before != [info]:
                file.seek(0)
                file.truncate()
                answer = self.answer(key, 0)
                info = object_info(answer.meta)
            before[:] = [info]
            for block in answer.stream(min_chunk_size=BLOCK_BYTES):
                count(self.url, READ, len(block))
                try:
                    file.write(block)
                except OSError as error:
                    raise LocalError(error) from error
                patience.renew()
            return info

        try:
            with temporary.open("wb") as file:
                info = self.retried(key, "read", get, patience)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return info

    def put(self, key: str, content: bytes) -> None:
        """Write an object, over any that is there; readers never see a part."""
        store = self.store_for(len(content))
        self.retried(key, "written", lambda: self.send(store, key, content))

    def put_from_file(self, key: str, path: Path) -> str | None:
        """Write an object from a local file, over any that is there; return its ETag.

        Readers never see a part. Up to PUT_BYTES it is one PUT, so that a writer that is killed
        leaves nothing pending.
        """
        with path.open("rb") as file:
            num_bytes = os.fstat(file.fileno()).st_size
            store = self.store_for(num_bytes)
            content: bytes | mmap.mmap | IO[bytes] = b""
            if num_bytes > PUT_BYTES:
                content = file
            elif num_bytes:  # mapped: obstore would read all of it into memory
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return self.retried(key, "written", lambda: self.send(store, key, content))

    def send(
        self, store: ObjectStore, key: str, content: bytes | mmap.mmap | IO[bytes]
    ) -> str | None:
        """Write an object once: bytes by one PUT, a file in parts of 64 MiB; return its ETag."""
        if isinstance(content, bytes | mmap.mmap):
            count(self.url, WRITTEN, len(content))
            done = self.obstore.put(store, key, content, use_multipart=False)
        else:
            content.seek(0)
            count(self.url, WRITTEN, os.fstat(content.fileno()).st_size)
            done = self.obstore.put(store, key, content, use_multipart=True, chunk_size=1 << 26)
        return done["e_tag"]

    def store_for(self, num_bytes: int) -> ObjectStore:
        """Return the client for a PUT: its time grows with the bytes."""
        if num_bytes <= SMALL_BYTES:
            return self.store
        size = 1 << num_bytes.bit_length()  # a client is made in 45 ms
        if size not in self.patient:
            seconds = READ_SECONDS + size // PUT_BYTES_PER_SECOND
            self.patient[size] = self.connect(seconds)
        return self.patient[size]

    def create(self, key: str, content: bytes) -> bool:
        """Write an object unless the key is taken; False if it has other content.

        Of several writers with different contents exactly one gets True. Equal content counts as
        written: it may be an earlier attempt of this call whose answer was lost.
        """
        count(self.url, WRITTEN, len(content))
        try:
            self.retried(
                key, "written", lambda: self.obstore.put(self.store, key, content, mode="create")
            )
        except FileExistsError:
            with suppress(FileNotFoundError):  # deleted since: it was another's
                return self.get(key) == content
            return False
        return True

    def delete(self, key: str) -> None:
        """Delete an object; nothing happens if there is none."""

        def delete() -> None:
            try:
                self.obstore.delete(self.store, key)
            except FileNotFoundError as error:
                if code_of(error) == "NoSuchBucket":
                    raise

        self.retried(key, "deleted", delete)

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete objects, a thousand in a request; one by one where the store refuses that."""
        try:
            count(self.url, REQUESTS)
            with self.clear_errors(f"{len(keys)} keys", "deleted"):
                self.obstore.delete(self.store, keys)
        except (CorpusError, Interrupted, FileNotFoundError):
            self.each(self.delete, keys)

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """[function(item), ...] with many requests in flight, as in `each(objects.get, keys)`."""
        return map_in_threads(function, items, IN_FLIGHT)

    def retried(
        self,
        key: str,
        done: str,
        request: Callable[[], Result],
        patience: Patience | None = None,
    ) -> Result:
        """Send a request, again after errors that may pass; `done` is the participle for errors."""
        patience = patience or Patience()
        while True:
            try:
                count(self.url, REQUESTS)
                with self.clear_errors(key, done):
                    result = request()
                    count(self.url, READ, len(result) if isinstance(result, bytes) else 0)
                    return result
            except Interrupted as error:
                patience.wait(str(error), error, f"Check the network, the endpoint, {CHECK}")

    @contextmanager
    def clear_errors(self, key: str, done: str) -> Iterator[None]:
        """Translate obstore's errors to ours, which have the object's URL and no internals."""
        check_process()
        place, errors = f"{shown(self.url)}/{key}", self.exceptions
        try:
            yield
        except LocalError as error:
            raise error.error from None
        except errors.AlreadyExistsError as error:
            if code_of(error) in CONFLICT_CODES:
                raise Interrupted(f"{place} could not be {done}: HTTP 409") from None
            raise FileExistsError(f"{place} exists already") from None
        except (errors.InvalidPathError, ValueError) as error:
            raise CorpusError(
                f"{key!r} is no valid key: {first_line(error)}. Keys are relative, without '..'."
            ) from None
        except (FileNotFoundError, errors.BaseError) as error:
            raise clear_error(error, f"{place} could not be {done}") from None


class LocalError(Exception):
    """An error of the local disk in the middle of a request."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def clear_error(error: Exception, fault: str) -> Exception:
    """Return our error for one of obstore's: final, or Interrupted if another attempt may help."""
    status, code = STATUS.search(str(error)), code_of(error)
    if METADATA_SERVICE.search(str(error).split("\n", 1)[0]):
        return Interrupted(
            f"{fault}: no credentials in the environment, and the machine's role gave none",
            soon_or_never=True,
        )
    if status is None:
        for text, fact in NEVER.items():
            if text in str(error):
                return CorpusError(f"{fault}: {fact}. Check the endpoint, {CHECK}")
        kind = KIND.search(str(error))
        return Interrupted(f"{fault}: {KINDS[kind[1]] if kind else first_line(error)}")
    fact = f"HTTP {status[1]} {code or status[2] or ''}".rstrip()
    if code in CLOCK_CODES:
        return Interrupted(
            f"{fault}: {fact}: this machine's clock differs from the store's", soon_or_never=True
        )
    if status[1].startswith("5") or status[1] in PASSING or code == "RequestTimeout":
        return Interrupted(f"{fault}: {fact}")
    if code == "NoSuchBucket":
        return CorpusError(
            f"{fault}: {fact}: no such bucket. Check its name, the endpoint and the region."
        )
    if status[1] == "404":
        return FileNotFoundError(f"{fault}: {fact}. Check the key and the bucket.")
    return CorpusError(f"{fault}: {fact}. Check {CHECK}")


def code_of(error: Exception) -> str | None:
    """Return the store's own code of an error, such as NoSuchBucket; a HEAD has none."""
    match = CODE.search(str(error))
    return match and (match[1] or match[2])


def first_line(error: Exception) -> str:
    """Return the first line of an error without secrets and the library's debug text."""
    return redacted(INTERNALS.sub("", str(error).split("\n", 1)[0]))


def check_url(url: str) -> None:
    """Raise CorpusError for a URL with a user, a password or a query: it would be recorded."""
    parts = Url(url)
    if parts.user or parts.query or "@" in parts.host:
        raise CorpusError(
            f"{shown(url)!r} was given with a user, a password or a query. Leave them out: "
            "credentials come from environment variables such as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or from the machine's role."
        )


def open_store(url: str, read_seconds: int) -> ObjectStore:
    """Make a client for a URL, which waits so long for the answer to a request."""
    from obstore.store import from_url

    scheme = Url(url).scheme
    prefix = PREFIXES.get(scheme, "AZURE")
    options: dict[str, Any] = {
        variable.lower(): value
        for variable in CLIENT_VARIABLES
        if (value := os.environ.get(f"{prefix}_{variable}"))
    }
    client: ClientConfig = {
        **options,  # type: ignore[typeddict-item]
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "read_timeout": timedelta(seconds=read_seconds),
        "timeout": timedelta(seconds=MOST_SECONDS + read_seconds),
    }
    return from_url(url, client_options=client, retry_config=RETRIES)


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
    """Convert a listed object; its ETag has quotes, which Azure leaves out of listings."""
    etag = info["e_tag"] and '"{}"'.format(info["e_tag"].strip('"'))
    return ObjectInfo(info["path"], info["size"], etag, info["last_modified"])


def name_of(key: str) -> str:
    """Return the last part of a key."""
    return key.rsplit("/", 1)[-1]
