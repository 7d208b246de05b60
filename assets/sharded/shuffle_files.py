"""Run both passes of the shuffle, for a few sources at a time.

Piles with rows take as much disk as the tokens in them. They are removed as soon as the shards that
they feed are published, before the next sources are scattered: disk for GROUP_BYTES, or for the
largest source if that is more, instead of for the whole corpus. With one source at a time, small
sources would leave cores idle.
"""

from __future__ import annotations

from collections.abc import Sequence

from assets.bucketed.bucketed_records import BUCKETED
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.sharded.plan_files import bucketed_parts, source_of
from assets.sharded.scatter_files import (
    ScatterInputs,
    plan_scatter,
    remove_piles,
    scatter_part,
)
from assets.sharded.shard_files import ShardInputs
from resources.corpus import Corpus, stops_on_error
from resources.engine.cost import Cost
from resources.run_tasks import (
    group_by_partition,
    map_with_progress,
    run_tasks,
    with_costs,
)
from resources.store.store import StoreError
from resources.tasks import Outcome, Task, Work, failed

GROUP_BYTES = 8 << 30  # 128 shards of 64 MiB: work for all cores; starting a pool takes 1 s


Shards = list[Task[ShardInputs]]  # of one generation of a source


def shuffle_sources(corpus: Corpus, shards: Shards, work: Work) -> list[Outcome]:
    """Scatter and gather the shards that are not published; outcomes of all, in order.

    Of a source that failed, the outcomes are those with errors. Each generation is scattered by
    itself.
    """
    generations: dict[tuple[str, int], Shards] = {}
    for task in shards:
        generations.setdefault((task.partition, task.payload.generation), []).append(task)
    all_of = list(generations.values())
    sizes = [sum(task.work_bytes for task in wanted_of(tasks)) for tasks in all_of]
    groups = group_within(sizes, GROUP_BYTES)
    return [outcome for group in groups for outcome in shuffle_group(corpus, all_of[group], work)]


def wanted_of(tasks: Shards) -> Shards:
    """Return the shards for which rows are scattered."""
    return [task for task in tasks if task.payload.is_wanted]


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


def shuffle_group(corpus: Corpus, generations: list[Shards], work: Work) -> list[Outcome]:
    """Run both passes for some generations.

    The costs of the first pass are added to those of a source's first computed shard.
    """
    errors, costs = scatter_sources(corpus, generations)
    broken = {outcome.task.partition for outcome in errors}
    whole = [tasks for tasks in generations if tasks[0].partition not in broken]
    outcomes = run_tasks(corpus, [task for tasks in whole for task in tasks], work)
    broken |= {outcome.task.partition for outcome in outcomes if outcome.error is not None}
    for tasks in whole:
        if tasks[0].partition not in broken:  # else the next attempt needs the piles
            remove_piles(wanted_of(tasks))
    by_source = group_by_partition(outcomes).items()
    return errors + [
        outcome
        for source, of_source in by_source
        for outcome in with_costs(of_source, costs.get(source, []))
    ]


def scatter_sources(
    corpus: Corpus, generations: list[Shards]
) -> tuple[list[Outcome], dict[str, list[Cost]]]:
    """Run the first pass; return the outcomes that failed, and its costs by source."""
    tasks, errors = list[Task[ScatterInputs]](), list[Outcome]()
    for shards in generations:
        try:
            tasks += scatter_tasks(corpus, wanted_of(shards))
        except Exception as error:
            if stops_on_error(corpus):
                raise
            errors.append(failed(shards[0], error))
    costs: dict[str, list[Cost]] = {}
    for ended in map_with_progress(scatter_part, tasks, corpus.settings.engine):
        if stops_on_error(corpus):
            ended.value()
        task = tasks[ended.index]
        if ended.error is not None:
            errors.append(Outcome(task, [], (), False, ended.error))
        costs.setdefault(task.partition, []).append(ended.cost)
    return errors, costs


def scatter_tasks(corpus: Corpus, wanted: Shards) -> list[Task[ScatterInputs]]:
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
