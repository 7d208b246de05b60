"""Files of a Common Crawl, by its list of paths.

    cc://CC-MAIN-2024-10?segments=0-9&kind=wet  ->  <base_url>crawl-data/.../x.warc.wet.gz, ...

The list is crawl-data/<crawl>/<kind>.paths.gz below `base_url`, a URL or a folder. Segments and
files are counted from 0 in its order; a share takes the files whose path has a hash below it: so
that a larger share holds the files of a smaller one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

import xxhash

from assets.raw.places.downloads import download
from assets.raw.places.fetch_ranges import reachable
from assets.raw.readers.decompress import BrokenStream, read_blocks
from assets.raw.readers.input_file import InputFile
from corpus_loader.places.urls import Url
from resources.errors import InputError
from resources.settings.sources import SourceConfig

CRAWL = re.compile(r"cc://(?P<crawl>[A-Za-z0-9][A-Za-z0-9.-]*)/?(?:\?(?P<query>.*))?")
LISTED = re.compile(
    r"crawl-data/[A-Za-z0-9_-][A-Za-z0-9._/-]*/(?P<segment>[0-9.]+)/[a-z]+/[A-Za-z0-9._-]+"
)
RANGE = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")
KEYS = ("segments", "files", "share", "kind")
KINDS = ("wet", "warc")
MOST_LIST_BYTES = 256 << 20  # a crawl has 90,000 paths of 140 bytes
FORM = "Write it as cc://CC-MAIN-2024-10?segments=0-9&kind=wet (or files=0-99, share=0.01)."


def crawl_files(pattern: str, source: SourceConfig, base: Path, downloads: Path) -> Iterator[str]:
    """Yield URLs or paths of the files that an entry selects, in the order of the list."""
    match = CRAWL.fullmatch(pattern)
    if match is None or ".." in pattern:
        raise InputError(f"where {pattern!r}: no crawl. {FORM}")
    query = dict(parse_qsl(match["query"] or "", keep_blank_values=True))
    kind = query.get("kind", "wet")
    if unknown := sorted({*query} - {*KEYS}):
        raise InputError(f"where {pattern!r}: unknown key {unknown[0]!r}. {FORM}")
    if kind not in KINDS:
        raise InputError(f"where {pattern!r}: kind {kind!r} is none of {', '.join(KINDS)}. {FORM}")
    if not {*query} & {"segments", "files", "share"}:
        raise InputError(f"where {pattern!r}: this names all of a crawl. {FORM}")
    root = mirror(source, base)
    paths = read_list(f"{root}crawl-data/{match['crawl']}/{kind}.paths.gz", source, downloads)
    for path in selected(paths, query, pattern):
        yield root + path


def mirror(source: SourceConfig, base: Path) -> str:
    """Return the URL or folder of the mirror, with a slash at its end."""
    url = Url(source.base_url)
    return (url if url.kind == "web" else str(base / url)).rstrip("/") + "/"


def read_list(place: str, source: SourceConfig, downloads: Path) -> list[str]:
    """Read a list of paths; InputError if it is not whole or holds other lines."""
    if Url(place).kind == "web":
        found, content = download(place, place, downloads, source.max_download_bytes)
        file = reachable(InputFile(found, place, "txt", "gz", content.bytes, content.digest))
    else:
        file = InputFile(place, place, "txt", "gz", Path(place).stat().st_size, "")
    data = bytearray()
    try:
        for block in read_blocks(file):
            data += block
            if len(data) > MOST_LIST_BYTES:
                raise BrokenStream(f"it has over {MOST_LIST_BYTES:,} bytes")
    except BrokenStream as error:
        raise InputError(f"{place} is no list of paths: {error.reason}") from error
    paths = data.decode("utf-8", "backslashreplace").split()
    for number, path in enumerate(paths, 1):
        if LISTED.fullmatch(path) is None or ".." in path.split("/"):
            raise InputError(f"{place} is no list of paths: line {number} is {path[:200]!r}")
    return paths


def selected(paths: list[str], query: Mapping[str, str], pattern: str) -> list[str]:
    """Return the paths of a list that a query selects; InputError if it is wrong."""
    segments = [path.rsplit("/", 3)[1] for path in paths]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(segments))}
    by_segment = numbers_of(query, "segments", len(numbers), pattern)
    by_file = numbers_of(query, "files", len(paths), pattern)
    most = share_of(query, pattern) * 2.0**64
    return [
        path
        for number, (path, segment) in enumerate(zip(paths, segments, strict=True))
        if numbers[segment] in by_segment
        and number in by_file
        and xxhash.xxh3_64_intdigest(path.encode()) < most
    ]


def numbers_of(query: Mapping[str, str], key: str, count: int, pattern: str) -> range:
    """Return the range of a key, all without one."""
    if key not in query:
        return range(count)
    match = RANGE.fullmatch(query[key])
    if match is None or int(match[2] or match[1]) < int(match[1]):
        raise InputError(f"where {pattern!r}: {key} {query[key]!r} is no range. {FORM}")
    if int(match[1]) >= count:
        raise InputError(f"where {pattern!r}: the crawl has {count:,} {key}, from 0. {FORM}")
    return range(int(match[1]), int(match[2] or match[1]) + 1)


def share_of(query: Mapping[str, str], pattern: str) -> float:
    """Return the share of the files, 1 without one."""
    try:
        share = float(query.get("share", "1"))
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise InputError(f"where {pattern!r}: share {query['share']!r} is not in (0, 1]. {FORM}")
    return share
