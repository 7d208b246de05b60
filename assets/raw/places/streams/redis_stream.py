"""Streams of Redis (7.0 or newer): redis://user:password@host:port/stream, rediss:// with TLS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from assets.raw.places.streams.logs import Entry, LogStatus, StreamError
from assets.raw.readers.input_record import ENTRY, entry_row
from resources.errors import InputError
from resources.settings.sources import DATABASE

if TYPE_CHECKING:
    import redis

PORT = 6379
PAGE_BYTES = 4 << 20  # of an answer: the server works on nothing else meanwhile
MOST_ENTRIES = 4096  # of an answer
RETRIES = 8  # with growing pauses, 10 s in all: a server that restarts
SECONDS = 30.0  # for an answer


@lru_cache
def client_at(url: str) -> redis.Redis:
    """Return the client of a server: one per process. `url` has the values of its variables."""
    try:
        import redis
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise InputError(f"where redis://: {error}. Run: pip install tokenmill[streams]") from error
    parts = urlsplit(url)
    return redis.Redis(
        host=parts.hostname or "localhost",
        port=parts.port or PORT,
        db=int(parse_qs(parts.query).get(DATABASE, ["0"])[0]),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        ssl=parts.scheme == "rediss",
        socket_timeout=SECONDS,
        socket_connect_timeout=SECONDS,
        retry=Retry(ExponentialBackoff(cap=2, base=0.1), RETRIES),
        protocol=2,
    )


class RedisStream:
    """A stream, read in pages of bounded size."""

    unit = ENTRY

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.url = url
        self.key = unquote(urlsplit(url).path[1:])

    def status(self) -> LogStatus | None:
        """Return what is there; None if there is no such key."""
        with explained(self.name):
            client = client_at(self.url)
            if not client.exists(self.key):
                return None
            info: dict[str, Any] = client.xinfo_stream(self.key)
        if "entries-added" not in info:
            raise InputError(
                f"{self.name}: the server is older than Redis 7.0, and does not count the entries "
                "that it removed. Update it."
            )
        first, last = info["first-entry"], info["last-generated-id"].decode()
        return LogStatus(
            first[0].decode() if first else "",
            "" if last == "0-0" else last,
            int(info["length"]),
            int(info["entries-added"]),
        )

    def order(self, entry_id: str) -> int:
        """Return both numbers of an id as one."""
        milliseconds, _, number = entry_id.partition("-")
        return int(milliseconds) << 64 | int(number)

    def read(self, start: str, last: str) -> Iterator[Entry]:
        """Yield entries, with an answer in memory."""
        count = 16
        while True:
            with explained(self.name):
                page: Any = client_at(self.url).xrange(self.key, start, last, count)
            num_bytes = 1
            for entry_id, fields in page:
                shown = entry_id.decode()
                entry = Entry(shown, entry_row(shown), fields)
                num_bytes += entry.bytes
                yield entry
            if len(page) < count:
                return
            start = f"({page[-1][0].decode()}"
            count = max(1, min(MOST_ENTRIES, count * PAGE_BYTES // num_bytes))


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Name the stream in errors of its server, and what to check."""
    import redis

    try:
        yield
    except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise InputError(
            f"{name}: the server refuses the user or password ({error}). Give them as "
            "redis://user:${NAME}@host/stream."
        ) from None
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError) as error:
        raise StreamError(
            f"{name}: the server does not answer ({error}). Start it, or correct `where`."
        ) from None
    except redis.exceptions.ResponseError as error:
        raise InputError(f"{name}: {error}. Name a stream of Redis in `where`.") from None
