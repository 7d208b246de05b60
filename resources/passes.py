"""Run a stage whose work takes several passes, each planned from the outcomes of those before.

    run=in_passes(
        Pass(count_part),
        Pass(select_hashes, plan=plan_select, shares_memory=True, is_kept=False),
        Pass(list_part, plan=plan_list),
    )

A pass is planned for each partition, and run over all partitions together. The manifest names the
parts of the kept passes; parts of the others are removed when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import xxhash
from msgspec import UNSET

from resources.corpus import Corpus, stops_on_error
from resources.engine.cost import Cost
from resources.run_tasks import (
    all_at_once,
    group_by_partition,
    run_tasks,
    with_costs,
    within_memory,
)
from resources.store.disk import TEMPORARY_PREFIX, make_folder, write_temporary
from resources.store.medium import medium_of
from resources.store.published import PublishedFile, copied_ahead
from resources.store.records import FileRecord, fingerprint_of, to_line
from resources.store.store import published_file
from resources.tasks import Outcome, Payload, RunStage, Task, Work, failed, look_up

Earlier = Sequence[Sequence[Outcome]]  # outcomes of one partition: by pass, then in task order
PlanPass = Callable[[Corpus, list[Task], Earlier], Iterable[Task]]


def as_planned(_corpus: Corpus, tasks: list[Task], _earlier: Earlier) -> list[Task]:
    """Return the tasks of the stage's plan: a pass that computes them needs no plan of its own."""
    return tasks


@dataclass(frozen=True)
class Pass:
    """One pass over the partitions of a stage.

    work           compute and publish the parts of one task
    plan           make the tasks of one partition from those of the stage's plan, and from the
                   outcomes of all earlier passes in that partition
    shares_memory  run no more workers than the stage's memory limit is divided among
    is_kept        name the parts in the manifest; otherwise they only serve later passes
    run            compute the tasks of all partitions, if not by `run_tasks`; return the outcomes
                   of each partition in order, or those with errors
    """

    work: Work
    plan: PlanPass = as_planned
    shares_memory: bool = False
    is_kept: bool = True
    run: Callable[[Corpus, list[Task], Work], list[Outcome]] | None = None


@dataclass(frozen=True)
class PassFiles:
    """Files of one kind that an earlier pass published, in the order of its tasks.

    A task has only the path of their list, a temporary file of the partition: with a file per part
    in every task, tasks would take the square of their number.
    """

    path: Path

    def read(self) -> tuple[PublishedFile, ...]:
        """Return the files."""
        return read_list(self.path)


@lru_cache(maxsize=64)
def read_list(path: Path) -> tuple[PublishedFile, ...]:
    """Read a list of files, which its name has the digest of, and copy them: once per process."""
    medium_of(path.parent).bring(path)
    records = msgspec.json.decode(path.read_bytes(), type=tuple[FileRecord, ...])
    files = tuple(published_file(path.parent / record.path, record) for record in records)
    return tuple(copied_ahead(files))


def list_files(outcomes: Sequence[Outcome], kind: str) -> PassFiles:
    """List the file of a kind of each outcome's part; the writer of the partition removes it."""
    records = [outcome.records[0].file(kind) for outcome in outcomes]
    return write_list(outcomes[0].task, [record for record in records if record is not None])


def list_published(task: Task[Any], files: Sequence[PublishedFile]) -> PassFiles:
    """List files of other partitions, for tasks of the partition of `task`."""
    records = [
        FileRecord("", str(f.unchecked_path), 0, f.bytes, "", f.xxh3, f.blocks or UNSET)
        for f in files
    ]
    return write_list(task, records)


def write_list(task: Task[Any], records: Sequence[FileRecord]) -> PassFiles:
    """Write records of files to a temporary file of a task's partition."""
    content, folder, medium = to_line(records), task.folder.folder, task.folder.medium
    path = folder / f"{TEMPORARY_PREFIX}{xxhash.xxh3_128_hexdigest(content)}.json"
    make_folder(folder)
    if medium.size(path) is None:  # an object may be gone whose copy is still here
        medium.publish(write_temporary(folder, path.name, content), path)
    return PassFiles(path)


