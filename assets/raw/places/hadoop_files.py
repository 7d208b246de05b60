"""Input files on a Hadoop file system (hdfs://), through pyarrow and libhdfs.

Size and time of change decide what is new, and are asked with every range.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from pyarrow import fs

from assets.raw.places.file_digests import FileDigest, changed, removed
from assets.raw.places.local_files import Match, remote_match
from assets.raw.places.object_files import match, url_pattern
from assets.raw.readers.input_file import Fetch, InputFile
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.transports import Interrupted, Patience
from corpus_loader.places.url_secrets import shown
from corpus_loader.places.urls import Url
from resources.errors import InputError
from resources.store.records import fingerprint_of

ADVICE = (
    "hdfs:// needs Hadoop's client: a Java runtime (JAVA_HOME), libhdfs.so (ARROW_LIBHDFS_DIR, or "
    "HADOOP_HOME/lib/native) and CLASSPATH=$(hadoop classpath --glob). Set them, also for "
    "Dagster's daemon, or copy the files to a disk or an object store."
)


@lru_cache
def hadoop_at(url: str) -> fs.FileSystem:
    """Return the client of a file system, as hdfs://namenode:8020: one per process."""
    host, _, port = Url(f"{url}/").host.partition(":")
    try:
        return fs.HadoopFileSystem(host or "default", int(port or 0))
    except (AttributeError, ImportError, OSError, ValueError) as error:
        fact = str(error).partition("\n")[0]
        raise InputError(f"{shown(url)} cannot be reached ({fact}). {ADVICE}") from None


def find_hadoop_files(url: str) -> Iterator[Match]:
    """Yield the files that a URL with the rules of local globs matches, sorted by path."""
    pattern = url_pattern(url)
    root, start, system = pattern.root, f"/{pattern.start}", hadoop_at(pattern.root)
    named = system.get_file_info(start)
    if named.is_file and not pattern.globs:
        yield remote_match(f"{root}{start}", "named", digest_of_info(named))
        return
    below = system.get_file_info(fs.FileSelector(start, allow_not_found=True, recursive=True))
    for info in sorted(below, key=lambda info: info.path):
        path = info.path.lstrip("/")
        parts = path.split("/")[len(pattern.folders) :]
        if info.is_file and (how := match(pattern.globs, parts)):
            yield remote_match(f"{root}/{path}", how, digest_of_info(info))


def digest_of_info(info: fs.FileInfo) -> FileDigest:
    """Return size and time of change as the digest of a file."""
    return FileDigest(info.size, fingerprint_of("hdfs", info.size, info.mtime_ns))


def fetch_of_hadoop_file(file: InputFile) -> Fetch:
    """Return the function that fetches ranges of a file."""
    pattern = url_pattern(file.place)
    system, path = hadoop_at(pattern.root), file.place.removeprefix(pattern.root)

    def fetch(start: int, stop: int) -> bytes:
        patience = Patience()
        while True:
            try:
                return _read(system, path, file, start, stop)
            except PermissionError as error:
                advice = "Check the user, or the Kerberos ticket (kinit)."
                raise CorpusError(f"{file.name} could not be read: {error}. {advice}") from None
            except OSError as error:
                fault = Interrupted(f"{file.name} could not be read: {error}, at byte {start:,}")
                patience.wait(str(fault), fault, "Check the file system, then build again.")

    return fetch


def _read(system: fs.FileSystem, path: str, file: InputFile, start: int, stop: int) -> bytes:
    """Read bytes [start, stop) once."""
    try:
        with system.open_input_file(path) as stream:
            content: bytes = stream.read_at(stop - start, start)
    except FileNotFoundError:
        raise removed(file) from None
    now = system.get_file_info(path)
    if digest_of_info(now).digest != file.digest:
        raise changed(file, f"{now.size:,} bytes, written at {now.mtime}, now")
    return content
