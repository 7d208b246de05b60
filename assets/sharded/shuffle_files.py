"""Run both passes of the shuffle, for a few sources at a time.

Piles with rows take as much disk as the tokens in them. They are removed as soon as the shards that
they feed are published, before the next sources are scattered: disk for GROUP_BYTES, or for the
largest source if that is more, instead of for the whole corpus. With one source at a time, small
sources would leave cores idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assets.bucketed.bucketed_records import BUCKETED
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.sharded.plan_files import bucketed_parts, source_of
from assets.sharded.scatter_files import (
    ScatterInputs,
    has_piles,
    plan_scatter,
    remove_piles,
    scatter_fingerprint,
    scatter_part,
)
from assets.sharded.shard_files import ShardInputs, earlier_files, has_all_files
from resources.corpus import Corpus
from resources.engine.cost import Cost
from resources.run_tasks import (
    group_by_partition,
    map_with_progress,
    run_tasks,
    stops_on_error,
    with_costs,
)
from resources.store.store import StoreError
from resources.tasks import Outcome, Task, Work, failed

GROUP_BYTES = 8 << 30  # 128 shards of 64 MiB: work for all cores; starting a pool takes 1 s


@dataclass(frozen=True)
class GenerationShards:
    """Shards of a generation of a source, and those of them for which its rows are scattered.

    `failed` has the outcome of what went wrong; the shards of that source are not written then.
    """

    tasks: list[Task[ShardInputs]]
    wanted: list[Task[ShardInputs]]
    failed: list[Outcome] = field(default_factory=list)

    @property
    def work_bytes(self) -> int:
        """Bytes of the tokens in the piles."""
        return sum(task.work_bytes for task in self.wanted)


def shuffle_sources(
    corpus: Corpus, shards: Sequence[Task[ShardInputs]], work: Work
) -> list[Outcome]:
    """Scatter and gather the shards that are not published; outcomes of all, in order.

    Of a source that failed, the outcomes are those with errors. Each generation is scattered by
    itself.
    """
    generations: dict[tuple[str, int], list[Task[ShardInputs]]] = {}
    for task in shards:
        generations.setdefault((task.partition, task.payload.generation), []).append(task)
    sources = [prepare(corpus, tasks) for tasks in generations.values()]
    groups = group_within([source.work_bytes for source in sources], GROUP_BYTES)
    return [outcome for group in groups for outcome in shuffle_group(corpus, sources[group], work)]


def group_within(sizes: Sequence[int], most: int) -> list[slice]:
    """Group consecutive items of together at most so many bytes; a larger one is alone."""
    groups: list[slice] = []
    start, total = 0, 0
    for index, size in enumerate(sizes):
        if index > start and total + size > most:
            groups.append(slice(start, index))
            start, total = index, 0
        total += size
    return [*groups, slice(start, len(sizes))] if sizes else []


def prepare(corpus: Corpus, tasks: list[Task[ShardInputs]]) -> GenerationShards:
    """Give the tasks of a generation the files to keep, and the piles of a killed run."""
    try:
        return keep_files(tasks)
    except Exception as error:
        if stops_on_error(corpus):
            raise
        return GenerationShards(tasks, [], [failed(tasks[0], error)])


def keep_files(tasks: list[Task[ShardInputs]]) -> GenerationShards:
    """Give tasks the files of earlier shards; tell those for which rows must be scattered."""
    missing = [task for task in tasks if task.published() is None]
    if not missing:
        return GenerationShards(tasks, [])
    shards = tasks[0].payload.shards
    earlier = earlier_files(tasks[0].folder, shards)
    wanted = [task for task in missing if not has_all_files(earlier.get(task.name), shards.formats)]
    if wanted and has_piles(tasks[0], scatter_fingerprint(tasks)):
        wanted = tasks  # a run was killed while it gathered: its piles hold all shards
    scattered = scatter_fingerprint(wanted)
    prepared = []
    for task in tasks:
        inputs = replace(task.payload, scattered=scattered, earlier=earlier.get(task.name))
        prepared.append(replace(task, payload=inputs))
    return GenerationShards(prepared, wanted)


def shuffle_group(corpus: Corpus, sources: Sequence[GenerationShards], work: Work) -> list[Outcome]:
    """Run both passes for some sources.

    The costs of the first pass are added to those of a source's first computed shard.
    """
    costs = scatter_sources(corpus, sources)
    whole = [source for source in sources if not source.failed]
    outcomes = run_tasks(corpus, [task for source in whole for task in source.tasks], work)
    broken = {outcome.task.partition for outcome in outcomes if outcome.error is not None}
    for source in whole:
        if source.tasks[0].partition not in broken:  # else the next attempt needs the piles
            remove_piles(source.wanted)
    return [outcome for source in sources for outcome in source.failed] + [
        outcome
        for partition, of_source in group_by_partition(outcomes).items()
        for outcome in with_costs(of_source, costs.get(partition, []))
    ]


def scatter_sources(corpus: Corpus, sources: Sequence[GenerationShards]) -> dict[str, list[Cost]]:
    """Run the first pass; return its costs by source, and add errors to the sources they end."""
    scatters: list[tuple[GenerationShards, Task[ScatterInputs]]] = []
    for source in sources:
        try:
            scatters += [(source, task) for task in scatter_tasks(corpus, source.wanted)]
        except Exception as error:
            if stops_on_error(corpus):
                raise
            source.failed.append(failed(source.tasks[0], error))
    costs: dict[str, list[Cost]] = {}
    tasks = [task for _, task in scatters]
    for ended in map_with_progress(scatter_part, tasks, corpus.settings.engine):
        if stops_on_error(corpus):
            ended.value()
        source, task = scatters[ended.index]
        if ended.error is not None:
            source.failed.append(Outcome(task, [], (), False, ended.error))
        costs.setdefault(task.partition, []).append(ended.cost)
    return costs


def scatter_tasks(corpus: Corpus, wanted: list[Task[ShardInputs]]) -> list[Task[ScatterInputs]]:
    """Plan the first pass for these shards of a generation; none without shards.

    Raises StoreError if `bucketed` was committed again since the shards were planned.
    """
    if not wanted:
        return []
    inputs, folder = wanted[0].payload, wanted[0].folder
    manifest = corpus.store.newest(BUCKETED, wanted[0].partition)
    if manifest.fingerprint != inputs.bucketed:
        raise StoreError(
            f"bucketed[{manifest.partition}] was committed again since {wanted[0].title} was "
            "planned. Run again."
        )
    record = folder.find_part(LEDGER, inputs.ledger)
    assert record is not None, f"{folder.stage}[{folder.name}]: the ledger is not published"
    found = read_ledger(folder, record)
    generation = next(g for g in found.ledger.generations if g.number == inputs.generation)
    parts = {part.key: part for part in bucketed_parts(corpus, manifest)}
    plans = source_of(corpus, manifest).plans(generation)
    return plan_scatter(generation, found.files[generation.number], parts, plans, wanted)
