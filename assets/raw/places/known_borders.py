"""Borders of large files, found once per content of a file and remembered under DAGSTER_HOME.

Only a file with new content is read for them; the copy of a URL is then fetched if it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from assets.raw.places.downloads import fetch_copies
from assets.raw.places.file_digests import THREADS, ChangedFileError, check_unchanged
from assets.raw.places.observed_inputs import INPUT_FILES, read_cache, write_cache
from assets.raw.readers.formats import find_borders, format_of
from assets.raw.readers.input_file import Border, InputFile
from assets.raw.readers.read_tables import SEPARATORS
from resources.corpus import Corpus
from resources.run_reports import report_path
from resources.settings.sources import ZSTD_WINDOW_LOG, SourceConfig
from resources.store.records import fingerprint_of

VERSION = 2  # of how borders are found


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
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda i: _unchanged_borders(files[i], source, part_bytes), unknown)
        read = {keys[index]: borders for index, borders in zip(unknown, found, strict=True)}
    known = {**before, **read}
    seen = {key: borders for key in keys if (borders := known[key]) is not None}
    if seen != before:
        write_cache(path, seen)
    return [seen.get(key) or [] for key in keys]


def _key(file: InputFile, source: SourceConfig, part_bytes: int) -> str:
    """Return a digest of all that the borders of a file depend on."""
    rules: tuple[object, ...] = (
        *(source.text_field, source.text_documents, source.max_record_bytes),
        *((source.separator, source.quoting) if file.format in SEPARATORS else ()),
        *((file.zstd_window_log,) if file.zstd_window_log > ZSTD_WINDOW_LOG else ()),
    )
    return fingerprint_of(VERSION, file.digest, file.format, file.compression, rules, part_bytes)


def _unchanged_borders(
    file: InputFile, source: SourceConfig, part_bytes: int
) -> list[Border] | None:
    """Return the borders of a file; None if it has changed since its digest was made."""
    is_read = (file.bytes - 1 if format_of(file).index == "last" else 0, file.bytes)
    try:
        borders = find_borders(file, source, part_bytes)
        check_unchanged(file, [is_read])
    except (ChangedFileError, FileNotFoundError):
        return None  # reading it will say so
    return borders
