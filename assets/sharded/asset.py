"""Asset `sharded`: a seeded shuffle of each source and bucket, in shards of a target size."""

from dataclasses import dataclass

import msgspec
from msgspec.structs import asdict

from assets.bucketed.asset import BUCKETED, BucketedManifest, BucketedProvenance
from assets.bucketed.sequences import ROW_COLUMNS
from assets.sharded.drawn_files import drawn_places
from assets.sharded.reused_files import has_all_files
from assets.sharded.scatter_files import read_pile, scatter_paths
from assets.sharded.shard_files import (
    INDEX,
    ShardedNumbers,
    ShardInputs,
    ShardSet,
    add_shard,
    part_fingerprint,
    shard_name,
    shard_schema,
)
from assets.sharded.shard_index_files import ShardsOrigin, publish_index
from assets.sharded.shuffle import BucketShards, common_length, gather
from assets.sharded.shuffle_files import plans_of, shuffle_sources
from assets.tokenized.token_facts import TokenFacts
from resources.corpus import Corpus
from resources.settings.buckets import BucketConfig
from resources.settings.shards import ShardConfig
from resources.stage import MainTable, Stage
from resources.store.records import PartRecord, fingerprint_of
from resources.tasks import Outcome, Plan, Task, Work, run_tasks, tasks_of


class ShardedProvenance(BucketedProvenance, frozen=True, kw_only=True):
    """Inputs of the stage `sharded`: those of `bucketed`, and its fingerprint."""

    bucketed: str


@dataclass(frozen=True)
class IndexInputs:
    """Input of the task that writes a source's index files, when all its shards are published."""

    shards: ShardSet
    num_shards: int
    origin: ShardsOrigin


def plan_sharded(corpus: Corpus, source: str) -> Plan:
    """Plan a task per shard, which depends on every bucketed part of the source; the index last."""
    manifest = corpus.store.newest(BUCKETED, source)
    config = corpus.settings.shards
    data = fingerprint_of(
        SHARDED.name,
        SHARDED.code_version,
        config.data(),
        [part.fingerprint for part in manifest.parts],
    )
    plans = plans_of(manifest, config)
    length = common_length(plans, BucketConfig.model_validate(manifest.config))
    shards = ShardSet(config.formats, data, shard_schema(manifest.provenance, length))
    inputs = shard_inputs(manifest, shards, plans)
    index = IndexInputs(shards, len(inputs), origin_of(manifest, config, data))
    payloads: dict[str, ShardInputs | IndexInputs] = {shard_name(i.number): i for i in inputs}
    payloads[INDEX] = index
    make, work_bytes = tasks_of(corpus, SHARDED, source), manifest.stats.bytes // len(payloads)
    tasks: list[Task] = [
        make.with_fingerprint(
            name, part_fingerprint(data, config.formats, name), payload, work_bytes=work_bytes
        )
        for name, payload in payloads.items()
    ]
    provenance = ShardedProvenance(**asdict(manifest.provenance), bucketed=manifest.fingerprint)
    return Plan(tasks, config.model_dump(mode="json"), provenance)


def shard_inputs(
    manifest: BucketedManifest, shards: ShardSet, plans: list[BucketShards]
) -> list[ShardInputs]:
    """Return the input of every shard, in order."""
    return [
        ShardInputs(
            shards=shards,
            bucketed=manifest.fingerprint,
            num_parts=len(manifest.parts),
            number=number,
            bucket=plan.name,
            text_bytes_per_token=manifest.stats.text_bytes / max(1, manifest.stats.tokens),
        )
        for plan in plans
        for number in range(plan.first_shard, plan.first_shard + plan.num_shards)
    ]


def origin_of(manifest: BucketedManifest, config: ShardConfig, data: str) -> ShardsOrigin:
    """Return the origin of a source's shards, for the manifest.json of every format."""
    names = TokenFacts.__struct_fields__
    return ShardsOrigin(
        **{name: getattr(manifest.provenance, name) for name in names},
        stage=SHARDED.name,
        partition=manifest.partition,
        fingerprint=data,
        code_version=SHARDED.code_version,
        config=config.data(),
    )


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Shuffle the sources into their shards, then write the indexes of those that did not fail."""
    shards = shuffle_sources(corpus, [task for task in tasks if task.name != INDEX], work)
    failed = {outcome.task.partition for outcome in shards if outcome.error is not None}
    indexes = [task for task in tasks if task.name == INDEX and task.partition not in failed]
    return shards + run_tasks(corpus, indexes, write_index)


def write_shard(task: Task[ShardInputs]) -> list[PartRecord]:
    """Read one shard's pile from every part, put it in order, write it in every format."""
    inputs, writer = task.payload, task.writer()
    earlier = inputs.earlier
    if earlier is not None and has_all_files(earlier, inputs.shards.formats):
        writer.keep_files(earlier.files)
        return [writer.publish(earlier.stats)]
    paths = scatter_paths(task, inputs.scattered)
    try:
        rows = gather([read_pile(path, inputs.number) for path in paths])
    except FileNotFoundError:
        if published := task.published():  # piles go when another run has published their shards
            return published
        raise
    stats = add_shard(writer, inputs.shards, inputs.number, rows, earlier)
    text_bytes = round(stats.tokens * inputs.text_bytes_per_token)
    numbers = ShardedNumbers(**asdict(stats.numbers), shards={inputs.bucket: 1})
    return [writer.publish(msgspec.structs.replace(stats, text_bytes=text_bytes, numbers=numbers))]


def write_index(task: Task[IndexInputs]) -> list[PartRecord]:
    """Write the files beside the shards: readers' indexes, and a manifest.json per format."""
    shards, records = task.payload.shards, []
    for name in map(shard_name, range(task.payload.num_shards)):
        record = task.folder.find_part(name, part_fingerprint(shards.data, shards.formats, name))
        assert record is not None, f"{task.title}: {name} is not published"
        records.append(record)
    return [publish_index(task.writer(), shards, records, task.payload.origin)]


SHARDED = Stage(
    name="sharded",
    code_version="2",
    description="Shuffled shards of sequences in every chosen format, each file with its hash.",
    group="train",
    partitions="source",
    after=(BUCKETED,),
    kinds=frozenset({"parquet"}),
    provenance=ShardedProvenance,
    numbers=ShardedNumbers,
    settings=lambda settings: settings.shards.model_dump(mode="json"),
    plan=plan_sharded,
    work=write_shard,
    main_table=MainTable("parquet.parquet", ROW_COLUMNS),
    run=run_passes,
    keep=drawn_places,
)
