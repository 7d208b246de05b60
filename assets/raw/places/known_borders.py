"""Borders of large files, found once per content of a file and remembered under DAGSTER_HOME."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from assets.raw.places.cache_files import read_cache, write_cache
from assets.raw.places.file_digests import THREADS, ChangedFileError, check_unchanged
from assets.raw.places.observed_inputs import INPUT_FILES
from assets.raw.readers.find_borders import find_borders
from assets.raw.readers.input_file import Border, InputFile
from resources.corpus import Corpus
from resources.run_reports import report_path
from resources.settings.sources import SourceConfig
from resources.store.records import fingerprint_of

VERSION = 1  # of how borders are found


def known_borders(
    corpus: Corpus, source: SourceConfig, files: Sequence[InputFile]
) -> list[list[Border]]:
    """Return the borders of cuttable files; those are read that were not read with this content."""
    if not files:
        return []
    path = report_path(corpus.store.root, INPUT_FILES, source.name).with_suffix(".borders")
    before = read_cache(path, dict[str, list[Border]]) or {}
    part_bytes = corpus.settings.part_bytes
    keys = [borders_key(file, source, part_bytes) for file in files]
    unknown = [index for index, key in enumerate(keys) if key not in before]
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda i: unchanged_borders(files[i], source, part_bytes), unknown)
        read = {keys[index]: borders for index, borders in zip(unknown, found, strict=True)}
    seen = {key: borders for key in keys if (borders := {**before, **read}[key]) is not None}
    if seen != before:
        write_cache(path, seen)
    return [seen.get(key) or [] for key in keys]


def borders_key(file: InputFile, source: SourceConfig, part_bytes: int) -> str:
    """Return a digest of all that the borders of a file depend on."""
    rules = (source.text_field, source.text_documents, source.max_record_bytes)
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
