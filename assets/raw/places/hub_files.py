"""Input files in dataset repositories of the Hugging Face hub: hf://owner/name, and files in it.

    hf://owner/name              the files of a configuration and split (hub_splits.py)
    hf://owner/name/**/*.jsonl   files of the repository, with the rules of local globs

The revision becomes a commit, which is part of a file's place and not of its name or digest: a file
that a later commit has unchanged is not read again. Files are read by ranges, with no copy.

The hub is the one of HF_ENDPOINT. The token comes from HF_TOKEN or the file of `hf auth login`. It
is sent to the hub only, not to the hosts that it redirects to, and is in no message.
`huggingface_hub` sends it wherever the next page of a listing is said to be, has no bound on an
answer, and takes 0.3 s to import.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar

import msgspec

from assets.raw.places.file_digests import AGAIN, SINCE, FileDigest, removed
from assets.raw.places.hub_splits import README, Split, split_paths
from assets.raw.places.local_files import Match, MatchedBy, remote_match
from assets.raw.places.object_files import match, split_segments
from assets.raw.readers.input_file import ChangedFileError, Fetch, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    PARTIAL,
    Answer,
    StatusError,
    open_url,
    origin_of,
    read_block,
    whole_body,
)
from corpus_loader.places.transports import Interrupted, Patience
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError
from resources.settings.sources import HUB_KEYS, InputPlaces
from resources.store.records import fingerprint_of

ENDPOINT = "https://huggingface.co"
MOST_FILES = 1_000_000  # 300 MB of memory; the hub recommends fewer than 100,000
PAGE_BYTES = 64 << 20  # of a page of a listing, which has 1,000 files; of a README.md
HEADER_TEXT = re.compile(r"[\x21-\x7e]+")
NEXT_PAGE = re.compile(r'<([^>]*)>;\s*rel="?next"?')
REFUSED = frozenset({401, 403})
MISSING = 404
ADVICE = "Check the network and HF_ENDPOINT, then build again."
Answered = TypeVar("Answered")
NAME = r"[A-Za-z0-9_][\w.-]*"
HUB_URL = re.compile(rf"hf://(?:datasets/)?(?P<repository>{NAME}/{NAME})(?:/(?P<pattern>.*))?")
PLACE = re.compile(rf"hf://(?P<repository>{NAME}/{NAME})@(?P<sha>[0-9a-f]+)/(?P<path>.+)")
OBJECT_ID = re.compile(r'(?:W/)?"?([0-9a-f]{40}|[0-9a-f]{64})"?')
MAIN = "main"


class Commit(NamedTuple):
    """A commit of a repository `owner/name`."""

    repository: str
    sha: str


class HubFile(NamedTuple):
    """A file of a repository; its digest is of its size and its object's hash (LFS or git)."""

    path: str
    digest: FileDigest


def find_hub_files(url: str, source: InputPlaces) -> Iterator[Match]:
    """Yield the files that an entry of `where` matches, sorted by path."""
    parts = HUB_URL.fullmatch(url)
    if parts is None or ".." in url.split("/"):
        raise InputError(
            f"where {shown(url)!r}: no dataset of the hub. Write hf://owner/name, or "
            "hf://owner/name/path with a glob; a branch, tag or commit goes into `revision`"
        )
    pattern = [part for part in (parts["pattern"] or "").split("/") if part]
    unused = [key for key in HUB_KEYS[:2] if getattr(source, key) is not None]
    if pattern and unused:
        raise InputError(
            f"where {shown(url)!r} names files, so {' and '.join(unused)} cannot choose them. "
            f"Remove one of the two"
        )
    commit = find_commit(parts["repository"], source.revision or MAIN)
    found = _matching(commit, pattern) if pattern else _of_split(commit, source)
    for file, matched_by in found:
        place = f"hf://{commit.repository}@{commit.sha}/{file.path}"
        name = f"hf://{commit.repository}/{file.path}"  # without the commit
        yield remote_match(name, matched_by, file.digest, place)


def _matching(commit: Commit, pattern: list[str]) -> Iterator[tuple[HubFile, MatchedBy]]:
    """Yield the files of a commit that the segments of a glob match."""
    folders, globs = split_segments("/".join(pattern))
    for file in list_files(commit, "/".join(folders if globs else pattern[:-1])):
        if file.path == "/".join(pattern):
            yield file, "named"
        elif matched_by := match(pattern, file.path.split("/")):
            yield file, matched_by


def _of_split(commit: Commit, source: InputPlaces) -> Iterator[tuple[HubFile, MatchedBy]]:
    files = {file.path: file for file in list_files(commit)}
    readme = _fetch(file_url(commit, README))[0] if README in files else b""
    try:
        paths = split_paths(files, readme, Split(source.config, source.split))
    except InputError as error:
        raise InputError(f"{commit.repository} at commit {commit.sha}: {error}") from None
    for path in sorted(paths):
        yield files[path], "glob"


