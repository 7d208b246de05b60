"""Tabular formats: CSV, TSV and Parquet.

CSV goes through the csv module (RFC 4180: quoted fields may hold newlines), which is slow but names
each broken row instead of failing the file. Parquet rows are converted to Python objects 1,024 at a
time, or one by one if that fails for a value.
"""

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Iterator
from functools import partial
from itertools import chain, count

import pyarrow as pa
import pyarrow.parquet as pq

from assets.raw.readers.borders import KernelRecords, text_borders
from assets.raw.readers.decompress import (
    BOMB_BYTES,
    BOMB_RATIO,
    BrokenStream,
    FileFault,
    file_head,
    raise_unless_of_content,
    read_blocks,
)
from assets.raw.readers.file_content import foreign_content
from assets.raw.readers.format import Format
from assets.raw.readers.input_file import WHOLE, WHOLE_FILE, Border, InputFile, Slice
from assets.raw.readers.input_record import InputRecord, as_json, has_field
from assets.raw.readers.open_input import WINDOW_BYTES, open_arrow, open_columns, open_input
from assets.raw.readers.read_lines import Line, read_lines
from resources.settings.sources import SourceConfig

ROWS_AT_A_TIME = 1024
MOST_PARTS = 2  # of part_bytes in a slice that is read in one piece
PAGE_BYTES = 1 << 20  # of a column that are read at a time
SEPARATORS = {"csv": ",", "tsv": "\t"}
OTHER_SEPARATORS = ";|\t,^~\x01"
UNREADABLE = (ValueError, OverflowError, KeyError, TypeError, pa.ArrowException)


csv.field_size_limit(2**31 - 1)  # process-wide: one value for all threads; _CsvLines bounds rows


class _LineFault(ValueError):
    """A line or row that must not reach the csv module."""


class _CsvLines:
    """Physical lines for the csv module, with a way back to the second line of a failed row.

    Memory: twice `max_bytes`, the bound of a row's lines together.
    """

    def __init__(self, lines: Iterator[Line], max_bytes: int) -> None:
        self._lines = lines
        self._max_bytes = max_bytes
        self._again = io.BytesIO()
        self._fault: Line | None = None
        self._num_lines = 0
        self.start_row()

    def start_row(self) -> None:
        self.row = bytearray()
        self.line = self._num_lines + 1
        self._has_new_lines = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        data = self._again.readline() or self._new_line()
        self._num_lines += 1
        self.row += data
        if len(self.row) > self._max_bytes + 1:
            raise _LineFault(f"row is above max_record_bytes={self._max_bytes:,}")
        return data.decode("utf-8", "surrogateescape")

    def _new_line(self) -> bytes:
        line = self._fault or next(self._lines)
        self._has_new_lines = True
        if not line.error:
            return (line.data.removeprefix(BOM_UTF8) if line.offset == 0 else line.data) + b"\n"
        self._fault = line if self.row else None
        self.row = self.row or bytearray(line.data)
        raise _LineFault(line.error)

    def step_back(self) -> None:
        """Cut the failed row to its first line; the lines behind it are read again."""
        end = self.row.find(b"\n") + 1 or len(self.row)
        if self._has_new_lines:
            self._again = io.BytesIO(self.row[end:])
        else:
            self._again.seek(end - len(self.row), io.SEEK_CUR)
        del self.row[end:]
        self._num_lines = self.line


