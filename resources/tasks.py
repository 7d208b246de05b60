"""Tasks that compute parts, and the function that runs them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from resources.auto_choice import measured_choice
from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.engine.map_parts import map_parts
from resources.engine.run_task import Ended, PartError, PartTask, PartUseError
from resources.engine.system_errors import SystemFault, concerns_all
from resources.event_lines import About, EventNumbers, message_of, write_event
from resources.progress import current
from resources.settings.engine import EngineConfig
from resources.store.compression import (
    DEFAULT_COMPRESSION,
    Compression,
    compression_in_fingerprints,
)
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, StageRecords, fingerprint_of
from resources.store.scratch import Scratch, scratch_of
from resources.store.snapshot import Snapshot
from resources.store.store import Partition, PartWriter, Store, StoreError, published_file

SIMULTANEOUS = 4  # tasks that share a memory limit, however many workers there are
FEW = 16  # tasks for which a look at each costs less than a listing of a large partition
GLOBAL = "all"  # the one partition of a stage that is not partitioned

Place = tuple[Path, str, str]
Payload = TypeVar("Payload")
OtherPayload = TypeVar("OtherPayload")
AnyTask = TypeVar("AnyTask", bound=PartTask)
Result = TypeVar("Result")
Yielded = TypeVar("Yielded")


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
        """Where the parts are: equal for the tasks of a partition."""
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


def failed(task: Task, error: Exception) -> Outcome:
    """Return the outcome of a task for which an error was raised outside of its work."""
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
            few = FEW if scratch_of(task.root) is None else 1  # a look at an object is a request
            is_many = numbers[task.place] > few
            places[task.place] = Snapshot(task.folder) if is_many else task.folder
        found.append(task.published_in(places[task.place]))
    return found


@dataclass(frozen=True)
class OnScratch:
    """Work of a store on an object store: its scratch is made on the machine of the worker."""

    work: Callable[[Any], Any]
    scratch: Scratch

    def __call__(self, task: PartTask) -> Any:
        """Do the work."""
        self.scratch.make()
        return self.work(task)


def run_tasks(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Compute the parts that are not published; return outcomes in the order of `tasks`.

    Raises the first error with `on_source_error: stop`; else errors are among the outcomes.
    """
    outcomes = dict(ended_tasks(corpus, tasks, work))
    return [outcomes[index] for index in range(len(tasks))]


def run_partitions(corpus: Corpus, tasks: list[Task], work: Work) -> PartitionOutcomes:
    """Compute as `run_tasks` does; yield the outcomes of each partition when its last task ends."""
    numbers = Counter(task.partition for task in tasks)
    waiting: dict[str, dict[int, Outcome]] = {}
    with stopped_by_errors(ended_tasks(corpus, tasks, work)) as all_ended:
        for index, outcome in all_ended:
            name = outcome.task.partition
            of_partition = waiting.setdefault(name, {})
            of_partition[index] = outcome
            if len(of_partition) == numbers[name]:
                yield [outcome for _, outcome in sorted(waiting.pop(name).items())]


def ended_tasks(
    corpus: Corpus, tasks: list[Task], work: Work
) -> Generator[tuple[int, Outcome], None, None]:
    """Yield the index and outcome of each task: of published parts first, of others as they end."""
    missing: list[int] = []
    for index, (task, records) in enumerate(zip(tasks, look_up(tasks), strict=True)):
        if records is None:
            missing.append(index)
        else:
            yield index, Outcome(task, records, (), True)
    missing.sort(key=lambda index: -tasks[index].work_bytes)  # a long part begun last ends alone
    to_do = [tasks[index] for index in missing]
    needed = sum(task.work_bytes for task in to_do)
    with stopped_by_errors(map_with_progress(work, to_do, corpus.settings.engine)) as all_ended:
        for ended in all_ended:
            error = explained(corpus, ended.error, needed)
            if error is not None and stops_on_error(corpus):
                raise error
            index, records = missing[ended.index], ended.result or []
            needed -= tasks[index].work_bytes
            current().add_records(records)
            outcome = Outcome(tasks[index], records, (ended.cost,), False, error)
            write_parts(outcome)
            yield index, outcome


