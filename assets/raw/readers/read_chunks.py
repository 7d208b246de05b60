"""Chunks of documents from input files, in slices that can be read independently.

    plan_slices: file -> slices        read_chunks: slice -> chunks of about part_bytes

A slice is the unit of parallel work: a byte range of plain JSON lines, row groups of Parquet, or
the records between two borders that planning has found (find_borders.py). Any other file is one
stream, which is read front to back and cut into chunks. The cuts depend on the content and
`part_bytes` only, so that every run writes the same parts. A document's id depends on neither.

Price: memory of about five times part_bytes for a stream, as the next chunk is read ahead.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

from assets.raw.readers.decompress import file_head, raise_unless_of_content
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.file_content import packed_as
from assets.raw.readers.formats import format_of
from assets.raw.readers.input_file import BEGIN, STREAM_END, Border, InputFile, Slice, Span
from assets.raw.readers.input_record import InputRecord, LineRun, Patch
from assets.raw.readers.plain_lines import LEAST_BYTES, add_lines
from assets.raw.readers.read_lines import BYTES_BEFORE, halves, lines_before, run_records
from assets.raw.readers.read_tables import MOST_PARTS, group_bytes, parquet_metadata
from resources.settings.sources import SourceConfig

AHEAD_BYTES = 1 << 20  # a thread costs 0.1 ms, and a part may have 20,000 small files
T = TypeVar("T")


def plan_slices(file: InputFile, part_bytes: int, borders: Sequence[Border] = ()) -> list[Slice]:
    """Cut a file into slices of about `part_bytes`; together they hold every record once.

    `borders` are those that `find_borders` found.
    """
    if borders:
        spans = map(Span._make, pairwise([BEGIN, *borders]))
        return [slice_of(file, i, span, part_bytes) for i, span in enumerate(spans)]
    if file.compression is None and file.format == "jsonl":
        places = [*range(0, max(file.bytes, 1), part_bytes), file.bytes]
        return [Slice(i, "bytes", *cut) for i, cut in enumerate(pairwise(places))]
    return [whole(file)]


def slice_of(file: InputFile, index: int, span: Span, part_bytes: int) -> Slice:
    """Return the slice between two borders of a file."""
    start, stop = span.first.offset, span.end.offset
    found = Slice(index, format_of(file).slices, start, stop, span)
    is_one = found.unit == "row_groups" and stop == start + 1
    is_large = is_one and found.num_bytes > MOST_PARTS * part_bytes
    return replace(found, unit="row_group") if is_large else found


def whole(file: InputFile) -> Slice:
    """Return the slice that is a whole file, read front to back."""
    return Slice(0, "stream", 0, file.bytes)


def byte_spans(file: InputFile, file_slice: Slice) -> list[tuple[int, int]]:
    """Return the ranges of bytes that a slice is read from, without the end of its last line."""
    if file_slice.unit == "bytes":
        return [(max(file_slice.start - BYTES_BEFORE, 0), file_slice.stop)]
    if file_slice.unit == "stream":
        return [(0, file.bytes)]
    index = {"first": [(0, 1)], "last": [(file.bytes - 1, file.bytes)]}
    needed = index.get(format_of(file).index, [])
    if file_slice.unit == "records":
        return [(file_slice.span.first.place, file_slice.span.end.place), *needed]
    try:
        metadata = parquet_metadata(file)
        groups = range(file_slice.start, file_slice.stop)
        return [*needed, *(group_bytes(metadata, group) for group in groups)]
    except (pa.ArrowException, OSError, IndexError) as error:
        raise_unless_of_content(error, file.bytes)
        return [(0, file.bytes)]


def read_chunks(
    file: InputFile,
    file_slice: Slice,
    source: SourceConfig,
    part_bytes: int,
    most_documents: int | None = None,
    patches: Sequence[Patch] = (),
) -> Iterator[Chunk]:
    """Read one slice: a stream as chunks of about `part_bytes`, other slices as exactly one.

    Records between borders that are far apart, as a large member has none, count as a stream, and
    so does a large row group.

    There is at least one chunk, if only an empty one. Faults in the data never raise: they become
    rows of `quarantine`; errors of the disk do. A record that is repeated (by `id_field`) is kept
    once per slice. Reading stops soon after `most_documents`.
    """
    if file_slice.start == 0 and file_slice.unit in ("stream", "bytes"):
        sent = as_sent(file)
        file, file_slice = (file, file_slice) if sent is file else (sent, whole(sent))
    builder = DocumentBuilder(0, most_documents, patches)
    chunks = _chunks(builder, file, file_slice, source, part_bytes)
    is_long = is_stream(file_slice, part_bytes) and file.bytes >= AHEAD_BYTES
    return read_ahead(chunks) if is_long else chunks


def as_sent(file: InputFile) -> InputFile:
    """Return a file of another machine with the compression in which it is sent.

    Object stores and web servers have files with `Content-Encoding: gzip` and a name that does not
    say so. The whole file is one slice then: later slices of plain files are empty.
    """
    if "://" not in file.name or file.compression is not None or not file.bytes:
        return file
    packed = packed_as(file_head(file))
    return file if packed is None else file._replace(compression=packed)


def is_stream(file_slice: Slice, part_bytes: int) -> bool:
    """Return whether a slice is read in chunks."""
    is_far = file_slice.unit == "records" and file_slice.num_bytes > MOST_PARTS * part_bytes
    return file_slice.unit in ("stream", "row_group") or is_far


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, the next of which is made in a thread while the caller works on one.

    A stream has one reader: it reads on while the part before is compressed and written.
    """
    with ThreadPoolExecutor(1, "read-ahead") as thread:
        following = thread.submit(next, items, None)
        while (item := following.result()) is not None:
            following = thread.submit(next, items, None)
            yield item


