"""First pass of `sharded`: continue the ledger of a source with the sequences of today."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xxhash
from msgspec import UNSET
from numpy.typing import NDArray

from assets.sharded.generation_files import (
    LEDGER,
    Generation,
    GenerationFiles,
    HeldPart,
    Ledger,
    PublishedLedger,
    ShardedSource,
    array_kinds,
    read_sequences,
)
from assets.sharded.generations import (
    ABSENT,
    REMOVED,
    UNHELD,
    GenerationRows,
    NewGeneration,
    PartKey,
    PartRows,
    Sequences,
    continue_generations,
    spans_of,
)
from assets.sharded.shuffle import count_shards, rows_of_shards
from resources.store.published import PublishedFile
from resources.store.records import PartRecord, Stats, fingerprint_of, to_json
from resources.store.store import PartWriter
from resources.tasks import Task


@dataclass(frozen=True)
class BucketedPart:
    """A part of `bucketed`: its sequences by bucket, and the files of them and their identities.

    tokens   files with the tokens of their documents; none if `sequences` has them, as before
    padding  the token that fills a sequence up
    """

    name: str
    fingerprint: str
    counts: tuple[int, ...]
    sequences: PublishedFile
    ids: PublishedFile
    tokens: tuple[PublishedFile, ...] = ()
    padding: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the sequences and their tokens."""
        return self.sequences.bytes + sum(file.bytes for file in self.tokens)

    @property
    def key(self) -> PartKey:
        """Name and fingerprint."""
        return self.name, self.fingerprint

    def rows(self) -> PartRows:
        """Return the part as it is compared with generations."""
        return PartRows(self.key, self.counts, lambda: read_sequences(self.ids, sum(self.counts)))


@dataclass(frozen=True)
class LedgerInputs:
    """Input of the task that continues a ledger.

    base                  fingerprint of all that every shard depends on besides its sequences
    bucketed              fingerprint of the bucketed source
    before                the ledger of the last run, None for a new one
    is_exported           True if `before` comes from another build: nothing of it is written here
    lost                  numbers of its generations of which a file is missing
    rewrite_share         share of marked rows above which a generation is rewritten
    takedowns             ids of those that the next ledger obeys
    text_bytes_per_token  mean of the source
    """

    source: ShardedSource
    base: str
    bucketed: str
    parts: tuple[BucketedPart, ...]
    text_bytes_per_token: float
    rewrite_share: float
    takedowns: tuple[str, ...] = ()
    before: PublishedLedger | None = None
    is_exported: bool = False
    lost: frozenset[int] = frozenset()


def write_ledger(task: Task[LedgerInputs]) -> list[PartRecord]:
    """Find today's sequences in the generations; publish the ledger that follows."""
    inputs, writer = task.payload, task.writer()
    earlier = inputs.before.ledger.generations if inputs.before else ()
    continued = continue_generations(
        [rows_before(inputs, generation) for generation in earlier],
        [part.rows() for part in inputs.parts],
        inputs.rewrite_share,
    )
    generations = [
        keep_generation(writer, inputs, earlier[place], holders)
        for place, holders in continued.holders.items()
    ]
    newest = inputs.before.ledger.newest if inputs.before else 0
    if continued.new is not None:
        newest += 1
        generations.append(add_generation(writer, inputs, newest, continued.new))
    parts = tuple(part.key for part in inputs.parts)
    ledger = Ledger(inputs.base, newest, parts, tuple(generations), inputs.takedowns or UNSET)
    writer.write_text(LEDGER, "json", to_json(ledger).decode())
    return [writer.publish(Stats())]


def rows_before(inputs: LedgerInputs, generation: Generation) -> GenerationRows:
    """Return a generation of the ledger before as it is compared with the parts of today."""
    return GenerationRows(
        num_rows=generation.rows,
        removed=generation.removed,
        gone=generation.removed + generation.absent,
        parts=tuple(part.key for part in generation.parts),
        read=files_before(inputs, generation).read,
        is_lost=generation.number in inputs.lost,
        is_exported=inputs.is_exported,
    )


def files_before(inputs: LedgerInputs, generation: Generation) -> GenerationFiles:
    """Return the files of a generation of the ledger before."""
    assert inputs.before is not None, "there is a generation of it"
    return inputs.before.files[generation.number]


