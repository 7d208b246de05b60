"""Documents from plain JSON lines by a compiled reader; the careful decoder reads all other lines.

    a run of lines -> columns of the plain ones, straight in Arrow's buffers; the others, one by one

The outcome is the careful decoder's, to the byte: its own encoder spells `meta` again wherever the
reader cannot prove that it would spell it so, and every line that is refused is decoded by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.raw.readers.documents import DocumentBuilder
from assets.raw.readers.input_record import DECODE_OBJECT, ENCODE, InputRecord, LineRun
from assets.raw.readers.read_lines import RUN_BYTES, bounded_line, line_record, run_records
from resources.settings.sources import SourceConfig

LEAST_BYTES = 1 << 18  # of a run: a smaller one is not worth loading the kernels
PLAIN, RESPELLED, REFUSED = 0, 1, 2  # kinds of lines in the kernel
COLUMNS = ("text", "id", "lang", "license", "url", "meta")  # in the order of the kernel's roles
Buffers = NDArray[np.uint8]  # a row each for the lines of a run and for COLUMNS
_idle: list[Buffers] = []  # buffers that no thread reads into: threads of streams come and go


def add_lines(builder: DocumentBuilder, run: LineRun, source: SourceConfig) -> None:
    """Add the documents of a run of lines, and its broken lines, to a builder."""
    if len(run.data) < LEAST_BYTES or not has_plain_names(source):
        for record in run_records(run, source.max_record_bytes):
            builder.add(record)
        return
    lines, documents = split_run(run, source)
    is_refused = lines[:, 2] != PLAIN
    numbers = np.flatnonzero(~is_refused)

    def record_of(index: int) -> InputRecord | None:
        start, stop, _ = lines[index].tolist()
        data, most = run.data[start:stop], source.max_record_bytes
        line = bounded_line(run.offset + start, data, len(data), most)
        return line_record(line, run.number + index)

    def plain_record(index: int) -> InputRecord | None:
        return record_of(int(numbers[index]))

    refused = filter(None, map(record_of, np.flatnonzero(is_refused).tolist()))
    sizes = (lines[:, 1] - lines[:, 0])[~is_refused]
    builder.add_plain(documents, sizes, [*refused], plain_record)


def has_plain_names(source: SourceConfig) -> bool:
    """Return whether documents of a source depend on keys as they are spelled, and on these alone.

    A filter looks into values, HTML and messages are parsed, fields that are not wanted are left
    out, and a name may need escapes, be a path or have two roles.
    """
    is_read_whole = source.field_filter or source.html != "keep" or source.columns
    if is_read_whole or source.kind == "chat":
        return False
    names = [name for name in names_of(source) if name]
    is_spelled = all(name.isprintable() and not {*name} & {'"', "\\", "."} for name in names)
    return is_spelled and len({*names}) == len(names)


def names_of(source: SourceConfig) -> tuple[str, ...]:
    """Return the key of each of COLUMNS, "" for none."""
    id_field = source.id_field or ""
    return source.text_field, id_field, source.lang_field, source.license_field, "url", ""


def split_run(run: LineRun, source: SourceConfig) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Return the lines of a run (start, stop, kind), and the documents of the plain ones."""
    from assets.raw.kernels.json_lines import NUM_COLUMNS, split_json_lines
    from assets.raw.kernels.json_values import PADDING

    names = [name.encode() for name in names_of(source)]
    ends_of_names = np.cumsum([*map(len, names)], dtype=np.uint64)
    most_lines = run.num_newlines + 1
    ends = np.zeros((NUM_COLUMNS, most_lines + 1), np.uint64)
    lines = np.empty((most_lines, 3), np.uint64)
    with _buffers(NUM_COLUMNS + 1, len(run.data) + 1 + 2 * PADDING) as buffers:
        data, columns = buffers[0], buffers[1:]
        num_bytes = _fill(data, _refuse_invalid(_without_commas(run.data)))
        num_lines, num_plain = split_json_lines(
            data,
            (np.uint64(num_bytes), np.uint64(source.max_record_bytes)),
            (np.frombuffer(b"".join(names), np.uint8), ends_of_names),
            columns,
            ends,
            lines,
        )
        spans = lines[:num_lines].astype(np.int64)
        offsets = ends[:, : num_plain + 1].astype(np.int64)
        texts = map(_strings, columns, offsets)
        documents = dict(zip(COLUMNS, texts, strict=True))
    declared = {"text": "", "lang": source.declared_language, "license": source.license}
    for name, value in declared.items():
        if value is not None and documents[name].null_count():  # an expression waits for threads
            documents[name] = documents[name].fill_null(value)
    documents["row"] = pl.Series(spans[spans[:, 2] != REFUSED, 0] + run.offset)
    return _respell(spans, pl.DataFrame(documents))