def _chunks(
    builder: DocumentBuilder,
    file: InputFile,
    file_slice: Slice,
    source: SourceConfig,
    part_bytes: int,
) -> Iterator[Chunk]:
    num_chunks = 0
    most = part_bytes if is_stream(file_slice, part_bytes) else STREAM_END
    for chunk in _add_file(builder, file, file_slice, source, most):
        num_chunks += 1
        yield chunk
    rest = builder.take()
    if rest.rows_in or not num_chunks:
        yield rest


def read_into(
    builder: DocumentBuilder, file: InputFile, source: SourceConfig, part_bytes: int
) -> Iterator[Chunk]:
    """Add a small file to a builder; yield a chunk where that has enough records."""
    yield from _add_file(builder, as_sent(file), whole(file), source, part_bytes)
    yield from builder.end_file()


def _add_file(
    builder: DocumentBuilder, file: InputFile, file_slice: Slice, source: SourceConfig, most: int
) -> Iterator[Chunk]:
    start = file_slice.start if file_slice.unit == "bytes" else 0

    @cache
    def before() -> int | None:
        if start and file.is_remote and file.content is None:
            return None  # to count them is to fetch all before
        return file_slice.span.first.line or lines_before(file, start)

    found = format_of(file)
    if found.has_pages:
        source = source.model_copy(update={"html": "keep"})
    builder.start_file(source, file.name, found.unit, before, found.is_container)
    for piece in found.read(file, source, file_slice):
        yield from _add(builder, piece, source, most)
        if builder.is_full():
            return


def _add(
    builder: DocumentBuilder, piece: LineRun | InputRecord, source: SourceConfig, most: int
) -> Iterator[Chunk]:
    """Add a record or a run of lines, and take a chunk behind each record that fills one.

    A run that may hold such a record is halved until it is small, and then added line by line.
    """
    if isinstance(piece, LineRun) and builder.num_bytes + len(piece.data) >= most:
        pieces = halves(piece) if len(piece.data) >= LEAST_BYTES else []
        for each in pieces or run_records(piece, source.max_record_bytes):
            yield from _add(builder, each, source, most)
        return
    if isinstance(piece, LineRun):
        add_lines(builder, piece, source)
    else:
        builder.add(piece)
    if builder.num_bytes >= most:
        yield from builder.cut()
