"""Chunks of documents from input files, in slices that can be read independently.

    plan_slices: file -> slices        read_chunks: slice -> chunks of about part_bytes

A slice is the unit of parallel work: a byte range of plain JSON lines, row groups of Parquet, or
the records between two borders that planning has found (find_borders.py). Any other file is one
stream, which is read front to back and cut into chunks. The cuts depend on the content and
`part_bytes` only, so that every run writes the same parts. A document's id depends on neither.

Price: memory of about five times part_bytes for a stream, as the next chunk is read ahead.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, TypeVar

import pyarrow as pa

from assets.raw.patch import Patch
from assets.raw.positions import MEMBER
from assets.raw.readers.decompress import file_head, raise_unless_of_content
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.file_content import packed_as
from assets.raw.readers.input_file import (
    BEGIN,
    STREAM_END,
    WHOLE,
    Border,
    InputFile,
    InputFormat,
    Span,
)
from assets.raw.readers.input_record import InputRecord
from assets.raw.readers.packaged.packaged_formats import is_packaged
from assets.raw.readers.packaged.read_packaged import read_packaged
from assets.raw.readers.plain_lines import LEAST_BYTES, add_lines
from assets.raw.readers.read_arrow import read_arrow
from assets.raw.readers.read_json import read_json
from assets.raw.readers.read_lines import (
    LineRun,
    halves,
    lines_before,
    read_jsonl_runs,
    read_text,
    run_records,
)
from assets.raw.readers.read_pages import read_page
from assets.raw.readers.read_tables import group_bytes, parquet_metadata, read_csv, read_parquet
from assets.raw.readers.read_tar import read_tar
from assets.raw.readers.read_warc import read_warc, read_wet
from assets.raw.readers.read_zip import read_zip
from resources.settings.sources import SourceConfig

MOST_PARTS = 2  # of part_bytes in a slice between two borders that is read in one piece
UNITS = {"jsonl": "byte", "parquet": "row", "arrow": "row", "tar": "member", "zip": MEMBER}
CONTAINERS = frozenset({"warc", "wet", "tar", "zip"})
SPAN_READERS: dict[
    InputFormat, Callable[[InputFile, SourceConfig, Span], Iterator[InputRecord]]
] = {
    **{"csv": read_csv, "tsv": read_csv, "txt": read_text, "arrow": read_arrow},
    **{"warc": read_warc, "wet": read_wet, "tar": read_tar, "zip": read_zip},
}
AHEAD_BYTES = 1 << 20  # a thread costs 0.1 ms, and a part may have 20,000 small files
T = TypeVar("T")


@dataclass(frozen=True)
class Slice:
    """Part of a file: the whole ("stream"), or its bytes or row groups [start, stop).

    "records" are those of `span`, from byte `start` of the content up to `stop`.
    """

    index: int
    unit: Literal["stream", "bytes", "records", "row_groups"]
    start: int
    stop: int
    span: Span = WHOLE


def plan_slices(
    file: InputFile,
    part_bytes: int,
    borders: Sequence[Border] = (),
    row_groups: Sequence[int] | None = None,
) -> list[Slice]:
    """Cut a file into slices of about `part_bytes`; together they hold every record once.

    `borders` are those that `find_borders` found, `row_groups` those of `row_group_cuts` if they
    are known.
    """
    if borders:
        spans = map(Span._make, pairwise([BEGIN, *borders]))
        return [
            Slice(i, "records", span.first.offset, span.end.offset, span)
            for i, span in enumerate(spans)
        ]
    if file.compression is None and file.format == "jsonl":
        places = [*range(0, max(file.bytes, 1), part_bytes), file.bytes]
        return [Slice(i, "bytes", *cut) for i, cut in enumerate(pairwise(places))]
    if file.compression is None and file.format == "parquet":
        cuts = row_group_cuts(file, part_bytes) if row_groups is None else row_groups
        if cuts:
            return [Slice(i, "row_groups", *cut) for i, cut in enumerate(pairwise(cuts))]
    return [whole(file)]


def row_group_cuts(file: InputFile, part_bytes: int) -> list[int]:
    """Return the row groups at which a Parquet file is cut; none if it cannot be read."""
    try:
        metadata = parquet_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise_unless_of_content(error, file.bytes)
        return []  # reading the file as a stream puts the reason into quarantine
    cuts, size = [0], 0
    for group in range(metadata.num_row_groups):
        size += metadata.row_group(group).total_byte_size
        if size >= part_bytes:
            cuts.append(group + 1)
            size = 0
    return cuts if cuts[-1] == metadata.num_row_groups > 0 else [*cuts, metadata.num_row_groups]


def whole(file: InputFile) -> Slice:
    """Return the slice that is a whole file, read front to back."""
    return Slice(0, "stream", 0, file.bytes)


def byte_spans(file: InputFile, file_slice: Slice) -> list[tuple[int, int]]:
    """Return the ranges of bytes that a slice is read from, without the end of its last line."""
    if file_slice.unit == "bytes":
        return [(max(file_slice.start - 1, 0), file_slice.stop)]
    if file_slice.unit == "stream":
        return [(0, file.bytes)]
    if file_slice.unit == "records":
        span = (file_slice.span.first.place, file_slice.span.end.place)
        shared = {"zip": (file.bytes - 1, file.bytes), "arrow": (0, 1)}  # directory, schema
        return [span, *[shared[key] for key in shared if key == file.format]]
    try:
        metadata = parquet_metadata(file)
        groups = range(file_slice.start, file_slice.stop)
        at_end = (file.bytes - 1, file.bytes)  # the metadata is there
        return [at_end, *(group_bytes(metadata, group) for group in groups)]
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

    Records between borders that are far apart, as a large member has none, count as a stream.

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
    is_ours = "://" not in file.name or is_packaged(file.format)
    if is_ours or file.compression is not None or not file.bytes:
        return file
    packed = packed_as(file_head(file))
    return file if packed is None else file._replace(compression=packed)


def is_stream(file_slice: Slice, part_bytes: int) -> bool:
    """Return whether a slice is read in chunks."""
    num_bytes = file_slice.stop - file_slice.start
    is_far = file_slice.unit == "records" and num_bytes > MOST_PARTS * part_bytes
    return file_slice.unit == "stream" or is_far


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

    if file.format in ("warc", "html"):
        source = source.model_copy(update={"html": "keep"})  # the pages are text already
    is_container = file.format in CONTAINERS
    builder.start_file(source, file.name, _position_unit(file), before, is_container)
    for piece in _pieces(file, file_slice, source):
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


def _position_unit(file: InputFile) -> str:
    return UNITS.get(file.format, "record")


def _pieces(
    file: InputFile, file_slice: Slice, source: SourceConfig
) -> Iterator[LineRun | InputRecord]:
    unit, span = file_slice.unit, file_slice.span
    match file.format:
        case "jsonl":
            start, stop = (
                (0, STREAM_END) if unit == "stream" else (file_slice.start, file_slice.stop)
            )
            known = span if unit == "records" else None
            return read_jsonl_runs(file, source, start, stop, known)
        case "parquet":
            groups = None if unit == "stream" else (file_slice.start, file_slice.stop)
            return read_parquet(file, source, groups)
        case _:
            return read_records(file, source, span)


def read_records(
    file: InputFile, source: SourceConfig, span: Span = WHOLE
) -> Iterator[InputRecord]:
    """Yield the records of a span of a file, of any format but JSON lines and Parquet."""
    if file.format in ("md", "html"):
        return read_page(file, source)
    if file.format == "json":
        return read_json(file, source)
    if is_packaged(file.format):
        return read_packaged(file, source)
    return SPAN_READERS[file.format](file, source, span)
