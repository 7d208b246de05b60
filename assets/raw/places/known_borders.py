"""Cuts of large files, found once per content of a file and remembered under DAGSTER_HOME.

Only a file with new content is read for them; the copy of a URL is then fetched if it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from assets.raw.places.cache_files import read_cache, write_cache
from assets.raw.places.file_digests import THREADS, ChangedFileError, check_unchanged
from assets.raw.places.observed_inputs import INPUT_FILES
from assets.raw.places.url_copies import fetch_copies
from assets.raw.readers.find_borders import find_borders
from assets.raw.readers.input_file import Border, InputFile
from assets.raw.readers.read_chunks import row_group_cuts
from assets.raw.readers.read_tables import SEPARATORS
from resources.corpus import Corpus
from resources.run_reports import report_path
from resources.settings.sources import ZSTD_WINDOW_LOG, SourceConfig
from resources.store.records import fingerprint_of

VERSION = 1  # of how borders are found
Cut = TypeVar("Cut")


@dataclass(frozen=True)
class CutKind(Generic[Cut]):
    """A way to cut files.

    suffix   ending of the file that remembers the cuts of a source
    content  type of its content: cuts by key
    key      return a digest of all that the cuts of a file depend on, given `part_bytes`
    find     read a file for its cuts; None if it has changed since its digest was made
    """

    suffix: str
    content: type[dict[str, list[Cut]]]
    key: Callable[[InputFile, SourceConfig, int], str]
    find: Callable[[InputFile, SourceConfig, int], list[Cut] | None]


def known_cuts(
    corpus: Corpus, source: SourceConfig, files: Sequence[InputFile], kind: CutKind[Cut]
) -> list[list[Cut]]:
    """Return the cuts of files; those are read that were not read with this content."""
    if not files:
        return []
    path = report_path(corpus.store.root, INPUT_FILES, source.name).with_suffix(kind.suffix)
    before = read_cache(path, kind.content) or {}
    part_bytes = corpus.settings.part_bytes
    keys = [kind.key(file, source, part_bytes) for file in files]
    unknown = [index for index, key in enumerate(keys) if key not in before]
    fetch_copies(source, [files[index] for index in unknown], corpus.downloads)
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda i: kind.find(files[i], source, part_bytes), unknown)
        read = {keys[index]: cuts for index, cuts in zip(unknown, found, strict=True)}
    seen = {key: cuts for key in keys if (cuts := {**before, **read}[key]) is not None}
    if seen != before:
        write_cache(path, seen)
    return [seen.get(key) or [] for key in keys]


def borders_key(file: InputFile, source: SourceConfig, part_bytes: int) -> str:
    """Return a digest of all that the borders of a file depend on."""
    rules: tuple[object, ...] = (
        *(source.text_field, source.text_documents, source.max_record_bytes),
        *((source.separator, source.quoting) if file.format in SEPARATORS else ()),
        *((file.zstd_window_log,) if file.zstd_window_log > ZSTD_WINDOW_LOG else ()),
    )
    return fingerprint_of(VERSION, file.digest, file.format, file.compression, rules, part_bytes)


def unchanged_borders(
    file: InputFile, source: SourceConfig, part_bytes: int
) -> list[Border] | None:
    """Return the borders of a file; None if it has changed since its digest was made."""
    try:
        borders = find_borders(file, source, part_bytes)
        check_unchanged(file, [(0, file.bytes)])
    except (ChangedFileError, FileNotFoundError):
        return None  # reading it will say so
    return borders


def row_groups_key(file: InputFile, _source: SourceConfig, part_bytes: int) -> str:
    """Return a digest of all that the cuts of a Parquet file depend on."""
    return fingerprint_of(VERSION, file.digest, part_bytes)


def unchanged_row_groups(
    file: InputFile, _source: SourceConfig, part_bytes: int
) -> list[int] | None:
    """Return the cuts of a Parquet file; None if its end, which has them, has changed."""
    try:
        cuts = row_group_cuts(file, part_bytes)
        check_unchanged(file, [(file.bytes - 1, file.bytes)])
    except (ChangedFileError, FileNotFoundError):
        return None
    return cuts


BORDERS = CutKind(".borders", dict[str, list[Border]], borders_key, unchanged_borders)
ROW_GROUPS = CutKind(".row_groups", dict[str, list[int]], row_groups_key, unchanged_row_groups)
