"""Records of files that the package `datasets` streams: Arrow tables, with its state behind each.

    records_of: file, state -> records of a table, state behind it

The package asks us for the bytes, as a file system of fsspec. So they are those of the planned
commit, requests are repeated as for any other format, and the token is sent to the hub alone; an
error of a builder is one of the content, and not of a 503 in between.

Price: a state counts rows. Whoever goes on from one reads the file again up to there.

Left out of what the package knows: images, audio, PDF and structures, which have no text; Lance,
which it reads at the branch `main` only, whatever commit is asked for; logs of Inspect, CoNLL and
Harbor, which it reads as Python rows or lists of words; scripts and pickles, which would run code.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import pyarrow as pa

from assets.raw.raw_records import DatasetState
from assets.raw.readers.decompress import (
    BlockStream,
    BrokenStream,
    FileFault,
    file_head,
    raise_unless_of_content,
    read_blocks,
)
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import InputRecord, has_field
from assets.raw.readers.read_tables import UNREADABLE, batch_records, no_text_column
from resources.settings.sources import SourceConfig

if TYPE_CHECKING:
    from datasets import IterableDataset
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple, cast

from assets.raw.places.open_input import fetch_of, open_input
from assets.raw.places.range_files import Fetch, PlacedFile
from resources.errors import InputError

BLOCK_BYTES = 4 << 20
MOST_BLOCKS = 16  # that are held
Block = Callable[[int], bytes]
PACKAGE = "datasets"
EXTRA = "hub-datasets"
ROWS = 128  # of a table: states lie between tables, and so do the borders of parts
TABLE_BYTES = 16 << 20
BOUNDS = {"batch_size": ROWS, "max_batch_bytes": TABLE_BYTES}
SEQUENCE = ["id", "description", "sequence"]
GENBANK = ["locus_name", "accession", "version", "definition", "organism", "taxonomy", "keywords"]
GENBANK += ["sequence", "features", "length", "molecule_type", "secondary_accessions", "contig"]
PROTOCOL = "tokenmill"
WRONG_CONTENT = (*UNREADABLE, OSError, RuntimeError, LookupError, EOFError)
numbers = count()
one_at_a_time = Lock()  # the package changes its own modules while it opens a dataset


class PackagedContent(io.RawIOBase):
    """The bytes of a file as a builder asks for them.

    `fault` is what reading them ended in. A stream that h5py reads ends there: an exception would
    be lost in it, and end the process with a segmentation fault.
    """

    def __init__(self, text: BlockStream | None, stream: BinaryIO | None) -> None:
        self.fault: Exception | None = None
        self._blocks = text
        self._stream = stream

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the file is read at any place."""
        return self._stream is not None

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._stream.tell() if self._stream else self._text().offset

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        if self._stream is None:
            raise io.UnsupportedOperation("seek")
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read the next bytes; BrokenStream behind the last good ones."""
        try:
            if self.fault is not None:
                return 0
            if self._stream is not None:
                data = self._stream.read(len(buffer))
            else:
                data = self._text().take(len(buffer))
                if not data and self._text().broken:
                    raise BrokenStream(self._text().broken, head=self._text().head)
        except Exception as error:
            self.fault = error
            if self._stream is None:
                raise
            return 0
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
        super().close()

    def _text(self) -> BlockStream:
        assert self._blocks is not None
        return self._blocks


class PackagedFile:
    """A file that the package may open, any number of times."""

    def __init__(self, file: InputFile) -> None:
        self.file = file
        self.contents: list[PackagedContent] = []
        self._open_anywhere = open_anywhere(file) if file.format == "hdf5" else None

    def open(self) -> BinaryIO:
        """Open the file from its start."""
        if self._open_anywhere is None:
            content = PackagedContent(BlockStream(read_blocks(self.file)), None)
            self.contents.append(content)
            return io.BufferedReader(content)
        content = PackagedContent(None, self._open_anywhere())
        self.contents.append(content)
        for place in (max(self.file.bytes - 1, 0), 0):  # where HDF5 begins: see PackagedContent
            content.seek(place)
            content.read(1)
            content.seek(place)
            self.check()
        return io.BufferedReader(content)

    def fault(self) -> Exception | None:
        """Return what reading ended in, if it did."""
        return next((each.fault for each in self.contents if each.fault is not None), None)

    def check(self) -> None:
        """Raise what reading ended in, if it did: what a library made of it is not to be used."""
        if (fault := self.fault()) is not None:
            raise fault


offered: dict[str, PackagedFile] = {}  # files that are being read, by the path that they have there


def records_of(
    file: InputFile, source: SourceConfig, state: DatasetState | None = None
) -> Iterator[tuple[list[InputRecord], DatasetState | None]]:
    """Yield the records of each table behind a state, and the state behind it.

    A state of None means that nothing follows. Faults of the content are records of quarantine.
    """
    row = state.shard_example_idx if state else 0
    if file.format == "xml" and file.bytes > source.max_record_bytes:
        error = f"record has {file.bytes:,} bytes, above max_record_bytes="
        yield [InputRecord(0, None, b"", f"{error}{source.max_record_bytes:,}")], None
        return
    # h5py must not close its file behind ours, so the tables end first.
    with offer(file) as (path, opened), closing(tables_of(file, path, state)) as tables:
        try:
            for table, behind in tables:
                opened.check()
                if not has_field(table.schema.names, source.text_field):
                    reason = no_text_column(source.text_field, table.schema.names)
                    yield [InputRecord(row, None, b"", reason)], None
                    return
                yield [*_records(table, row, source)], behind
                row = behind.shard_example_idx
            opened.check()
        except WRONG_CONTENT as error:
            reason = _fault_of_content(file, error, opened.fault())
            yield [InputRecord(row, None, file_head(file), reason)], None


def read_packaged(file: InputFile, source: SourceConfig, _cut: Slice) -> Iterator[InputRecord]:
    """Yield all records of a file."""
    for records, _ in records_of(file, source):
        yield from records


def tables_of(
    file: InputFile, path: str, state: DatasetState | None
) -> Generator[tuple[pa.Table, DatasetState], None, None]:
    """Yield the tables of a dataset of one file behind a state, each with the state behind it."""
    # Not `IterableDataset.iter`: its states say in several ways where one and the same row is.
    rows = load(file, path)._ex_iterable
    rows._init_state_dict()
    if state is not None:
        rows.load_state_dict(msgspec.to_builtins(state))
    for _, table in rows.iter_arrow():
        yield table, msgspec.convert(rows.state_dict(), DatasetState)


def load(file: InputFile, path: str) -> IterableDataset:
    """Open a file as a dataset of one shard; InputError if the package is not installed."""
    check_installed(file.format, file.name)
    builder = BUILDERS[file.format]
    with one_at_a_time, tempfile.TemporaryDirectory() as cache_dir:
        import datasets

        datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False  # a request to S3 for each file
        register_files()
        return datasets.load_dataset(
            builder.name,
            data_files=[f"{PROTOCOL}://{path}"],
            split="train",
            streaming=True,
            cache_dir=cache_dir,
            **builder.options,
        )


@contextmanager
def offer(file: InputFile) -> Iterator[tuple[str, PackagedFile]]:
    """Let the package open a file; yield the path that it has there."""
    path = f"{next(numbers)}.txt"  # by another ending it would look for compression in the content
    offered[path] = PackagedFile(file)
    try:
        yield path, offered[path]
    finally:
        for content in offered.pop(path).contents:
            content.close()


@cache
def register_files() -> None:
    """Give fsspec a file system of the files that are being read."""
    import fsspec

    class OfferedFiles(fsspec.AbstractFileSystem):  # type: ignore[misc]
        protocol = PROTOCOL
        cachable = False

        def info(self, path: str, **_: Any) -> dict[str, object]:
            name = self._strip_protocol(path)
            return {"name": name, "size": offered[name].file.bytes, "type": "file"}

        def _open(self, path: str, mode: str = "rb", **_: Any) -> BinaryIO:
            return offered[self._strip_protocol(path)].open()

    fsspec.register_implementation(PROTOCOL, OfferedFiles, clobber=True)


def _records(table: pa.Table, row: int, source: SourceConfig) -> Iterator[InputRecord]:
    if source.read_columns:
        table = table.select([name for name in table.schema.names if name in source.read_columns])
    for batch in table.to_batches():
        yield from batch_records(batch, row)
        row += batch.num_rows


def _fault_of_content(file: InputFile, error: Exception, cause: Exception | None) -> FileFault:
    """Return why a file cannot be read; raise what is no fault of its content."""
    if isinstance(cause, BrokenStream):
        return FileFault(cause.reason)
    if cause is not None:
        raise cause
    raise_unless_of_content(error, file.bytes)
    if isinstance(error, UnicodeDecodeError):
        return FileFault(f"not valid UTF-8: {error.reason}")
    return FileFault(f"{file.format} file cannot be read: {type(error).__name__}: {error}")


class Builder(NamedTuple):
    """A builder of the package, by name, its options, and the packages that it needs."""

    endings: tuple[str, ...]
    name: str
    options: Mapping[str, object]
    packages: tuple[str, ...] = (PACKAGE,)


BUILDERS = {
    "fasta": Builder(
        (".fa", ".fasta", ".fna", ".ffn", ".faa", ".frn", ".afa"),
        "fasta",
        {**BOUNDS, "columns": SEQUENCE},
    ),
    "fastq": Builder((".fq", ".fastq"), "fastq", {**BOUNDS, "columns": [*SEQUENCE, "quality"]}),
    "genbank": Builder((".gb", ".gbk", ".genbank"), "genbank", {**BOUNDS, "columns": GENBANK}),
    "hdf5": Builder((".h5", ".hdf5"), "hdf5", {"batch_size": ROWS}, (PACKAGE, "h5py")),
    # Its builder `xml` gives the text of a file too, but opens none: huggingface/datasets#8584.
    "xml": Builder((".xml",), "text", {"sample_by": "document"}),
}


def check_installed(file_format: str, name: str) -> None:
    """Raise InputError, which says what to install, if a format cannot be read here."""
    missing = [package for package in BUILDERS[file_format].packages if not find_spec(package)]
    if missing:
        raise InputError(
            f"{name!r} is read by the package `{' and '.join(missing)}`, which is not installed. "
            f"Run: pip install 'tokenmill[{EXTRA}]'"
        )


def package_version() -> str:
    """Return the version of the package, on which rows and states depend; "" without it."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return ""


