"""Input files in dataset repositories of the Hugging Face hub: hf://owner/name, and files in it.

    hf://owner/name              the files of a configuration and split (hub_splits.py)
    hf://owner/name/**/*.jsonl   files of the repository, with the rules of local globs

The revision becomes a commit, which is part of a file's place and not of its name or digest: a file
that a later commit has unchanged is not read again. Files are read by ranges, with no copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError, FileDigest, removed
from assets.raw.places.hub_client import (
    ADVICE,
    Commit,
    HubFile,
    file_url,
    find_commit,
    hub_headers,
    list_files,
    read_small,
)
from assets.raw.places.hub_splits import README, Split, split_paths
from assets.raw.places.local_files import MAGIC, MatchedBy
from assets.raw.places.object_files import match
from assets.raw.places.range_files import Fetch
from assets.raw.readers.input_file import InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.http_client import (
    PARTIAL,
    Answer,
    StatusError,
    open_url,
    origin_of,
    read_block,
)
from corpus_loader.places.transports import Interrupted, Patience
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError
from resources.settings.sources import HUB_KEYS, InputPlaces
from resources.store.records import fingerprint_of

NAME = r"[A-Za-z0-9_][\w.-]*"
HUB_URL = re.compile(rf"hf://(?:datasets/)?(?P<repository>{NAME}/{NAME})(?:/(?P<pattern>.*))?")
PLACE = re.compile(rf"hf://(?P<repository>{NAME}/{NAME})@(?P<sha>[0-9a-f]+)/(?P<path>.+)")
OBJECT_ID = re.compile(r'(?:W/)?"?([0-9a-f]{40}|[0-9a-f]{64})"?')
MAIN = "main"


class HubMatch(NamedTuple):
    """A file that a URL of the hub matches; `place` has its commit, and `name` has not."""

    place: str
    name: str
    matched_by: MatchedBy
    digest: FileDigest


def find_hub_files(url: str, source: InputPlaces) -> Iterator[HubMatch]:
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
        name = f"hf://{commit.repository}/{file.path}"
        yield HubMatch(place, name, matched_by, digest_of(file))


def _matching(commit: Commit, pattern: list[str]) -> Iterator[tuple[HubFile, MatchedBy]]:
    """Yield the files of a commit that the segments of a glob match."""
    fixed = next((i for i, part in enumerate(pattern) if MAGIC.search(part)), len(pattern))
    folder = pattern[:fixed] if fixed < len(pattern) else pattern[:-1]
    for file in list_files(commit, "/".join(folder)):
        if file.path == "/".join(pattern):
            yield file, "named"
        elif matched_by := match(pattern, file.path.split("/")):
            yield file, matched_by


def _of_split(commit: Commit, source: InputPlaces) -> Iterator[tuple[HubFile, MatchedBy]]:
    files = {file.path: file for file in list_files(commit)}
    readme = read_small(commit, README) if README in files else b""
    try:
        paths = split_paths(files, readme, Split(source.config, source.split))
    except InputError as error:
        raise InputError(f"{commit.repository} at commit {commit.sha}: {error}") from None
    for path in sorted(paths):
        yield files[path], "glob"


def digest_of(file: HubFile) -> FileDigest:
    """Return size and object id as the digest of a file."""
    return FileDigest(file.bytes, fingerprint_of("hub", file.bytes, file.oid))


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
