"""Plan streams in ranges of about `part_bytes` of new entries, and read such a range.

Known ranges come from the newest manifest and stay as they are: the server is asked for what is
behind them. The new entries are read once to find where they are cut, as their sizes are not known
before; the cuts depend on the entries alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import polars as pl

from assets.raw.places.downloads import filled, variables_of
from assets.raw.places.file_digests import AGAIN, SINCE
from assets.raw.places.streams.kafka_topic import topic_logs
from assets.raw.places.streams.logs import (
    OPEN,
    Entry,
    Log,
    LogStatus,
    LostEntriesError,
    StreamError,
)
from assets.raw.places.streams.redis_stream import RedisStream
from assets.raw.raw_inputs import Cap, StreamPart
from assets.raw.raw_records import EntryRange, Gap, StreamState
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.input_file import ChangedFileError
from assets.raw.readers.input_record import (
    InputRecord,
    Patch,
    as_json,
    entry_row,
    parse_record,
    position_row,
)
from corpus_loader.places.errors import CorpusError
from corpus_loader.places.urls import Url
from resources.errors import InputError
from resources.settings.full_source import Source
from resources.settings.sources import SourceConfig, identity_of

JSON_FIELDS = (b"json", b"data")  # a record as JSON, if an entry has nothing else
TOO_HIGH = "the id is beyond what a position holds (2^21 entries in a millisecond, the year 2109)"
ALL = 2**63


@dataclass
class Limits:
    """Limits of a planning: of a part, and of all new entries.

    `num_bytes` and `documents` are counted down; `is_reached` tells of the last log whether entries
    are left.
    """

    part_bytes: int
    max_entries: int
    num_bytes: int
    documents: int
    is_reached: bool = False


def plan_streams(
    source: Source, known: Mapping[str, StreamState], part_bytes: int, left: Cap
) -> dict[str, StreamState]:
    """Return the entries of a source's streams: those that are known, and new ones behind them.

    `left` is what the known documents leave of the source's cap. Raises InputError if there are no
    entries (unless `allow_no_files`), a server does not answer, or a stream is not the one that is
    known.
    """
    num_bytes, documents = (ALL if each is None else each for each in left)
    limits = Limits(part_bytes, source.max_entries or ALL, num_bytes, documents)
    states: dict[str, StreamState] = {}
    for place in source.where:
        name = identity_of(place, source.identity_query)
        try:
            logs = logs_at(place, name)
            states |= {log.name: next_state(log, known, source, limits) for log in logs}
        except (StreamError, CorpusError, InputError) as error:
            raise InputError(f"source {source.name!r}: {error}") from error
        gone = [each for each in known if each.startswith(f"{name}/") and each not in states]
        if gone:
            raise InputError(f"source {source.name!r}: {other_stream(gone[0], '', known[gone[0]])}")
        if not any(state.ranges for state in states.values()) and not source.allow_no_files:
            raise InputError(
                f"source {source.name!r}: {name} has no entries. Correct `where`, or set "
                "`allow_no_files: true` if there may be none."
            )
    return states


def logs_at(place: Url, name: str) -> list[Log]:
    """Return the logs of an entry of `where`, whose identity is `name`."""
    url = filled(place, variables_of(place))
    if place.kind == "kafka":
        return [*topic_logs(url, name)]
    return [RedisStream(url, name)]


def next_state(
    log: Log, known: Mapping[str, StreamState], source: Source, limits: Limits
) -> StreamState:
    """Return what is known of a log with the entries behind it, up to the limits."""
    state = known.get(log.name, StreamState())
    status = log.status()
    last = status.last if status else ""
    if state.last and (not last or log.order(last) < log.order(state.last)):
        if status is None and source.allow_no_files:
            return state
        raise InputError(other_stream(log.name, last, state))
    if status is None or not last:
        return state
    gap = gap_before(log, status, state)
    start = f"{OPEN}{state.last}" if state.last else status.first
    has_new = start and state.last != last
    entries = within(log.read(start, last), limits) if has_new else iter(())
    new = tuple(cut_ranges(entries, limits.part_bytes))
    num_added = state.num_added + gap.count + sum(each.count for each in new)
    return StreamState(
        ranges=(*state.ranges, *new),
        gaps=(*state.gaps, gap) if gap.count else state.gaps,
        num_added=num_added if has_new and limits.is_reached else status.num_added,
    )


def gap_before(log: Log, status: LogStatus, state: StreamState) -> Gap:
    """Return the entries that went between the last known and the first there.

    A counter that is lower than before is that of a stream that was made again.
    """
    is_behind = not (status.first and state.last) or log.order(status.first) > log.order(state.last)
    before = state.num_added if status.num_added >= state.num_added else 0
    count = status.num_added - before - status.num_there if is_behind else 0
    return Gap(state.last, status.first, max(count, 0))


def other_stream(name: str, last: str, state: StreamState) -> str:
    """Say that a stream is not the one that is known, as its ids went back."""
    now = f"its newest entry is {last}" if last else "it has no entry"
    return (
        f"{name} was deleted or made again, or its server lost entries: {now}, and {state.last} is "
        "known. Restore it; or name the new stream in a source of its own, with the old one in "
        "`where` of none."
    )


def within(entries: Iterable[Entry], limits: Limits) -> Iterator[Entry]:
    """Yield the first entries, up to the limits of their number and bytes."""
    limits.is_reached = False
    for count, entry in enumerate(entries):
        is_full = entry.bytes > limits.num_bytes or limits.documents <= 0
        if count == limits.max_entries or is_full:
            limits.is_reached = True
            return
        limits.num_bytes -= entry.bytes
        limits.documents -= 1
        yield entry


def cut_ranges(entries: Iterable[Entry], part_bytes: int) -> Iterator[EntryRange]:
    """Cut entries into ranges, each of which ends with the entry that reaches `part_bytes`."""
    open_range: EntryRange | None = None
    for entry in entries:
        one = EntryRange(entry.id, entry.id, 1, entry.bytes)
        open_range = one if open_range is None else joined(open_range, one)
        if open_range.bytes >= part_bytes:
            yield open_range
            open_range = None
    if open_range is not None:
        yield open_range


def joined(before: EntryRange, behind: EntryRange) -> EntryRange:
    """Return two ranges as one."""
    return msgspec.structs.replace(
        before,
        last=behind.last,
        count=before.count + behind.count,
        bytes=before.bytes + behind.bytes,
    )


def read_range(part: StreamPart, source: Source, patches: Sequence[Patch]) -> Iterator[Chunk]:
    """Read a range as one chunk.

    Raises LostEntriesError if entries of a known range are gone, and ChangedFileError if those of a
    new one are: the next planning goes by what is there.
    """
    log, entries = log_of(part, source), part.entries
    builder = DocumentBuilder(patches=patches)
    builder.start_file(source, part.name, log.unit)
    count = 0
    for entry in log.read(entries.first, entries.last):
        builder.add(entry_record(entry, source))
        count += 1
    if count != entries.count:
        fact = (
            f"of the {entries.count:,} entries {entries.first} to {entries.last} of {part.name}, "
            f"{count:,} are there"
        )
        if not part.is_known:
            raise ChangedFileError(f"{fact} {SINCE}. {AGAIN}")
        raise LostEntriesError(
            f"{fact}: they were published, and the server has removed entries since, so their part "
            "cannot be made again. Bring its files back from a copy of the store. If options of "
            "the source have changed, undo that, or set them for a new source beside this one."
        )
    yield builder.take()


def patch_chunk(chunk: Chunk, source: Source, patches: Sequence[Patch]) -> Chunk:
    """Return a range that was read before, as reading it again with patches would give it.

    The server may have trimmed its entries by now.
    """
    if chunk.quarantine.is_empty():
        return chunk
    builder = DocumentBuilder(patches=patches)
    for file, position, error, raw in chunk.quarantine.select(
        "file", "position", "error", "raw"
    ).iter_rows():
        builder.start_file(source, file, position.partition(" ")[0])
        row = position_row(position)
        builder.add(InputRecord(-1 if row is None else row, None, raw, error))
    again = builder.take()
    documents = pl.concat([chunk.documents, again.documents])
    return replace(
        chunk,
        documents=documents.sort(pl.col("origin").struct.field("row")).rechunk(),
        quarantine=again.quarantine,
        skipped_by_filter=chunk.skipped_by_filter + again.skipped_by_filter,
    )


def rows_of(entries: EntryRange) -> tuple[int, int]:
    """Return the rows of the first and last entry of a range."""
    first, last = (
        entry_row(each) if "-" in each else int(each) for each in (entries.first, entries.last)
    )
    return first or 0, 2**63 if last is None else last


def log_of(part: StreamPart, source: Source) -> Log:
    """Return the log that a part is read from."""
    for place in source.where:
        name = identity_of(place, source.identity_query)
        if part.name == name or part.name.startswith(f"{name}/"):
            for log in logs_at(place, name):
                if log.name == part.name:
                    return log
    raise LostEntriesError(f"{part.name} is not in `where` of source {source.name!r}")


def entry_record(entry: Entry, source: SourceConfig) -> InputRecord:
    """Return the record of an entry: the JSON in one of its fields, or else all of them."""
    fields = {text(name): text(value) for name, value in entry.fields.items()}
    if entry.row is None:
        return InputRecord(-1, None, as_json(fields), TOO_HIGH)
    name = json_field(entry.fields, source)
    if name is None:
        return InputRecord(entry.row, fields)
    if name not in entry.fields:
        names = ", ".join(list(fields)[:20]) or "none"
        error = f"stream field `{source.stream_field}` is missing (fields: {names})"
        return InputRecord(entry.row, None, as_json(fields), error)
    return parse_record(entry.row, entry.fields[name])


def json_field(fields: Mapping[bytes, bytes], source: SourceConfig) -> bytes | None:
    """Return the field that holds the record; None if the fields are the record."""
    if source.stream_field is not None:
        return source.stream_field.encode()
    [name, *others] = fields or [b""]
    is_record = not others and name in JSON_FIELDS and name != source.text_field.encode()
    return name if is_record else None


def text(value: bytes) -> str:
    """Decode a text; a byte that is not UTF-8 is found, and named, when the record is checked."""
    return value.decode("utf-8", "surrogateescape")
