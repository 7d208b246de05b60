"""Dataset repositories of the Hugging Face hub, by its HTTP API: commits, listings and files.

The hub is the one of HF_ENDPOINT. The token comes from HF_TOKEN or the file of `hf auth login`. It
is sent to the hub only, not to the hosts that it redirects to, and is in no message.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import msgspec

from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import StatusError, open_url, origin_of, whole_body
from corpus_loader.places.transports import Interrupted, Patience
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError

ENDPOINT = "https://huggingface.co"
MOST_FILES = 1_000_000  # 300 MB of memory; the hub recommends fewer than 100,000
PAGE_BYTES = 64 << 20  # of a page of a listing, which has 1,000 files; of a README.md
HEADER_TEXT = re.compile(r"[\x21-\x7e]+")
NEXT_PAGE = re.compile(r'<([^>]*)>;\s*rel="?next"?')
REFUSED = frozenset({401, 403})
MISSING = 404
ADVICE = "Check the network and HF_ENDPOINT, then build again."
Answered = TypeVar("Answered")


class HubFile(NamedTuple):
    """A file of a repository; `oid` is the hash of its content, by LFS where that has it."""

    path: str
    bytes: int
    oid: str


class Commit(NamedTuple):
    """A commit of a repository `owner/name`."""

    repository: str
    sha: str


class _Lfs(msgspec.Struct):
    oid: str


class _Item(msgspec.Struct):
    type: str
    path: str
    oid: str = ""
    size: int = 0
    lfs: _Lfs | None = None


class _Revision(msgspec.Struct):
    sha: str


class _Reference(msgspec.Struct):
    name: str


class _References(msgspec.Struct):
    branches: list[_Reference] = []
    tags: list[_Reference] = []


class _Page(NamedTuple):
    content: bytes
    following: str


def endpoint() -> str:
    """Return the address of the hub."""
    return (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")


def hub_headers() -> dict[str, str]:
    """Return the headers of a request to the hub, with the token if there is one."""
    token = hub_token()
    credentials = {"Authorization": f"Bearer {token}"} if token else {}
    return {"User-Agent": "tokenmill", "Accept-Encoding": "identity", **credentials}


def hub_token() -> str | None:
    """Return the token of the environment, or of the file of `hf auth login`; None without one."""
    token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN") or ""
    place = "HF_TOKEN"
    if not token.strip():
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        home = os.environ.get("HF_HOME") or str(cache / "huggingface")
        path = Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token").expanduser()
        try:
            token, place = path.read_text(errors="replace"), str(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None
    token = token.strip()
    if token and not HEADER_TEXT.fullmatch(token):
        raise CorpusError(f"{place} holds no token: it has spaces or characters beyond ASCII.")
    return token or None


def file_url(commit: Commit, path: str) -> str:
    """Return the address of a file at a commit."""
    quoted = urllib.parse.quote(path)
    return f"{endpoint()}/datasets/{commit.repository}/resolve/{commit.sha}/{quoted}"


def find_commit(repository: str, revision: str) -> Commit:
    """Return the commit of a branch, tag or commit; InputError if there is none, or no access."""
    url = api_url(repository, "revision", urllib.parse.quote(revision, safe=""))
    try:
        sha = _decode(_fetch(url), url, _Revision).sha
    except StatusError as error:
        _explain(repository, revision, error)
    if not re.fullmatch(r"[0-9a-f]{40,64}", sha):
        raise CorpusError(f"{shown(url)}: the hub names {sha[:80]!r}, which is no commit.")
    return Commit(repository, sha)


def list_files(commit: Commit, folder: str = "") -> list[HubFile]:
    """List the files below a folder, sorted by path; none if it is not there.

    Raises InputError over MOST_FILES.
    """
    quoted = urllib.parse.quote(folder)
    url = api_url(commit.repository, "tree", commit.sha, *([quoted] if folder else []))
    files = list[HubFile]()
    try:
        for item in _pages(f"{url}?recursive=true&expand=false"):
            if item.type == "file":
                files.append(HubFile(item.path, item.size, item.lfs.oid if item.lfs else item.oid))
            if len(files) > MOST_FILES:
                raise InputError(
                    f"{commit.repository}/{folder} has over {MOST_FILES:,} files. Name a folder of "
                    "it in `where`, as hf://owner/name/folder"
                )
    except StatusError as error:
        if error.status == MISSING:
            return []
        raise
    return sorted(files)


def read_small(commit: Commit, path: str) -> bytes:
    """Read a whole file of a repository."""
    return _fetch(file_url(commit, path)).content


def api_url(repository: str, *parts: str) -> str:
    """Return an address of the API, given what comes behind the name of a repository."""
    return "/".join([f"{endpoint()}/api/datasets/{repository}", *parts])


def _pages(url: str) -> Iterator[_Item]:
    hub, seen = origin_of(url), set[str]()
    while url and url not in seen:
        seen.add(url)
        page = _fetch(url)
        yield from _decode(page, url, list[_Item])
        url = urllib.parse.urljoin(url, page.following) if page.following else ""
        if url and origin_of(url) != hub:
            raise CorpusError(f"{shown(url)}: the next page of a listing is not on the hub.")


def _fetch(url: str) -> _Page:
    patience = Patience()
    while True:
        try:
            with open_url(url, hub_headers()) as answer:
                following = NEXT_PAGE.search(answer.headers.get("Link", ""))
                content = b"".join(whole_body(answer, PAGE_BYTES))
            return _Page(content, following[1] if following else "")
        except Interrupted as error:
            patience.wait(f"{shown(url)} could not be read: {error}", error, ADVICE)


def _decode(page: _Page, url: str, kind: type[Answered]) -> Answered:
    try:
        return msgspec.json.decode(page.content, type=kind)
    except msgspec.MsgspecError as error:
        raise CorpusError(f"{shown(url)} is no answer of a hub: {error}. {ADVICE}") from None


def _explain(repository: str, revision: str, error: StatusError) -> NoReturn:
    """Raise InputError that says why a revision has no commit."""
    if error.status in REFUSED:
        raise InputError(_no_access(repository, error)) from None
    if error.status != MISSING:
        raise error
    url = api_url(repository, "refs")
    try:
        known = _decode(_fetch(url), url, _References)
    except StatusError as other:
        if other.status in REFUSED:
            raise InputError(_no_access(repository, other)) from None
        raise InputError(
            f"{endpoint()} has no dataset {repository!r}, or none with the revision {revision!r}. "
            "Correct `where` or `revision`."
        ) from None
    names = [
        f"{noun} {', '.join(sorted(each.name for each in references)[:20]) or '-'}"
        for noun, references in (("branches:", known.branches), ("tags:", known.tags))
    ]
    raise InputError(
        f"the dataset {repository!r} has no revision {revision!r}. It has {'; '.join(names)}. "
        "Correct `revision`; a commit is written in full."
    ) from None


def _no_access(repository: str, error: StatusError) -> str:
    if hub_token():
        step = f"check that the token may read it, and that its terms are accepted at {endpoint()}"
    else:
        step = "set HF_TOKEN, or run `hf auth login`, if it is private or gated"
    return (
        f"{endpoint()} gives no access to the dataset {repository!r} "
        f"({error.fact}, {'with a' if hub_token() else 'without a'} token): {step}. The hub says "
        "the same of a dataset that does not exist."
    )
