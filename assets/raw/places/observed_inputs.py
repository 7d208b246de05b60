"""Data version of a source's input files, and the digests that are known of them.

A file is read for its digest only if its size, times or inode differ from those of its last
digest, so that planning and observing cost a stat per file. The digests that are known are
kept under DAGSTER_HOME: they are in no fingerprint, and the file that holds them may be deleted.
URLs and streams are not requested by observations: they count as unchanged since `raw` was last
materialized.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import xxhash

from assets.raw.places.file_digests import FileDigest, FileStatus, digest_files
from assets.raw.places.find_inputs import find_inputs
from resources.corpus import Corpus
from resources.dagster_home import write_record
from resources.errors import InputError
from resources.run_reports import report_path
from resources.settings.sources import web_places
from resources.store.records import fingerprint_of

CHECKSUM_BYTES = 16
Content = TypeVar("Content")
INPUT_FILES = "input_files"  # the asset
NOT_FOUND = "not found"
REMOTE = ("http://", "https://")
REHASH = "rehash"  # flags of `raw`
NO_NEW_ENTRIES = "no_new_entries"
RACY_NS = 2 * 10**9  # the coarsest clock of a file system (FAT); most have less than 10 ms


class KnownFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Digests of a file, and by what it is known not to have changed."""

    bytes: int
    written_ns: int
    changed_ns: int
    inode: int
    digest: str
    blocks: str = ""


def version_of(files: Mapping[str, str]) -> str:
    """Return the data version of input files, given the digest of each by name."""
    return fingerprint_of(dict(files))


def remote_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of those files that are behind URLs, by name."""
    return {name: digest for name, digest in files.items() if name.startswith(REMOTE)}


def observe_inputs(corpus: Corpus, name: str, last: Mapping[str, str]) -> str:
    """Return the data version of a source's input files; `last` has those of the last run."""
    source = corpus.settings.source(name)
    if source.is_stream:
        return version_of(last)
    on_web = web_places(source)
    local = tuple(each for each in source.where if each not in on_web)
    files = remote_files(last)
    known = known_files(corpus, name)
    if local:
        source = source.model_copy(update={"where": local})
        try:
            found = find_inputs(source, corpus.config.parent, corpus.downloads, known.digests)
        except InputError:
            return NOT_FOUND
        files |= {file.name: file.digest for file in found.files}
    known.save()
    return version_of(files)


def known_files(corpus: Corpus, source: str) -> KnownFiles:
    """Return the digests of a source's files that are known under DAGSTER_HOME."""
    path = report_path(corpus.store.root, INPUT_FILES, source).with_suffix(".known")
    return KnownFiles(path, rehash=REHASH in corpus.flags)


class KnownFiles:
    """The digests of a source's files when they were last read.

    With `rehash` none counts as known: every file is read.
    """

    def __init__(self, path: Path, *, rehash: bool = False) -> None:
        self.path = path
        self.before = read_cache(path, dict[str, KnownFile]) or {}
        self.seen: dict[str, KnownFile] = {}
        self.rehash = rehash

    def digests(self, files: Sequence[FileStatus]) -> list[FileDigest]:
        """Return the digests of files; those are read that may have changed.

        A file that was changed less than two seconds ago may change once more at the same times,
        by a coarse clock. It is not kept as known, and so is read again next time.
        """
        now = time.time_ns()
        unknown = [file for file in files if not self.is_known(file)]
        read = dict(zip(unknown, digest_files([file.place for file in unknown]), strict=True))
        for file, digest in read.items():
            if max(file.written_ns, file.changed_ns) + RACY_NS < now:
                self.seen[file.place] = KnownFile(*file[1:], digest.digest, digest.blocks)
        return [read.get(file) or self.take(file.place) for file in files]

    def is_known(self, file: FileStatus) -> bool:
        """Return whether a file is as it was when its digest was made."""
        known = self.before.get(file.place)
        status = known and (known.bytes, known.written_ns, known.changed_ns, known.inode)
        return status == file[1:] and not self.rehash

    def take(self, place: str) -> FileDigest:
        """Return the digests of a known file, and keep it as known."""
        known = self.seen[place] = self.before[place]
        return FileDigest(known.bytes, known.digest, known.blocks)

    def save(self) -> None:
        """Keep what was seen for the next planning or observation."""
        if self.seen == self.before:
            return
        write_cache(self.path, self.seen)


def write_cache(path: Path, content: object) -> None:
    """Write what is known, with a checksum."""
    encoded = msgspec.msgpack.encode(content)
    write_record(path, xxhash.xxh3_128_digest(encoded) + encoded)


def read_cache(path: Path, kind: type[Content]) -> Content | None:
    """Read what is known; None if it is missing, damaged or of another version."""
    try:
        content = memoryview(path.read_bytes())
        if content[:CHECKSUM_BYTES] != xxhash.xxh3_128_digest(content[CHECKSUM_BYTES:]):
            return None
        return msgspec.msgpack.decode(content[CHECKSUM_BYTES:], type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
