"""sharded: a seeded global shuffle of each source and bucket, in shards of a target size."""

from dataclasses import replace
from typing import Any

import dagster as dg
import msgspec

from assets.bucketed import bucketed
from assets.transforms.bucketed import BucketConfig
from assets.transforms.sharded import (
    BucketShards,
    ShardConfig,
    common_length,
    count_shards,
    gather,
    plan_shards,
    stored_buckets,
)
from pipeline_defs.partitions import SOURCES
from resources.corpus import Corpus, Outcome, Plan, Task, Work, run_tasks
from resources.engine import map_parts
from resources.records import Manifest, PartRecord, fingerprint_of
from resources.scatter_files import (
    plan_scatter,
    read_pile,
    scatter_fingerprint,
    scatter_part,
    scatter_path,
)
from resources.shard_files import (
    ABOUT_TOKENS,
    INDEX,
    ShardSet,
    about_shards,
    add_shard,
    publish_index,
    shard_name,
)
from resources.stages import Stage, run_stage, stage_asset
from resources.store import StoreError

SHARDED = Stage("sharded", code_version="2")
TOKEN_BYTES = {"uint16": 2, "uint32": 4}


@stage_asset(SHARDED, deps=[bucketed], partitions=SOURCES, kinds={"parquet"})
def sharded(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """Shuffled shards of sequences in every chosen format, each file with its hash."""
    return run_stage(context, SHARDED, plan_sharded, write_shard, run=run_passes)


def plan_sharded(corpus: Corpus, source: str) -> Plan:
    """One task per shard, which depends on every bucketed part of the source; the index last."""
    manifest = corpus.store.newest("bucketed", source)
    config = corpus.settings.shards
    data = fingerprint_of(
        SHARDED.name,
        SHARDED.code_version,
        config.data(),
        [part.fingerprint for part in manifest.parts],
    )
    plans = plans_of(corpus, manifest)
    length = common_length(plans, BucketConfig.model_validate(manifest.config))
    common: dict[str, Any] = {
        "shards": ShardSet(config.formats, data, about_shards(manifest.about, length)),
        "bucketed": manifest.fingerprint,
        "num_parts": len(manifest.parts),
        "num_shards": count_shards(plans),
    }
    text_bytes = manifest.stats.text_bytes / max(1, manifest.stats.tokens)
    specs: dict[str, dict[str, Any]] = {
        shard_name(plan.first_shard + number): {
            "number": plan.first_shard + number,
            "bucket": plan.name,
            "text_bytes_per_token": text_bytes,
        }
        for plan in plans
        for number in range(plan.num_shards)
    }
    specs[INDEX] = {"made_by": made_by(manifest, config, data)}
    tasks = [
        Task(
            root=corpus.store.root,
            stage=SHARDED.name,
            partition=source,
            name=name,
            fingerprint=part_fingerprint(common["shards"], name),
            work_bytes=manifest.stats.bytes // len(specs),
            spec=common | spec,
        )
        for name, spec in specs.items()
    ]
    return Plan(
        tasks, config.model_dump(mode="json"), manifest.about | {"bucketed": manifest.fingerprint}
    )


def part_fingerprint(shards: ShardSet, name: str) -> str:
    """Fingerprint of a shard, or of the index."""
    return fingerprint_of(shards.data, shards.formats, name)


def made_by(manifest: Manifest, config: ShardConfig, data: str) -> dict[str, Any]:
    """What the manifest.json of every format says besides its files."""
    return {
        "stage": SHARDED.name,
        "partition": manifest.partition,
        "fingerprint": data,
        "code_version": SHARDED.code_version,
        "config": config.data(),
        **{key: manifest.about.get(key) for key in ABOUT_TOKENS},
    }


def plans_of(corpus: Corpus, manifest: Manifest) -> list[BucketShards]:
    """The shards of each bucket of a source, from the counts of its bucketed parts."""
    extra, bucketing = manifest.stats.extra, BucketConfig.model_validate(manifest.config)
    sequences, tokens = extra.get("bucket_sequences", {}), extra.get("bucket_tokens", {})
    buckets = stored_buckets(sequences, tokens, bucketing)
    width = TOKEN_BYTES[manifest.about["token_dtype"]]
    return plan_shards(manifest.partition, buckets, width, corpus.settings.shards)


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Scatter for sources with a missing shard, gather the shards, then write the indexes."""
    shards = [task for task in tasks if task.name != INDEX]
    missing: dict[str, list[Task]] = {}
    for task in shards:
        if task.published() is None:
            missing.setdefault(task.partition, []).append(task)
    scatters = [each for wanted in missing.values() for each in scatter_tasks(corpus, wanted)]
    seconds = dict.fromkeys(missing, 0.0)
    for index, _, spent in map_parts(scatter_part, scatters, corpus.settings.engine):
        seconds[scatters[index].partition] += spent
    gathers = [
        replace(task, spec={**task.spec, "scattered": scatter_fingerprint(missing[task.partition])})
        if task.partition in missing
        else task
        for task in shards
    ]
    indexes = [task for task in tasks if task.name == INDEX]
    return [
        outcome
        if outcome.is_reused
        else replace(outcome, seconds=outcome.seconds + seconds.pop(outcome.task.partition, 0.0))
        for outcome in run_tasks(corpus, gathers, work) + run_tasks(corpus, indexes, write_index)
    ]


def scatter_tasks(corpus: Corpus, wanted: list[Task]) -> list[Task]:
    """The first pass for the missing shards of a source."""
    manifest = corpus.store.newest("bucketed", wanted[0].partition)
    if manifest.fingerprint != wanted[0].spec["bucketed"]:
        raise StoreError(
            f"bucketed[{manifest.partition}] was committed anew since {wanted[0].title} was "
            "planned. Run again."
        )
    return plan_scatter(corpus, manifest, plans_of(corpus, manifest), wanted)


def write_shard(task: Task) -> list[PartRecord]:
    """Read one shard's pile from every part, put it in order, write it in every format."""
    folder, scattered = task.folder.folder, task.spec["scattered"]
    paths = [scatter_path(folder, n, scattered) for n in range(task.spec["num_parts"])]
    rows = gather([read_pile(path, task.spec["number"]) for path in paths])
    writer = task.writer()
    stats = add_shard(writer, task.spec["shards"], task.spec["number"], rows)
    text_bytes = round(stats.tokens * task.spec["text_bytes_per_token"])
    extra = stats.extra | {"shards": {task.spec["bucket"]: 1}}
    return [writer.publish(msgspec.structs.replace(stats, text_bytes=text_bytes, extra=extra))]


def write_index(task: Task) -> list[PartRecord]:
    """Write what lies beside the shards: readers' indexes, and a manifest.json per format."""
    shards, records = task.spec["shards"], []
    for name in map(shard_name, range(task.spec["num_shards"])):
        record = task.folder.find_part(name, part_fingerprint(shards, name))
        assert record is not None, f"{task.title}: {name} is not published"
        records.append(record)
    return [publish_index(task.writer(), shards, records, task.spec["made_by"])]
