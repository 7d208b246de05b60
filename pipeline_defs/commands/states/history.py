"""`corpus states history SOURCE`: the kept states of a source, and what changed in each.

Times and runs are those of Dagster's records: the store has no clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import UNSET, UnsetType

from corpus_loader.places.stage_names import RAW
from pipeline_defs.commands.answers import print_rows
from pipeline_defs.commands.states.state_chain import (
    SourceState,
    chain_of,
    check_stage,
    code_changes,
    config_changes,
    numbers_of,
    value_text,
)
from pipeline_defs.commands.terminal import Json, print_json, say
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import and_more
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import read_rollback, read_tags
from resources.takedowns import id_of, read_takedowns

if TYPE_CHECKING:
    import dagster as dg

UNKNOWN = "unknown"
MOST_EVENTS = 2000  # of a partition: five years of nights
DATA_VERSION = "dagster/data_version"
FILES_NAMED = 3  # of each kind of change, in the table; JSON has all
LONGEST_VALUE = 60


class Inputs(msgspec.Struct, frozen=True):
    """Names of input files that came, went and changed."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


class Entry(msgspec.Struct, frozen=True):
    """A kept state of a source, and what changed since the one before it.

    when, run_id   by Dagster's records; unset without them. The run is "" for a command
    takedowns      numbers of the takedowns that it obeys, and the one before did not
    same_as        the number of an older state that says the same, after a rollback
    inputs         unset if the files of one of the two are not known by name
    config, code   (before, after) of keys and versions that differ, by stage
    """

    number: int
    fingerprint: str
    numbers: dict[str, int]
    tags: tuple[str, ...]
    when: str | UnsetType = UNSET
    run_id: str | UnsetType = UNSET
    parts_computed: int | UnsetType = UNSET
    parts_reused: int | UnsetType = UNSET
    inputs: Inputs | UnsetType = UNSET
    takedowns: tuple[int, ...] = ()
    config: dict[str, tuple[Any, Any]] = {}
    code: dict[str, tuple[str, str]] = {}
    not_kept: tuple[str, ...] = ()
    same_as: int | UnsetType = UNSET


class History(msgspec.Struct, frozen=True):
    """The kept states of a source by the manifests of a stage, the newest first."""

    source: str
    stage: str
    held: str
    entries: list[Entry]


def history(
    source: Annotated[str, Parameter(help="Source.")],
    /,
    *,
    stage: Annotated[
        str | None, Parameter(help="Stage whose manifests are listed; the last one without.")
    ] = None,
    json: Json = False,
) -> int:
    """Print the kept states of a source, the newest first."""
    found = history_of(load_corpus(), source, stage)
    if json:
        print_json(found)
    else:
        show(found)
    return 0


def history_of(corpus: Corpus, source: str, stage: str | None) -> History:
    """Collect the history of a source."""
    check_stage(stage)
    kept = KeptManifests(corpus.store, source)
    stage = stage or kept.last_stage()
    states = [chain_of(kept, stage, number) for number, _ in kept.newest_first(stage)]
    tags = read_tags(corpus.store.root).values()
    hold = read_rollback(corpus.store.root, source)
    entries: list[Entry] = []
    for state, before in zip(states, [*states[1:], None], strict=True):
        names = tuple(tag.name for tag in tags if tag.number(stage, source) == state.number)
        entries.append(entry_of(corpus, state, before, names))
    for place, entry in enumerate(entries):
        older = (e.number for e in entries[place + 1 :] if e.fingerprint == entry.fingerprint)
        entries[place] = msgspec.structs.replace(entry, same_as=next(older, UNSET))
    return History(source, stage, str(hold or ""), with_times(entries, stage, source))


def entry_of(
    corpus: Corpus, state: SourceState, before: SourceState | None, tags: tuple[str, ...]
) -> Entry:
    """Describe a state, and what changed since the one before it, if that is kept."""
    fingerprint = state.manifests[state.stage][1].fingerprint
    entry = Entry(state.number, fingerprint, numbers_of(state), tags, not_kept=state.missing)
    if before is None:
        return entry
    found = (each.manifest(RAW) for each in (before, state))
    then, now = (set(raw.provenance.get("takedowns", ())) if raw else set() for raw in found)
    takedowns = enumerate(read_takedowns(corpus.store.root), 1) if now - then else ()
    return msgspec.structs.replace(
        entry,
        inputs=input_changes(before, state),
        takedowns=tuple(number for number, each in takedowns if id_of(each) in now - then),
        config=config_changes(before, state),
        code=code_changes(before, state),
    )


