"""Both passes of the shuffle, for a few sources at a time.

The piles between the passes take as much disk as the tokens in them. They go as soon as the shards
that they feed are published, before the next sources are scattered: disk for GROUP_BYTES, or for
the largest source if that is more, instead of for the whole corpus. One source at a time would
leave cores idle where sources are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from assets.bucketed.make_sequences import group_windows
from assets.sharded.reused_files import earlier_files, has_all_files
from assets.sharded.scatter_files import (
    plan_scatter,
    remove_piles,
    scatter_fingerprint,
    scatter_part,
    scatter_paths,
)
from assets.sharded.shard_files import about_shards
from assets.sharded.shuffle import BucketShards, plan_shards, stored_buckets
from resources.corpus import Corpus
from resources.engine.map_parts import map_parts
from resources.settings.buckets import BucketConfig
from resources.settings.shards import ShardConfig
from resources.store.records import Manifest
from resources.store.store import StoreError
from resources.tasks import Outcome, Task, Work, run_tasks

GROUP_BYTES = 8 << 30  # 128 shards of 64 MiB: work for all cores; starting a pool takes 1 s


@dataclass(frozen=True)
class SourceShards:
    """The shards of a source, and those of them for which its rows are scattered."""

    tasks: list[Task]
    wanted: list[Task]

    @property
    def work_bytes(self) -> int:
        """Bytes of the tokens in the piles."""
        return sum(task.work_bytes for task in self.wanted)


def plans_of(manifest: Manifest, config: ShardConfig) -> list[BucketShards]:
    """The shards of each bucket of a source, from the counts of its bucketed parts."""
    extra, bucketing = manifest.stats.numbers, BucketConfig.model_validate(manifest.config)
    sequences, tokens = extra.get("bucket_sequences", {}), extra.get("bucket_tokens", {})
    buckets = stored_buckets(sequences, tokens, bucketing)
    return plan_shards(
        manifest.partition, buckets, about_shards(manifest.provenance, None).token_bytes, config
    )


def shuffle_sources(corpus: Corpus, shards: Sequence[Task], work: Work) -> list[Outcome]:
    """Scatter and gather the shards that are not published; outcomes of all, in order."""
    by_source: dict[str, list[Task]] = {}
    for task in shards:
        by_source.setdefault(task.partition, []).append(task)
    sources = [prepare(tasks) for tasks in by_source.values()]
    groups = group_windows([source.work_bytes for source in sources], GROUP_BYTES)
    return [outcome for group in groups for outcome in shuffle_group(corpus, sources[group], work)]


def prepare(tasks: list[Task]) -> SourceShards:
    """Give the tasks of a source what need not be made again: files, and piles of a killed run."""
    missing = [task for task in tasks if task.published() is None]
    if not missing:
        return SourceShards(tasks, [])
    earlier = earlier_files(tasks[0].folder, tasks[0].payload["shards"])
    wanted = [
        task
        for task in missing
        if not has_all_files(earlier.get(task.name), task.payload["shards"].formats)
    ]
    if wanted and all(
        path.exists() for path in scatter_paths(tasks[0], scatter_fingerprint(tasks))
    ):
        wanted = tasks  # a run was killed while it gathered: its piles hold all shards
    spec = {"scattered": scatter_fingerprint(wanted)}
    return SourceShards(
        [
            replace(task, payload={**task.payload, **spec, "earlier": earlier.get(task.name)})
            for task in tasks
        ],
        wanted,
    )


def shuffle_group(corpus: Corpus, sources: Sequence[SourceShards], work: Work) -> list[Outcome]:
    """Both passes for some sources; the seconds of the first count for a source's first shard."""
    scatters = [task for source in sources for task in scatter_tasks(corpus, source.wanted)]
    seconds: dict[str, float] = {}
    for index, _, spent in map_parts(scatter_part, scatters, corpus.settings.engine):
        partition = scatters[index].partition
        seconds[partition] = seconds.get(partition, 0.0) + spent
    outcomes = run_tasks(corpus, [task for source in sources for task in source.tasks], work)
    for source in sources:
        remove_piles(source.wanted)
    return [
        outcome
        if outcome.is_reused
        else replace(outcome, seconds=outcome.seconds + seconds.pop(outcome.task.partition, 0.0))
        for outcome in outcomes
    ]


def scatter_tasks(corpus: Corpus, wanted: list[Task]) -> list[Task]:
    """The first pass for these shards of a source; none without shards."""
    if not wanted:
        return []
    manifest = corpus.store.newest("bucketed", wanted[0].partition)
    if manifest.fingerprint != wanted[0].payload["bucketed"]:
        raise StoreError(
            f"bucketed[{manifest.partition}] was committed anew since {wanted[0].title} was "
            "planned. Run again."
        )
    return plan_scatter(corpus, manifest, plans_of(manifest, corpus.settings.shards), wanted)
