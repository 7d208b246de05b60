"""Write a phase as shards in its order, for trainers that read files one after the other.

A task writes the samples of consecutive positions, which it looks up one by one in the flat files
of the sources, as the loader does. Memory: twice a shard, whatever the number of source shards, and
the buffers of its formats' writers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from assets.mixed.mixture_files import PhaseInputs, mixture_files
from assets.mixed.phase_source_files import PhaseSource
from assets.sharded.formats.flat_rows import starts_of
from assets.sharded.shard_files import (
    INDEX,
    ShardSet,
    add_shard,
    part_fingerprint,
    shard_name,
    shard_schema,
)
from assets.sharded.shard_index_files import ShardsOrigin, publish_index
from assets.text.list_columns import arrow_items, list_series
from corpus_loader.batch import join
from corpus_loader.flat import DOC_ID_BYTES, PADDED
from corpus_loader.mixture import MIXTURE_FILE, Mixture, parse_mixture
from corpus_loader.reader import LoaderOptions, Lookup, Reader
from resources.corpus import Corpus
from resources.run_tasks import map_with_progress
from resources.store.disk import has_size, hash_file
from resources.store.loader_files import StoreFiles
from resources.store.medium import medium_of
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, as_json_object, fingerprint_of
from resources.store.store import StoreError
from resources.tasks import Task

# What decides the bytes of the shards.
DECIDING = {"seed", "batch_samples", "one_bucket_batches", "window_shards", "target_bytes"}


@dataclass(frozen=True)
class PhaseShardInputs:
    """Input of the task that writes one shard of a phase: the samples at positions [first, end)."""

    mixture: PublishedFile
    shards: ShardSet
    number: int
    positions: tuple[int, int]


@dataclass(frozen=True)
class PhaseIndexInputs:
    """Input of the task that writes the index files of a phase: all tasks before it."""

    phase: Task[PhaseInputs]
    shards: tuple[Task[PhaseShardInputs], ...]


def shard_tasks(phase: Task[PhaseInputs]) -> list[Task[PhaseShardInputs]]:
    """Return the tasks that write a mixed phase, in order."""
    file, _ = phase.published_file(MIXTURE_FILE)
    mixture = mixture_at(file)
    shards = shard_set(phase, mixture)
    num_bytes = stored_tokens(mixture, phase.payload.sources) * shards.schema.token_bytes
    target_bytes = phase.payload.config.target_bytes
    num_shards = min(max(1, math.ceil(num_bytes / target_bytes)), mixture.epoch_samples)
    edges = [mixture.epoch_samples * number // num_shards for number in range(num_shards + 1)]
    return [
        phase.sibling(
            shard_name(number),
            part_fingerprint(shards.data, shards.formats, shard_name(number)),
            PhaseShardInputs(file, shards, number, (edges[number], edges[number + 1])),
            work_bytes=round(num_bytes / num_shards),
        )
        for number in range(num_shards)
    ]


def shard_set(phase: Task[PhaseInputs], mixture: Mixture) -> ShardSet:
    """Return the formats of a phase's shards, and the fingerprint of what decides their bytes."""
    inputs = phase.payload
    data = fingerprint_of(
        phase.stage,
        inputs.code_version,
        mixture.fingerprint,
        as_json_object(inputs.tokens),
        mixture.sequence_length,
        inputs.config.target_bytes,
    )
    schema = shard_schema(
        inputs.tokens,
        mixture.sequence_length,
        mixture.has_loss_mask,
        mixture.has_token_weights,
    )
    return ShardSet(inputs.config.formats, data, schema)


def mixture_at(file: PublishedFile) -> Mixture:
    """Read the mixture of a phase whose samples are written."""
    return parse_mixture(file.checked().read_bytes()).for_loader()


def stored_tokens(mixture: Mixture, sources: Sequence[PhaseSource]) -> float:
    """Return the tokens of a phase with padding, estimated from the means of its sources."""
    average = {source.name: source.stored_tokens / source.rows for source in sources}
    return sum(source.samples * average[source.name] for source in mixture.sources)


@dataclass(frozen=True)
class FlatCheck:
    """File that samples are read from, with its expected size and sha256."""

    path: Path
    work_bytes: int
    sha256: str
    partition: str = ""  # files of all sources are checked alike

    @property
    def title(self) -> str:
        """Path of the file, for messages."""
        return str(self.path)


def check_flat_files(corpus: Corpus, shards: Iterable[Task[PhaseShardInputs]]) -> None:
    """Raise StoreError if a source file of unpublished shards differs from the mixture.

    Otherwise its damage would be copied and hashed as if it were right. Every file is read once for
    all shards.
    """
    root = corpus.store.root
    mixtures = {task.payload.mixture for task in shards if task.published() is None}
    checks = {
        FlatCheck(root / path, file.bytes, file.sha256)
        for mixture in mixtures
        for path, file in mixture_files(mixture_at(mixture))
    }
    in_order = sorted(checks, key=lambda check: check.title)
    results = map_with_progress(is_as_mixed, in_order, corpus.settings.engine)
    damaged = sorted(in_order[ended.index].title for ended in results if not ended.value())
    if damaged:
        raise StoreError(
            f"{', '.join(damaged)}: missing, or not as when it was mixed; nothing was written from "
            "it. `corpus verify --repair` writes it again; then run again."
        )


