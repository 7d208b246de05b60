"""Input files of a source: a sorted list without duplicates from paths, folders, globs and URLs.

A file's identity is its name relative to the config folder (or its URL without secrets), so that
a moved checkout gives the same documents. Its content is known by a digest, so that an unchanged
file is never parsed twice. Price: every planning reads every input once for its digest, at the
speed of the disk.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import xxhash

from assets.raw.places.downloads import download
from assets.raw.places.local_files import MatchedBy, check_regular, search
from assets.raw.readers.input_file import Compression, InputFile
from corpus_loader.url_secrets import shown
from resources.errors import InputError
from resources.settings.sources import FileFormat, SourceConfig, identity_of

FORMATS: dict[str, FileFormat] = {
    **{f".{name}": name for name in get_args(FileFormat)},
    ".ndjson": "jsonl",
}
COMPRESSIONS: dict[str, Compression] = {f".{name}": name for name in get_args(Compression)}
ReadDigest = Callable[[Path], tuple[int, str]]  # size and digest of a file
DIGEST_BLOCK_BYTES = 8 << 20
MOST_SHOWN = 3  # files that were left out, in an error
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


@dataclass(frozen=True)
class _Match:
    path: Path
    name: str
    matched_by: MatchedBy


def find_inputs(
    source: SourceConfig, base: Path, downloads: Path, read_digest: ReadDigest | None = None
) -> Inputs:
    """Find the files of a source, sorted by name; relative patterns start at the folder `base`.

    http(s) URLs are fetched into the folder `downloads`. Files in its parent, the store, are left
    out of folders and globs: a build must not read its own output. Raises InputError when nothing
    matches (unless `allow_no_files`), a format is unknown, or a file cannot be read or downloaded.
    """
    base, downloads = Path(os.path.abspath(base)), Path(os.path.abspath(downloads))
    read_digest = read_digest or digest_file
    files: dict[str, InputFile] = {}
    left_out: dict[str, LeftOut] = {}
    for pattern in source.where:
        place = f"source {source.name!r}, where {shown(pattern, source.identity_query)!r}"
        found: dict[str, _Match | LeftOut] = {}
        try:
            found |= {each.name: each for each in _find(pattern, source, base, downloads)}
            matches = [each for each in found.values() if isinstance(each, _Match)]
            inputs = [_input_file(match, source, read_digest) for match in matches]
        except InputError as error:
            raise InputError(f"source {source.name!r}: {error}", source.identity_query) from error
        except (OSError, ValueError) as error:  # of the file system and of urllib
            raise InputError(f"{place}: {error}", source.identity_query) from error
        left_out |= {each.name: each for each in found.values() if isinstance(each, LeftOut)}
        if not any(inputs) and not source.allow_no_files:
            raise InputError(
                _no_match(source, pattern, base, downloads.parent, left_out), source.identity_query
            )
        files |= {file.name: file for file in inputs if file is not None}
    return Inputs(
        [files[name] for name in sorted(files)],
        [left_out[name] for name in sorted(left_out) if name not in files],
    )


def _no_match(
    source: SourceConfig, pattern: str, base: Path, store: Path, left_out: dict[str, LeftOut]
) -> str:
    first = [f"{each.name!r} is {each.reason}" for each in list(left_out.values())[:MOST_SHOWN]]
    remarks = f" Left out: {len(left_out):,} ({'; '.join(first)})." if left_out else ""
    wanted = shown(pattern, source.identity_query)
    return (
        f"source {source.name!r}: no input file matches {wanted!r} (looked in {base}, format "
        f"{source.format!r}, outside the store {store}).{remarks} Correct `where`.{MAY_BE_EMPTY}"
    )


def _find(
    pattern: str, source: SourceConfig, base: Path, downloads: Path
) -> Iterator[_Match | LeftOut]:
    scheme = pattern.partition(":")[0].lower()
    if scheme in ("http", "https"):
        name = identity_of(pattern, source.identity_query)
        path = download(pattern, name, downloads, source.max_download_bytes)
        yield _Match(path, name, "named")
    elif scheme == "file":
        path = Path(url2pathname(urlsplit(pattern).path))
        if path.exists() and not path.is_dir():
            check_regular(path)
            yield _Match(path, pattern, "named")
    elif "://" in pattern:
        raise InputError(
            f"where {shown(pattern)!r}: {scheme}:// is not supported. Use http://, https://, "
            "file:// or a local path; copy the files first."
        )
    else:
        output = downloads.parent.resolve()
        if base.resolve().is_relative_to(output):  # a config inside the store has its inputs there
            output = downloads.resolve()
        for each in _find_local(pattern, source.follow_links, base):
            is_named = isinstance(each, _Match) and each.matched_by == "named"
            path = Path(os.path.realpath(base / each.name))
            if is_named or not path.is_relative_to(output):
                yield each


def _find_local(pattern: str, follow_links: bool, base: Path) -> Iterator[_Match | LeftOut]:
    found = search(pattern, base, follow_links)
    for path, matched_by in found.files.items():
        yield _Match(path, _name(path, base), matched_by)
    for path, reason in found.left_out.items():
        yield LeftOut(_name(path, base).encode("utf-8", "replace").decode(), reason)


def _name(path: Path, base: Path) -> str:
    path = Path(os.path.abspath(path))  # a glob may hold ".."
    return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()


def _input_file(match: _Match, source: SourceConfig, read_digest: ReadDigest) -> InputFile | None:
    told, compression = tell_format(match.name)
    file_format = told if source.format == "auto" else source.format
    if match.matched_by == "folder" and told != file_format:
        return None
    if match.matched_by != "named" and file_format is None:
        return None
    if file_format is None:
        raise InputError(
            f"the format of {match.name!r} cannot be told from its name. "
            f"Set `format` to one of {', '.join(get_args(FileFormat))}."
        )
    if not _is_utf8(match.name):
        raise InputError(f"the file name {match.name!r} is not UTF-8. Rename the file.")
    num_bytes, digest = read_digest(match.path)
    return InputFile(match.path, match.name, file_format, compression, num_bytes, digest)


def tell_format(name: str) -> tuple[FileFormat | None, Compression | None]:
    """Return format and compression by a file name or URL: "a.jsonl.gz" -> ("jsonl", "gz")."""
    path = Path(unquote(urlsplit(name).path) if "://" in name else name)
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    return FORMATS.get(inner.suffix.lower()), compression


def _is_utf8(name: str) -> bool:
    return name == name.encode("utf-8", "replace").decode()  # bad bytes are surrogates (PEP 383)


def digest_file(path: Path) -> tuple[int, str]:
    """Return size and digest of a file's bytes."""
    state, num_bytes = xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        while block := file.read(DIGEST_BLOCK_BYTES):
            state.update(block)
            num_bytes += len(block)
    return num_bytes, state.hexdigest()
