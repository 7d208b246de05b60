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

from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError, FileDigest, removed
from assets.raw.places.local_files import MAGIC, MatchedBy
from assets.raw.places.range_files import Fetch
from assets.raw.readers.input_file import InputFile
from corpus_loader.places.objects import ObjectInfo, Objects
from corpus_loader.places.url_secrets import shown
from resources.errors import InputError
from resources.store.records import fingerprint_of
from resources.store.scratch import scratch_of

PARTS = re.compile(r"(?P<bucket>[^/]+//[^/]+)/?(?P<pattern>.*)")


class ObjectMatch(NamedTuple):
    """An object that a pattern matches; `name` is its URL."""

    name: str
    matched_by: MatchedBy
    digest: FileDigest


@lru_cache
def bucket_at(url: str) -> Objects:
    """Return the client of a bucket: one per process."""
    return Objects(url)


def find_objects(pattern: str, downloads: Path) -> Iterator[ObjectMatch]:
    """Yield the objects that a URL with the rules of local globs matches.

    The objects of the store itself are left out: a build must not read its own output.
    """
    parts = PARTS.fullmatch(pattern)
    if parts is None or ".." in pattern.split("/"):
        raise InputError(f"where {shown(pattern)!r}: no URL of objects, as s3://bucket/folder/*.gz")
    url, segments = parts["bucket"], [part for part in parts["pattern"].split("/") if part]
    bucket, key = bucket_at(url), "/".join(segments)
    fixed = next((i for i, part in enumerate(segments) if MAGIC.search(part)), len(segments))
    if key and fixed == len(segments) and (info := bucket.head(key)) is not None:
        yield ObjectMatch(f"{url}/{key}", "named", digest_of(info))
        return
    store = scratch_of(downloads)
    output = f"{store.remote.url}/" if store else None
    for listed in bucket.each_object("/".join(segments[:fixed])):
        name = f"{url}/{listed.key}"
        matched_by = match(segments[fixed:], listed.key.split("/")[fixed:])
        if matched_by and not (output and name.startswith(output)):
            yield ObjectMatch(name, matched_by, digest_of(listed))


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


def bucket_of(file: InputFile) -> str:
    """Return the URL of the bucket of an object."""
    return "/".join(file.name.split("/")[:3])


def fetch_of_object(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of an object, each of the planned version."""
    url = bucket_of(file)
    bucket, key = bucket_at(url), file.name.removeprefix(f"{url}/")

    def fetch(start: int, stop: int) -> bytes:
        try:
            data, info = bucket.get_part(key, start, stop)
        except FileNotFoundError:
            raise removed(file) from None
        if digest_of(info).digest != file.digest:
            raise changed_object(file, info)
        return data

    return fetch


def changed_object(file: InputFile, now: ObjectInfo) -> ChangedFileError:
    """Return the error of an object that is not the planned one."""
    return ChangedFileError(
        f"{file.name} has changed {SINCE}: {file.bytes:,} bytes then, {now.num_bytes:,} bytes "
        f"of ETag {now.etag} now. {AGAIN}"
    )
