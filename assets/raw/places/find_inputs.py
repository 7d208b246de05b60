"""Which files a source is made of: paths, folders, globs, URLs -> a sorted list, no duplicates.

A file's identity is its name relative to the config folder (or its URL), so that a moved checkout
gives the same documents, and its content is known by a digest, so that an unchanged file is never
read twice. Price: every planning reads every input once for its digest, at the speed of the disk
(xxh3: 17 GB/s).
"""

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import xxhash

from assets.raw.places.downloads import download
from assets.raw.readers.input_file import Compression, InputFile
from resources.errors import InputError
from resources.settings.sources import FileFormat, SourceConfig

FORMATS: dict[str, FileFormat] = {
    **{f".{name}": name for name in get_args(FileFormat)},
    ".ndjson": "jsonl",
}
COMPRESSIONS: dict[str, Compression] = {f".{name}": name for name in get_args(Compression)}
DIGEST_BLOCK_BYTES = 8 << 20
MAY_BE_EMPTY = " Set `allow_no_files: true` if there may be none."


@dataclass(frozen=True)
class _Found:
    path: Path
    name: str
    how: Literal["named", "glob", "folder"]


def find_inputs(source: SourceConfig, base: Path, downloads: Path) -> list[InputFile]:
    """Find the files of a source, sorted by name; relative patterns start at the folder `base`.

    http(s) URLs are fetched into the folder `downloads`. What lies in its parent, the store, is
    left out of folders and globs: a build must not read what it wrote. Raises InputError when
    nothing matches (unless `allow_no_files`), a format cannot be told, or a file cannot be had.
    """
    base, downloads = Path(os.path.abspath(base)), Path(os.path.abspath(downloads))
    files: dict[str, InputFile] = {}
    for pattern in source.where:
        try:
            found = {found.name: found for found in _find(pattern, base, downloads)}
            inputs = [_input_file(each, source) for each in found.values()]
        except InputError as error:
            raise InputError(f"source {source.name!r}: {error}") from error
        except (OSError, ValueError) as error:  # of the file system and of urllib
            raise InputError(f"source {source.name!r}, where {pattern!r}: {error}") from error
        if not any(inputs) and not source.allow_no_files:
            raise InputError(_nothing_found(source, pattern, base, downloads.parent))
        files |= {file.name: file for file in inputs if file is not None}
    return [files[name] for name in sorted(files)]


def _nothing_found(source: SourceConfig, pattern: str, base: Path, store: Path) -> str:
    return (
        f"source {source.name!r}: no input file matches {pattern!r} (looked in {base}, format "
        f"{source.format!r}, outside the store {store}). Correct `where`.{MAY_BE_EMPTY}"
    )


def _find(pattern: str, base: Path, downloads: Path) -> Iterator[_Found]:
    scheme = urlsplit(pattern).scheme.lower()
    if scheme in ("http", "https"):
        yield _Found(download(pattern, downloads), pattern, "named")
    elif scheme == "file":
        path = Path(url2pathname(urlsplit(pattern).path))
        if path.is_file():
            yield _Found(path, pattern, "named")
    elif "://" in pattern:
        raise InputError(
            f"where {pattern!r}: {scheme}:// is not supported. Use http://, https://, file:// or a "
            "local path; copy the files first."
        )
    else:
        output = downloads.parent.resolve()
        if base.resolve().is_relative_to(output):  # a config inside the store has its inputs there
            output = downloads.resolve()
        for found in _find_local(pattern, base):
            if found.how == "named" or not found.path.resolve().is_relative_to(output):
                yield found


def _find_local(pattern: str, base: Path) -> Iterator[_Found]:
    literal = Path(os.path.abspath(base / pattern))
    how: Literal["named", "glob"] = "named" if literal.is_file() else "glob"
    if literal.exists():  # a name may hold the characters of a glob
        paths = [literal]
    else:
        matches = glob.iglob(str(base / pattern), recursive=True)
        paths = [Path(os.path.abspath(match)) for match in matches]
    for path in paths:
        if path.is_dir():
            below = [found for found in path.rglob("*") if found.is_file()]
            visible = [f for f in below if not _is_hidden(f.relative_to(path))]
            yield from (_Found(file, _name(file, base), "folder") for file in visible)
        elif path.is_file():
            yield _Found(path, _name(path, base), how)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _name(path: Path, base: Path) -> str:
    return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()


def _input_file(found: _Found, source: SourceConfig) -> InputFile | None:
    told, compression = tell_format(found.name)
    file_format = told if source.format == "auto" else source.format
    if found.how == "folder" and told != file_format:
        return None
    if found.how != "named" and file_format is None:
        return None
    if file_format is None:
        raise InputError(
            f"the format of {found.name!r} cannot be told from its name. "
            f"Set `format` to one of {', '.join(get_args(FileFormat))}."
        )
    if not _is_utf8(found.name):
        raise InputError(f"the file name {found.name!r} is not UTF-8. Rename the file.")
    num_bytes, digest = _digest(found.path)
    return InputFile(found.path, found.name, file_format, compression, num_bytes, digest)


def tell_format(name: str) -> tuple[FileFormat | None, Compression | None]:
    """Tell format and compression from a file name or URL: "a.jsonl.gz" -> ("jsonl", "gz")."""
    path = Path(unquote(urlsplit(name).path) if "://" in name else name)
    compression = COMPRESSIONS.get(path.suffix.lower())
    inner = path.with_suffix("") if compression else path
    return FORMATS.get(inner.suffix.lower()), compression


def _is_utf8(name: str) -> bool:
    return name == name.encode("utf-8", "replace").decode()  # bad bytes are surrogates (PEP 383)


def _digest(path: Path) -> tuple[int, str]:
    state, num_bytes = xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        while block := file.read(DIGEST_BLOCK_BYTES):
            state.update(block)
            num_bytes += len(block)
    return num_bytes, state.hexdigest()
