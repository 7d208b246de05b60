"""A format of input files: how it is recognised, read and cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from assets.raw.readers.input_file import Border, InputFile, Slice
from assets.raw.readers.input_record import InputRecord, LineRun
from resources.settings.sources import SourceConfig

Read = Callable[[InputFile, SourceConfig, Slice], Iterator[InputRecord | LineRun]]
Borders = Callable[[InputFile, SourceConfig, int], Iterator[Border]]


@dataclass(frozen=True)
class Format:
    """A format, and all that other modules decide by it.

    name          as `format` of a source says it
    endings       of the names of its files, in lower case with the dot
    read          yield the records of a slice of a file; faults of the data are records too
    unit          unit of the rows of records, as positions in quarantine have it
    borders       yield where a record begins behind every so many bytes, and then the end;
                  BrokenStream where that cannot be told. None: a file is read as one stream
    is_cuttable   return whether it is worth reading a file for its borders: a file of another
                  machine, for most formats, would be fetched twice
    slices        what `start` and `stop` of a slice between borders count
    index         bytes that every slice needs: the first or last ones of a file
    columns       return the names of a table's columns: one of them must be the text's
    is_member     a member of a zip archive with one of the endings is read as a file of it
    is_container  its files hold records of other kinds, which are counted by reason
    is_packed     it compresses inside
    has_pages     its texts are those of HTML pages, without any markup
    """

    name: str
    endings: tuple[str, ...]
    read: Read
    unit: str = "record"
    borders: Borders | None = None
    is_cuttable: Callable[[InputFile, SourceConfig], bool] = lambda file, _: not file.is_remote
    slices: Literal["records", "row_groups"] = "records"
    index: Literal["", "first", "last"] = ""
    columns: Callable[[InputFile], list[str]] | None = None
    is_member: bool = True
    is_container: bool = False
    is_packed: bool = False
    has_pages: bool = False
