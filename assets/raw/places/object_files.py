"""Input files on object stores (s3, gs, az): listed for planning, read by ranges.

Size and ETag decide what is new, so that planning reads no content. Each answer to whoever reads
has them too: an object that changes between planning and reading is a ChangedFileError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from assets.raw.places.file_digests import FileDigest, changed, removed
from assets.raw.places.local_files import Match, MatchedBy, count_fixed, remote_match
from assets.raw.readers.input_file import Fetch, InputFile
from corpus_loader.places.objects import ObjectInfo, Objects
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError
from resources.store.records import fingerprint_of
from resources.store.scratch import scratch_of

PARTS = re.compile(r"(?P<bucket>[^/]+//[^/]+)/?(?P<pattern>.*)")


class UrlPattern(NamedTuple):
    """A URL of files: its root, as s3://bucket, the folders before the first glob, and the rest."""

    root: str
    folders: list[str]
    globs: list[str]

    @property
    def start(self) -> str:
        """The path before the first glob."""
        return "/".join(self.folders)


def url_pattern(url: str) -> UrlPattern:
    """Split a URL with the rules of local globs; InputError if it is none of files."""
    parts = PARTS.fullmatch(url)
    if parts is None or ".." in url.split("/"):
        example = f"{url.partition(':')[0].lower()}://bucket/folder/*.gz"
        raise InputError(f"where {shown(url)!r}: no URL of files, as {example}")
    return UrlPattern(parts["bucket"], *split_segments(parts["pattern"]))


def split_segments(pattern: str) -> tuple[list[str], list[str]]:
    """Return the segments of a path before its first glob, and those from there on."""
    segments = [part for part in pattern.split("/") if part]
    fixed = count_fixed(segments)
    return segments[:fixed], segments[fixed:]


@lru_cache
def bucket_at(url: str) -> Objects:
    """Return the client of a bucket: one per process."""
    return Objects(url)


def find_objects(url: str, downloads: Path) -> Iterator[Match]:
    """Yield the objects that a URL with the rules of local globs matches.

    The objects of the store itself are left out: a build must not read its own output.
    """
    pattern = url_pattern(url)
    root, bucket = pattern.root, bucket_at(pattern.root)
    is_named = pattern.folders and not pattern.globs
    if is_named and (info := bucket.head(pattern.start)) is not None:
        yield remote_match(f"{root}/{pattern.start}", "named", digest_of(info))
        return
    store = scratch_of(downloads)
    output = f"{store.remote.url}/" if store else None
    for listed in bucket.each_object(pattern.start):
        name = f"{root}/{listed.key}"
        matched_by = match(pattern.globs, listed.key.split("/")[len(pattern.folders) :])
        if matched_by and not (output and name.startswith(output)):
            yield remote_match(name, matched_by, digest_of(listed))


def match(pattern: Sequence[str], parts: Sequence[str]) -> MatchedBy | None:
    """Return how segments of a glob match a key: itself, or a folder that it is in."""
    if not pattern:
        is_hidden = any(part.startswith(".") for part in parts)
        return None if is_hidden else "folder" if parts else "glob"
    head, *rest = pattern
    if head == "**":
        shown = next((i for i, part in enumerate(parts) if part.startswith(".")), len(parts))
        found = (match(rest, parts[start:]) for start in range(shown, -1, -1))
        return next((each for each in found if each), None)
    if not parts or (parts[0].startswith(".") and not head.startswith(".")):
        return None
    return match(rest, parts[1:]) if fnmatchcase(parts[0], head) else None


def digest_of(info: ObjectInfo) -> FileDigest:
    """Return size and ETag as the digest of an object; the time of its PUT where it has none."""
    version = info.etag or info.modified.isoformat()
    return FileDigest(info.num_bytes, fingerprint_of("object", info.num_bytes, version))


def fetch_of_object(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of an object, each of the planned version."""
    url = "/".join(file.name.split("/")[:3])
    bucket, key = bucket_at(url), file.name.removeprefix(f"{url}/")

    def fetch(start: int, stop: int) -> bytes:
        try:
            data, info = bucket.get_part(key, start, stop)
        except FileNotFoundError:
            raise removed(file) from None
        if digest_of(info).digest != file.digest:
            raise changed(file, f"{info.num_bytes:,} bytes of ETag {info.etag} now")
        return data

    return fetch
