"""Data version of a source's input files, for the UI: the digests that its next planning will find.

A file is read again only if its size or time of change differs from those of its last digest, so
that looking often is cheap. URLs are not requested: their files count as unchanged since `raw` was
last materialized.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from assets.raw.places.find_inputs import digest_file, find_inputs
from resources.corpus import Corpus
from resources.errors import InputError
from resources.run_reports import report_path
from resources.store.records import fingerprint_of, to_json

INPUT_FILES = "input_files"  # the asset
NOT_FOUND = "not found"
REMOTE = ("http://", "https://")


class KnownFile(msgspec.Struct, frozen=True):
    """Digest of a file, and by what it is known not to have changed."""

    bytes: int
    changed_ns: int
    digest: str


def version_of(files: Mapping[str, str]) -> str:
    """Return the data version of input files, given the digest of each by name."""
    return fingerprint_of(dict(files))


def observe_inputs(corpus: Corpus, name: str, last: Mapping[str, str]) -> str:
    """Return the data version of a source's input files; `last` has those of the last run."""
    source = corpus.settings.source(name)
    local = tuple(each for each in source.where if not each.lower().startswith(REMOTE))
    files = {name: digest for name, digest in last.items() if name.startswith(REMOTE)}
    known = known_files(corpus, name)
    if local:
        source = source.model_copy(update={"where": local})
        try:
            found = find_inputs(source, corpus.config.parent, corpus.downloads, known.digest)
        except InputError:
            return NOT_FOUND
        files |= {file.name: file.digest for file in found.files}
    known.save()
    return version_of(files)


def known_files(corpus: Corpus, source: str) -> KnownFiles:
    """Return the digests of a source's files that are known under DAGSTER_HOME."""
    return KnownFiles(report_path(corpus.store.root, INPUT_FILES, source))


class KnownFiles:
    """The digests of a source's files when they were last read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seen: dict[str, KnownFile] = {}
        try:
            self.before = msgspec.json.decode(path.read_bytes(), type=dict[str, KnownFile])
        except (OSError, msgspec.DecodeError):
            self.before = {}

    def digest(self, path: Path) -> tuple[int, str]:
        """Return size and digest of a file, read only if it may have changed."""
        status, file = path.stat(), self.before.get(str(path))
        if file is None or (file.bytes, file.changed_ns) != (status.st_size, status.st_mtime_ns):
            return self.read(path)
        self.seen[str(path)] = file
        return file.bytes, file.digest

    def read(self, path: Path) -> tuple[int, str]:
        """Return size and digest of a file; one that changes meanwhile is read again next time."""
        status = path.stat()
        num_bytes, digest = digest_file(path)
        self.seen[str(path)] = KnownFile(status.st_size, status.st_mtime_ns, digest)
        return num_bytes, digest

    def save(self) -> None:
        """Keep what was seen for the next observation."""
        if self.seen == self.before:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        temporary.write_bytes(to_json(self.seen))
        temporary.replace(self.path)