def keep_generation(
    writer: PartWriter,
    inputs: LedgerInputs,
    generation: Generation,
    holders: NDArray[np.uint32] | None,
) -> Generation:
    """Keep a generation, with other holders if any changed."""
    assert inputs.before is not None, "there is a generation of it"
    of_sequences, of_holders = array_kinds(generation.number)
    if inputs.is_exported:
        sequences, _ = files_before(inputs, generation).read()
        writer.write_arrays(of_sequences, *sequences)
    else:
        writer.keep_files([inputs.before.records[generation.number][0]])
    if holders is None:
        writer.keep_files([inputs.before.records[generation.number][1]])
        return generation
    parts, numbers = held_parts(inputs, holders, generation.sequences)
    writer.write_arrays(of_holders, numbers)
    is_absent = holders == ABSENT
    data, empty_shards = generation.data, generation.empty_shards
    if inputs.is_exported:
        data = data_of(inputs.base, generation.number, sequences, generation.sequences, is_absent)
        empty_shards = shards_without_rows(inputs.source, generation, ~is_absent)
    return Generation(
        number=generation.number,
        data=data,
        sequences=generation.sequences,
        tokens=generation.tokens,
        text_bytes_per_token=generation.text_bytes_per_token,
        removed=int((holders == REMOVED).sum()),
        absent=int(is_absent.sum()),
        removed_xxh3=hash_of_indices(holders == REMOVED),
        empty_shards=empty_shards,
        parts=parts,
    )


def add_generation(
    writer: PartWriter, inputs: LedgerInputs, number: int, new: NewGeneration
) -> Generation:
    """Write the arrays of a new generation."""
    of_sequences, of_holders = array_kinds(number)
    names = inputs.source.bucketing.names
    counts = dict(zip(names, new.counts, strict=True))
    buckets = np.repeat(np.arange(len(names)), new.counts)
    tokens = np.bincount(buckets, weights=new.sequences.tokens, minlength=len(names))
    parts, numbers = held_parts(inputs, new.holders, counts)
    writer.write_arrays(of_sequences, *new.sequences)
    writer.write_arrays(of_holders, numbers)
    is_absent = np.zeros(len(buckets), np.bool_)
    return Generation(
        number=number,
        data=data_of(inputs.base, number, new.sequences, counts, is_absent),
        sequences=counts,
        tokens=dict(zip(names, map(int, tokens), strict=True)),
        text_bytes_per_token=inputs.text_bytes_per_token,
        parts=parts,
    )


def held_parts(
    inputs: LedgerInputs, holders: NDArray[np.uint32], counts: dict[str, int]
) -> tuple[tuple[HeldPart, ...], NDArray[np.uint32]]:
    """Return the parts that hold rows of a generation, and the holders with their numbers there."""
    spans = spans_of(holders, list(counts.values()))
    held = sorted(spans)
    numbers = np.array(holders)
    is_held = numbers < UNHELD
    numbers[is_held] = np.searchsorted(np.array(held, np.uint32), numbers[is_held])
    return tuple(
        HeldPart(*inputs.parts[n].key, tuple((s.start, s.stop) for s in spans[n])) for n in held
    ), numbers


def data_of(
    base: str,
    number: int,
    sequences: Sequences,
    counts: dict[str, int],
    is_absent: NDArray[np.bool_],
) -> str:
    """Return the fingerprint of the rows of a generation's shards, and of their order."""
    ids = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(sequences.ids).data)
    return fingerprint_of(base, number, counts, ids, hash_of_indices(is_absent))


def hash_of_indices(is_one: NDArray[np.bool_]) -> str:
    """Hash the indices of the rows that are marked; nothing without any."""
    indices = np.flatnonzero(is_one)
    return xxhash.xxh3_128_hexdigest(indices.astype("<u8").data) if len(indices) else ""


def shards_without_rows(
    source: ShardedSource, generation: Generation, is_written: NDArray[np.bool_]
) -> tuple[int, ...]:
    """Return the numbers of the shards of which no row is written."""
    plans = source.plans(generation)
    written = {rows.shard for rows in rows_of_shards(plans, is_written, is_written)}
    return tuple(number for number in range(count_shards(plans)) if number not in written)
