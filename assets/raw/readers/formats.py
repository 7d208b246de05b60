"""The formats that are read: the one place that decides by the format of a file.

To add one, write `read_NAME.py` with a function `read` that yields the records of a file, name it
in WHEN_NEEDED, and in `FILE_FORMATS` (resources/settings/sources.py), so that a source may set it
as its `format`. A `Format` of its own, in AT_ONCE, says more than name and endings. Another package
names its `Format` as an entry point of `tokenmill.readers`: its endings count as ours do, except
that ours come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, get_args
from urllib.parse import unquote, urlsplit

from assets.raw.readers.borders import has_members
from assets.raw.readers.decompress import BrokenStream
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE_FILE, Border, Compression, InputFile, Slice
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.read_arrow import ARROW
from assets.raw.readers.read_json import JSON
from assets.raw.readers.read_lines import JSONL, TEXT, single_records
from assets.raw.readers.read_pages import HTML, MARKDOWN
from assets.raw.readers.read_tables import CSV, PARQUET, TSV
from assets.raw.readers.read_tar import TAR
from assets.raw.readers.read_warc import WARC, WET
from assets.raw.readers.read_zip import zip_of
from resources.settings.plug_ins import PlugInError, load_plug_in, plug_ins, with_identity
from resources.settings.sources import SourceConfig


def _imported(name: str, function: str) -> Callable[..., Any]:
    """Return a function of read_NAME.py, which is imported when it is called."""
    return lambda *given: getattr(import_module(f"assets.raw.readers.read_{name}"), function)(
        *given
    )


def _when_needed(name: str, *endings: str, **others: Any) -> Format:
    """Return the format of read_NAME.py, which is imported when a file of it is read."""
    return Format(name, endings, _imported(name, "read"), **others)


WHEN_NEEDED = (
    _when_needed("subtitles", ".srt", ".vtt"),
    _when_needed("ipynb", ".ipynb"),
    _when_needed("mbox", ".mbox", ".mbx", ".eml"),
    _when_needed("epub", ".epub"),
    _when_needed(
        "xml",
        ".xml",
        unit="byte",
        borders=_imported("xml", "find_borders"),
        index="first",
        is_member=False,
        is_container=True,
        has_pages=True,
    ),
)
AT_ONCE = (JSONL, JSON, CSV, TSV, PARQUET, ARROW, TEXT, MARKDOWN, HTML, WARC, WET, TAR)
OURS = (*AT_ONCE, *WHEN_NEEDED)
ZIP = zip_of(lambda ending: member_format(ending))
FORMATS = {each.name: each for each in (*OURS, ZIP)}
ENDINGS = {ending: name for name, each in FORMATS.items() for ending in each.endings}
PAGES = re.compile(r"(?<=^\.xml)-p\d+p\d+$")  # of a part of a dump: enwiki-1.xml-p1p41242.bz2
COMPRESSIONS: dict[str, Compression] = {
    **{f".{name}": name for name in get_args(Compression)},
    ".zstd": "zst",
}


def format_of(file: InputFile) -> Format:
    """Return the format of a file; PlugInError for one that a package adds, and that is wrong."""
    return format_named(file.format)


def format_named(name: str) -> Format:
    """Return the format of a name; PlugInError for one that a package adds, and that is wrong."""
    return FORMATS.get(name) or foreign_format(name)


@cache
def foreign_format(name: str) -> Format:
    """Return a format that a package adds; PlugInError for one that is wrong."""
    found = load_plug_in("readers", name, Format)
    for ending in found.endings:
        if split_ending(f"name{ending}") != (ending, None):
            raise PlugInError(
                f"{ending!r} is among the `endings` of the reader {name!r}, and no file has it. "
                "Write one in lower case, as '.notes', without that of a compression"
            )
    return replace(found, name=name)


@cache
def foreign_endings() -> dict[str, list[str]]:
    """Return the formats that packages add by their endings; PlugInError if one is wrong."""
    found: dict[str, list[str]] = {}
    for name in foreign_names():
        for ending in foreign_format(name).endings:
            found.setdefault(ending, []).append(name)
    return found


def foreign_names() -> list[str]:
    """Return the names of the formats that packages add."""
    return sorted(plug_ins("readers").keys() - FORMATS)


def foreign_code(file: InputFile) -> list[str]:
    """Return what the code of other packages that reads a file adds to fingerprints."""
    if file.format == ZIP.name:  # which members it has is known when it is read
        names = [name for name in foreign_names() if foreign_format(name).is_member]
        return [with_identity("readers", name) for name in names]
    return [] if file.format in FORMATS else [with_identity("readers", file.format)]


def read_records(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield the records of a slice of a file one by one."""
    return single_records(format_of(file).read(file, source, cut), source.max_record_bytes)


def is_cuttable(file: InputFile, source: SourceConfig) -> bool:
    """Return whether a file may have borders that are found by reading it."""
    found = format_of(file)
    return found.borders is not None and found.is_cuttable(file, source)


def find_borders(file: InputFile, source: SourceConfig, part_bytes: int) -> list[Border]:
    """Return the borders of a cuttable file behind every `part_bytes`, and its end as the last.

    There are none if it is to be read as one stream.
    """
    found = format_of(file)
    assert found.borders is not None, "this file is cuttable"
    if file.compression is not None and not has_members(file):
        return []
    try:
        *borders, end = found.borders(file, source, part_bytes)
    except BrokenStream:
        return []
    borders = [border for border in borders if border.offset < end.offset]
    return [*borders, end] if borders or found.slices == "row_groups" else []


def tell_format(name: str) -> tuple[str | None, Compression | None]:
    """Return format and compression by a file name or URL: "a.jsonl.gz" -> ("jsonl", "gz")."""
    ending, compression = split_ending(name)
    return format_of_ending(ending), compression


def format_of_ending(ending: str) -> str | None:
    """Return the format whose files have an ending; PlugInError if two packages add one."""
    if ending in ENDINGS:
        return ENDINGS[ending]
    names = foreign_endings().get(ending, [])
    if len(names) > 1:
        raise PlugInError(
            f"{ending} is an ending of the formats {' and '.join(names)}, which packages add. Name "
            "one of them as the `format` of the source, or uninstall the other's package"
        )
    return next(iter(names), None)


def member_format(ending: str) -> Format | None:
    """Return the format in which a member of a zip archive is read; None if it is not."""
    name = format_of_ending(ending)
    return format_named(name) if name and format_named(name).is_member else None


def split_ending(name: str) -> tuple[str, Compression | None]:
    """Return the ending of a file name or URL: "a.jsonl.gz" -> (".jsonl", "gz"); "" for none."""
    inner, compression = split_compression(name)
    suffix = PAGES.sub("", _suffix(inner))
    return (".tar", "gz") if suffix == ".tgz" and not compression else (suffix, compression)


def split_compression(name: str) -> tuple[str, Compression | None]:
    """Return the last part of a file name or URL: "x/a.jsonl.gz" -> ("a.jsonl", "gz")."""
    path = unquote(urlsplit(name).path) if "://" in name else name
    inner = path.rstrip("/").rpartition("/")[2]
    suffix = _suffix(inner)
    compression = COMPRESSIONS.get(suffix)
    return inner[: -len(suffix)] if compression else inner, compression


def _suffix(name: str) -> str:
    """Return what pathlib calls the suffix of a name, in lower case, at a tenth of its cost."""
    dot = name.rfind(".")
    return name[dot:].lower() if 0 < dot < len(name) - 1 else ""
