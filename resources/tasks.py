"""Tasks that compute parts: what a stage plans, and what comes of it (run_tasks.py runs them)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
import xxhash

from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.engine.run_task import PartError, PartUseError
from resources.engine.system_errors import concerns_all, errno_of
from resources.store.published import PublishedFile
from resources.store.records import (
    DEFAULT_COMPRESSION,
    Compression,
    PartRecord,
    StageRecords,
    compression_in_fingerprints,
    fingerprint_of,
)
from resources.store.scratch import scratch_of
from resources.store.snapshot import Snapshot
from resources.store.store import Partition, PartWriter, Store, StoreError, published_file

SIMULTANEOUS = 4  # tasks that share a memory limit, however many workers there are
FEW = 16  # tasks for which a look at each costs less than a listing of a large partition
GLOBAL = "all"  # the one partition of a stage that is not partitioned

Place = tuple[Path, str, str]
Payload = TypeVar("Payload")
OtherPayload = TypeVar("OtherPayload")


def stream_name(name: str, number: int) -> str:
    """Return the name of part `number` of a stream."""
    return f"{name}-{number:04d}"


@dataclass(frozen=True)
class Task(Generic[Payload]):
    """One part to compute: small and picklable, since it may cross a process border.

    `payload` is what the stage's work needs; it is not in the fingerprint. A stream task publishes
    several parts, `<name>-0000`, `<name>-0001`, ..., as it reads a file whose number of parts is
    not known before; the last one is marked in its stats.
    """

    root: Path
    stage: str
    partition: str
    name: str
    fingerprint: str
    work_bytes: int
    payload: Payload = field(default_factory=dict)  # type: ignore[assignment]
    is_stream: bool = False
    compression: Compression = DEFAULT_COMPRESSION

    @property
    def title(self) -> str:
        """Stage, partition and part, for messages."""
        return f"{self.stage}[{self.partition}] part {self.name}"

    @property
    def place(self) -> Place:
        """Store, stage and partition: equal for the tasks of a partition."""
        return self.root, self.stage, self.partition

    @property
    def folder(self) -> Partition:
        """The partition's folder in the store."""
        return Store(self.root).partition(self.stage, self.partition)

    def sibling(
        self, name: str, fingerprint: str, payload: OtherPayload, *, work_bytes: int
    ) -> Task[OtherPayload]:
        """Make another task of the same partition."""
        place, compression = (self.root, self.stage, self.partition), self.compression
        return Task(*place, name, fingerprint, work_bytes, payload, compression=compression)

    def writer(self, name: str | None = None) -> PartWriter:
        """Return a writer for the task's part, or for the named part of a stream."""
        return PartWriter(self.folder, name or self.name, self.fingerprint, self.compression)

    def published(self) -> list[PartRecord] | None:
        """Return the task's parts if all of them are published, else None.

        For many tasks see `look_up`.
        """
        return self.published_in(self.folder)

    def published_in(self, place: Partition | Snapshot) -> list[PartRecord] | None:
        """Return the task's parts if its partition, or a snapshot of it, has all of them."""
        if not self.is_stream:
            record = place.find_part(self.name, self.fingerprint)
            return None if record is None else [record]
        records: list[PartRecord] = []
        while record := place.find_part(stream_name(self.name, len(records)), self.fingerprint):
            records.append(record)
            if record.stats.numbers.get("is_last"):
                return records
        return None

    def published_file(self, kind: str) -> tuple[PublishedFile, int]:
        """Return the file of a kind and its rows; the task must have run."""
        published = self.published()
        assert published is not None, f"{self.title} is not published"
        file = published[0].file(kind)
        assert file is not None, f"{self.title} has no {kind}"
        return published_file(self.folder.folder / file.path, file), file.rows


Work = Callable[[Task[Any]], list[PartRecord]]  # computes and publishes the parts of one task


