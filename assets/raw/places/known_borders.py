"""Borders of large files, found once per content of a file and remembered under DAGSTER_HOME.

Only a file with new content is read for them; the copy of a URL is then fetched if it is gone.
Files that are read whole for it, of 128 MB together or more, are tasks of the engine: 35 TB of gzip
took 10 hours in threads of one process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock

from assets.raw.places.downloads import fetch_copies
from assets.raw.places.file_digests import THREADS, check_unchanged
from assets.raw.places.observed_inputs import INPUT_FILES, read_cache, write_cache
from assets.raw.readers.formats import find_borders, format_of
from assets.raw.readers.input_file import Border, ChangedFileError, InputFile
from assets.raw.readers.read_tables import SEPARATORS
from resources.corpus import Corpus
from resources.engine.map_parts import AUTO_PROCESS_BYTES
from resources.run_reports import report_path
from resources.run_tasks import explained, map_with_progress, stopped_by_errors
from resources.settings.sources import ZSTD_WINDOW_LOG, SourceConfig
from resources.store.records import fingerprint_of

VERSION = 2  # of how borders are found
KEPT_SECONDS = 60.0  # between two writes of what is known, while files are read
ONE_AT_A_TIME = Lock()  # sources on other machines are planned side by side, each with all workers


@dataclass(frozen=True)
class Search:
    """A file that is read for its borders: a task of the engine."""

    file: InputFile
    source: SourceConfig
    part_bytes: int

    @property
    def partition(self) -> str:
        """Name of the source."""
        return self.source.name

    @property
    def title(self) -> str:
        """What is read, for messages."""
        return f"raw[{self.partition}], borders of {self.file.name}"

    @property
    def work_bytes(self) -> int:
        """Bytes of the file."""
        return self.file.bytes

    @property
    def reads_all(self) -> bool:
        """Whether the whole file is read; of Parquet it is the end."""
        return format_of(self.file).slices != "row_groups"


def known_borders(
    corpus: Corpus, source: SourceConfig, files: Sequence[InputFile]
) -> list[list[Border]]:
    """Return the borders of files; those are read that were not read with this content."""
    if not files:
        return []
    path = report_path(corpus.store.root, INPUT_FILES, source.name).with_suffix(".borders")
    before = read_cache(path, dict[str, list[Border]]) or {}
    part_bytes = corpus.settings.part_bytes
    keys = [_key(file, source, part_bytes) for file in files]
    unknown = [index for index, key in enumerate(keys) if key not in before]
    fetch_copies(source, [files[index] for index in unknown], corpus.downloads)
    searches = [Search(files[index], source, part_bytes) for index in unknown]
    known, written = dict(before), time.monotonic()
    for number, borders in search_all(corpus, searches):
        if borders is not None:
            known[keys[unknown[number]]] = borders
        if time.monotonic() - written > KEPT_SECONDS:
            write_cache(path, known)
            written = time.monotonic()
    seen = {key: known[key] for key in keys if key in known}
    if seen != before:
        write_cache(path, seen)
    return [seen.get(key, []) for key in keys]


def search_all(
    corpus: Corpus, searches: Sequence[Search]
) -> Iterator[tuple[int, list[Border] | None]]:
    """Yield the number of each search with the borders that it found, in any order."""
    large = [number for number, each in enumerate(searches) if each.reads_all]
    if sum(searches[number].work_bytes for number in large) < AUTO_PROCESS_BYTES:
        large = []
    small = [number for number in range(len(searches)) if number not in {*large}]
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(search, (searches[number] for number in small))
        yield from zip(small, found, strict=True)
    large.sort(key=lambda number: -searches[number].work_bytes)
    to_do = [searches[number] for number in large]
    with (
        ONE_AT_A_TIME,
        stopped_by_errors(map_with_progress(search, to_do, corpus.settings.engine)) as all_ended,
    ):
        for ended in all_ended:
            if error := explained(ended.error, 0):
                raise error
            yield large[ended.index], ended.result


def _key(file: InputFile, source: SourceConfig, part_bytes: int) -> str:
    """Return a digest of all that the borders of a file depend on."""
    rules: tuple[object, ...] = (
        *(source.text_field, source.text_documents, source.max_record_bytes),
        *((source.separator, source.quoting) if file.format in SEPARATORS else ()),
        *(("no header",) if file.format in SEPARATORS and source.column_names else ()),
        *((file.zstd_window_log,) if file.zstd_window_log > ZSTD_WINDOW_LOG else ()),
    )
    return fingerprint_of(VERSION, file.digest, file.format, file.compression, rules, part_bytes)


def search(task: Search) -> list[Border] | None:
    """Return the borders of a file; None if it has changed since its digest was made."""
    file = task.file
    is_read = (file.bytes - 1 if format_of(file).index == "last" else 0, file.bytes)
    try:
        borders = find_borders(file, task.source, task.part_bytes)
        check_unchanged(file, [is_read])
    except (ChangedFileError, FileNotFoundError):
        return None  # reading it will say so
    return borders
