"""Tabular formats: CSV, TSV and Parquet.

CSV goes through the csv module (RFC 4180: quoted fields may hold newlines), which is slow but names
each broken row instead of failing the file. Parquet rows are taken as Python objects, 1,024 at a
time. Price on one core, MB/s of text: CSV 26 (short lines cost most), Parquet 140.
"""

import csv
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from assets.transforms.entries import Entry, as_json
from assets.transforms.raw import SourceConfig
from resources.decompress import BOMB_BYTES, BOMB_RATIO, BrokenStream, read_blocks
from resources.inputs import InputFile
from resources.read_lines import BOM, Line, split_lines

ROWS_AT_A_TIME = 1024


class _CsvLines:
    """Lines as the csv module reads them; keeps the unusable ones and those of the current row."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.faults: list[Line] = []
        self.row: list[bytes] = []

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            if line.error:
                self.faults.append(line)
                continue
            data = line.data.removeprefix(BOM) if line.offset == 0 else line.data
            self.row.append(data + b"\n")
            yield self.row[-1].decode("utf-8", "surrogateescape")


def read_csv(file: InputFile, source: SourceConfig) -> Iterator[Entry]:
    """Entries of the rows below the header, numbered from 0; blank lines are not counted."""
    csv.field_size_limit(source.max_record_bytes)  # process-wide in the csv module; default 128 KiB
    blocks = read_blocks(file.path, file.compression)
    lines = _CsvLines(split_lines(blocks, 0, source.max_record_bytes))
    rows = csv.reader(lines, delimiter="\t" if file.format == "tsv" else ",", strict=True)
    header, number = list[str](), 0
    while True:
        values, error = _next_row(rows, header, source.text_field)
        for fault in lines.faults:
            yield Entry(number, None, fault.data, fault.error)
            number += 1
        if error:
            yield Entry(number, None, b"".join(lines.row), error)
        elif header and values:
            yield Entry(number, dict(zip(header, values, strict=True)))
        if values is None or (error and not header):
            return
        number += bool(error or (header and values))
        header = header or values
        lines.faults, lines.row = [], []


def _next_row(
    rows: Iterator[list[str]], header: list[str], text_field: str
) -> tuple[list[str] | None, str]:
    try:
        values = next(rows, None)
    except csv.Error as error:
        return [], f"CSV is broken: {error}"
    return values, _row_error(values or [], header, text_field)


def _row_error(values: list[str], header: list[str], text_field: str) -> str:
    if header:
        is_whole = not values or len(values) == len(header)
        return "" if is_whole else f"row has {len(values)} fields, the header has {len(header)}"
    return "" if not values or text_field in values else _no_text_column(text_field, values)


def _no_text_column(text_field: str, columns: list[str]) -> str:
    return (
        f"no column `{text_field}`; columns: {', '.join(columns[:50])}. "
        "Name the column with the text in `text_field`."
    )


def read_parquet(
    file: InputFile, source: SourceConfig, groups: tuple[int, int] | None
) -> Iterator[Entry]:
    """Entries of the row groups [first, last), or of all; numbered by the row in the whole file."""
    try:
        table = pq.ParquetFile(_parquet_bytes(file))
    except BrokenStream as error:
        yield Entry(0, None, b"", str(error))
        return
    except (pa.ArrowException, OSError) as error:
        yield Entry(0, None, _tail(file), f"Parquet file cannot be opened: {error}")
        return
    first, last = groups or (0, table.num_row_groups)
    if source.text_field not in table.schema_arrow.names:
        if first == 0:
            yield Entry(0, None, b"", _no_text_column(source.text_field, table.schema_arrow.names))
        return
    row = sum(table.metadata.row_group(group).num_rows for group in range(first))
    for group in range(first, last):
        yield from _read_row_group(table, group, row)
        row += table.metadata.row_group(group).num_rows


def _parquet_bytes(file: InputFile) -> str | pa.BufferReader:
    if file.compression is None:
        return str(file.path)
    data = bytearray()
    for block in read_blocks(file.path, file.compression):
        data += block
        if len(data) > BOMB_BYTES:
            raise BrokenStream(
                f"a compressed Parquet file must be held whole and is above {BOMB_BYTES:,} bytes; "
                "unpack it (Parquet compresses inside)"
            )
    return pa.BufferReader(bytes(data))


def _tail(file: InputFile) -> bytes:
    with file.path.open("rb") as stream:
        stream.seek(max(file.bytes - 64, 0))
        return stream.read()


def _read_row_group(table: pq.ParquetFile, group: int, row: int) -> Iterator[Entry]:
    metadata = table.metadata.row_group(group)
    stored = sum(
        metadata.column(index).total_compressed_size for index in range(metadata.num_columns)
    )
    num_bytes = 0
    try:
        for batch in table.iter_batches(ROWS_AT_A_TIME, row_groups=[group], use_threads=False):
            num_bytes += batch.nbytes
            if num_bytes > max(BOMB_BYTES, BOMB_RATIO * stored):
                yield Entry(row, None, b"", f"decompression bomb: {stored:,} bytes of Parquet")
                return
            yield from _batch_entries(batch, row)
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        yield Entry(row, None, b"", f"Parquet row group {group} is broken: {error}")


def _batch_entries(batch: pa.RecordBatch, row: int) -> Iterator[Entry]:
    try:
        for offset, fields in enumerate(batch.to_pylist()):
            yield Entry(row + offset, fields)
    except UnicodeDecodeError as error:  # one bad string spoils a batch: find it by halves
        if batch.num_rows == 1:
            error_text = f"not valid UTF-8: {error.reason}"
            yield Entry(row, None, as_json(_readable_cells(batch)), error_text)
            return
        half = batch.num_rows // 2
        yield from _batch_entries(batch.slice(0, half), row)
        yield from _batch_entries(batch.slice(half), row + half)


def _readable_cells(batch: pa.RecordBatch) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            cells[name] = column[0].as_py()
        except UnicodeDecodeError as error:
            cells[name] = error.object.decode("utf-8", "backslashreplace")
    return cells