@dataclass(frozen=True)
class TaskMaker:
    """Makes the tasks of one partition of a stage; `tasks_of` makes it from a corpus."""

    root: Path
    stage: str
    code_version: str
    partition: str
    compression: Compression = DEFAULT_COMPRESSION

    def task(
        self,
        name: str,
        made_of: Sequence[Any],
        payload: Payload,
        *,
        work_bytes: int,
        is_stream: bool = False,
    ) -> Task[Payload]:
        """Make the task of a part; `made_of`, JSON values, is all that its output depends on."""
        written_as = compression_in_fingerprints(self.compression)
        fingerprint = fingerprint_of(self.stage, self.code_version, *made_of, *written_as)
        task = self.with_fingerprint(name, fingerprint, payload, work_bytes=work_bytes)
        return replace(task, is_stream=is_stream)

    def with_fingerprint(
        self, name: str, fingerprint: str, payload: Payload, *, work_bytes: int
    ) -> Task[Payload]:
        """Make the task of a part whose fingerprint is known."""
        place = (self.root, self.stage, self.partition)
        return Task(*place, name, fingerprint, work_bytes, payload, compression=self.compression)


def tasks_of(corpus: Corpus, stage: StageRecords[Any, Any], partition: str) -> TaskMaker:
    """Make tasks of one partition of a stage of a corpus."""
    return TaskMaker(
        corpus.store.root, stage.name, stage.code_version, partition, corpus.settings.compression
    )


@dataclass(frozen=True)
class Plan:
    """The tasks of one partition of a stage, and its manifest's config and provenance.

    `left_out` are sources without a usable state, which a stage over all sources does without, with
    the reason.
    """

    tasks: list[Task]
    config: dict[str, Any]
    provenance: Any = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The parts of one task, and their costs in this run: none if they were published already.

    `costs` holds that of the task itself, and those of tasks that only served the partition. A task
    that failed has no parts but an error, which ends its partition and no other.
    """

    task: Task
    records: list[PartRecord]
    costs: tuple[Cost, ...]
    is_reused: bool
    error: PartError | None = None


PartitionOutcomes = Generator[list[Outcome], None, None]  # of one partition each, in task order
RunPartitions = Callable[[Corpus, list[Task], Work], PartitionOutcomes]
# Run the tasks of a stage in a way of its own, given the way of all others.
RunStage = Callable[[Corpus, list[Task], Work, RunPartitions], PartitionOutcomes]


def failed(task: Task, error: Exception) -> Outcome:
    """Return the outcome of a task that failed outside of its work; raise what fails all alike."""
    if concerns_all(errno_of(error)):
        raise error
    is_wrong_use = isinstance(error, ValueError | StoreError)
    kind = PartUseError if is_wrong_use else PartError
    message = str(error) if is_wrong_use else f"{task.title}: {type(error).__name__}: {error}"
    return Outcome(task, [], (), False, kind(message))


def look_up(tasks: Sequence[Task[Any]]) -> list[list[PartRecord] | None]:
    """Return the parts of each task if all of them are published, else None.

    Of many tasks of a partition, its newest manifest and one listing tell it.
    """
    numbers = Counter(task.place for task in tasks)
    places: dict[Place, Partition | Snapshot] = {}
    found = []
    for task in tasks:
        if task.place not in places:
            few = FEW if scratch_of(task.root) is None else 0  # a look at an object is a request
            is_many = numbers[task.place] > few
            places[task.place] = Snapshot(task.folder) if is_many else task.folder
        found.append(task.published_in(places[task.place]))
    return found


def task_by_content(
    task: Task[Any], code_version: str, of: object, tables: Sequence[pl.DataFrame]
) -> Task[None]:
    """Return a task of the same name whose fingerprint is that of its content, and of `of`.

    `of` is a JSON value. Content is that of uncompressed Parquet: in an Arrow file the bytes of
    strings depend on the tables that they were gathered from.
    """
    digest = xxhash.xxh3_128()
    for table in tables:
        content = BytesIO()
        table.rechunk().write_parquet(content, compression="uncompressed")
        digest.update(content.getbuffer())
    make = TaskMaker(*task.place[:2], code_version, task.partition, task.compression)
    return make.task(task.name, (of, digest.hexdigest()), None, work_bytes=0)
