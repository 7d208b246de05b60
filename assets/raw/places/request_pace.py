"""The pace of requests to a host: so many a second, from all processes of this machine.

A file per host, under DAGSTER_HOME, holds the time of the next request. Who wants to send one takes
that time under a lock, moves it on, and waits for it.
"""

from __future__ import annotations

import fcntl
import os
import time

from assets.raw.places.range_files import Fetch
from corpus_loader.places.url_secrets import split_url
from resources.dagster_home import dagster_home
from resources.store.disk import make_folder
from resources.store.records import fingerprint_of

FOLDER = "tokenmill_hosts"
MOST_WAIT_SECONDS = 3600.0  # a time further off is of before a restart, when the clock began


def paced(fetch: Fetch, url: str, per_second: float) -> Fetch:
    """Return a `Fetch` that sends at most so many requests a second to the host of a URL."""

    def fetch_in_turn(start: int, stop: int) -> bytes:
        time.sleep(seconds_to_turn(url, per_second))
        return fetch(start, stop)

    return fetch_in_turn


def seconds_to_turn(url: str, per_second: float) -> float:
    """Take the next turn of the host of a URL, and return the seconds until it."""
    parts = split_url(url)
    path = dagster_home() / FOLDER / fingerprint_of(parts.scheme, parts.host)
    make_folder(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        now, told = time.monotonic(), os.pread(descriptor, 32, 0)
        turn = float(told) if told else now
        turn = now if turn - now > MOST_WAIT_SECONDS else max(turn, now)
        os.pwrite(descriptor, f"{turn + 1 / per_second:032.6f}".encode(), 0)
    finally:
        os.close(descriptor)
    return turn - now