def read_csv(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield records of the rows below the header, numbered from 0; blank lines are not counted.

    A row that breaks the rules of quoting, or is too large, costs its first line: reading goes on
    with the second one. Columns of the same name are renamed `name_2`, `name_3` after the first; a
    file with more than one text field is refused. With `column_names` all rows are records.
    """
    header = [*(source.column_names or ())]
    if not header and cut.span.first.offset:
        header = read_header(file, source) or []
    lines = _CsvLines(read_lines(file, source, cut.span), source.max_record_bytes)
    number = cut.span.first.row
    for values, fault in _csv_rows(lines, file, source):
        error = fault or _row_error(values, header, source)
        if error:
            yield InputRecord(number, None, bytes(lines.row), error, lines.line)
            number += 1
            if not header:
                return
        elif header and values:
            fields = dict(zip(header, values, strict=True))
            yield InputRecord(number, fields, line=lines.line)
            number += 1
        header = header or _distinct(values)


def read_header(file: InputFile, source: SourceConfig) -> list[str] | None:
    """Return the names of a table's columns; None if it has no rows that can be read."""
    lines = _CsvLines(read_lines(file, source, WHOLE), source.max_record_bytes)
    for values, fault in _csv_rows(lines, file, source):
        if fault or _row_error(values, [], source):
            return None
        if values:
            return _distinct(values)
    return None


def _csv_rows(
    lines: _CsvLines, file: InputFile, source: SourceConfig
) -> Iterator[tuple[list[str], str]]:
    is_broken, separator = True, source.separator or SEPARATORS[file.format]
    is_quoted = source.quoting == "standard"
    while is_broken:
        is_broken = False
        try:
            for values in csv.reader(
                lines,
                delimiter=separator,
                quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
                strict=True,
            ):
                yield values, ""
                lines.start_row()
        except (csv.Error, _LineFault) as error:
            is_broken = True
            lines.step_back()
            is_csv = isinstance(error, csv.Error)
            yield [], f"CSV is broken: {error}" if is_csv else error.args[0]
            lines.start_row()


def _distinct(names: list[str]) -> list[str]:
    distinct: dict[str, None] = {}
    for name in names:
        renamed = (f"{name}_{number}" for number in count(2) if f"{name}_{number}" not in names)
        distinct[next(new for new in chain([name], renamed) if new not in distinct)] = None
    return list(distinct)


def _row_error(values: list[str], header: list[str], source: SourceConfig) -> str:
    text_field = source.text_field
    if header:
        is_whole = not values or len(values) == len(header)
        named = "column_names" if source.column_names else "the header"
        return "" if is_whole else f"row has {len(values)} fields, {named} has {len(header)}"
    if values.count(text_field) > 1:
        return f"{values.count(text_field)} columns are named `{text_field}`; rename all but one"
    return "" if not values or has_field(values, text_field) else no_text_column(text_field, values)


def no_text_column(text_field: str, columns: list[str]) -> str:
    """Say that a table has no column of the text."""
    if len(columns) == 1 and any(each in columns[0] for each in OTHER_SEPARATORS):
        return (
            f"no column `{text_field}`; columns: {columns[0]}. As it seems, this is one column: "
            "set `separator` to the character between its fields"
        )
    return (
        f"no column `{text_field}`; columns: {', '.join(columns[:50])}. "
        "Name the column with the text in `text_field`."
    )


def parquet_metadata(file: InputFile) -> pq.FileMetaData:
    """Read the end of a Parquet file."""
    with open_columns(file) as stream:
        return pq.read_metadata(stream)


def read_parquet(
    file: InputFile, source: SourceConfig, cut: Slice = WHOLE_FILE
) -> Iterator[InputRecord]:
    """Yield records of row groups [start, stop), or of all, numbered by the row in the file."""
    groups = None if cut.unit == "stream" else (cut.start, cut.stop)
    try:
        table = _open_table(file, groups, source, pages=cut.unit == "row_group")
    except BrokenStream as error:
        yield InputRecord(0, None, error.head or file_head(file), error.reason)
        return
    except (pa.ArrowException, OSError) as error:
        raise_unless_of_content(error, file.bytes)
        reason = foreign_content(file_head(file), None, file.format) or error
        error_text = FileFault(f"Parquet file cannot be opened: {reason}")
        with open_input(file) as stream:
            stream.seek(max(file.bytes - 64, 0))
            yield InputRecord(0, None, stream.read(), error_text)
        return
    first, last = groups or (0, table.num_row_groups)
    if not has_field(table.schema_arrow.names, source.text_field):
        if first == 0:
            yield InputRecord(
                0, None, b"", no_text_column(source.text_field, table.schema_arrow.names)
            )
        return
    row = sum(table.metadata.row_group(group).num_rows for group in range(first))
    for group in range(first, last):
        yield from _read_row_group(table, group, row, file, source.read_columns)
        row += table.metadata.row_group(group).num_rows


def _open_table(
    file: InputFile, groups: tuple[int, int] | None, source: SourceConfig, pages: bool
) -> pq.ParquetFile:
    """Open a table; with `pages`, its columns are read page by page, not as a whole."""
    if pages:
        size = WINDOW_BYTES if file.is_remote else PAGE_BYTES
        return pq.ParquetFile(open_columns(file), buffer_size=size, pre_buffer=False)
    if source.columns and file.compression is None:
        return pq.ParquetFile(open_columns(file))
    if groups is None or not file.is_remote:
        return pq.ParquetFile(_parquet_bytes(file))
    metadata = parquet_metadata(file)
    _, stop = group_bytes(metadata, groups[1] - 1)
    return pq.ParquetFile(open_arrow(file, stop), metadata=metadata)


def group_bytes(metadata: pq.FileMetaData, group: int) -> tuple[int, int]:
    """Return the range of bytes that a row group is in."""
    columns = [metadata.row_group(group).column(i) for i in range(metadata.num_columns)]
    starts = [column.dictionary_page_offset or column.data_page_offset for column in columns]
    return min(starts), min(starts) + sum(column.total_compressed_size for column in columns)


def _parquet_bytes(file: InputFile) -> pa.NativeFile:
    if file.compression is None:
        return open_arrow(file)
    data = bytearray()
    for block in read_blocks(file):
        data += block
        if len(data) > BOMB_BYTES:
            raise BrokenStream(
                f"a compressed Parquet file must be held whole and is above {BOMB_BYTES:,} bytes; "
                "unpack it (Parquet compresses inside)"
            )
    return pa.BufferReader(bytes(data))


def _read_row_group(
    table: pq.ParquetFile,
    group: int,
    row: int,
    file: InputFile,
    wanted: tuple[str, ...] | None,
) -> Iterator[InputRecord]:
    metadata = table.metadata.row_group(group)
    stored = sum(
        metadata.column(index).total_compressed_size for index in range(metadata.num_columns)
    )
    num_bytes = 0
    try:
        batches = table.iter_batches(
            ROWS_AT_A_TIME, row_groups=[group], columns=wanted, use_threads=False
        )
        for batch in batches:
            num_bytes += batch.nbytes
            if num_bytes > max(BOMB_BYTES, BOMB_RATIO * stored):
                error_text = f"decompression bomb: {stored:,} bytes of Parquet"
                yield InputRecord(row, None, file_head(file), error_text)
                return
            yield from batch_records(batch, row)
            row += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise_unless_of_content(error, file.bytes)
        error_text = f"Parquet row group {group} is broken: {error}"
        yield InputRecord(row, None, file_head(file), error_text)


def batch_records(batch: pa.RecordBatch, row: int) -> Iterator[InputRecord]:
    """Yield the records of a batch, the first of which is `row`."""
    try:
        rows = batch.cast(pa.schema(map(_in_microseconds, batch.schema))).to_pylist()
    except UNREADABLE as error:
        raise_unless_of_content(error)
        for index in range(batch.num_rows):
            yield _row_record(batch.slice(index, 1), row + index)
        return
    for offset, fields in enumerate(rows):
        yield InputRecord(row + offset, fields)


def _row_record(batch: pa.RecordBatch, row: int) -> InputRecord:
    cells, errors = dict[str, object](), list[str]()
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            cells[name] = _cell(column)
        except UnicodeDecodeError as error:
            cells[name] = error.object.decode("utf-8", "backslashreplace")
            errors.append(f"not valid UTF-8: {error.reason}")
        except UNREADABLE as error:
            raise_unless_of_content(error)
            cells[name] = None
            errors.append(f"column `{name}` ({column.type}) cannot be read: {error}")
    return InputRecord(row, None, as_json(cells), errors[0]) if errors else InputRecord(row, cells)


def _in_microseconds(field: pa.Field) -> pa.Field:
    """Return the field with times in microseconds.

    Arrow converts nanoseconds to pandas objects if pandas is installed, which must not change a
    value's text. Casting a value between two microseconds raises ArrowInvalid.
    """
    dtype = field.type
    if dtype == pa.time64("ns"):
        dtype = pa.time64("us")
    elif dtype == pa.duration("ns"):
        dtype = pa.duration("us")
    elif pa.types.is_timestamp(dtype) and dtype.unit == "ns":
        dtype = pa.timestamp("us", dtype.tz)
    elif pa.types.is_struct(dtype):
        dtype = pa.struct([_in_microseconds(child) for child in dtype])
    elif pa.types.is_list(dtype):
        dtype = pa.list_(_in_microseconds(dtype.value_field))
    return field.with_type(dtype)


def _cell(column: pa.Array) -> object:
    """Return the value of a column of one row; a time beyond Python's range as Arrow's text."""
    try:
        return column.cast(_in_microseconds(pa.field("", column.type)).type)[0].as_py()
    except UnicodeDecodeError:
        raise
    except UNREADABLE:
        if not pa.types.is_temporal(column.type):
            raise
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))  # the zone may be unknown here
    text = str(column.cast(pa.string())[0].as_py())
    return text.replace(" ", "T", 1) if pa.types.is_timestamp(column.type) else text


