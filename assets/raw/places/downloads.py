"""Files behind http(s) URLs: planned by their validators, and copied where there are no ranges.

A server that sends ranges of a file, with its size and a validator (RFC 9110 13.1: strong ETag,
Last-Modified), is read by ranges (web_ranges.py), and planning asks for one byte. A copy of another
one is stored under a hash of its identity, its URL without secrets: nothing that a server sends
becomes a path, and a renewed signature is the same file. It is written under a temporary name,
flushed to disk and renamed, so that a crash leaves the old file or the new one. The validators are
stored beside it with the size and digests of the file that they belong to: as long as the server
confirms them, planning needs no copy.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from assets.raw.places.file_digests import AGAIN, SINCE, FileDigest, digest_file
from assets.raw.readers.input_file import ChangedFileError, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    NOT_MODIFIED,
    OK,
    PARTIAL,
    UNSATISFIABLE,
    Answer,
    StatusError,
    open_url,
    status_text,
    whole_body,
)
from corpus_loader.places.transports import RETRY_VARIABLE, Interrupted, pause, retry_seconds
from corpus_loader.places.url_secrets import authorization, is_torn, shown
from corpus_loader.places.urls import Url
from resources.errors import InputError
from resources.settings.sources import SourceConfig, identity_of
from resources.store.disk import TEMPORARY_PREFIX, sync_folder
from resources.store.records import fingerprint_of

READ_SECONDS = 60.0  # longer than the loader's: some servers make the file when it is asked for
LEAST_SECONDS = 10.0  # with a short TOKENMILL_RETRY_SECONDS
ATTEMPTS = 4
URL_SAFE = "%/:?#[]@!$&'()*+,;="  # RFC 3986 2.2, and what is percent-encoded already


VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
RACY = timedelta(seconds=2)
SECRET_CHARS = 4  # a shorter value is no secret, and occurs in any text
UNAUTHORIZED = frozenset({401, 403})
# Files may be stored so, and be sent as they are, also by ranges: their first bytes tell.
STORED_ENCODINGS = frozenset({"identity", "gzip", "x-gzip", "zstd"})
HEADERS = {"User-Agent": "tokenmill", "Accept-Encoding": "identity"}


class DownloadError(OSError):
    """A URL could not be fetched; the message has its identity, the reason and the attempts."""


class WebFile(NamedTuple):
    """The file behind a URL: its place, which is the URL if the server sends ranges, or a copy."""

    place: str
    content: FileDigest


class _Validators(msgspec.Struct, frozen=True):
    url: str
    content: FileDigest
    etag: str | None = None
    last_modified: str | None = None
    has_ranges: bool = False

    def confirmed_by(self, answer: Answer) -> bool:
        """Return whether an answer has the same file, though the server does not say 304."""
        is_strong = self.etag is not None and not self.etag.startswith("W/")
        is_same = answer.headers.get("ETag") == self.etag and answer.length == self.content.bytes
        return is_strong and is_same


def download(
    url: str, identity: str, folder: Path, max_bytes: int, *, needs_copy: bool = True
) -> WebFile:
    """Return place, size and digests of the file behind `url`, as the server sends or confirms it.

    Where the server sends ranges, the size and a validator are all that is asked for. Else the copy
    is at `copy_path`; without `needs_copy` only if the file had to be sent.

    `${NAME}` in the URL is replaced by an environment variable, for the request only. Raises
    DownloadError after four attempts (waits 0.5, 1, 2 seconds), when the time of `retry_seconds` is
    over, or at once where the server refuses (4xx) or asks for a longer pause. What is known of the
    file is not used then: a build must not pass on old data in silence.
    """
    secrets = variables_of(url)
    address, name = ascii_url(filled(url, secrets)), ascii_url(identity)
    most, target = retry_seconds(), copy_path(identity, folder)
    until = time.monotonic() + most
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            known = _fetch(address, name, target, max_bytes, needs_copy=needs_copy)
            return WebFile(url if known.has_ranges else str(target), known.content)
        except CorpusError as error:
            fact, is_final = refusal_of(error, address), True
        except Interrupted as error:
            fact, asked, left = str(error), error.retry_after, until - time.monotonic()
            if 0 < asked > left:
                fact += f", asked to wait {asked:,.0f} s, over the {RETRY_VARIABLE} of {most:,.0f}"
            is_final = attempt == ATTEMPTS or asked > left
            time.sleep(0 if is_final else asked)
        except OSError as error:  # of the disk
            fact, is_final = f"{type(error).__name__}: {error}", attempt == ATTEMPTS
        if is_final:
            break
        pause(attempt)
    raise DownloadError(
        f"{identity} could not be fetched ({hidden(fact, secrets)}, attempt {attempt} of "
        f"{ATTEMPTS}). Check the address, the credentials and the network, or download it and name "
        "the local file in `where`."
    )


def refusal_of(error: CorpusError, address: str) -> str:
    """Return the fact of a refusal, and whether the request had a user and password."""
    if not isinstance(error, StatusError):
        return str(error)
    has_user = "with" if authorization(address) else "without"
    is_of_user = error.status in UNAUTHORIZED
    return f"{error.fact}, {has_user} user and password" if is_of_user else error.fact


def read_seconds() -> float:
    """Return how long a server may think before each byte."""
    return min(READ_SECONDS, max(retry_seconds(), LEAST_SECONDS))


def copy_path(identity: str, folder: Path) -> Path:
    """Return the path of the copy of a URL with this identity."""
    return folder / hashlib.sha256(ascii_url(identity).encode()).hexdigest()[:32]


def has_content(path: Path, content: FileDigest) -> bool:
    """Return whether there is a file with that content."""
    try:
        return path.stat().st_size == content.bytes and digest_file(str(path)) == content
    except FileNotFoundError:
        return False


def remove_copies(identities: Iterable[str], folder: Path) -> None:
    """Remove the copies of URLs; what is known of their content stays."""
    for identity in identities:
        copy_path(identity, folder).unlink(missing_ok=True)


def variables_of(url: str) -> dict[str, str]:
    """Return the environment variables that a URL names as ${NAME}.

    Raises DownloadError for one that is not set, and for one in the host.
    """
    names = dict.fromkeys(VARIABLE.findall(url))
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise DownloadError(
            f"{shown(url)}: the environment variable {missing[0]} is not set. Set it before the "
            "build, also for Dagster's daemon."
        )
    if VARIABLE.search(Url(url).host):
        raise DownloadError(f"{shown(url)}: a host cannot come from a variable. Write it out.")
    return {name: os.environ[name] for name in names}


def filled(url: str, variables: Mapping[str, str]) -> str:
    """Replace ${NAME} in a URL by values, percent-encoded so that each stays in its component."""
    parts = Url(url)

    def fill(component: str, safe: str) -> str:
        return VARIABLE.sub(
            lambda match: urllib.parse.quote(variables[match[1]], safe=safe), component
        )

    user = f"{fill(parts.user, ':')}@" if parts.user else ""
    path = fill(parts.path, URL_SAFE.replace("?", "").replace("#", ""))
    query = f"?{fill(parts.query, URL_SAFE.replace('#', ''))}" if parts.query else ""
    return f"{parts.scheme}://{user}{parts.host}{path}{query}" if variables else url


def hidden(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with ${NAME} in place of each value, as it is or percent-encoded."""
    long = {name: value for name, value in variables.items() if len(value) >= SECRET_CHARS}
    for name, value in long.items():
        for safe in ("", "/", URL_SAFE, None):
            written = value if safe is None else urllib.parse.quote(value, safe=safe)
            text = text.replace(written, f"${{{name}}}")
    return text


