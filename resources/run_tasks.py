"""Run the tasks of a stage, on workers and with a progress line, and gather their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from resources.corpus import Corpus, stops_on_error
from resources.engine.cost import USED, Cost, add_traffic
from resources.engine.map_parts import map_parts
from resources.engine.run_task import Ended, PartError, PartTask, PartUseError
from resources.engine.system_errors import SystemFault, concerns_all
from resources.progress import current
from resources.settings.engine import EngineConfig
from resources.store.medium import medium_of
from resources.store.scratch import Scratch, scratch_of
from resources.tasks import (
    SIMULTANEOUS,
    Outcome,
    PartitionOutcomes,
    RunPartitions,
    RunStage,
    Task,
    Work,
    look_up,
)

AnyTask = TypeVar("AnyTask", bound=PartTask)
Result = TypeVar("Result")
Yielded = TypeVar("Yielded")


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
            error = explained(ended.error, needed)
            if error is not None and stops_on_error(corpus):
                raise error
            index, records = missing[ended.index], ended.result or []
            needed -= tasks[index].work_bytes
            current().add_records(records)
            USED.written_bytes += sum(file.bytes for each in records for file in each.files)
            yield index, Outcome(tasks[index], records, (ended.cost,), False, error)


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


def explained(error: PartError | None, needed: int) -> PartError | None:
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


def map_with_progress(
    function: Callable[[AnyTask], Result], tasks: Sequence[AnyTask], config: EngineConfig
) -> Generator[Ended[Result], None, None]:
    """Map a function over tasks as `map_parts` does, as a pass of the step's progress."""
    first = tasks[0] if tasks else None
    if isinstance(first, Task) and (scratch := scratch_of(first.root)):
        function = OnScratch(function, scratch)
        for folder in {Path(*task.place) for task in tasks if isinstance(task, Task)}:
            medium_of(folder).write_to(folder)
    progress = current()
    progress.begin_pass(tasks)
    with stopped_by_errors(map_parts(function, tasks, config)) as all_ended:
        for ended in all_ended:
            add_traffic(ended.cost)
            progress.end_part(tasks[ended.index], ended.cost)
            USED.core_hours += ended.cost.seconds / 3600
            USED.read_bytes += tasks[ended.index].work_bytes
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
) -> RunStage:
    """Return the `run` of a stage whose partitions go through passes together."""

    def run_all(
        corpus: Corpus, tasks: list[Task], work: Work, _: RunPartitions
    ) -> PartitionOutcomes:
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
