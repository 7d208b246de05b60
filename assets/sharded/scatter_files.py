"""First pass of the shuffle: files with the rows that each part sends to every shard.

Each part has an Arrow file with one record batch per shard, so that a shard's pile is one small
read per file, closed at once, and no more files are open than threads. No manifest names these
files, and they are removed once the shards that they feed are published: a run that misses one then
finds its shard published by another run. They are made again if a run needs them, so they are
flushed but not hashed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.bucketed.asset import BucketedManifest
from assets.sharded.shard_files import ShardInputs
from assets.sharded.shuffle import BucketShards, count_shards, scatter
from resources.corpus import Corpus
from resources.store.disk import sync_file
from resources.store.records import fingerprint_of, required_file
from resources.store.store import PartWriter, part_stem
from resources.tasks import Task

KIND = "piles"


@dataclass(frozen=True)
class ScatterInputs:
    """Input of the first pass over one bucketed part.

    `first_rows` are the sequences of each bucket in earlier parts; `is_wanted`, bool [shards],
    marks the shards to scatter rows for.
    """

    path: Path
    plans: list[BucketShards]
    first_rows: list[int]
    is_wanted: NDArray[np.bool_]


def scatter_fingerprint(wanted: list[Task[ShardInputs]]) -> str:
    """Return the name of the first pass for these shards; a repair scatters only lost shards."""
    return fingerprint_of([task.fingerprint for task in wanted])


def plan_scatter(
    corpus: Corpus,
    manifest: BucketedManifest,
    plans: list[BucketShards],
    wanted: list[Task[ShardInputs]],
) -> list[Task[ScatterInputs]]:
    """Plan the first pass for some shards of a source: the bucketed parts not scattered yet."""
    is_wanted = np.zeros(count_shards(plans), np.bool_)
    is_wanted[[task.payload.number for task in wanted]] = True
    fingerprint = scatter_fingerprint(wanted)
    first_rows = dict.fromkeys((plan.name for plan in plans), 0)
    tasks = []
    for number, part in enumerate(manifest.parts):
        file = required_file(manifest, part, "sequences")
        path = corpus.store.path_of(manifest, file)
        inputs = ScatterInputs(path, plans, list(first_rows.values()), is_wanted)
        task = wanted[0].sibling(scatter_name(number), fingerprint, inputs, work_bytes=file.bytes)
        if not scatter_path(task.folder.folder, number, fingerprint).exists():
            tasks.append(task)
        for name, count in part.stats.numbers.bucket_sequences.items():
            first_rows[name] += count
    return tasks


def scatter_part(task: Task[ScatterInputs]) -> None:
    """Sort one part into its shards' piles."""
    inputs, is_wanted = task.payload, task.payload.is_wanted
    placed = scatter(map_arrow(inputs.path), inputs.first_rows, inputs.plans)
    if not is_wanted.all():
        placed = placed.filter(pl.Series(is_wanted[placed["shard"].to_numpy()]))
    write_piles(task.writer(), placed.drop("bucket"), len(is_wanted))


def scatter_name(number: int) -> str:
    """Return the name of the scatter file of bucketed part `number`."""
    return f"scatter-{number:05d}"


def scatter_path(folder: Path, number: int, fingerprint: str) -> Path:
    """Return the path of a finished scatter file: gathering needs no list of them."""
    return folder / f"{part_stem(scatter_name(number), fingerprint)}.{KIND}.arrow"


def scatter_paths(shard: Task[ShardInputs], fingerprint: str) -> list[Path]:
    """Return the scatter files of all parts of a shard's source."""
    folder = shard.folder.folder
    return [scatter_path(folder, n, fingerprint) for n in range(shard.payload.num_parts)]


def remove_piles(wanted: list[Task[ShardInputs]]) -> None:
    """Remove the files of the first pass for these shards, which are published now."""
    for path in scatter_paths(wanted[0], scatter_fingerprint(wanted)) if wanted else []:
        path.unlink(missing_ok=True)


def write_piles(writer: PartWriter, placed: pl.DataFrame, num_shards: int) -> None:
    """Write rows sorted by `shard` as one record batch per shard, empty ones included."""
    import pyarrow as pa

    edges = np.searchsorted(placed["shard"].to_numpy(), np.arange(num_shards + 1))
    table = placed.drop("shard").to_arrow().combine_chunks()
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    temporary, final = writer.new_file(KIND, "arrow")
    with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as batches:
        for start, stop in pairwise(edges):
            pile = table.slice(start, stop - start).to_batches()
            batches.write_batch(pile[0] if pile else empty)
    sync_file(temporary)
    os.replace(temporary, writer.partition.folder / final)


def read_pile(path: Path, shard: int) -> pl.DataFrame:
    """Read one shard's pile, without the others."""
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
        frame = pl.from_arrow(reader.get_batch(shard))
    assert isinstance(frame, pl.DataFrame)
    return frame


def map_arrow(path: Path) -> pl.DataFrame:
    """Map an Arrow file into memory: sorting it reads each page once, and copies once."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        frame = pl.from_arrow(pa.ipc.open_file(file).read_all())
    assert isinstance(frame, pl.DataFrame)
    return frame
