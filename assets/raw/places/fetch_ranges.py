"""The function that fetches ranges of a remote file, by the kind of its place.

Each answer proves that it is of the version that was planned with, else ChangedFileError; each
request is repeated for the time of TOKENMILL_RETRY_SECONDS. The pace of a source is kept by all
processes of this machine: a file per host, under DAGSTER_HOME, has the time of the next request.
"""

from __future__ import annotations

import fcntl
import os
import time

from assets.raw.places.hub_files import endpoint
from assets.raw.readers.input_file import Fetch, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.urls import Url
from resources.dagster_home import dagster_home
from resources.store.disk import make_folder
from resources.store.records import fingerprint_of

FOLDER = "tokenmill_hosts"
MOST_WAIT_SECONDS = 3600.0  # a time further off is of before a restart, when the clock began


def reachable(file: InputFile) -> InputFile:
    """Return a file that readers can open: a remote one with the function that fetches it."""
    return file._replace(fetch_of=fetch_of) if file.is_remote else file


def fetch_of(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a remote file, at the pace of its source."""
    fetch = fetch_at_once(file)
    if not file.requests_per_second:
        return fetch
    host = endpoint() if Url(file.place).kind == "hub" else file.place

    def fetch_in_turn(start: int, stop: int) -> bytes:
        time.sleep(seconds_to_turn(host, file.requests_per_second))
        return fetch(start, stop)

    return fetch_in_turn


def fetch_at_once(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a remote file."""
    url = Url(file.place)
    match url.kind:
        case "object":
            from assets.raw.places.object_files import fetch_of_object

            return fetch_of_object(file)
        case "hub":
            from assets.raw.places.hub_files import fetch_from_hub

            return fetch_from_hub(file)
        case "web":
            from assets.raw.places.web_ranges import fetch_of_url

            return fetch_of_url(file)
        case "hdfs":
            from assets.raw.places.hadoop_files import fetch_of_hadoop_file

            return fetch_of_hadoop_file(file)
        case _:
            raise CorpusError(f"{file.name}: {url.scheme}:// is not read by ranges. Copy the file.")


def seconds_to_turn(url: str, per_second: float) -> float:
    """Take the next turn of the host of a URL, and return the seconds until it."""
    parts = Url(url)
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
