"""Documents of a range of a stream."""

from __future__ import annotations

from collections.abc import Iterator

from assets.raw.places.file_digests import AGAIN, SINCE, ChangedFileError
from assets.raw.places.streams.logs import Log, LostEntriesError
from assets.raw.places.streams.stream_ranges import logs_at
from assets.raw.raw_records import StreamPart
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.read_entries import entry_record
from resources.settings.sources import Source, identity_of


def read_range(part: StreamPart, source: Source) -> Iterator[Chunk]:
    """Read a range as one chunk.

    Raises LostEntriesError if entries of a known range are gone, and ChangedFileError if those of a
    new one are: the next planning goes by what is there.
    """
    log, entries = log_of(part, source), part.entries
    builder = DocumentBuilder()
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


def log_of(part: StreamPart, source: Source) -> Log:
    """Return the log that a part is read from."""
    for place in source.where:
        name = identity_of(place, source.identity_query)
        if part.name == name or part.name.startswith(f"{name}/"):
            for log in logs_at(place, name):
                if log.name == part.name:
                    return log
    raise LostEntriesError(f"{part.name} is not in `where` of source {source.name!r}")