def ascii_url(url: str) -> str:
    """Percent-encode the characters that a URL cannot hold (RFC 3986), the host by IDNA.

    Characters that are already encoded stay as they are. Raises DownloadError for an invalid URL.
    """
    if is_torn(url):
        raise DownloadError(
            f"{shown(url)!r} is not a valid URL: a user or password has one of / ? #. Write %2F, "
            "%3F, %23 for them, or use netrc."
        )
    user = Url(url).user
    try:
        parts = urllib.parse.urlsplit(url.replace(f"://{user}@", "://", 1) if user else url)
        host = (parts.hostname or "").encode("idna").decode()
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError as error:
        fact = f"{shown(url)!r} is not a valid URL ({error}). Correct `where`."
        raise DownloadError(fact) from None
    if not host:
        raise DownloadError(f"{shown(url)!r} is not a valid URL (no host). Correct `where`.")
    is_plain = parts.netloc.isascii() and " " not in parts.netloc
    netloc = parts.netloc if is_plain else f"{host}{port}"
    sent_user = f"{urllib.parse.quote(user, safe=URL_SAFE)}@" if user else ""
    path, query = (urllib.parse.quote(part, safe=URL_SAFE) for part in (parts.path, parts.query))
    return urllib.parse.urlunsplit((parts.scheme, sent_user + netloc, path, query, ""))


def _fetch(
    url: str, identity: str, target: Path, max_bytes: int, *, needs_copy: bool
) -> _Validators:
    sidecar, known = target.with_suffix(".json"), None
    with suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(sidecar.read_bytes(), type=_Validators)
        known = found if found.url == identity else None
    if known and needs_copy and not known.has_ranges and not has_content(target, known.content):
        known = None
    try:
        now = _ask(url, identity, target, known, max_bytes)
    except StatusError as error:
        if error.status != NOT_MODIFIED or known is None:
            raise
        return known
    if now is not known:
        _write(sidecar, iter([msgspec.json.encode(now)]))
    return now


