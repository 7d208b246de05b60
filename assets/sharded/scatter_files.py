"""First pass of the shuffle: files with the rows that each part sends to every shard.

Each part has a file with one Arrow record batch per shard, so that a shard's pile is one small read
per file, closed at once, and no more files are open than threads. A pile has the numbers of rows
and their positions, since the rows of a part are read fastest where they are. Of a source that
takes more than a quarter of memory it has the rows: every shard would read them at random places
from disk, where the pass reads and writes them once, in order. No manifest names these files,
and they are removed once the shards that they feed are published: a run that misses one then finds
its shard published by another run. So the file itself holds the hash of every pile, and a pile is
compared with it when it is read. A damaged file is removed: the next run writes it again.

    schema, pile 0, pile 1, ...     Arrow messages
    PLACE of each of them, xxh3_128 of these places, their number (uint64)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import polars as pl
import xxhash
from numpy.typing import NDArray

from assets.sharded.generations import indices_of
from assets.sharded.ledger_files import (
    BucketedPart,
    Generation,
    GenerationFiles,
    read_sequences,
)
from assets.sharded.shard_files import ShardInputs, earlier_files, has_all_files
from assets.sharded.shuffle import BucketShards, Pile, count_shards, gather, scatter
from resources.engine.cost import memory_bytes
from resources.store.disk import sync_file
from resources.store.mapped_files import MappedTables, map_arrow
from resources.store.medium import medium_of
from resources.store.published import PublishedFile, copied_ahead
from resources.store.records import DamagedFileError, fingerprint_of
from resources.store.store import PartWriter, part_stem
from resources.tasks import Task

KIND = "piles"
HASH_BYTES = 16
PLACE = np.dtype([("stop", "<u8"), ("xxh3", f"V{HASH_BYTES}")])  # end of a message, its xxh3_128


SEQUENCES = b"sequences"  # key of the schema's metadata: where rows with these numbers are


class FilePlace(msgspec.Struct, frozen=True):
    """Published file: its path from the pile's folder, size and hash."""

    path: str
    bytes: int
    xxh3: str


class SequencesPlace(msgspec.Struct, frozen=True):
    """Published files with the rows of a pile, and with the tokens of their documents."""

    sequences: FilePlace
    tokens: tuple[FilePlace, ...]


@dataclass(frozen=True)
class ScatterInputs:
    """Input of the first pass over one bucketed part, for one generation.

    `rows` are the generation's, and `spans` the ranges of its indices that the part's rows are
    within; `is_wanted`, bool [shards], marks the shards to scatter rows for. With `copies_rows`
    the piles have the rows themselves.
    """

    part: BucketedPart
    rows: GenerationFiles
    spans: tuple[tuple[int, int], ...]
    plans: list[BucketShards]
    is_wanted: NDArray[np.bool_]
    copies_rows: bool


def scatter_fingerprint(wanted: list[Task[ShardInputs]]) -> str:
    """Return the name of the first pass for these shards; a repair scatters only lost shards."""
    ledgers = {task.payload.ledger for task in wanted}  # and so the parts that hold the rows
    return fingerprint_of([*sorted(ledgers), *(task.fingerprint for task in wanted)])


def with_earlier_files(tasks: list[Task[ShardInputs]]) -> list[Task[ShardInputs]]:
    """Give the shards of a generation the files to keep; mark those for which rows are scattered.

    All are marked if a run was killed while it gathered: its piles hold all shards.
    """
    missing = [task for task in tasks if task.published() is None]
    if not missing:
        return tasks
    shards = tasks[0].payload.shards
    earlier = earlier_files(tasks[0].folder, shards)
    wanted = [task for task in missing if not has_all_files(earlier.get(task.name), shards.formats)]
    if wanted and has_piles(tasks[0], scatter_fingerprint(tasks)):
        wanted = tasks
    scattered, names = scatter_fingerprint(wanted), {task.name for task in wanted}
    inputs = (
        replace(
            task.payload,
            scattered=scattered,
            is_wanted=task.name in names,
            earlier=earlier.get(task.name),
        )
        for task in tasks
    )
    return [replace(task, payload=each) for task, each in zip(tasks, inputs, strict=True)]


