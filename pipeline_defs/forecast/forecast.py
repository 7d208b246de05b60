"""Foresee the work of the next run, stage by stage, without running anything.

Every stage is planned as a run would plan it, of what is published now. Behind a stage that would
change this is not exact, as its inputs do not exist yet: there, names of parts pass the change on,
since a part bears one name from `raw` to `tokenized`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from assets.raw.raw_records import RAW
from assets.raw.readers.input_file import InputFile
from assets.stages import BY_NAME, used_stages
from pipeline_defs.forecast.costs import cpu_per_mb
from pipeline_defs.forecast.reasons import NOTHING_BUILT, Planned, compare, reasons_of
from resources.corpus import Corpus
from resources.errors import InputError, UsageError
from resources.rolled_back_sources import rolled_back_plan, with_rollbacks
from resources.settings.pipeline import SettingsError
from resources.settings.sources import web_places
from resources.stage import Stage, partition_names
from resources.store.records import Manifest
from resources.store.store import StoreError
from resources.tasks import Plan, Task, look_up, stream_name

UNREAD = "not yet known: what is behind its URLs, which are read by a build"
NEW = "new"  # part of a stage whose parts have names of their own


@dataclass(frozen=True)
class PartForecast:
    """A part that would be computed: why, the bytes of text that it is made of; its input files."""

    name: str
    why: tuple[str, ...]
    text_bytes: int
    files: tuple[InputFile, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """A partition of a stage after the next run.

    is_exact     planned of inputs that are there; else they would change, and names are compared
    gone         parts that the next manifest does not name
    note         what was not looked at
    fault        why it cannot be planned, if nothing before it is to blame
    is_blocked   a run fails here, or before
    """

    stage: str
    partition: str
    computed: dict[str, PartForecast]
    reused: int
    gone: tuple[str, ...] = ()
    read_bytes: int = 0
    written_bytes: int = 0
    cpu_seconds: float = 0.0
    is_measured_here: bool = False
    is_exact: bool = True
    note: str = ""
    fault: str = ""
    is_blocked: bool = False

    @property
    def changes(self) -> bool:
        """True if later stages would see other parts."""
        return bool(self.computed or self.gone)


@dataclass(frozen=True)
class Before:
    """A partition as it is now: its newest manifest, and its plan if it can be planned."""

    stage: Stage[Any, Any]
    partition: str
    newest: Manifest | None
    planned: Planned | None
    note: str = ""
    upstream: list[Forecast] = field(default_factory=list)
    error: str = ""

    @cached_property
    def text_bytes(self) -> dict[str, int]:
        """Text bytes of the parts that are published, by name."""
        return {p.name: p.stats.text_bytes for p in self.newest.parts} if self.newest else {}


def forecast(corpus: Corpus, unreachable: Mapping[str, str] = {}) -> list[Forecast]:
    """Foresee every partition of every used stage, in the order of the flow.

    Of sources that are unreachable, with the reason, nothing is asked.
    """
    corpus = with_rollbacks(corpus)
    done: dict[tuple[str, str], Forecast] = {}
    for stage in used_stages(corpus.settings).values():
        step = replace(corpus, shared={})
        for partition in partition_names(stage, corpus.settings):
            upstream = list(upstream_of(stage, partition, done.values()))
            fault = unreachable.get(partition, "") if stage.name == RAW.name else ""
            before = look(step, stage, partition, upstream, fault)
            done[stage.name, partition] = foresee(step, before)
    return list(done.values())


def upstream_of(
    stage: Stage[Any, Any], partition: str, done: Iterable[Forecast]
) -> Iterator[Forecast]:
    """Yield the forecasts that a partition reads: a source reads its own, others read all."""
    for each in done:
        if each.stage in stage.after:
            is_own = BY_NAME[each.stage].partitions == stage.partitions
            if not is_own or each.partition == partition or stage.partitions == "none":
                yield each


def foresee(corpus: Corpus, before: Before) -> Forecast:
    """Foresee one partition, given what its earlier stages would do."""
    stage, partition, upstream = before.stage, before.partition, before.upstream
    computed = planned_parts(corpus, before) if before.planned else unplanned_parts(before)
    for each in upstream:
        if each.changes:
            computed = passed_on(corpus, before, each) | computed
    old = set(before.text_bytes)
    gone = old & gone_parts(before)
    stays = old - gone - computed.keys()
    is_blocked = bool(before.error) and not any(each.changes for each in upstream)
    is_first = not any(each.is_blocked for each in upstream)
    rate, is_measured = corpus.once("cpu_per_mb", lambda: cpu_per_mb(corpus, stage))
    text_bytes = sum(part.text_bytes for part in computed.values())
    return Forecast(
        stage=stage.name,
        partition=partition,
        computed=computed,
        reused=len(stays),
        gone=tuple(sorted(gone)),
        read_bytes=text_bytes,
        written_bytes=round(text_bytes * written_share(before.newest)),
        cpu_seconds=text_bytes / 1e6 * rate,
        is_measured_here=is_measured,
        is_exact=before.planned is not None and not any(each.changes for each in upstream),
        note=before.note,
        fault=before.error if is_blocked and is_first else "",
        is_blocked=is_blocked,
    )


def look(
    corpus: Corpus, stage: Stage[Any, Any], partition: str, upstream: list[Forecast], fault: str
) -> Before:
    """Read the newest manifest of a partition, and plan it if its inputs are there."""
    newest, note = None, ""
    try:
        newest = corpus.store.partition(stage.name, partition).newest_manifest()
        if fault:
            return Before(stage, partition, newest, None, "", upstream, fault)
        if held := rolled_back_plan(corpus, stage, partition):
            planned = compare(corpus, stage, partition, held)
            note = str(corpus.rollbacks[partition])
            return Before(stage, partition, newest, planned, note, upstream)
        if stage.name == RAW.name and has_urls(corpus, partition):
            note = "URLs are not requested: their files count as unchanged" if newest else UNREAD
            return Before(stage, partition, newest, None, note, upstream)
        plan = stage.plan(corpus, partition)
        planned = compare(corpus, stage, partition, plan)
        return Before(stage, partition, newest, planned, "", upstream)
    except (StoreError, SettingsError, InputError, UsageError, ValueError, ImportError) as error:
        return Before(stage, partition, newest, None, "", upstream, str(error))


def has_urls(corpus: Corpus, source: str) -> bool:
    """Return whether a source reads URLs, which planning downloads."""
    return bool(web_places(corpus.settings.source(source)))


def unplanned_parts(before: Before) -> dict[str, PartForecast]:
    """Return a part that stands for those of URLs that were never read."""
    is_known = before.stage.name != RAW.name or before.newest is not None or before.error
    return {} if is_known else {NEW: PartForecast(NEW, (NOTHING_BUILT,), 0)}


def planned_parts(corpus: Corpus, before: Before) -> dict[str, PartForecast]:
    """Return the parts of the plan's tasks that are not published."""
    planned = before.planned
    assert planned is not None
    if is_capped_as_before(planned.plan, before.newest):
        return {}
    parts: dict[str, PartForecast] = {}
    for task, records in zip(planned.plan.tasks, look_up(planned.plan.tasks), strict=True):
        if records is None:
            why = tuple(reasons_of(planned, task))
            names = names_of(corpus, before, task)
            files = task.payload.files if before.stage.name == RAW.name else ()
            for name in names:
                size = before.text_bytes.get(name) or inherited(before, name)
                size = size or task.work_bytes // len(names)
                parts[name] = PartForecast(name, why, size, files)
    return parts


