"""Plan streams: which entries are new, in ranges of about `part_bytes`.

Known ranges come from the newest manifest and stay as they are: the server is asked for what is
behind them. The new entries are read once to find where they are cut, as their sizes are not known
before; the cuts depend on the entries alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from assets.raw.places.downloads import filled, variables_of
from assets.raw.places.streams.kafka_topic import topic_logs
from assets.raw.places.streams.logs import OPEN, Entry, Log, LogStatus, StreamError
from assets.raw.places.streams.redis_stream import RedisStream
from assets.raw.raw_inputs import Cap
from assets.raw.raw_records import EntryRange, Gap, StreamState
from corpus_loader.places.errors import CorpusError
from resources.errors import InputError
from resources.settings.sources import Source, identity_of

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


def logs_at(place: str, name: str) -> list[Log]:
    """Return the logs of an entry of `where`, whose identity is `name`."""
    url = filled(place, variables_of(place))
    if place.startswith("kafka://"):
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