def plan_scatter(
    generation: Generation,
    rows: GenerationFiles,
    parts: dict[tuple[str, str], BucketedPart],
    plans: list[BucketShards],
    wanted: list[Task[ShardInputs]],
) -> list[Task[ScatterInputs]]:
    """Plan the first pass for some shards of a generation: the parts not scattered yet.

    `parts` are those of the source by name and fingerprint.
    """
    is_wanted = np.zeros(count_shards(plans), np.bool_)
    is_wanted[[task.payload.number for task in wanted]] = True
    fingerprint = scatter_fingerprint(wanted)
    owned_bytes = sum(parts[owned.key].bytes for owned in generation.parts)
    copies_rows = owned_bytes > memory_bytes() // 4
    written = set(wanted[0].folder.medium.names(wanted[0].folder.folder))
    tasks = []
    for number, owned in enumerate(generation.parts):
        part = parts[owned.key]
        inputs = ScatterInputs(part, rows, owned.spans, plans, is_wanted, copies_rows)
        work_bytes = part.bytes if copies_rows else part.ids.bytes
        task = wanted[0].sibling(scatter_name(number), fingerprint, inputs, work_bytes=work_bytes)
        if scatter_path(task.folder.folder, number, fingerprint).name not in written:
            tasks.append(task)
    return tasks


def scatter_part(task: Task[ScatterInputs]) -> None:
    """Sort the rows of one part that are of the generation into its shards' piles."""
    inputs, writer = task.payload, task.writer()
    ids = read_sequences(inputs.part.ids, sum(inputs.part.counts)).ids
    indices = indices_of(ids, inputs.rows.read(), [range(*span) for span in inputs.spans])
    placed = scatter(indices, inputs.plans)
    if not inputs.is_wanted.all():
        placed = placed.filter(pl.Series(inputs.is_wanted[placed["shard"].to_numpy()]))
    if inputs.copies_rows:
        part, in_order = inputs.part, np.arange(placed.height, dtype=np.uint64)
        rows = gather([mapped_pile(part.sequences, part.tokens, placed, in_order)], part.padding)
        write_piles(writer, placed.drop("row").hstack(rows), len(inputs.is_wanted), None)
    else:
        write_piles(writer, placed, len(inputs.is_wanted), inputs.part)


def scatter_name(number: int) -> str:
    """Return the name of the scatter file of part `number` of a generation."""
    return f"scatter-{number:05d}"


def scatter_path(folder: Path, number: int, fingerprint: str) -> Path:
    """Return the path of a finished scatter file: gathering needs no list of them."""
    return folder / f"{part_stem(scatter_name(number), fingerprint)}.{KIND}.bin"


def scatter_paths(shard: Task[ShardInputs], fingerprint: str) -> list[Path]:
    """Return the scatter files of all parts of a shard's generation."""
    folder = shard.folder.folder
    return [scatter_path(folder, n, fingerprint) for n in range(shard.payload.num_parts)]


def has_piles(shard: Task[ShardInputs], fingerprint: str) -> bool:
    """Return whether the scatter files of all parts are there."""
    written = set(shard.folder.medium.names(shard.folder.folder))
    return written.issuperset(path.name for path in scatter_paths(shard, fingerprint))


def remove_piles(wanted: list[Task[ShardInputs]]) -> None:
    """Remove the files of the first pass for these shards, which are published now."""
    if wanted:
        paths = scatter_paths(wanted[0], scatter_fingerprint(wanted))
        wanted[0].folder.medium.remove_all(paths)