def file_of(outcome: Outcome, kind: str) -> PublishedFile:
    """Return the file of a kind of an outcome's part."""
    file = outcome.records[0].file(kind)
    assert file is not None, f"{outcome.task.title} has no {kind}"
    return published_file(outcome.task.folder.folder / file.path, file)


@dataclass
class PartitionRun:
    """One partition on its way through the passes.

    `is_complete`: all tasks of the stage's plan were published before the run. After an error, no
    more passes run: `failed` has the outcomes with errors.
    """

    tasks: list[Task]
    is_complete: bool = False
    outcomes: list[list[Outcome]] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)

    def plan(self, corpus: Corpus, one: Pass) -> list[Task]:
        """Plan a pass over the partition; none if it is not needed, or after an error."""
        if self.failed or (self.is_complete and not one.is_kept):
            return []
        try:
            return list(one.plan(corpus, self.tasks, self.outcomes))
        except Exception as error:
            if stops_on_error(corpus):
                raise
            self.failed.append(failed(self.tasks[0], error))
            return []

    def add(self, outcomes: list[Outcome]) -> None:
        """Add the outcomes of a pass."""
        self.outcomes.append(outcomes)
        self.failed += [outcome for outcome in outcomes if outcome.error is not None]


def in_passes(*passes: Pass) -> RunStage:
    """Return the `run` of a stage that takes these passes; the stage's work is that of a pass."""
    return all_at_once(lambda corpus, tasks, _work: run_passes(corpus, tasks, passes))


def run_passes(corpus: Corpus, tasks: list[Task], passes: Sequence[Pass]) -> list[Outcome]:
    """Run passes over the tasks of a stage's plan; return the outcomes of the kept ones.

    A pass that is not kept is skipped where all planned tasks of a partition are published: later
    passes over that partition are planned with no outcomes of it. Outcomes come in the order of
    partitions in `tasks`, then of passes, then of tasks; of a partition that failed, those with
    errors only. The costs of passes that are not kept are added to those of the partition's first
    computed outcome.
    """
    by_partition: dict[str, list[Task]] = {}
    for task in tasks:
        by_partition.setdefault(task.partition, []).append(task)
    partitions = [PartitionRun(of_partition) for of_partition in by_partition.values()]
    if not all(one.is_kept for one in passes):
        for partition in partitions:
            partition.is_complete = None not in look_up(partition.tasks)
    for one in passes:
        run_pass(corpus, partitions, one)
    return [
        outcome
        for partition in partitions
        for outcome in partition.failed or kept_outcomes(partition.outcomes, passes)
    ]


def run_pass(corpus: Corpus, partitions: Sequence[PartitionRun], one: Pass) -> None:
    """Plan a pass for each partition, run it over all of them, and add its outcomes to each."""
    planned = [partition.plan(corpus, one) for partition in partitions]
    workers = within_memory(corpus) if one.shares_memory else corpus
    run, all_tasks = one.run or run_tasks, [task for tasks in planned for task in tasks]
    outcomes = group_by_partition(run(workers, all_tasks, one.work))
    for partition in partitions:
        partition.add(outcomes.get(partition.tasks[0].partition, []))


def kept_outcomes(outcomes: Earlier, passes: Sequence[Pass]) -> list[Outcome]:
    """Return the outcomes of the kept passes, the first computed one with the others' costs."""
    kept: list[Outcome] = []
    costs: list[Cost] = []
    for of_pass, one in zip(outcomes, passes, strict=True):
        if one.is_kept:
            kept += of_pass
        else:
            costs += [cost for outcome in of_pass for cost in outcome.costs]
    return with_costs(kept, costs)


def derive_task(
    task: Task[Any],
    name: str,
    made_of: Sequence[Any],
    payload: Payload,
    work_bytes: int | None = None,
) -> Task[Payload]:
    """Make a task of the same partition that depends on all that `task` does, and on `made_of`."""
    return task.sibling(
        name,
        fingerprint_of(task.fingerprint, *made_of),
        payload,
        work_bytes=task.work_bytes if work_bytes is None else work_bytes,
    )
