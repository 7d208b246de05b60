"""Input files on object stores (s3, gs, az): listed for planning, copied by who reads them.

Size and ETag decide what is new, so that planning reads no content. A copy is named by them and is
made in the process that reads the file, on whatever machine; copies that were not used for longest
go first. An object that changes between planning and reading is a ChangedFileError.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError, FileDigest, removed
from assets.raw.places.local_files import MAGIC, MatchedBy
from assets.raw.places.range_files import Fetch
from assets.raw.readers.input_file import InputFile
from corpus_loader.objects import ObjectInfo, Objects
from corpus_loader.url_secrets import shown
from resources.errors import InputError
from resources.settings.sources import is_object_url
from resources.store.disk import make_folder
from resources.store.records import fingerprint_of
from resources.store.scratch import Remote, Scratch, make_room, scratch_of, use
from resources.store.store_place import ScratchConfig

FOLDER = "objects"  # of the copies, in the folder of downloads
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
    """Yield the objects that a URL with the rules of local globs matches, sorted by key.

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
    for listed in bucket.list_objects("/".join(segments[:fixed])):
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


def object_path(digest: FileDigest, downloads: Path) -> Path:
    """Return the path of the copy of an object."""
    return downloads / FOLDER / digest.digest[:2] / digest.digest


def remove_objects(files: Mapping[str, str], downloads: Path) -> None:
    """Remove the copies of objects, given the digest of each file by name."""
    for name, digest in files.items():
        if is_object_url(name):
            object_path(FileDigest(0, digest), downloads).unlink(missing_ok=True)


def bring_objects(files: Sequence[InputFile]) -> None:
    """Copy objects to this machine whose copy is not there; other files need none.

    Raises ChangedFileError if one is not as it was planned with.
    """
    missing = [file for file in files if is_object_url(file.name) and not has_copy(file)]
    if missing:
        make_room(copies_at(missing[0]), sum(file.bytes for file in missing))
        bucket_at(bucket_of(missing[0])).each(bring, missing)


def has_copy(file: InputFile) -> bool:
    """Note the use of a copy; False if it is not there."""
    return use(copies_at(file), file.path)


def copies_at(file: InputFile) -> Scratch:
    """Return the folder of downloads as a scratch, with the limit of the store's if it has one."""
    downloads = file.path.parents[2]
    of_store = scratch_of(downloads)
    max_bytes = of_store.remote.max_bytes if of_store else ScratchConfig().bytes
    return Scratch(downloads, Remote("", max_bytes))


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


def bring(file: InputFile) -> None:
    """Copy one object."""
    url = bucket_of(file)
    make_folder(file.path.parent)
    try:
        info = bucket_at(url).get_to_file(file.name.removeprefix(f"{url}/"), file.path)
    except FileNotFoundError:
        raise removed(file) from None
    if digest_of(info).digest != file.digest:
        file.path.unlink(missing_ok=True)
        raise changed_object(file, info)


def changed_object(file: InputFile, now: ObjectInfo) -> ChangedFileError:
    """Return the error of an object that is not the planned one."""
    return ChangedFileError(
        f"{file.name} has changed {SINCE}: {file.bytes:,} bytes then, {now.num_bytes:,} bytes "
        f"of ETag {now.etag} now. {AGAIN}"
    )
