"""Documents of a range of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from assets.raw.patch import Patch
from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError
from assets.raw.places.streams.logs import Log, LostEntriesError
from assets.raw.places.streams.read_entries import entry_record
from assets.raw.places.streams.stream_ranges import logs_at
from assets.raw.positions import entry_row, position_row
from assets.raw.raw_inputs import StreamPart
from assets.raw.raw_records import EntryRange
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.input_record import InputRecord
from resources.settings.sources import Source, identity_of


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
