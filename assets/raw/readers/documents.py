"""One document table from the records of any format, with quarantine.

Every input format (JSON lines, Parquet, CSV, WARC, ...) ends in the same nine columns. A record
that is no document goes to quarantine with its position, a reason and its bytes. Nothing is dropped
in silence: rows_in == documents + quarantine + skipped_by_filter + left_out, always. `rows_in`
counts what comes in, and is not a sum of the others: the check on conservation compares them.

Price: 100 bytes of memory per record where `id_field` is set.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.raw.readers.archive_names import FIELD_FILTER
from assets.raw.readers.decompress import FileFault
from assets.raw.readers.input_record import (
    RAW_LIMIT_BYTES,
    InputRecord,
    Patch,
    as_json,
    checked_size,
    document_columns,
    encode_error,
    matches_filter,
    parse_record,
    position_row,
    position_text,
    shown_digest,
)
from assets.raw.readers.next_steps import next_step
from assets.text.table_rows import count_bytes
from resources.settings.sources import SourceConfig

DOCUMENT_SCHEMA: dict[str, pl.DataType] = {
    "doc_id": pl.String(),
    "text": pl.String(),
    "source": pl.String(),
    "origin": pl.Struct({"file": pl.String(), "row": pl.Int64()}),
    "id": pl.String(),
    "url": pl.String(),
    "lang": pl.String(),
    "license": pl.String(),
    "meta": pl.String(),
}
QUARANTINE_SCHEMA: dict[str, pl.DataType] = {
    "source": pl.String(),
    "file": pl.String(),
    "position": pl.String(),
    "line": pl.Int64(),
    "error": pl.String(),
    "next_step": pl.String(),
    "raw": pl.Binary(),
}
NO_DOCUMENTS = pl.DataFrame(schema=DOCUMENT_SCHEMA)
NO_QUARANTINE = pl.DataFrame(schema=QUARANTINE_SCHEMA)
MOST_UNREAD = 5  # names of a part; its container is told from the counts
FRAME_BYTES = 4 << 20  # small runs of Python strings take 2/3 of the memory on their way to Arrow


@dataclass
class Chunk:
    """Documents and quarantine of a bounded run of records; the counts add up to `rows_in`.

    `files` are the names of the files that they are from; `faults` the error that ended the reading
    of a file in this run, if any; `left_out` counts records of containers by reason. `containers`
    are the outcomes of the records of each container, `unread` the first members of archives that
    the user should know of, with the reason; `patched` the names of the patches that were used.
    """

    documents: pl.DataFrame
    quarantine: pl.DataFrame
    rows_in: int = 0
    skipped_by_filter: int = 0
    files: tuple[str, ...] = ()
    faults: dict[str, FileFault] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    containers: dict[str, Counter[str]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    num_unread: int = 0
    patched: tuple[str, ...] = ()


def document_id(source: str, file: str, row: int) -> str:
    """Return xxh3_128 of (source, file name, row), 32 hex characters.

    The id does not depend on the slices that a file is read in.
    """
    return document_ids(source, file, [row])[0]


def document_ids(source: str, file: str, rows: Iterable[int]) -> list[str]:
    """Return the document_id of each row."""
    digest, start = xxhash.xxh3_128_hexdigest, f"{source}\0{file}\0".encode()
    return [digest(b"%b%d" % (start, row)) for row in rows]


class DocumentBuilder:
    """Collector of the records of files; `take` returns them as a Chunk and starts the next.

    The first of the records of a file that share an id stays, over all chunks of the builder. It
    asks for no more records once it has `most_documents`, over all chunks too. Where a record has a
    patch, that is added instead of going to quarantine.
    """

    def __init__(
        self,
        least_bytes: int = 0,
        most_documents: int | None = None,
        patches: Iterable[Patch] = (),
    ) -> None:
        self._least_bytes = least_bytes
        self._num_wanted = most_documents
        self._num_taken = 0
        self._patches = {patch.key: patch for patch in patches}
        self._units: dict[str, str] = {}
        self._start()

    def start_file(
        self,
        source: SourceConfig,
        name: str,
        unit: str,
        lines_before: Callable[[], int | None] = int,
        is_container: bool = False,
    ) -> None:
        """Go on with the records of a file; those of containers are counted by file.

        `lines_before` counts its lines before the slice, None if that costs too much, and is called
        for records in quarantine only.
        """
        self._source, self._file, self._unit = source, name, unit
        self._lines_before, self._is_container = lines_before, is_container
        self._units[name] = unit
        self._id_start = f"{self._source.name}\0{name}\0".encode()
        self._seen_ids: set[int] = set()
        self._chunk.files += (name,)
        self.num_bytes = 0

    def _start(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._frame_rows = self._frame_bytes = self._num_counted = 0  # of frames; bytes of texts
        self._documents: list[tuple[str | None, ...]] = []
        self._places: list[tuple[str, str, int]] = []  # id, file and row of each
        self._rejected: list[tuple[str, str, int | None, str, str, bytes]] = []
        self._chunk = Chunk(NO_DOCUMENTS, NO_QUARANTINE)
        self._is_mixed = False
        self._pending_bytes = 0
        self._cut_bytes = 0
        self.num_bytes = 0  # since the start of the file, or the last cut

    def add(self, record: InputRecord) -> None:
        """Add one record to the documents, the quarantine or the number of skipped records."""
        self._chunk.rows_in += 1
        outcome = self._sort(record)
        if self._is_container:
            self._chunk.containers.setdefault(self._file, Counter())[outcome] += 1

    def _sort(self, record: InputRecord) -> str:
        """Add a record where it belongs, and return what has become of it."""
        if record.left_out:
            return self._leave_out(record)
        if record.fields is None:
            return self._reject(record, record.error)
        if self._source.field_filter and not matches_filter(
            record.fields, self._source.field_filter
        ):
            self._chunk.skipped_by_filter += 1
            return FIELD_FILTER
        fields, wanted = record.fields, self._source.read_columns
        if wanted:
            fields = {key: value for key, value in fields.items() if key in wanted}
        try:
            num_bytes = checked_size(record, self._source.max_record_bytes)
            document = document_columns(fields, self._source)
            self._check_id(document[1])
        except UnicodeEncodeError as error:
            return self._reject(record, encode_error(error))
        except ValueError as error:
            return self._reject(record, str(error))
        self._documents.append(document)
        record_id = xxhash.xxh3_128_hexdigest(b"%b%d" % (self._id_start, record.row))
        self._places.append((record_id, self._file, record.row))
        self.num_bytes += num_bytes
        self._pending_bytes += num_bytes
        if self._pending_bytes >= FRAME_BYTES:
            self._flush()
        return "documents"

    def _leave_out(self, record: InputRecord) -> str:
        self._chunk.left_out[record.left_out] += 1
        if record.raw is not None:
            self._chunk.num_unread += 1
            if len(self._chunk.unread) < MOST_UNREAD:
                name = record.raw[:RAW_LIMIT_BYTES].decode("utf-8", "backslashreplace")
                self._chunk.unread[f"{self._file}: {name}"] = record.left_out
        return record.left_out

    def add_plain(
        self,
        documents: pl.DataFrame,
        sizes: NDArray[np.int64],
        others: Sequence[InputRecord],
        record_of: Callable[[int], InputRecord | None],
    ) -> None:
        """Add documents of plain lines with the other records of these lines.

        `documents` have a column `row`; `sizes` are the bytes of their records, which `record_of`
        returns where the id of one was seen before. All are in the order of the file.
        """
        self._flush()
        self._chunk.rows_in += len(documents)
        if self._source.id_field:
            is_kept = self._add_in_order(documents, others, record_of)
            if not is_kept.all():  # to filter waits for Polars' threads
                documents, sizes = documents.filter(is_kept), sizes[is_kept.to_numpy()]
        else:
            for record in others:
                self.add(record)
        self._flush()
        self._is_mixed = self._is_mixed or bool(others)
        rows = documents["row"].to_list()
        ids = document_ids(self._source.name, self._file, rows)
        files = pl.Series("file", [self._file], pl.String()).new_from_index(0, len(rows))
        self._add_frame(self._with_origin(documents, pl.Series(ids, dtype=pl.String()), files))
        self.num_bytes += int(sizes.sum())

    def _add_in_order(
        self,
        documents: pl.DataFrame,
        others: Sequence[InputRecord],
        record_of: Callable[[int], InputRecord | None],
    ) -> pl.Series:
        """Add the other records, and return which documents stay: the first of an id does."""
        before = np.searchsorted(documents["row"], [record.row for record in others])
        waiting = deque(zip(before, others, strict=True))
        is_kept = list[bool]()
        for index, record_id in enumerate(documents["id"]):
            while waiting and waiting[0][0] <= index:
                self.add(waiting.popleft()[1])
            try:
                self._check_id(record_id)
                is_kept.append(True)
            except ValueError as error:
                is_kept.append(False)
                if (record := record_of(index)) is not None:
                    self._reject(record, str(error))
        for _, record in waiting:
            self.add(record)
        return pl.Series(is_kept, dtype=pl.Boolean())

    def _check_id(self, record_id: str | None) -> None:
        if record_id is None:
            return
        digest = xxhash.xxh3_64_intdigest(record_id.encode())
        if digest in self._seen_ids:
            raise ValueError(
                f"id {record_id[:200]!r} was seen before in this slice; the first stays"
            )
        self._seen_ids.add(digest)

    def _reject(self, record: InputRecord, error: str) -> str:
        raw = as_json(record.fields) if record.raw is None else record.raw
        if (patch := self._patch_for(record, raw)) and not isinstance(error, FileFault):
            return self._sort(parse_record(record.row, patch.record.encode(), record.line))
        position = position_text(self._unit, record.row)
        reason = error.encode("utf-8", "backslashreplace").decode()  # may quote bad column names
        before = self._lines_before() if record.line else None
        line = None if before is None else before + (record.line or 0)
        step = next_step(reason)
        shown = bytes(raw[:RAW_LIMIT_BYTES])
        self._rejected.append((self._file, position, line, reason, step, shown))
        if isinstance(error, FileFault):
            self._chunk.faults[self._file] = error
        self.num_bytes += min(len(raw), RAW_LIMIT_BYTES)
        return "quarantine"

    def _patch_for(self, record: InputRecord, raw: bytes) -> Patch | None:
        """Take the patch of a record: none is used twice, so that no two replace each other."""
        if not self._patches:
            return None
        patch = self._patches.pop((self._file, record.row, shown_digest(raw)), None)
        self._chunk.patched += (patch.name,) if patch else ()
        return patch

    def _follow_moved(self) -> bool:
        """Let patches that are left replace records with their bytes, at other places of a file.

        Returns whether one did: its record may be bad itself, and have a patch.
        """
        waiting: dict[tuple[str, str], deque[Patch]] = {}
        for patch in sorted(self._patches.values(), key=lambda patch: patch.row):
            waiting.setdefault((patch.file, patch.replaced), deque()).append(patch)
        rejected, self._rejected, num_before = self._rejected, [], len(self._patches)
        last = self._file, self._id_start, self._unit
        for each in rejected:
            file, position, _, error, _, shown = each
            found = waiting.get((file, shown_digest(shown)))
            row = position_row(position)
            if not found or row is None or self._chunk.faults.get(file) == error:
                self._rejected.append(each)
                continue
            patch = self._patches.pop(found.popleft().key)
            self._chunk.patched += (patch.name,)
            self._file, self._id_start = file, f"{self._source.name}\0{file}\0".encode()
            self._unit = self._units[file]
            outcome = self._sort(parse_record(row, patch.record.encode()))
            if outcomes := self._chunk.containers.get(file):
                outcomes["quarantine"] -= 1
                outcomes[outcome] += 1
            self._is_mixed = True
        self._file, self._id_start, self._unit = last
        return len(self._patches) < num_before

    def cut(self) -> Iterator[Chunk]:
        """Yield a chunk of the records so far if they are enough, within a file."""
        yield from self.end_file()
        self._chunk.files = self._chunk.files or (self._file,)

    def end_file(self) -> Iterator[Chunk]:
        """Yield a chunk of the records so far if they are enough, behind a file."""
        self._cut_bytes += self.num_bytes
        self.num_bytes = 0
        if self._cut_bytes >= self._least_bytes:
            yield self.take()

    def has_files(self) -> bool:
        """Return whether files were added since the last chunk."""
        return bool(self._chunk.files)

    def is_full(self) -> bool:
        """Return whether there are as many documents as are wanted."""
        if self._num_wanted is None:
            return False
        num_waiting = self._frame_rows + len(self._documents)
        return self._num_taken + num_waiting >= self._num_wanted

    def take(self) -> Chunk:
        """Return the records added since the last call, in the order of reading.

        Of several files that is the order of their names.
        """
        while self._patches and self._rejected and self._follow_moved():
            pass
        self._flush()
        documents = pl.concat(self._frames)
        if self._is_mixed:
            origin = pl.col("origin").struct
            documents = documents.sort(origin.field("file"), origin.field("row"))
        self._num_taken += len(documents)
        chunk = self._chunk
        chunk.documents = documents.rechunk()
        if self._rejected:
            rows = [(self._source.name, *rejected) for rejected in self._rejected]
            chunk.quarantine = pl.DataFrame(rows, schema=QUARANTINE_SCHEMA, orient="row")
        self._start()
        return chunk

    def text_bytes(self) -> int:
        """Return the size of the texts added since the last chunk."""
        self._flush()
        for frame in self._frames[self._num_counted :]:  # each once, however often it is asked
            self._frame_bytes += count_bytes(frame["text"])
        self._num_counted = len(self._frames)
        return self._frame_bytes

    def _add_frame(self, frame: pl.DataFrame) -> None:
        self._frames.append(frame)
        self._frame_rows += len(frame)

    def _flush(self) -> None:
        if self._documents or not self._frames:
            self._add_frame(self._document_frame())
        self._documents, self._places, self._pending_bytes = [], [], 0

    def _document_frame(self) -> pl.DataFrame:
        names = ("text", "id", "url", "lang", "license", "meta")
        values = zip(*self._documents, strict=True) if self._documents else [()] * len(names)
        ids, files, rows = zip(*self._places, strict=True) if self._places else [()] * 3
        columns = {"doc_id": ids, "file": files, **dict(zip(names, values, strict=True))}
        texts = {key: pl.Series(key, column, pl.String()) for key, column in columns.items()}
        frame = pl.DataFrame([*map(texts.get, names), pl.Series("row", rows, pl.Int64())])
        return self._with_origin(frame, texts["doc_id"], texts["file"])

    def _with_origin(self, frame: pl.DataFrame, ids: pl.Series, files: pl.Series) -> pl.DataFrame:
        """Return documents with a column `row` as those of the source and of files.

        Without expressions, each of which costs 0.3 ms.
        """
        source = pl.Series("source", [self._source.name], pl.String())
        made = {
            "doc_id": ids.alias("doc_id"),
            "source": source.new_from_index(0, len(files)),
            "origin": pl.DataFrame([files, frame["row"]]).to_struct("origin"),
        }
        return pl.DataFrame([made[key] if key in made else frame[key] for key in DOCUMENT_SCHEMA])
