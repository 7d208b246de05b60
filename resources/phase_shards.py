"""A phase as shards in its order, for trainers that read files one after the other.

A task writes the samples of consecutive positions, which it looks up one by one in the flat files
of the sources; memory: a few times a shard.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.transforms.mixed import PhaseConfig
from resources.corpus import Task
from resources.flat_files import map_rows, map_spans, read_rows
from resources.phase_mixture import phase_order
from resources.phase_sources import PhaseSource
from resources.records import PartRecord, fingerprint_of
from resources.shard_files import (
    INDEX,
    ShardSet,
    about_shards,
    add_shard,
    publish_index,
    shard_name,
)


def shard_tasks(phase: Task) -> list[Task]:
    """The tasks that write a mixed phase, in order."""
    config: PhaseConfig = phase.spec["config"]
    path, _ = phase.published_file("mixture")
    mixture = json.loads(path.read_bytes())
    about = about_shards(mixture, mixture["sequence_length"])
    data = fingerprint_of(mixture["fingerprint"], config.target_bytes)
    num_samples: int = mixture["epoch_samples"]
    num_bytes = stored_tokens(mixture, phase.spec["sources"]) * about.token_bytes
    num_shards = min(max(1, math.ceil(num_bytes / config.target_bytes)), num_samples)
    edges = [num_samples * number // max(1, num_shards) for number in range(num_shards + 1)]
    return [
        Task(
            root=phase.root,
            stage=phase.stage,
            partition=phase.partition,
            name=shard_name(number),
            fingerprint=fingerprint_of(data, config.formats, number),
            work_bytes=round(num_bytes / num_shards),
            spec={
                "mixture": path,
                "shards": ShardSet(config.formats, data, about),
                "number": number,
                "positions": (edges[number], edges[number + 1]),
            },
        )
        for number in range(num_shards)
    ]


def stored_tokens(mixture: dict[str, Any], sources: list[PhaseSource]) -> float:
    """Tokens of a phase with padding; where rows differ, as many as its sources have on average."""
    samples = {entry["name"]: entry["samples"] for entry in mixture["sources"]}
    return sum(
        float(samples[source.name] * source.stored_tokens / source.rows) for source in sources
    )


def write_shard(task: Task) -> list[PartRecord]:
    """Write the samples of one shard in every format."""
    mixture = json.loads(task.spec["mixture"].read_bytes())
    start, stop = task.spec["positions"]
    rows = read_samples(task.root, mixture, np.arange(start, stop))
    writer = task.writer()
    stats = add_shard(writer, task.spec["shards"], task.spec["number"], rows)
    return [writer.publish(stats)]


def read_samples(root: Path, mixture: dict[str, Any], positions: NDArray[np.int64]) -> pl.DataFrame:
    """The samples at positions of a phase: num_tokens, tokens (padding included), spans."""
    found = phase_order(mixture).samples(positions)
    shards = [shard for source in mixture["sources"] for shard in source["shards"]]
    first_row = np.cumsum([0, *(shard["rows"] for shard in shards)])
    first_shard = np.cumsum([0, *(len(source["shards"]) for source in mixture["sources"])])
    row = first_row[first_shard[found.source]] + found.row
    shard = np.searchsorted(first_row, row, side="right") - 1
    needed, number = np.unique(shard, return_inverse=True)
    opened = []
    for each in needed:
        stem, rows = root / shards[each]["path"], shards[each]["rows"]
        spans = stem.with_name(f"{stem.name}.spans")
        opened.append((map_rows(stem, rows, mixture["token_dtype"]), map_spans(spans, rows)))
    return read_rows(opened, number, row - first_row[shard])


def index_task(phase: Task, shards: list[Task]) -> Task:
    """The task that writes what lies beside the shards of a phase, once all are there."""
    return Task(
        root=phase.root,
        stage=phase.stage,
        partition=phase.partition,
        name=INDEX,
        fingerprint=fingerprint_of(INDEX, [task.fingerprint for task in shards]),
        work_bytes=0,
        spec={"phase": phase, "shards": shards},
    )


def write_index(task: Task) -> list[PartRecord]:
    """Write what readers want beside the shards, and a manifest.json for each format."""
    shards: list[Task] = task.spec["shards"]
    phase: Task = task.spec["phase"]
    path, _ = phase.published_file("mixture")
    mixture = json.loads(path.read_bytes())
    made_by = {
        "stage": task.stage,
        "partition": task.partition,
        "fingerprint": mixture["fingerprint"],
        "config": phase.spec["config"].model_dump(mode="json"),
        **phase.spec["about"],
    }
    records = [record for shard in shards for record in shard.published() or []]
    return [publish_index(task.writer(), shards[0].spec["shards"], records, made_by)]