def commits_of(files: Iterable[InputFile]) -> dict[str, str]:
    """Return the commit of each repository that files are from."""
    places = filter(None, map(PLACE.fullmatch, {file.place for file in files}))
    return {place["repository"]: place["sha"] for place in places}


def fetch_from_hub(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a file at its commit."""
    place = PLACE.fullmatch(file.place)
    assert place is not None
    commit = Commit(place["repository"], place["sha"])
    url = file_url(commit, place["path"])

    def fetch(start: int, stop: int) -> bytes:
        data, patience = bytearray(), Patience()
        while len(data) < stop - start:
            try:
                with _ask(url, file, commit, (start + len(data), stop)) as answer:
                    while block := read_block(answer, stop - start - len(data)):
                        data += block
                        patience.renew()
            except Interrupted as error:
                fault = f"{file.name} could not be read: {error}, at byte {start + len(data):,}"
                patience.wait(fault, error, ADVICE)
        return bytes(data)

    return fetch


def _ask(url: str, file: InputFile, commit: Commit, span: tuple[int, int]) -> Answer:
    """Request bytes [start, stop); the answer is open, and proves that it is of the commit."""
    start, stop = span
    try:
        answer = open_url(url, {**hub_headers(), "Range": f"bytes={start}-{stop - 1}"})
    except StatusError as error:
        if error.status == 404:
            raise removed(file) from None
        if error.status == 416:
            raise ChangedFileError(f"{file.name} is shorter than {SINCE}. {AGAIN}") from None
        raise
    fault = _fault(answer, url, file, commit, start)
    if fault:
        answer.close()
        raise ChangedFileError(f"{file.name} has changed {SINCE}: {fault}. {AGAIN}")
    if answer.status != PARTIAL:
        answer.close()
        raise CorpusError(f"{file.name}: the hub answers no ranges of bytes. Copy the file.")
    return answer


def _fault(answer: Answer, url: str, file: InputFile, commit: Commit, start: int) -> str:
    """Return what shows that an answer is of another version or range; "" if nothing does.

    The hosts that the hub redirects to, for large files, have tags of their own.
    """
    sha = answer.headers.get("X-Repo-Commit", commit.sha)
    if sha != commit.sha:
        return f"commit {commit.sha} then, {sha[:64]} now"
    tag = OBJECT_ID.fullmatch(answer.headers.get("ETag", ""))
    is_direct = origin_of(answer.geturl()) == origin_of(url)
    if tag and is_direct and fingerprint_of("hub", file.bytes, tag[1]) != file.digest:
        return f"its object is {tag[1]} now"
    content = answer.headers.get("Content-Range", "")
    expected = re.fullmatch(rf"bytes {start}-\d+/{file.bytes}", content)
    if answer.status == PARTIAL and not expected:
        return f"{file.bytes:,} bytes then, an answer of {content[:80]!r} now"
    return ""


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
        sha = _decode(_fetch(url)[0], url, _Revision).sha
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
                version = fingerprint_of("hub", item.size, item.lfs.oid if item.lfs else item.oid)
                files.append(HubFile(item.path, FileDigest(item.size, version)))
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


def api_url(repository: str, *parts: str) -> str:
    """Return an address of the API, given what comes behind the name of a repository."""
    return "/".join([f"{endpoint()}/api/datasets/{repository}", *parts])


def _pages(url: str) -> Iterator[_Item]:
    hub, seen = origin_of(url), set[str]()
    while url and url not in seen:
        seen.add(url)
        content, following = _fetch(url)
        yield from _decode(content, url, list[_Item])
        url = urllib.parse.urljoin(url, following) if following else ""
        if url and origin_of(url) != hub:
            raise CorpusError(f"{shown(url)}: the next page of a listing is not on the hub.")


def _fetch(url: str) -> tuple[bytes, str]:
    """Return the content of an answer, and the address of the next page, "" without one."""
    patience = Patience()
    while True:
        try:
            with open_url(url, hub_headers()) as answer:
                following = NEXT_PAGE.search(answer.headers.get("Link", ""))
                content = b"".join(whole_body(answer, PAGE_BYTES))
            return content, following[1] if following else ""
        except Interrupted as error:
            patience.wait(f"{shown(url)} could not be read: {error}", error, ADVICE)


def _decode(content: bytes, url: str, kind: type[Answered]) -> Answered:
    try:
        return msgspec.json.decode(content, type=kind)
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
        known = _decode(_fetch(url)[0], url, _References)
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
