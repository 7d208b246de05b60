"""Input files of a source: a sorted list without duplicates from paths, folders, globs and URLs.

A file's identity is its name relative to the config folder (or its URL without secrets), so that
a moved checkout gives the same documents. Its content is known by a digest, so that an unchanged
file is never parsed twice. A file costs one stat; whoever asks decides which ones are read for
their digest. There may be a million files: paths are strings here.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from assets.raw.places.crawl_lists import crawl_files
from assets.raw.places.downloads import download
from assets.raw.places.fetch_ranges import reachable
from assets.raw.places.file_digests import THREADS, FileDigest, FileStatus, digest_files
from assets.raw.places.hub_files import HUB_URL, find_hub_files
from assets.raw.places.local_files import (
    Match,
    Search,
    is_below,
    named_file,
    remote_match,
    search,
)
from assets.raw.places.object_files import find_objects
from assets.raw.readers import formats
from assets.raw.readers.input_file import Compression, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.url_secrets import shown
from corpus_loader.places.urls import Url
from resources.errors import InputError
from resources.settings.sources import SourceConfig, identity_of

ReadDigests = Callable[[Sequence[FileStatus]], list[FileDigest]]
MOST_FILES = 5_000_000  # of a pattern: 4.2 GB of memory for planning, 834 bytes each
TOO_MANY = (
    "where {0!r} matches over {1:,} files, more than a plan holds. Match fewer of them in each of "
    "several sources, or pack them into larger files."
)
PROJECT_FILES = ("pipeline.yaml", "workspace.yaml")  # of a folder that is project and input
NO_READER = "no reader for its format"
SEVEN_ZIP = "a 7z archive: unpack it with `7z x`, and name its folder"
MOST_SHOWN = 3  # files that were left out, in an error
MOST_ENDINGS = 10  # in an error
MAY_BE_EMPTY = " Set `allow_no_files: true` if there may be none."


@dataclass(frozen=True)
class LeftOut:
    """A file that a folder or glob matches and that is not read; `reason` is a short clause."""

    name: str
    reason: str


@dataclass(frozen=True)
class Inputs:
    """The input files of a source and those that were left out, both sorted by name."""

    files: list[InputFile]
    left_out: list[LeftOut]


class _Readable(NamedTuple):
    match: Match
    format: str
    compression: Compression | None


def find_inputs(
    source: SourceConfig,
    base: Path,
    downloads: Path,
    read_digests: ReadDigests | None = None,
    *,
    needs_copies: bool = True,
    most_entries: int = sys.maxsize,
) -> Inputs:
    """Find the files of a source, sorted by name; relative patterns start at the folder `base`.

    http(s) URLs of servers without ranges are copied to the folder `downloads`; without
    `needs_copies`, only those that have changed. Of local folders `most_entries` are looked at for
    a pattern. Files in its parent, the store, are left out of
    folders and globs: a build must not read its own output. Raises InputError when nothing matches
    (unless `allow_no_files`), a format is unknown, or a file cannot be read or downloaded.
    """
    base, downloads = Path(os.path.abspath(base)), Path(os.path.abspath(downloads))
    files: dict[str, InputFile] = {}
    left_out: dict[str, LeftOut] = {}
    for pattern in source.where:
        try:
            find = partial(_find, needs_copies=needs_copies, most_entries=most_entries)
            places = find(pattern, source, base, downloads)
            found = _by_name(places, pattern)
            matches = (each for each in found.values() if isinstance(each, Match))
            readable = [kept for match in matches if (kept := _readable(match, source))]
            inputs = _input_files(readable, read_digests or _read_all, source)
        except InputError as error:
            raise InputError(f"source {source.name!r}: {error}", source.identity_query) from error
        except (OSError, ValueError, CorpusError) as error:  # of files, urllib and objects
            place = f"source {source.name!r}, where {shown(pattern, source.identity_query)!r}"
            raise InputError(f"{place}: {error}", source.identity_query) from error
        left_out |= _left_out(found, {file.name for file in inputs}, source)
        if not inputs and not source.allow_no_files:
            raise InputError(
                _no_match(source, pattern, base, downloads.parent, left_out), source.identity_query
            )
        files |= {file.name: file for file in inputs}
    return Inputs(
        [files[name] for name in sorted(files)],
        [left_out[name] for name in sorted(left_out) if name not in files],
    )


def _left_out(
    found: Mapping[str, Match | LeftOut], is_read: Set[str], source: SourceConfig
) -> dict[str, LeftOut]:
    """Return what is left out, by name: of a match that no reader takes with the reason."""
    return {
        name: each
        if isinstance(each, LeftOut)
        else LeftOut(name.encode("utf-8", "backslashreplace").decode(), why_unread(source, name))
        for name, each in found.items()
        if name not in is_read
    }


def _by_name(places: Iterator[Match | LeftOut], pattern: str) -> dict[str, Match | LeftOut]:
    found: dict[str, Match | LeftOut] = {}
    for each in places:
        found[each.name] = each
        if len(found) > MOST_FILES:
            raise InputError(TOO_MANY.format(shown(pattern), MOST_FILES))
    return found


def _no_match(
    source: SourceConfig, pattern: Url, base: Path, store: Path, left_out: dict[str, LeftOut]
) -> str:
    unread = [each.name for each in left_out.values() if each.reason == NO_READER]
    if pattern.kind == "hub" and (unread := [name for name in unread if name.startswith("hf://")]):
        return f"source {source.name!r}: {_unread_formats(pattern, unread)}"
    first = [f"{each.name!r}: {each.reason}" for each in list(left_out.values())[:MOST_SHOWN]]
    remarks = f" Left out: {len(left_out):,} ({'; '.join(first)})." if left_out else ""
    wanted = shown(pattern, source.identity_query)
    return (
        f"source {source.name!r}: no input file matches {wanted!r} (looked in {base}, format "
        f"{source.format!r}, outside the store {store}).{remarks} Correct `where`.{MAY_BE_EMPTY}"
    )


def _unread_formats(url: str, names: Sequence[str]) -> str:
    """Say that a dataset of the hub has files in formats without a reader only, and what to do."""
    split = (formats.split_compression(name.lower()) for name in names)
    endings = Counter(os.path.splitext(inner)[1] + (f".{c}" if c else "") for inner, c in split)
    found = ", ".join(
        f"{ending or 'no ending'} ({number:,})"
        for ending, number in endings.most_common(MOST_ENDINGS)
    )
    parts = HUB_URL.fullmatch(url)
    repository = parts["repository"] if parts else url
    return (
        f"{shown(url)} has no file in a format that is read, only {found}. Read are "
        f"{', '.join([*formats.FORMATS, *formats.foreign_names()])}. Export the dataset to "
        f"Parquet once, with `datasets.load_dataset({repository!r}, split='train').to_parquet("
        "'train.parquet')`, and name that file in `where`."
    )


def _find(
    pattern: Url,
    source: SourceConfig,
    base: Path,
    downloads: Path,
    *,
    needs_copies: bool,
    most_entries: int = sys.maxsize,
) -> Iterator[Match | LeftOut]:
    if pattern.kind == "web":
        name = identity_of(pattern, source.identity_query)
        limit = source.max_download_bytes
        place, digest = download(pattern, name, downloads, limit, needs_copy=needs_copies)
        yield remote_match(name, "named", digest, place)
    elif pattern.kind == "file":
        path = url2pathname(urlsplit(pattern).path)
        if os.path.exists(path) and not os.path.isdir(path):
            yield Match(pattern, "named", named_file(path).status)
    elif pattern.kind == "crawl":
        find = partial(_find_in_crawl, source, base, downloads, needs_copies)
        with ThreadPoolExecutor(THREADS) as pool:
            places = crawl_files(pattern, source, base, downloads)
            yield from chain.from_iterable(pool.map(find, places))
    elif pattern.kind == "hub":
        yield from find_hub_files(pattern, source)
    elif pattern.kind == "hdfs":
        from assets.raw.places.hadoop_files import find_hadoop_files

        yield from find_hadoop_files(pattern)
    elif pattern.kind == "object":
        yield from find_objects(pattern, downloads)
    elif pattern.kind != "path":
        raise InputError(
            f"where {shown(pattern)!r}: {pattern.scheme.lower()}:// is not supported. Use s3://, "
            "gs://, az://, hdfs://, cc://, http://, https://, file://, hf:// or a local path; copy "
            "the files first."
        )
    else:
        searched = search(pattern, base, source.follow_links, most_entries)
        yield from _matches(searched, str(base), _output(base, downloads))


def _output(base: Path, downloads: Path) -> str:
    """Return the folder of the output; a config inside the store has its inputs there."""
    output = os.path.realpath(downloads.parent)
    is_inside = is_below(os.path.realpath(base), output)
    return os.path.realpath(downloads) if is_inside else output


def _find_in_crawl(
    source: SourceConfig, base: Path, downloads: Path, needs_copies: bool, place: str
) -> list[Match | LeftOut]:
    url = Url(place)
    if url.kind != "web" and not os.path.exists(place):
        return [LeftOut(place, "in the list of its crawl, and not in the folder `base_url`")]
    return [*_find(url, source, base, downloads, needs_copies=needs_copies)]


def _matches(found: Search, base: str, output: str) -> Iterator[Match | LeftOut]:
    real = cache(os.path.realpath)

    @cache
    def prefix_of(folder: str) -> str:
        folder = os.path.abspath(folder or "/")  # a glob may hold ".."
        inside = folder[len(base) :].lstrip("/") if is_below(folder, base) else folder
        return inside and os.path.join(inside, "")

    @cache
    def is_output(folder: str) -> bool:
        return is_below(real(folder or "/"), output)

    own = {os.path.join(base, name) for name in PROJECT_FILES}
    for path, file in found.files.items():  # folders are few, files may be a million
        folder, _, name = path.rpartition("/")
        in_output = is_below(real(path), output) if file.is_link else is_output(folder)
        if file.matched_by == "named" or not (in_output or path in own):
            yield Match(prefix_of(folder) + name, file.matched_by, file.status)
    for path, reason in found.left_out.items():
        if not is_below(real(path), output):
            folder, _, name = path.rpartition("/")
            named = prefix_of(folder) + name if name else prefix_of(folder).rstrip("/")
            yield LeftOut(named.encode("utf-8", "replace").decode(), reason)


def why_unread(source: SourceConfig, name: str) -> str:
    """Return why a file that a folder or glob matches is not read, as a short clause."""
    if not is_utf8(name):
        return "its name is not UTF-8: rename the file"
    if is_readme(name):
        return "about its folder: name it, or a glob for it, in `where` to read it"
    if name.lower().endswith(".7z"):
        return SEVEN_ZIP
    if source.format == "auto":
        return NO_READER
    return f"its name is not of the format {source.format}"


def is_readme(name: str) -> bool:
    """Return whether a file describes its folder: it is read where a path or glob names it."""
    return name.rpartition("/")[2].lower() == "readme.md"


def _readable(match: Match, source: SourceConfig) -> _Readable | None:
    """Return a file with the format in which it is read; None if no reader takes it."""
    ending, compression = formats.split_ending(match.name)
    file_format = formats.format_of_ending(ending) if source.format == "auto" else source.format
    if file_format is None and match.matched_by != "named":
        return None
    if file_format is None and ending == ".7z":
        raise InputError(f"{match.name!r} is {SEVEN_ZIP}.")
    if file_format is None:
        raise InputError(
            f"the format of {match.name!r} cannot be told from its name. "
            f"Set `format` to one of {', '.join([*formats.FORMATS, *formats.foreign_names()])}."
        )
    is_named_so = ending in formats.format_named(file_format).endings and not is_readme(match.name)
    if match.matched_by == "folder" and not is_named_so:
        return None
    return _Readable(match, file_format, compression) if is_utf8(match.name) else None


def _input_files(
    readable: Sequence[_Readable], read_digests: ReadDigests, source: SourceConfig
) -> list[InputFile]:
    read = iter(read_digests([each.match.status for each in readable if not each.match.digest]))
    return [
        reachable(
            InputFile(
                *(match.status.place, match.name, file_format, packed),
                *(match.digest or next(read)),
                requests_per_second=source.requests_per_second,
                zstd_window_log=source.zstd_window_log,
            )
        )
        for match, file_format, packed in readable
    ]


def _read_all(files: Sequence[FileStatus]) -> list[FileDigest]:
    return digest_files([file.place for file in files])


def is_utf8(name: str) -> bool:
    """Return whether the name of a file, as Python decodes it, was UTF-8."""
    return name.isascii() or name == name.encode("utf-8", "replace").decode()  # PEP 383