@contextmanager
def stopped_by_errors(
    generator: Generator[Yielded, None, None],
) -> Iterator[Generator[Yielded, None, None]]:
    """Let a generator know at once of the error with which the loop over it ends.

    It then stops its workers, which it would keep until garbage is collected; at an interruption it
    does not wait for what they are computing.
    """
    try:
        yield generator
    except BaseException as error:
        generator.throw(error)
        raise
    finally:
        generator.close()


def write_parts(outcome: Outcome) -> None:
    """Write a line about each part that a task has published, and one if it failed."""
    task = outcome.task
    if outcome.error is not None:
        about = About(task.stage, task.partition, task.name)
        write_event("part_failed", message_of(outcome.error), about, level=logging.ERROR)
    for record in outcome.records:
        numbers: EventNumbers = {
            "rows_in": record.stats.rows_in,
            "rows_kept": record.stats.rows_kept,
            "bytes": record.stats.bytes,
            "tokens": record.stats.tokens,
        }
        about = About(task.stage, task.partition, record.name)
        write_event("part_published", "", about, numbers, logging.DEBUG)


def explained(corpus: Corpus, error: PartError | None, needed: int) -> PartError | None:
    """Return the error of a part, with what the system lacks if that is the reason.

    `needed` is the work left in bytes: what a part writes is rarely more than what it reads.
    Raises SystemFault for what concerns every partition alike, such as a full disk.
    """
    if error is None or error.errno is None or error.explanation is None:
        return error
    explanation = f"{error}. {error.explanation.sentence(needed)}"
    if concerns_all(error.errno):
        raise SystemFault(explanation)
    return PartUseError(explanation)


def stops_on_error(corpus: Corpus) -> bool:
    """Return whether the error of one source ends the work on all."""
    return corpus.settings.on_source_error == "stop"


def map_with_progress(
    function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask], config: EngineConfig
) -> Generator[Ended[Result], None, None]:
    """Map a function over tasks as `map_parts` does, as a pass of the step's progress."""
    first = tasks[0] if tasks else None
    if isinstance(first, Task) and (scratch := scratch_of(first.root)):
        function = OnScratch(function, scratch)
    progress = current()
    progress.begin_pass(tasks)
    chosen = measured_choice(config, sum(task.work_bytes for task in tasks))
    with stopped_by_errors(map_parts(function, tasks, chosen)) as all_ended:
        for ended in all_ended:
            progress.end_part(tasks[ended.index], ended.cost)
            yield ended


def with_costs(outcomes: list[Outcome], costs: Sequence[Cost]) -> list[Outcome]:
    """Add costs of other tasks of a partition to its first computed outcome."""
    for index, outcome in enumerate(outcomes):
        if not outcome.is_reused:
            added = replace(outcome, costs=(*outcome.costs, *costs))
            return [*outcomes[:index], added, *outcomes[index + 1 :]]
    return outcomes


def all_at_once(
    run: Callable[[Corpus, list[Task], Work], list[Outcome]],
) -> Callable[[Corpus, list[Task], Work], PartitionOutcomes]:
    """Return the `run` of a stage whose partitions go through passes together."""

    def run_all(corpus: Corpus, tasks: list[Task], work: Work) -> PartitionOutcomes:
        yield from group_by_partition(run(corpus, tasks, work)).values()

    return run_all


def group_by_partition(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    """Group outcomes by partition, in task order."""
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.task.partition, []).append(outcome)
    return grouped


def within_memory(corpus: Corpus) -> Corpus:
    """Return the corpus with at most SIMULTANEOUS workers, for tasks that share a memory limit.

    On a cluster each task asks its node for its share of the limit instead.
    """
    engine = corpus.settings.engine
    if engine.kind == "ray":
        share = engine.ray.task_bytes + corpus.settings.dedup.memory_bytes // SIMULTANEOUS
        limited = engine.model_copy(
            update={"ray": engine.ray.model_copy(update={"task_bytes": share})}
        )
    else:
        limited = engine.model_copy(update={"workers": min(SIMULTANEOUS, engine.num_workers())})
    return replace(corpus, settings=corpus.settings.model_copy(update={"engine": limited}))