def is_capped_as_before(plan: Plan, newest: Manifest | None) -> bool:
    """Return whether a source with a size cap would be read as it was: parts are cut by it."""
    cap = getattr(plan.provenance, "size_cap", None)
    return newest is not None and bool(cap) and newest.provenance.get("size_cap") == cap


def names_of(corpus: Corpus, before: Before, task: Task) -> list[str]:
    """Return the names of a task's parts: of a stream those of before, or as many as its bytes."""
    if not task.is_stream or before.planned is None:
        return [task.name]
    known = [part.name for part in before.planned.published.get(task.name, ())]
    count = max(1, round(task.work_bytes / corpus.settings.part_bytes))
    return known or [stream_name(task.name, number) for number in range(count)]


def inherited(before: Before, name: str) -> int:
    """Return the text bytes of the part of that name in an earlier stage; 0 if it has none."""
    found = (each.computed[name] for each in before.upstream if name in each.computed)
    return next((part.text_bytes for part in found), 0)


def passed_on(corpus: Corpus, before: Before, earlier: Forecast) -> dict[str, PartForecast]:
    """Return the parts that would be computed since parts of an earlier stage would be."""
    outlook, sizes, source = before.stage.outlook, before.text_bytes, BY_NAME[earlier.stage].outlook
    why = (f"{earlier.stage}[{earlier.partition}] changes",)
    if outlook.parts == source.parts == "same":
        return {
            name: PartForecast(name, (f"{earlier.stage} computes it",), part.text_bytes)
            for name, part in earlier.computed.items()
        }
    if outlook.parts == "same" and not source.reaches_all:
        return {}  # clusters change few other parts, and they are not known yet
    if before.newest is not None and outlook.is_kept(corpus.settings):
        return {}
    if earlier.stage in outlook.steady:
        return {}
    changed_bytes = sum(part.text_bytes for part in earlier.computed.values())
    if not sizes or outlook.parts == "new":
        return {NEW: PartForecast(NEW, why, changed_bytes)}
    names = windows_of(before, earlier) if outlook.parts == "window" else sizes
    return {name: PartForecast(name, why, sizes[name]) for name in names}