def cached_blocks(fetch: Fetch, num_bytes: int) -> Block:
    """Return the function that fetches a block by its number, unless it is held."""

    @lru_cache(MOST_BLOCKS)
    def block(number: int) -> bytes:
        start = number * BLOCK_BYTES
        return fetch(start, min(start + BLOCK_BYTES, num_bytes))

    return block


class CachedBlocks(PlacedFile):
    """The bytes of a remote file, read by blocks."""

    def __init__(self, block: Block, num_bytes: int) -> None:
        super().__init__(num_bytes)
        self._block = block

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes from where the file is, up to the end of a block."""
        if self._at >= self._num_bytes or not len(buffer):
            return 0
        number, start = divmod(self._at, BLOCK_BYTES)
        data = memoryview(self._block(number))[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_anywhere(file: InputFile) -> Callable[[], BinaryIO]:
    """Return the function that opens a file which is read at any place, also several times."""
    if file.content is not None or not file.is_remote:
        return partial(open_input, file)
    block = cached_blocks(fetch_of(file), file.bytes)
    return lambda: cast(BinaryIO, io.BufferedReader(CachedBlocks(block, file.bytes)))


FORMATS = tuple(
    Format(name, builder.endings, read_packaged, is_packaged=True)
    for name, builder in BUILDERS.items()
)
