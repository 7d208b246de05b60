"""`corpus history SOURCE`: the kept states of a source, and what changed from one to the next."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from msgspec import UNSET, UnsetType
from rich.markup import escape

from pipeline_defs.commands.life.state_chain import (
    SOURCE_STAGES,
    SourceState,
    chain_of,
    code_changes,
    config_changes,
    numbers_of,
)
from pipeline_defs.commands.terminal.options import Json
from pipeline_defs.commands.terminal.output import (
    ONE_LINE,
    new_table,
    print_json,
    table_console,
)
from pipeline_defs.load_corpus import load_corpus
from resources.corpus import Corpus
from resources.dagster_home import prepare_home
from resources.errors import UsageError
from resources.store.kept_manifests import KeptManifests
from resources.store.named_states import read_hold, read_tags
from resources.takedowns import id_of, read_takedowns

UNKNOWN = "unknown"
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
    if stage is not None and stage not in SOURCE_STAGES:
        raise UsageError(f"No stage {stage!r} by source; there are: {', '.join(SOURCE_STAGES)}.")
    kept = KeptManifests(corpus.store, source)
    stage = stage or kept.last_stage()
    states = [chain_of(kept, stage, number) for number, _ in kept.newest_first(stage)]
    tags = read_tags(corpus.store.root).values()
    hold = read_hold(corpus.store.root, source)
    entries = []
    for state, before in zip(states, [*states[1:], None], strict=True):
        names = tuple(tag.name for tag in tags if tag.number(stage, source) == state.number)
        takedowns = newly_obeyed(corpus, before, state) if before else ()
        entry = entry_of(state, before, names)
        entries.append(msgspec.structs.replace(entry, takedowns=takedowns))
    entries = [with_same(entry, entries[n + 1 :]) for n, entry in enumerate(entries)]
    return History(source, stage, str(hold or ""), with_times(entries, stage, source))


def with_same(entry: Entry, older: Sequence[Entry]) -> Entry:
    """Add the number of the newest older state with the same fingerprint, if there is one."""
    same = (each.number for each in older if each.fingerprint == entry.fingerprint)
    return msgspec.structs.replace(entry, same_as=next(same, UNSET))


def entry_of(state: SourceState, before: SourceState | None, tags: tuple[str, ...]) -> Entry:
    """Describe a state, and what changed since the one before it, if that is kept."""
    fingerprint = state.manifests[state.stage][1].fingerprint
    entry = Entry(state.number, fingerprint, numbers_of(state), tags, not_kept=state.missing)
    if before is None:
        return entry
    return msgspec.structs.replace(
        entry,
        inputs=input_changes(before, state),
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
    raw = state.manifest("raw")
    files: Mapping[str, str] = raw.provenance.get("files", {}) if raw else {}
    return files if raw and len(files) == raw.provenance.get("num_files") else None


def newly_obeyed(corpus: Corpus, before: SourceState, after: SourceState) -> tuple[int, ...]:
    """Return the numbers of the takedowns that only the second of two states obeys."""
    found = (state.manifest("raw") for state in (before, after))
    then, now = (set(raw.provenance.get("takedowns", ())) if raw else set() for raw in found)
    takedowns = enumerate(read_takedowns(corpus.store.root), 1) if now - then else ()
    return tuple(number for number, each in takedowns if id_of(each) in now - then)


def with_times(entries: list[Entry], stage: str, source: str) -> list[Entry]:
    """Add the time, run and parts of each state, as far as Dagster's records have them."""
    import dagster as dg  # takes 2 s

    from pipeline_defs.commands.life.materialization_times import commits_of, matched

    prepare_home()
    with dg.DagsterInstance.get() as instance:
        commits = commits_of(instance, stage, source)
    found = matched([entry.fingerprint for entry in entries], commits)
    return [
        entry
        if event is None
        else msgspec.structs.replace(
            entry,
            when=f"{datetime.fromtimestamp(event.seconds, UTC):%Y-%m-%d %H:%M:%S}",
            run_id=event.run_id,
            parts_computed=event.parts_computed,
            parts_reused=event.parts_reused,
        )
        for entry, event in zip(entries, found, strict=True)
    ]


def show(found: History) -> None:
    """Print a history for people."""
    console = table_console()
    table = new_table(
        f"{found.stage} of {escape(found.source)}, the newest first",
        ["when (UTC)", "run", "tags", "changes"],
        ["number", "read", "kept", "tokens", "parts\nnew + kept"],
    )
    for entry in found.entries:
        run = entry.run_id if entry.run_id is UNSET else entry.run_id[:8] or "by a command"
        parts = (entry.parts_computed, entry.parts_reused)
        table.add_row(
            str(entry.when or UNKNOWN),
            str(run or UNKNOWN),
            ", ".join(entry.tags),
            "\n".join(escape(line) for line in lines_of(entry)),
            str(entry.number),
            *(f"{entry.numbers[name]:,}" for name in ("read", "kept", "tokens")),
            UNKNOWN if entry.when is UNSET else f"{parts[0]:,} + {parts[1]:,}",
        )
    console.print(table)
    if found.held:
        line = f"{found.held}: `corpus rollback {found.source} --release` ends it."
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def lines_of(entry: Entry) -> list[str]:
    """Return the lines on what changed in a state, safe for a terminal."""
    lines = [] if isinstance(entry.same_as, UnsetType) else [f"as {entry.same_as} was"]
    if not isinstance(entry.inputs, UnsetType):
        for what in ("added", "removed", "changed"):
            if names := getattr(entry.inputs, what):
                more = f" and {len(names) - FILES_NAMED:,} more" if len(names) > FILES_NAMED else ""
                lines.append(f"{what}: {', '.join(names[:FILES_NAMED])}{more}")
    lines += [f"takedown {number}" for number in entry.takedowns]
    lines += [f"{key}: {value(old)} -> {value(new)}" for key, (old, new) in entry.config.items()]
    lines += [f"{stage}: code {old} -> {new}" for stage, (old, new) in entry.code.items()]
    if entry.not_kept:
        lines.append(f"no longer kept: {', '.join(entry.not_kept)}")
    return [line.translate(ONE_LINE) for line in lines]


def value(setting: Any) -> str:
    """Write the value of a key on one line."""
    text = "not set" if setting is None else json_text.dumps(setting, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"