def input_changes(before: SourceState, after: SourceState) -> Inputs | UnsetType:
    """Compare the input files of two states; unset if not all are known by name."""
    then, now = files_of(before), files_of(after)
    if then is None or now is None:
        return UNSET
    return Inputs(
        added=tuple(sorted(now.keys() - then.keys())),
        removed=tuple(sorted(then.keys() - now.keys())),
        changed=tuple(sorted(name for name in now.keys() & then.keys() if now[name] != then[name])),
    )


def files_of(state: SourceState) -> Mapping[str, str] | None:
    """Return the digests of the input files by name; None if the manifest does not name them all.

    Of more than a thousand files it names none.
    """
    raw = state.manifest(RAW)
    files: Mapping[str, str] = raw.provenance.get("files", {}) if raw else {}
    return files if raw and len(files) == raw.provenance.get("num_files") else None


def with_times(entries: list[Entry], stage: str, source: str) -> list[Entry]:
    """Add the time, run and parts of each state, as far as Dagster's records have them.

    A fingerprint may come twice, after a rollback: events and states are matched in order.
    """
    import dagster as dg  # takes 2 s

    prepare_home()
    with dg.DagsterInstance.get() as instance:
        left = commits_of(instance, stage, source)
    timed = []
    for entry in entries:
        places = (n for n, each in enumerate(left) if version_of(each) == entry.fingerprint)
        if (place := next(places, None)) is not None:
            entry = with_event(entry, left[place])
            del left[: place + 1]
        timed.append(entry)
    return timed


def commits_of(instance: dg.DagsterInstance, stage: str, partition: str) -> list[dg.EventLogRecord]:
    """Return the events of a partition that brought another state, the newest first."""
    import dagster as dg

    from resources.materialize.asset_events import partition_key

    key = partition_key(partition)
    wanted = dg.AssetRecordsFilter(dg.AssetKey(stage), asset_partitions=[key] if key else None)
    records = instance.fetch_materializations(wanted, limit=MOST_EVENTS).records
    groups = [list(group) for _, group in groupby(records, version_of)]
    if len(records) == MOST_EVENTS:
        groups = groups[:-1]  # it may have begun earlier
    return [group[-1] for group in groups]  # later ones found the same state


def version_of(record: dg.EventLogRecord) -> str:
    """Return the fingerprint of the state that an event reports."""
    found = record.asset_materialization
    return ((found and found.tags) or {}).get(DATA_VERSION, "")


def with_event(entry: Entry, record: dg.EventLogRecord) -> Entry:
    """Add what an event says of a state; zeros are left out of its metadata."""
    found = record.asset_materialization
    assert found is not None, "only materializations were asked for"
    parts = {}
    for name in ("parts_computed", "parts_reused"):
        value = getattr(found.metadata.get(name), "value", 0)
        parts[name] = value if isinstance(value, int) else 0
    when = f"{datetime.fromtimestamp(record.timestamp, UTC):%Y-%m-%d %H:%M:%S}"
    return msgspec.structs.replace(entry, when=when, run_id=record.run_id, **parts)


def show(found: History) -> None:
    """Print a history for people."""
    title = f"{found.stage} of {found.source}, the newest first"
    print_rows(title, map(row_of, found.entries))
    if found.held:
        say(f"{found.held}: `corpus states rollback {found.source} --release` ends it.")


def row_of(entry: Entry) -> dict[str, Any]:
    """Return the columns of a state."""
    told = msgspec.to_builtins(entry)
    return {
        "when_(UTC)": told.get("when", UNKNOWN),
        "run": told.get("run_id", UNKNOWN)[:8] or "by a command",
        "tags": told["tags"],
        "changes": lines_of(entry),
        "number": entry.number,
        **entry.numbers,
        "parts_new": told.get("parts_computed"),
        "parts_kept": told.get("parts_reused"),
    }


def lines_of(entry: Entry) -> list[str]:
    """Return the lines on what changed in a state."""
    lines = [] if isinstance(entry.same_as, UnsetType) else [f"as {entry.same_as} was"]
    if not isinstance(entry.inputs, UnsetType):
        named = msgspec.structs.asdict(entry.inputs)
        lines += [f"{what}: {and_more(each, FILES_NAMED)}" for what, each in named.items() if each]
    lines += [f"takedown {number}" for number in entry.takedowns]
    lines += [
        f"{key}: {value_text(old, LONGEST_VALUE)} -> {value_text(new, LONGEST_VALUE)}"
        for key, (old, new) in entry.config.items()
    ]
    lines += [f"{stage}: code {old} -> {new}" for stage, (old, new) in entry.code.items()]
    return lines + ([f"no longer kept: {', '.join(entry.not_kept)}"] if entry.not_kept else [])