def _ask(
    url: str, identity: str, target: Path, known: _Validators | None, max_bytes: int
) -> _Validators:
    """Ask for the first byte of a file: the answer tells its size, or is the whole file."""
    headers = dict(HEADERS)
    if known and known.etag:
        headers["If-None-Match"] = known.etag
    if known and known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    try:
        answer = open_url(url, {**headers, "Range": "bytes=0-0"}, read_seconds())
    except StatusError as error:
        if error.status != UNSATISFIABLE:  # an empty file has no first byte
            raise
        answer = open_url(url, headers, read_seconds())
    with answer:
        if answer.status == PARTIAL and (content := version_of_answer(answer)):
            if content.bytes > max_bytes:
                raise CorpusError(f"the server has {content.bytes:,} bytes, over {max_bytes:,}")
            return _Validators(identity, content, *_validators(answer), has_ranges=True)
        if answer.status != PARTIAL:
            return _copied(answer, identity, target, known, max_bytes)
    with open_url(url, headers, read_seconds()) as answer:
        return _copied(answer, identity, target, known, max_bytes)


def _copied(
    answer: Answer, identity: str, target: Path, known: _Validators | None, max_bytes: int
) -> _Validators:
    if answer.status != OK:
        raise CorpusError(f"{status_text(answer.status)}, which is not the whole file")
    if (encoding := encoding_of(answer)) not in STORED_ENCODINGS:
        raise CorpusError(f"the server sent it encoded as {encoding[:20]!r}, which was not asked")
    if known and known.confirmed_by(answer):
        return known
    validators = _validators(answer)
    return _Validators(identity, _write(target, whole_body(answer, max_bytes)), *validators)


def _validators(answer: Answer) -> tuple[str | None, str | None]:
    """Return ETag and Last-Modified, the latter unless a second change may have the same.

    It counts whole seconds: a file that changed less than two before the answer may change once
    more in that second (RFC 9110 8.8.2.2).
    """
    changed, answered = answer.headers.get("Last-Modified"), answer.headers.get("Date", "")
    with suppress(TypeError, ValueError):  # a server without a clock, or with no time in it
        if parsedate_to_datetime(answered) - parsedate_to_datetime(changed or "") < RACY:
            changed = None
    return answer.headers.get("ETag"), changed


def version_of_answer(answer: Answer) -> FileDigest | None:
    """Return size and version of a file by an answer with a part of it, or with all of it.

    The version is a strong ETag, or the time of the last change; None if there is neither.
    """
    etag, changed = _validators(answer)
    version = changed if etag is None or etag.startswith("W/") else etag
    size = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if answer.status == OK:
        size = answer.headers.get("Content-Length", "")
    is_stored = encoding_of(answer) in STORED_ENCODINGS
    if version is None or not (size.isascii() and size.isdecimal()) or not is_stored:
        return None
    return FileDigest(int(size), fingerprint_of("url", int(size), version))


def encoding_of(answer: Answer) -> str:
    """Return how the body of an answer is encoded; "identity" if it is not."""
    return answer.headers.get("Content-Encoding", "identity").strip().lower()


def _write(target: Path, blocks: Iterator[bytes]) -> FileDigest:
    descriptor, name = tempfile.mkstemp(prefix=TEMPORARY_PREFIX, dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(blocks)
            file.flush()
            os.fsync(file.fileno())
        content = digest_file(name)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
    return content


def fetch_copies(source: SourceConfig, files: Iterable[InputFile], downloads: Path) -> None:
    """Download files of URLs whose copy is gone or damaged; other files need none.

    Raises InputError if one cannot be downloaded, and ChangedFileError if it is not the one that
    was planned with: the next planning sees the new one.
    """
    keys = source.identity_query
    urls = {identity_of(url, keys): url for url in source.where if url.kind == "web"}
    for file in files:
        planned = FileDigest(file.bytes, file.digest, file.blocks)
        # A file of a crawl is in a list, and not in `where`.
        url = urls.get(file.name) or Url(file.name)
        if file.is_remote or url.kind != "web" or has_content(file.path, planned):
            continue
        try:
            _, now = download(url, file.name, downloads, source.max_download_bytes)
        except DownloadError as error:
            raise InputError(f"source {source.name!r}: {error}", keys) from error
        if now != planned:
            raise ChangedFileError(
                f"{file.name} has changed {SINCE}: {planned.bytes:,} bytes with digest "
                f"{planned.digest} then, {now.bytes:,} bytes with digest {now.digest} now. {AGAIN}"
            )
