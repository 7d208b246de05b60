"""Files behind http(s) URLs, kept in a folder and requested again only when they have changed.

A file is stored under a hash of its identity, its URL without secrets: nothing that a server sends
becomes a path, and a renewed signature is the same file. It is written under a temporary name,
flushed to disk and renamed, so that a crash leaves the old file or the new one. The validators
(RFC 9110 13.1: ETag, Last-Modified) are stored beside it with the digest of the file that they
belong to.
"""

import hashlib
import os
import re
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from corpus_loader.errors import CorpusError
from corpus_loader.http_client import (
    NOT_MODIFIED,
    OK,
    Answer,
    StatusError,
    open_url,
    status_text,
    whole_body,
)
from corpus_loader.transports import Interrupted, pause
from corpus_loader.url_secrets import authorization, is_torn, shown, split_url

READ_SECONDS = 60.0  # longer than the loader's: some servers make the file when it is asked for
ATTEMPTS = 4
URL_SAFE = "%/:?#[]@!$&'()*+,;="  # RFC 3986 2.2, and what is percent-encoded already


VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SECRET_CHARS = 4  # a shorter value is no secret, and occurs in any text
UNAUTHORIZED = frozenset({401, 403})


class DownloadError(OSError):
    """A URL could not be fetched; the message has its identity, the reason and the attempts."""


class _Validators(msgspec.Struct, frozen=True):
    url: str
    sha256: str
    etag: str | None = None
    last_modified: str | None = None


def download(url: str, identity: str, folder: Path, max_bytes: int) -> Path:
    """Return the local copy of `url`, fetched or confirmed by the server to be current.

    `${NAME}` in the URL is replaced by an environment variable, for the request only. Raises
    DownloadError after four attempts (waits 0.5, 1, 2 seconds) or at once where the server refuses
    (4xx). A stored copy is not used then: a build must not pass on old data in silence.
    """
    secrets = variables_of(url)
    address = ascii_url(filled(url, secrets))
    name = ascii_url(identity)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / hashlib.sha256(name.encode()).hexdigest()[:32]
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _fetch(address, name, target, max_bytes)
        except StatusError as error:
            fact, is_final = error.fact, True
            if error.status in UNAUTHORIZED:
                fact += f", {'with' if authorization(address) else 'without'} user and password"
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
        f"{identity} could not be fetched ({hidden(fact, secrets)}, attempt {attempt} of "
        f"{ATTEMPTS}). Check the address, the credentials and the network, or download it and name "
        "the local file in `where`."
    )


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
    if VARIABLE.search(split_url(url).host):
        raise DownloadError(f"{shown(url)}: a host cannot come from a variable. Write it out.")
    return {name: os.environ[name] for name in names}


def filled(url: str, variables: Mapping[str, str]) -> str:
    """Replace ${NAME} in a URL by values, percent-encoded so that each stays in its component."""
    parts = split_url(url)

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
    user = split_url(url).user
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


def _fetch(url: str, identity: str, target: Path, max_bytes: int) -> Path:
    sidecar = target.with_suffix(".json")
    try:
        answer = open_url(url, _request_headers(identity, target, sidecar), READ_SECONDS)
    except StatusError as error:
        if error.status != NOT_MODIFIED:
            raise
        return target
    with answer:
        check_whole(answer, identity)
        sha256 = _write(target, whole_body(answer, max_bytes))
        headers = answer.headers
    validators = _Validators(identity, sha256, headers.get("ETag"), headers.get("Last-Modified"))
    _write(sidecar, iter([msgspec.json.encode(validators)]))
    return target


def check_whole(answer: Answer, identity: str) -> None:
    """Raise CorpusError for an answer that is not the file as it is stored on the server."""
    if answer.status != OK:
        raise CorpusError(f"{status_text(answer.status)}, which is not the whole file")
    encoding = answer.headers.get("Content-Encoding", "identity").strip().lower()
    is_gzip = encoding in ("gzip", "x-gzip") and split_url(identity).path.endswith(".gz")
    if encoding != "identity" and not is_gzip:  # Apache sends .gz files so, as they are
        raise CorpusError(f"the server sent it encoded as {encoding[:20]!r}, which was not asked")


def _request_headers(identity: str, target: Path, sidecar: Path) -> dict[str, str]:
    headers = {"User-Agent": "tokenmill", "Accept-Encoding": "identity"}
    try:
        known = msgspec.json.decode(sidecar.read_bytes(), type=_Validators)
        with target.open("rb") as file:
            is_intact = hashlib.file_digest(file, "sha256").hexdigest() == known.sha256
    except (OSError, msgspec.DecodeError):
        return headers
    if not is_intact or known.url != identity:
        return headers
    if known.etag:
        headers["If-None-Match"] = known.etag
    if known.last_modified:
        headers["If-Modified-Since"] = known.last_modified
    return headers


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