def _csv_borders(file: InputFile, source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    from assets.raw.kernels.record_starts import next_csv_row

    if source.column_names is None and read_header(file, source) is None:
        raise BrokenStream("no header that can be read")
    separator = source.separator or SEPARATORS[file.format]
    rules = (source.max_record_bytes, ord(separator), source.quoting == "standard")
    rows = KernelRecords(
        partial(next_csv_row, rules), BOM_UTF8, counts_one_more=source.column_names is None
    )
    return text_borders(file, rows, part_bytes)


def _row_group_borders(file: InputFile, _source: SourceConfig, part_bytes: int) -> Iterator[Border]:
    """Yield the row groups, as offsets, at which a Parquet file is cut; a large one is alone."""
    try:
        metadata = parquet_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise_unless_of_content(error, file.bytes)
        raise BrokenStream(str(error)) from error  # reading it as a stream quarantines the reason
    size, cut = 0, 0  # unpacked bytes before the group, and before the last border
    for group in range(metadata.num_row_groups):
        group_size = metadata.row_group(group).total_byte_size
        if size > cut and (size - cut >= part_bytes or group_size > MOST_PARTS * part_bytes):
            cut = size
            yield Border(size, 0, group, 0, 0)
        size += group_size
    yield Border(size, 0, metadata.num_row_groups, 0, 0)


CSV, TSV = (
    Format(
        name,
        (f".{name}",),
        read_csv,
        borders=_csv_borders,
        is_cuttable=lambda *_: True,
    )
    for name in SEPARATORS
)
PARQUET = Format(
    "parquet",
    (".parquet",),
    read_parquet,
    unit="row",
    borders=_row_group_borders,
    is_cuttable=lambda file, _: file.compression is None,
    slices="row_groups",
    index="last",
    columns=lambda file: list(parquet_metadata(file).schema.to_arrow_schema().names),
    is_member=False,
    is_packed=True,
)
