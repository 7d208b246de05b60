"""sharded: a seeded global shuffle of each source and bucket, in shards of a target size."""

from typing import Any

import msgspec

from assets.bucketed.asset import BUCKETED
from assets.sharded.drawn_files import drawn_folders
from assets.sharded.reused_files import has_all_files
from assets.sharded.scatter_files import read_pile, scatter_paths
from assets.sharded.shard_files import (
    ABOUT_TOKENS,
    INDEX,
    ShardSet,
    about_shards,
    add_shard,
    part_fingerprint,
    publish_index,
    shard_name,
)
from assets.sharded.shuffle import common_length, count_shards, gather
from assets.sharded.shuffle_files import plans_of, shuffle_sources
from resources.corpus import Corpus
from resources.settings.buckets import BucketConfig
from resources.settings.shards import ShardConfig
from resources.stage import Stage
from resources.store.records import Manifest, PartRecord, fingerprint_of
from resources.tasks import Outcome, Plan, Task, Work, run_tasks


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
    plans = plans_of(manifest, config)
    length = common_length(plans, BucketConfig.model_validate(manifest.config))
    common: dict[str, Any] = {
        "shards": ShardSet(config.formats, data, about_shards(manifest.provenance, length)),
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
            fingerprint=part_fingerprint(data, config.formats, name),
            work_bytes=manifest.stats.bytes // len(specs),
            payload=common | spec,
        )
        for name, spec in specs.items()
    ]
    return Plan(
        tasks,
        config.model_dump(mode="json"),
        manifest.provenance | {"bucketed": manifest.fingerprint},
    )


def made_by(manifest: Manifest, config: ShardConfig, data: str) -> dict[str, Any]:
    """What the manifest.json of every format says besides its files."""
    return {
        "stage": SHARDED.name,
        "partition": manifest.partition,
        "fingerprint": data,
        "code_version": SHARDED.code_version,
        "config": config.data(),
        **{key: manifest.provenance.get(key) for key in ABOUT_TOKENS},
    }


def run_passes(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Shuffle the sources into their shards, then write the indexes."""
    shards = [task for task in tasks if task.name != INDEX]
    indexes = [task for task in tasks if task.name == INDEX]
    return shuffle_sources(corpus, shards, work) + run_tasks(corpus, indexes, write_index)


def write_shard(task: Task) -> list[PartRecord]:
    """Read one shard's pile from every part, put it in order, write it in every format."""
    shards, earlier, writer = task.payload["shards"], task.payload["earlier"], task.writer()
    if has_all_files(earlier, shards.formats):
        writer.keep_files(earlier.files)
        return [writer.publish(earlier.stats)]
    paths = scatter_paths(task, task.payload["scattered"])
    try:
        rows = gather([read_pile(path, task.payload["number"]) for path in paths])
    except FileNotFoundError:
        if published := task.published():  # piles go when another run has published their shards
            return published
        raise
    stats = add_shard(writer, shards, task.payload["number"], rows, earlier)
    text_bytes = round(stats.tokens * task.payload["text_bytes_per_token"])
    extra = stats.numbers | {"shards": {task.payload["bucket"]: 1}}
    return [writer.publish(msgspec.structs.replace(stats, text_bytes=text_bytes, numbers=extra))]


def write_index(task: Task) -> list[PartRecord]:
    """Write what lies beside the shards: readers' indexes, and a manifest.json per format."""
    shards, records = task.payload["shards"], []
    for name in map(shard_name, range(task.payload["num_shards"])):
        record = task.folder.find_part(name, part_fingerprint(shards.data, shards.formats, name))
        assert record is not None, f"{task.title}: {name} is not published"
        records.append(record)
    return [publish_index(task.writer(), shards, records, task.payload["made_by"])]


SHARDED = Stage(
    name="sharded",
    code_version="2",
    description="Shuffled shards of sequences in every chosen format, each file with its hash.",
    partitions="source",
    after=(BUCKETED,),
    kinds=frozenset({"parquet"}),
    provenance=dict,
    numbers=dict,
    plan=plan_sharded,
    work=write_shard,
    run=run_passes,
    keep=drawn_folders,
)