def is_as_mixed(check: FlatCheck) -> bool:
    """Return whether the file exists with the expected bytes."""
    is_there = medium_of(check.path.parent).bring(check.path)
    is_whole = is_there and has_size(check.path, check.work_bytes)
    return is_whole and hash_file(check.path)[0] == check.sha256


def write_shard(task: Task[PhaseShardInputs]) -> list[PartRecord]:
    """Write the samples of one shard in every format."""
    inputs = task.payload
    rows = read_samples(task.root, mixture_at(inputs.mixture), np.arange(*inputs.positions))
    writer = task.writer()
    return [writer.publish(add_shard(writer, inputs.shards, inputs.number, rows))]


def read_samples(root: Path, mixture: Mixture, positions: NDArray[np.int64]) -> pl.DataFrame:
    """Read the samples at positions of a phase, as `rows_at` does; the caller checks hashes."""
    files, options = StoreFiles(root, verify=False), LoaderOptions(with_documents=True)
    reader = Reader(files, mixture, mixture.seed, options)
    return rows_at(reader, reader.look_up(positions))


def rows_at(reader: Reader, lookup: Lookup) -> pl.DataFrame:
    """Read rows in the order of a lookup: num_tokens, tokens (padding included) and spans.

    And loss_mask if a shard of the mixture has one, or weights; of the others, every token but
    padding is learned. Shards are read one after the other, so each is opened once.
    """
    order = np.lexsort((lookup.rows, np.array(lookup.shards)))
    place = np.argsort(order).tolist()
    rows = reader.rows(lookup.take(order))
    tokens, spans = [rows.tokens[i] for i in place], [rows.spans[i] for i in place]
    starts = starts_of(np.array([len(row) for row in tokens], np.int64))
    first = starts_of(np.array([len(row.lengths) for row in spans], np.int64))
    lengths = join([row.lengths for row in spans])
    is_padded = any(row.padded is not None for row in spans)
    structs = span_structs(
        join([row.doc_ids for row in spans]),
        join([row.starts for row in spans]),
        lengths,
        join([row.stored for row in spans]) if is_padded else None,
    )
    masks = {}
    if rows.masks:
        in_order = [rows.masks[i] for i in place]
        if reader.mixture.has_token_weights:
            in_order = [in_hundredths(mask) for mask in in_order]
        masks = {"loss_mask": list_series(np.concatenate(in_order), starts)}
    content = np.frombuffer(bytearray().join(tokens), reader.mixture.token_dtype)
    return pl.DataFrame(
        {
            "num_tokens": np.diff(starts_of(lengths)[first]).astype(np.uint32),
            "tokens": list_series(content, starts),
            **masks,
            "spans": list_series(structs, first),
        }
    )


def in_hundredths(mask: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the weights of tokens, of those with flags 100 or 0."""
    return mask.astype(np.uint8) * np.uint8(100 if mask.dtype == np.bool_ else 1)


def span_structs(
    doc_ids: NDArray[np.uint8],
    starts: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
    padded: NDArray[np.uint32] | None,
) -> Any:
    """Return spans as an Arrow array of (doc_id in hex, start, length, padded_length if given)."""
    raw = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DOC_ID_BYTES), len(lengths), [None, pa.py_buffer(doc_ids.tobytes())]
    )
    digits = pl.from_arrow(raw.cast(pa.large_binary())).bin.encode("hex").to_arrow()  # type: ignore[union-attr]
    columns = {"doc_id": digits, "start": arrow_items(starts), "length": arrow_items(lengths)}
    if padded is not None:
        columns[PADDED] = arrow_items(padded)
    return pa.StructArray.from_arrays([*columns.values()], [*columns])


def index_task(
    phase: Task[PhaseInputs], shards: list[Task[PhaseShardInputs]]
) -> Task[PhaseIndexInputs]:
    """Return the task that writes the index files of a phase, once all its shards are published."""
    together = shards[0].payload.shards
    fingerprint = part_fingerprint(together.data, together.formats, INDEX)
    return phase.sibling(INDEX, fingerprint, PhaseIndexInputs(phase, tuple(shards)), work_bytes=0)


def write_index(task: Task[PhaseIndexInputs]) -> list[PartRecord]:
    """Write the index files that readers want, and a manifest.json for each format."""
    first, phase = task.payload.shards[0].payload, task.payload.phase.payload
    made_by = ShardsOrigin(
        stage=task.stage,
        partition=task.partition,
        fingerprint=first.shards.data,
        code_version=phase.code_version,
        mixture=mixture_at(first.mixture).fingerprint,
        config=phase.config.model_dump(mode="json", include=DECIDING),
        **as_json_object(phase.tokens),
    )
    records = []
    for shard in task.payload.shards:
        published = shard.published()
        assert published is not None, f"{shard.title} is not published"
        records += published
    return [publish_index(task.writer(), first.shards, records, made_by)]
