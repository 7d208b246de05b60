"""A phase as shards in its order, for trainers that read files one after the other.

A task writes the samples of consecutive positions, which it looks up one by one in the flat files
of the sources. Memory: twice a shard, whatever the number of source shards, and the buffers of its
formats' writers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.mixed.phase_source_files import PhaseSource
from assets.sharded.flat_files import read_rows
from assets.sharded.shard_files import (
    INDEX,
    ShardSet,
    add_shard,
    part_fingerprint,
    shard_name,
    shard_schema,
)
from assets.sharded.shard_index_files import ShardsOrigin, publish_index
from assets.tokenized.token_facts import TokenFacts
from corpus_loader.files import LocalFiles
from corpus_loader.mixture import Mixture, parse_mixture
from corpus_loader.reader import LoaderOptions, Reader
from resources.corpus import Corpus
from resources.engine.map_parts import map_parts
from resources.settings.phases import PhaseConfig
from resources.store.disk import has_size, hash_file
from resources.store.records import PartRecord, fingerprint_of
from resources.store.store import StoreError
from resources.tasks import Task

DECIDING = {"seed", "batch_samples", "window_shards", "target_bytes"}  # the bytes of the shards


def shard_tasks(phase: Task) -> list[Task]:
    """The tasks that write a mixed phase, in order."""
    config: PhaseConfig = phase.payload["config"]
    path, _ = phase.published_file("mixture")
    mixture = mixture_at(path)
    tokens = msgspec.convert(phase.payload["about"], TokenFacts)
    about = shard_schema(tokens, mixture.sequence_length)
    num_bytes = stored_tokens(mixture, phase.payload["sources"]) * about.token_bytes
    num_shards = min(max(1, math.ceil(num_bytes / config.target_bytes)), mixture.epoch_samples)
    edges = [mixture.epoch_samples * number // num_shards for number in range(num_shards + 1)]
    data = fingerprint_of(
        phase.stage,
        phase.payload["code_version"],
        mixture.fingerprint,
        phase.payload["about"],
        mixture.sequence_length,
        config.target_bytes,
    )
    return [
        Task(
            root=phase.root,
            stage=phase.stage,
            partition=phase.partition,
            name=shard_name(number),
            fingerprint=part_fingerprint(data, config.formats, shard_name(number)),
            work_bytes=round(num_bytes / num_shards),
            payload={
                "mixture": path,
                "shards": ShardSet(config.formats, data, about),
                "number": number,
                "positions": (edges[number], edges[number + 1]),
            },
        )
        for number in range(num_shards)
    ]


def mixture_at(path: Path) -> Mixture:
    """Read the mixture of a phase whose samples are written."""
    return parse_mixture(path.read_bytes()).for_loader()


def stored_tokens(mixture: Mixture, sources: list[PhaseSource]) -> float:
    """Tokens of a phase with padding; where rows differ, as many as its sources have on average."""
    average = {source.name: source.stored_tokens / source.rows for source in sources}
    return sum(source.samples * average[source.name] for source in mixture.sources)


@dataclass(frozen=True)
class FlatCheck:
    """A file that samples are read from, and what it should be."""

    path: Path
    work_bytes: int
    sha256: str

    @property
    def title(self) -> str:
        """The file, for people."""
        return str(self.path)


def check_flat_files(corpus: Corpus, shards: Iterable[Task]) -> None:
    """Raise StoreError if a source file of shards that are to be written differs from the mixture.

    Otherwise its damage would be copied, and get a hash of its own. Every file is read once for all
    shards that are written.
    """
    root = corpus.store.root
    mixtures = {task.payload["mixture"] for task in shards if task.published() is None}
    checks = {
        FlatCheck(root / f"{shard.path}.{suffix}", file.bytes, file.sha256)
        for mixture in mixtures
        for source in mixture_at(mixture).sources
        for shard in source.shards
        for suffix, file in shard.files.items()
    }
    in_order = sorted(checks, key=lambda check: check.title)
    results = map_parts(is_as_mixed, in_order, corpus.settings.engine)
    damaged = sorted(in_order[index].title for index, is_good, _ in results if not is_good)
    if damaged:
        raise StoreError(
            f"{', '.join(damaged)}: missing, or not as when it was mixed; nothing was written from "
            "it. `corpus verify --repair` writes it again; then run again."
        )


def is_as_mixed(check: FlatCheck) -> bool:
    """True if the file is there with its bytes."""
    return has_size(check.path, check.work_bytes) and hash_file(check.path)[0] == check.sha256


def write_shard(task: Task) -> list[PartRecord]:
    """Write the samples of one shard in every format."""
    positions = np.arange(*task.payload["positions"])
    rows = read_samples(task.root, mixture_at(task.payload["mixture"]), positions)
    writer = task.writer()
    stats = add_shard(writer, task.payload["shards"], task.payload["number"], rows)
    return [writer.publish(stats)]


def read_samples(root: Path, mixture: Mixture, positions: NDArray[np.int64]) -> pl.DataFrame:
    """The samples at positions of a phase: num_tokens, tokens (padding included), spans."""
    reader = Reader(LocalFiles(root), mixture, mixture.seed, LoaderOptions())
    lookup = reader.look_up(positions)
    shards = reader.shards.shards
    return read_rows(
        root, mixture.token_dtype, shards, np.asarray(lookup.shards), np.asarray(lookup.rows)
    )


def index_task(phase: Task, shards: list[Task]) -> Task:
    """Return the task that writes the index beside the shards of a phase, once all are there."""
    together: ShardSet = shards[0].payload["shards"]
    return Task(
        root=phase.root,
        stage=phase.stage,
        partition=phase.partition,
        name=INDEX,
        fingerprint=part_fingerprint(together.data, together.formats, INDEX),
        work_bytes=0,
        payload={"phase": phase, "shards": shards},
    )


def write_index(task: Task) -> list[PartRecord]:
    """Write what readers want beside the shards, and a manifest.json for each format."""
    shards: list[Task] = task.payload["shards"]
    phase: Task = task.payload["phase"]
    together: ShardSet = shards[0].payload["shards"]
    made_by = ShardsOrigin(
        stage=task.stage,
        partition=task.partition,
        fingerprint=together.data,
        code_version=phase.payload["code_version"],
        mixture=mixture_at(shards[0].payload["mixture"]).fingerprint,
        config=phase.payload["config"].model_dump(mode="json", include=DECIDING),
        **phase.payload["about"],
    )
    records = []
    for shard in shards:
        published = shard.published()
        assert published is not None, f"{shard.title} is not published"
        records += published
    return [publish_index(task.writer(), together, records, made_by)]
