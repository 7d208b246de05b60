"""Files behind http(s) URLs, kept in a folder and requested again only when they have changed.

A file is stored under a hash of its URL: nothing that a server sends becomes a path. It is written
under a temporary name, flushed to disk and renamed, so that a crash leaves the old file or the new
one. The validators (RFC 9110 13.1: ETag, Last-Modified) are stored beside it with the digest of the
file that they belong to.
"""

import hashlib
import http.client
import os
import tempfile
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import msgspec

from corpus_loader.errors import CorpusError
from corpus_loader.http_client import NOT_MODIFIED, StatusError, open_url, read_block
from corpus_loader.transports import Interrupted, pause

READ_SECONDS = 60.0  # longer than the loader's: some servers make the file when it is asked for
ATTEMPTS = 4
URL_SAFE = "%/:?#[]@!$&'()*+,;="  # RFC 3986 2.2, and what is percent-encoded already


class DownloadError(OSError):
    """A URL could not be fetched; the message has the URL, the reason and the attempts."""


class _Validators(msgspec.Struct, frozen=True):
    url: str
    sha256: str
    etag: str | None = None
    last_modified: str | None = None


def download(url: str, folder: Path) -> Path:
    """Return the local copy of `url`, fetched or confirmed by the server to be current.

    Raises DownloadError after four attempts (waits 0.5, 1, 2 seconds) or at once where the server
    refuses (4xx). A stored copy is not used then: a build must not pass on old data in silence.
    """
    url = ascii_url(url)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / hashlib.sha256(url.encode()).hexdigest()[:32]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _fetch(url, target)
        except StatusError as error:
            fact, is_final = error.fact, True
        except CorpusError as error:
            fact, is_final = str(error), True
        except Interrupted as error:
            fact, is_final = str(error), attempt == ATTEMPTS
        except OSError as error:  # of the disk
            fact, is_final = f"{type(error).__name__}: {error}", attempt == ATTEMPTS
        if is_final:
            break
        pause(attempt)
    raise DownloadError(
        f"{url} could not be fetched ({fact}, attempt {attempt} of {ATTEMPTS}). "
        "Check the address and the network, or download it and name the local file in `where`."
    )


def ascii_url(url: str) -> str:
    """Percent-encode the characters that a URL cannot hold (RFC 3986), the host by IDNA.

    Characters that are already encoded stay as they are. Raises DownloadError for an invalid URL.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        host = (parts.hostname or "").encode("idna").decode()
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError as error:
        raise DownloadError(f"{url!r} is not a valid URL ({error}). Correct `where`.") from error
    if not host:
        raise DownloadError(f"{url!r} is not a valid URL (no host). Correct `where`.")
    if parts.netloc.isascii() and " " not in parts.netloc:
        netloc = parts.netloc
    else:
        netloc = f"{urllib.parse.quote(user, safe=URL_SAFE)}{at}{host}{port}"
    path, query = (urllib.parse.quote(part, safe=URL_SAFE) for part in (parts.path, parts.query))
    return urllib.parse.urlunsplit((parts.scheme, netloc, path, query, ""))


def _fetch(url: str, target: Path) -> Path:
    sidecar = target.with_suffix(".json")
    try:
        response = open_url(url, _request_headers(url, target, sidecar), READ_SECONDS)
    except StatusError as error:
        if error.status != NOT_MODIFIED:
            raise
        return target
    with response:
        sha256 = _write(target, _body(response))
        headers = response.headers
    validators = _Validators(url, sha256, headers.get("ETag"), headers.get("Last-Modified"))
    _write(sidecar, iter([msgspec.json.encode(validators)]))
    return target


def _request_headers(url: str, target: Path, sidecar: Path) -> dict[str, str]:
    headers = {"User-Agent": "tokenmill", "Accept-Encoding": "identity"}
    try:
        known = msgspec.json.decode(sidecar.read_bytes(), type=_Validators)
        with target.open("rb") as file:
            is_intact = hashlib.file_digest(file, "sha256").hexdigest() == known.sha256
    except (OSError, msgspec.DecodeError):
        return headers
    if not is_intact or known.url != url:
        return headers
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


def _body(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while block := read_block(response):
        yield block


def _write(target: Path, blocks: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for block in blocks:
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return digest.hexdigest()