def write_piles(
    writer: PartWriter, placed: pl.DataFrame, num_shards: int, part: BucketedPart | None
) -> None:
    """Write rows sorted by `shard` as one record batch per shard, empty ones included.

    `part` is the one that numbers of rows refer to.
    """
    import pyarrow as pa

    edges = np.searchsorted(placed["shard"].to_numpy(), np.arange(num_shards + 1))
    table = placed.drop("shard").to_arrow().combine_chunks()
    if part is not None:
        folder = writer.partition.folder
        sequences, *tokens = (
            FilePlace(file.seen_from(folder), file.bytes, file.xxh3)
            for file in (part.sequences, *part.tokens)
        )
        place = SequencesPlace(sequences, tuple(tokens))
        table = table.replace_schema_metadata({SEQUENCES: msgspec.json.encode(place)})
    columns = [pa.nulls(0, field.type) for field in table.schema]  # from_pylist imports pandas
    empty = pa.RecordBatch.from_arrays(columns, schema=table.schema)
    temporary, final = writer.new_file(KIND, "bin")
    places = np.zeros(num_shards + 1, PLACE)
    with temporary.open("wb") as file:
        for number in range(num_shards + 1):
            if number == 0:
                message = table.schema.serialize()
            else:
                pile = table.slice(edges[number - 1], edges[number] - edges[number - 1])
                message = next(iter(pile.to_batches()), empty).serialize()
            file.write(message)
            places[number] = file.tell(), np.void(xxhash.xxh3_128_digest(message))
        index = places.tobytes()
        file.write(index + xxhash.xxh3_128_digest(index) + len(places).to_bytes(8, "little"))
    sync_file(temporary)
    writer.partition.medium.publish(temporary, writer.partition.folder / final)


def read_pile(path: Path, shard: int) -> Pile:
    """Read one shard's pile, without the others; DamagedFileError if it was not written so."""
    import pyarrow as pa

    medium = medium_of(path.parent)
    with medium.open(path) as file:
        try:
            places = read_places(file)
            schema, pile = (read_message(file, places, number) for number in (0, shard + 1))
        except FileNotFoundError:  # an object that went while it was read
            raise
        except (ValueError, IndexError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise  # of the disk
            medium.remove_all([path])
            raise DamagedFileError(
                f"{path} changed since it was written ({error}). Nothing was made of it, and it "
                "was removed: run the same command again, which writes it again."
            ) from error
    batch = pa.ipc.read_record_batch(pa.py_buffer(pile), pa.ipc.read_schema(pa.py_buffer(schema)))
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    positions = frame["position"].to_numpy()
    if (of_rows := (batch.schema.metadata or {}).get(SEQUENCES)) is None:
        return Pile(frame, np.arange(frame.height), positions)
    place = msgspec.json.decode(of_rows, type=SequencesPlace)
    sequences, *tokens = (
        PublishedFile(Path(os.path.normpath(path.parent / file.path)), file.bytes, file.xxh3)
        for file in (place.sequences, *place.tokens)
    )
    return mapped_pile(sequences, tokens, frame, positions)


def mapped_pile(
    sequences: PublishedFile,
    tokens: Sequence[PublishedFile],
    placed: pl.DataFrame,
    positions: NDArray[np.uint64],
) -> Pile:
    """Map the files that have some rows of a part; `placed` has their numbers, `row`."""
    rows = placed["row"].to_numpy().astype(np.int64)
    paths = [file.checked() for file in copied_ahead(tokens)]
    documents = MappedTables(paths, ["tokens"]) if paths else None
    return Pile(map_arrow(sequences.checked()), rows, positions, documents)


def read_piles(paths: list[Path], shard: int) -> list[Pile]:
    """Read one shard's pile of every file; of an object store, with many requests in flight."""
    if not paths:
        return []
    return medium_of(paths[0].parent).each(lambda path: read_pile(path, shard), paths)


def read_places(file: BinaryIO) -> NDArray[np.void]:
    """Read the places of a scatter file's messages; ValueError if they have another hash."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - HASH_BYTES - 8))
    digest, count = file.read(HASH_BYTES), int.from_bytes(file.read(8), "little")
    index_bytes = min(count * PLACE.itemsize, size)
    file.seek(max(0, size - HASH_BYTES - 8 - index_bytes))
    index = file.read(index_bytes)
    if xxhash.xxh3_128_digest(index) != digest:
        raise ValueError("the hash of its index differs")
    return np.frombuffer(index, PLACE)


def read_message(file: BinaryIO, places: NDArray[np.void], number: int) -> bytes:
    """Read a message of a scatter file; ValueError if it has another hash."""
    start = int(places["stop"][number - 1]) if number else 0
    file.seek(start)
    message = file.read(int(places["stop"][number]) - start)
    if xxhash.xxh3_128_digest(message) != places["xxh3"][number].tobytes():
        raise ValueError(f"the hash of its message {number} differs")
    return message