def windows_of(before: Before, earlier: Forecast) -> list[str]:
    """Return the windows that hold a part that changes; each is named after its first part."""
    windows = sorted(before.text_bytes)
    touched = {
        max((window for window in windows if window <= name), default=windows[0])
        for name in (*earlier.computed, *earlier.gone)
    }
    return sorted(touched)


def gone_parts(before: Before) -> set[str]:
    """Return the parts that neither the plan nor an earlier stage names any more."""
    same = (each for each in before.upstream if BY_NAME[each.stage].outlook.parts == "same")
    own = {name for each in same for name in each.gone}
    if before.stage.outlook.parts != "same" or before.planned is None:
        return own
    tasks = before.planned.plan.tasks
    names = {task.name for task in tasks}
    streams = {task.name for task in tasks if task.is_stream}
    return own | {
        name
        for name in before.text_bytes
        if name not in names and name.rpartition("-")[0] not in streams
    }


def written_share(newest: Manifest | None) -> float:
    """Return the bytes of a stage's files per byte of text, 0 if that is not known."""
    if newest is None or not newest.stats.text_bytes:
        return 0.0
    written = sum(file.bytes for part in newest.parts for file in part.files)
    return written / newest.stats.text_bytes


def totals(forecasts: Iterable[Forecast]) -> Mapping[str, Forecast]:
    """Sum up the partitions of every stage."""
    summed: dict[str, Forecast] = {}
    for each in forecasts:
        before = summed.get(each.stage)
        if before is None:
            summed[each.stage] = replace(each, computed=keyed(each))
            continue
        summed[each.stage] = replace(
            before,
            computed=before.computed | keyed(each),
            reused=before.reused + each.reused,
            gone=before.gone + each.gone,
            read_bytes=before.read_bytes + each.read_bytes,
            written_bytes=before.written_bytes + each.written_bytes,
            cpu_seconds=before.cpu_seconds + each.cpu_seconds,
            is_exact=before.is_exact and each.is_exact,
        )
    return summed


def keyed(each: Forecast) -> dict[str, PartForecast]:
    """Return the parts of a forecast by partition and name."""
    return {f"{each.partition}/{name}": part for name, part in each.computed.items()}
