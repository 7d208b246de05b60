"""Download http(s) URLs into a folder, and again only when they have changed.

A file is stored under a hash of its URL: nothing that a server sends becomes a path. It is written
under a temporary name, flushed to disk and renamed, so that a crash leaves the old file or the new
one. The validators (RFC 9110 13.1: ETag, Last-Modified) are stored beside it, with the digest of
the file they belong to.
"""

import hashlib
import http.client
import os
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec

TIMEOUT_SECONDS = 60.0
ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
BLOCK_BYTES = 1 << 20
NOT_MODIFIED = 304
URL_SAFE = "%/:?#[]@!$&'()*+,;="  # RFC 3986 2.2, and %, which is kept
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(OSError):
    """A failed download; the message gives the URL, the reason and the number of attempts."""


class _Validators(msgspec.Struct, frozen=True):
    url: str
    sha256: str
    etag: str | None = None
    last_modified: str | None = None


def download(url: str, folder: Path) -> Path:
    """Return the local copy of `url`, fetched or confirmed by the server to be current.

    Raises DownloadError after four attempts (waits 0.5, 1, 2 seconds), or at once if the server
    refuses (4xx). A stored copy is not used then: a build must not pass on old data in silence.
    """
    url = ascii_url(url)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / hashlib.sha256(url.encode()).hexdigest()[:32]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _fetch(url, target)
        except urllib.error.HTTPError as error:
            error.close()
            fact, is_final = f"HTTP {error.code} {error.reason}", error.code not in TRY_AGAIN
        except (OSError, ValueError, http.client.HTTPException) as error:
            fact, is_final = f"{type(error).__name__}: {error}", isinstance(error, ValueError)
        if is_final or attempt == ATTEMPTS:
            break
        time.sleep(FIRST_WAIT_SECONDS * 2 ** (attempt - 1))
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
    request = urllib.request.Request(url, headers=_request_headers(url, target, sidecar))
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != NOT_MODIFIED:
            raise
        error.close()
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
    expected, received = response.headers.get("Content-Length"), 0
    while block := response.read(BLOCK_BYTES):
        received += len(block)
        yield block
    if expected is not None and int(expected) != received:
        raise OSError(f"the server sent {received:,} of {int(expected):,} bytes")


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