@contextmanager
def _buffers(num_rows: int, num_bytes: int) -> Iterator[Buffers]:
    """Lend buffers to a thread: new ones for each run cost as much as its reading."""
    try:
        buffers = _idle.pop()
    except IndexError:
        buffers = np.empty((num_rows, 0), np.uint8)
    if buffers.shape[1] < num_bytes:
        buffers = np.empty((num_rows, num_bytes), np.uint8)
    yield buffers
    if num_bytes <= 2 * RUN_BYTES:
        _idle.append(buffers)


def _fill(buffer: NDArray[np.uint8], lines: bytes) -> int:
    """Write lines, the last one with its newline; return their bytes."""
    buffer[: len(lines)] = np.frombuffer(lines, np.uint8)
    if lines.endswith(b"\n"):
        return len(lines)
    buffer[len(lines)] = ord("\n")
    return len(lines) + 1


def _without_commas(data: bytes) -> bytes:
    """Return lines with spaces for the commas behind objects, if the first lines end in some."""
    is_array = b"},\n" in data[: data.find(b"\n", data.find(b"\n") + 1) + 1]
    return data.replace(b"},\n", b"} \n") if is_array else data


def _refuse_invalid(data: bytes) -> bytes:
    """Return the lines, those that are not UTF-8 with a first byte that the kernel refuses."""
    whole = [None, pa.py_buffer(np.array([0, len(data)])), pa.py_buffer(data)]
    try:
        pa.Array.from_buffers(pa.large_string(), 1, whole).validate(full=True)
    except pa.ArrowInvalid:
        return b"\n".join(map(_refused_if_invalid, data.split(b"\n")))
    return data


def _refused_if_invalid(line: bytes) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        return b"\xff" + line[1:]
    return line


def _strings(column: NDArray[np.uint8], ends: NDArray[np.int64]) -> pl.Series:
    """Return a column of texts from a copy of the bytes; empty ones are null."""
    validity = np.packbits(np.diff(ends) > 0, bitorder="little")
    buffers = [pa.py_buffer(each) for each in (validity, ends, column[: ends[-1]].copy())]
    array: Any = pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)
    return pl.Series(array)


def _respell(
    lines: NDArray[np.int64], documents: pl.DataFrame
) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Encode `meta` again in RESPELLED lines; one whose `meta` cannot be decoded is refused."""
    numbers = np.flatnonzero(lines[:, 2] != REFUSED)
    respelled = np.flatnonzero(lines[numbers, 2] == RESPELLED)
    if not len(respelled):
        return lines, documents
    meta = documents["meta"].to_list()
    for index in respelled.tolist():
        try:
            meta[index] = ENCODE(DECODE_OBJECT(meta[index])).decode()
            lines[numbers[index], 2] = PLAIN
        except (msgspec.DecodeError, UnicodeError):
            lines[numbers[index], 2] = REFUSED
    documents = documents.with_columns(meta=pl.Series(meta, dtype=pl.String()))
    return lines, documents.filter(lines[numbers, 2] == PLAIN)
