"""The corpus as assets see it: its settings and its store; and the tasks that compute its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from resources.config_faults import nearest
from resources.engine import map_parts
from resources.filter_data import FilterFileError, files_of, load_custom_rules
from resources.records import FileRecord, Manifest, PartRecord, fingerprint_of
from resources.settings import (
    Settings,
    SettingsError,
    check_ledger,
    config_path,
    load_settings,
    store_root,
)
from resources.store import Partition, PartWriter, Store

SIMULTANEOUS = 4  # tasks that share a memory limit, however many workers there are
GLOBAL = "all"  # the one partition of a stage that is not partitioned


@dataclass(frozen=True)
class Corpus:
    """A corpus: what pipeline.yaml says, and where it lies."""

    settings: Settings
    config: Path
    store: Store

    @property
    def downloads(self) -> Path:
        """Where files of URL sources are kept."""
        return self.store.root / "_downloads"


def load_corpus() -> Corpus:
    """The corpus that the environment and pipeline.yaml name; SettingsError if that is wrong."""
    config = config_path()
    settings = load_settings(config)
    path = settings.tokenizer.path
    if path is not None and not (config.parent / path).is_file():
        raise SettingsError(
            f"{config}: tokenizer.path: no file {path!r} (looked for {config.parent / path}). "
            "Correct it, or leave it out to train a tokenizer."
        )
    check_ledger(settings, config)
    for source in settings.source_names():
        check_filter_files(settings, source, config)
    return Corpus(settings, config, Store(store_root(settings, config)))


def check_filter_files(settings: Settings, source: str, config: Path) -> None:
    """Refuse filters that name a file that is not there, or a custom rule that is not right."""
    filters = settings.filters_for(source)
    try:
        files = files_of(filters, config.parent)
        custom = load_custom_rules(files["filters.custom"]) if filters.custom else ()
    except FilterFileError as error:
        raise SettingsError(f"{config}: source {source!r}: {error}") from error
    names = [rule.name for rule in custom]
    for name in filters.rules.custom:
        if name not in names:
            raise SettingsError(
                f"{config}: source {source!r}: rules.custom.{name}: no such rule in filters.custom"
                f"{nearest(name, names)}; it has {', '.join(names) or 'none'}"
            )


@dataclass(frozen=True)
class Task:
    """One part to compute: small and picklable, since it may cross a process border.

    A stream task publishes several parts, `<name>-0000`, `<name>-0001`, ..., as it reads a file
    whose number of parts nobody knows before; the last one says so in its stats.
    """

    root: Path
    stage: str
    partition: str
    name: str
    fingerprint: str
    work_bytes: int
    spec: Mapping[str, Any] = field(default_factory=dict)
    is_stream: bool = False

    @property
    def title(self) -> str:
        """Stage, partition and part, for people."""
        return f"{self.stage}[{self.partition}] part {self.name}"

    @property
    def folder(self) -> Partition:
        """The partition's folder in the store."""
        return Store(self.root).partition(self.stage, self.partition)

    def writer(self, name: str | None = None) -> PartWriter:
        """A writer for the task's part, or for the named part of a stream."""
        return PartWriter(self.folder, name or self.name, self.fingerprint)

    def published(self) -> list[PartRecord] | None:
        """The task's parts if all of them are published, else None."""
        if not self.is_stream:
            record = self.folder.find_part(self.name, self.fingerprint)
            return None if record is None else [record]
        records: list[PartRecord] = []
        while record := self.folder.find_part(
            stream_name(self.name, len(records)), self.fingerprint
        ):
            records.append(record)
            if record.stats.extra.get("is_last"):
                return records
        return None

    def published_file(self, kind: str) -> tuple[Path, int]:
        """Where the file of a kind of a task that has run lies, and its rows."""
        published = self.published()
        assert published is not None, f"{self.title} is not published"
        file = published[0].file(kind)
        assert file is not None, f"{self.title} has no {kind}"
        return self.folder.folder / file.path, file.rows


Work = Callable[[Task], list[PartRecord]]  # computes and publishes the parts of one task


def stream_name(name: str, number: int) -> str:
    """Name of part `number` of a stream."""
    return f"{name}-{number:04d}"


@dataclass(frozen=True)
class Plan:
    """The tasks of one partition of a stage, and what its manifest says besides the parts."""

    tasks: list[Task]
    config: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The parts of one task, and what they cost in this run (nothing, if they were published)."""

    task: Task
    records: list[PartRecord]
    seconds: float
    is_reused: bool


def run_tasks(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Compute what is not published; outcomes in the order of `tasks`."""
    outcomes: dict[int, Outcome] = {}
    for index, task in enumerate(tasks):
        if (records := task.published()) is not None:
            outcomes[index] = Outcome(task, records, 0.0, True)
    missing = [index for index in range(len(tasks)) if index not in outcomes]
    missing.sort(key=lambda index: -tasks[index].work_bytes)  # a long part begun last ends alone
    to_do = [tasks[index] for index in missing]
    for position, records, seconds in map_parts(work, to_do, corpus.settings.engine):
        index = missing[position]
        outcomes[index] = Outcome(tasks[index], records, seconds, False)
    return [outcomes[index] for index in range(len(tasks))]


def within_memory(corpus: Corpus) -> Corpus:
    """The corpus with at most SIMULTANEOUS workers, for tasks that share a memory limit."""
    engine = corpus.settings.engine
    limited = engine.model_copy(update={"workers": min(SIMULTANEOUS, engine.num_workers())})
    return replace(corpus, settings=corpus.settings.model_copy(update={"engine": limited}))


def part_task(
    corpus: Corpus, manifest: Manifest, part: PartRecord, kind: str, made_by: MadeBy
) -> Task:
    """The task that turns one part of an earlier stage into the part of the same name."""
    file = required_file(manifest, part, kind)
    return Task(
        root=corpus.store.root,
        stage=made_by.stage,
        partition=manifest.partition,
        name=part.name,
        fingerprint=fingerprint_of(
            made_by.stage, made_by.code_version, made_by.config, part.fingerprint, made_by.inputs
        ),
        work_bytes=file.bytes,
        spec={
            "path": corpus.store.path_of(manifest, file),
            "text_bytes": part.stats.text_bytes,
            **made_by.spec,
        },
    )


@dataclass(frozen=True)
class MadeBy:
    """What makes a part, besides its input: it goes into the fingerprint; `spec` does not."""

    stage: str
    code_version: str
    config: dict[str, Any]
    inputs: tuple[str, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)


def required_file(manifest: Manifest, part: PartRecord, kind: str) -> FileRecord:
    """A part's file of a kind that every part of the stage has."""
    file = part.file(kind)
    assert file is not None, f"{manifest.stage}[{manifest.partition}] {part.name} has no {kind}"
    return file
