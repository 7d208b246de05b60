"""The ledger of a source's generations, and the first pass of `sharded`, which continues it.

    sharded/web/ledger-<fp>.ledger.json            the generations: rows, parts, folder
    sharded/web/ledger-<fp>.g0002.sequences.bin    identities in index order, and tokens
    sharded/web/ledger-<fp>.g0002.holders.bin      the part that holds each row now, or what it is

A part `ledger` names the arrays of all generations: those that did not change keep their files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import msgspec
import numpy as np
import xxhash
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from assets.sharded.formats import ShardSchema
from assets.sharded.generations import (
    ABSENT,
    REMOVED,
    UNOWNED,
    GenerationRows,
    NewGeneration,
    OwnedSequences,
    PartKey,
    PartRows,
    Sequences,
    continue_generations,
    spans_of,
)
from assets.sharded.shard_files import ShardSet
from assets.sharded.shuffle import (
    BucketShards,
    count_shards,
    plan_bucket_shards,
    rows_of_shards,
    stored_buckets,
)
from assets.tokenized.tokenized_records import TokenFacts
from resources.settings.buckets import BucketLayout
from resources.settings.shards import ShardConfig
from resources.store.mapped_files import map_array
from resources.store.published import PublishedFile
from resources.store.records import FileRecord, PartRecord, Stats, fingerprint_of, to_json
from resources.store.store import Partition, PartWriter, published_file
from resources.tasks import Task

LEDGER = "ledger"  # the part that comes before all shards


class OwningPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bucketed part that holds rows of a generation; `spans` are ranges of indices, [a, b)."""

    name: str
    fingerprint: str
    spans: tuple[tuple[int, int], ...]

    @property
    def key(self) -> PartKey:
        """Name and fingerprint."""
        return self.name, self.fingerprint


class Generation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sequences that are shuffled and sharded together.

    number                1, 2, ... in the order of their making, never used twice
    data                  fingerprint of the rows and their order: the folder's name has its digits
    sequences, tokens     by bucket, with those that are gone; tokens without padding
    text_bytes_per_token  mean of the source when the generation was made
    removed, absent       rows that are marked as removed, and rows that were never written since
                          the sequences of an exported ledger were gone
    removed_xxh3          hash of the marked indices
    empty_shards          numbers of the shards without any row
    parts                 bucketed parts that hold its other rows
    """

    number: int
    data: str
    sequences: dict[str, int]
    tokens: dict[str, int]
    text_bytes_per_token: float
    removed: int = 0
    absent: int = 0
    removed_xxh3: str = ""
    empty_shards: tuple[int, ...] = ()
    parts: tuple[OwningPart, ...] = ()

    @property
    def rows(self) -> int:
        """Sequences with those that are gone."""
        return sum(self.sequences.values())


class Ledger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Generations of a source, and the bucketed parts whose sequences they are.

    `base` is the fingerprint of all that every shard depends on besides its sequences, `newest` the
    number of the newest generation ever, `takedowns` the ids of those that its generations obey.
    """

    base: str
    newest: int
    parts: tuple[PartKey, ...]
    generations: tuple[Generation, ...]
    takedowns: tuple[str, ...] | UnsetType = UNSET

    @property
    def fingerprint(self) -> str:
        """Fingerprint of all that it says."""
        return fingerprint_of(self)

    @property
    def is_one(self) -> bool:
        """True for one generation of which every row is a sequence of the source."""
        return len(self.generations) == 1 and not self.generations[0].removed

    @property
    def state(self) -> str:
        """Fingerprint of the rows of all generations, and of the marked ones."""
        if self.is_one:
            return self.generations[0].data
        each = [(generation.data, generation.removed_xxh3) for generation in self.generations]
        return fingerprint_of(self.base, each)


@dataclass(frozen=True)
class ShardedSource:
    """A source to shard: what its shards depend on besides its sequences."""

    name: str
    config: ShardConfig
    bucketing: BucketLayout
    schema: ShardSchema

    def base(self, code_version: str) -> str:
        """Return the fingerprint of it under a version of the stage's code.

        Groups are not in it: the identities of their sequences tell what is theirs.
        """
        bucketing = self.bucketing.config.model_dump(mode="json")
        schema = asdict(self.schema)
        for newer in ("has_loss_mask", "has_loss_weights"):  # as before there were any
            if not schema[newer]:
                del schema[newer]
        return fingerprint_of(code_version, self.config.data(), bucketing, schema)

    def plans(self, generation: Generation) -> list[BucketShards]:
        """Plan the shards of each bucket of a generation, in the order of its own groups."""
        names = self.bucketing.with_groups_of(generation.sequences).names
        buckets = stored_buckets(generation.sequences, generation.tokens, names)
        token_bytes = self.schema.token_bytes
        return plan_bucket_shards(self.name, buckets, token_bytes, self.config, generation.number)

    def numbered(self, generation: Generation) -> Iterator[tuple[int, str]]:
        """Yield the number and the bucket of every shard of a generation that has a row."""
        for plan in self.plans(generation):
            for number in range(plan.first_shard, plan.first_shard + plan.num_shards):
                if number not in generation.empty_shards:
                    yield number, plan.name

    def shards(self, data: str, split: str = "") -> ShardSet:
        """Return what the shards of a split with this fingerprint of their rows have in common."""
        return ShardSet(self.config.formats, data, self.schema, split)


@dataclass(frozen=True)
class GenerationFiles:
    """Files with the arrays of a generation, and their number of rows."""

    sequences: PublishedFile
    owners: PublishedFile
    rows: int

    def read(self) -> OwnedSequences:
        """Map the identities and tokens into memory; read the owners."""
        owners = map_array(self.owners.checked(), np.uint32, (self.rows,))
        return OwnedSequences(read_sequences(self.sequences, self.rows), owners)


@dataclass(frozen=True)
class PublishedLedger:
    """A ledger with the files of its generations, and their records, by number."""

    ledger: Ledger
    files: Mapping[int, GenerationFiles]
    records: Mapping[int, tuple[FileRecord, FileRecord]]


def read_sequences(file: PublishedFile, rows: int) -> Sequences:
    """Map identities, uint64 [rows, 2], and tokens, uint32 [rows], of a file into memory."""
    path = file.checked()
    ids = map_array(path, np.uint64, (rows, 2))
    return Sequences(ids, map_array(path, np.uint32, (rows,), 16 * rows))


def array_kinds(number: int) -> tuple[str, str]:
    """Return the kinds of the two files of a generation."""
    return f"g{number:04d}.sequences", f"g{number:04d}.holders"


def read_ledger(folder: Partition, record: PartRecord) -> PublishedLedger:
    """Read the ledger that a part holds; DamagedFileError if it is not as published."""
    ledger = msgspec.json.decode(
        file_of(folder, record, LEDGER).checked().read_bytes(), type=Ledger
    )
    files, records = {}, {}
    for generation in ledger.generations:
        kinds = array_kinds(generation.number)
        sequences, owners = (file_of(folder, record, kind) for kind in kinds)
        files[generation.number] = GenerationFiles(sequences, owners, generation.rows)
        found = [record.file(kind) for kind in kinds]
        assert found[0] is not None and found[1] is not None, f"{record.name} lacks {kinds}"
        records[generation.number] = found[0], found[1]
    return PublishedLedger(ledger, files, records)


def file_of(folder: Partition, record: PartRecord, kind: str) -> PublishedFile:
    """Return the file of a kind that a part has."""
    file = record.file(kind)
    assert file is not None, f"{folder.stage}[{folder.name}] {record.name} has no {kind}"
    return published_file(folder.folder / file.path, file)


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


@dataclass(frozen=True)
class LedgerInputs:
    """Input of the task that continues a ledger.

    base                  fingerprint of all that every shard depends on besides its sequences
    bucketed              fingerprint of the bucketed source
    tokens, num_bytes     its tokenizer, and the bytes of its tokens
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
    tokens: TokenFacts
    num_bytes: int
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
        [
            PartRows(part.key, part.counts, partial(read_sequences, part.ids, sum(part.counts)))
            for part in inputs.parts
        ],
        inputs.rewrite_share,
    )
    generations = [
        keep_generation(writer, inputs, earlier[place], owners)
        for place, owners in continued.owners.items()
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
    assert inputs.before is not None, "there is a generation of it"
    return GenerationRows(
        num_rows=generation.rows,
        removed=generation.removed,
        gone=generation.removed + generation.absent,
        parts=tuple(part.key for part in generation.parts),
        read=inputs.before.files[generation.number].read,
        is_lost=generation.number in inputs.lost,
        is_exported=inputs.is_exported,
    )


def keep_generation(
    writer: PartWriter,
    inputs: LedgerInputs,
    generation: Generation,
    owners: NDArray[np.uint32] | None,
) -> Generation:
    """Keep a generation, with other owners if any changed."""
    assert inputs.before is not None, "there is a generation of it"
    of_sequences, of_owners = array_kinds(generation.number)
    if inputs.is_exported:
        sequences, _ = inputs.before.files[generation.number].read()
        writer.write_arrays(of_sequences, *sequences)
    else:
        writer.keep_files([inputs.before.records[generation.number][0]])
    if owners is None:
        writer.keep_files([inputs.before.records[generation.number][1]])
        return generation
    parts, numbers = owning_parts(inputs, owners, generation.sequences)
    writer.write_arrays(of_owners, numbers)
    is_absent = owners == ABSENT
    data, empty_shards = generation.data, generation.empty_shards
    if inputs.is_exported:
        data = data_of(inputs.base, generation.number, sequences, generation.sequences, is_absent)
        empty_shards = shards_without_rows(inputs.source, generation, ~is_absent)
    return msgspec.structs.replace(
        generation,
        data=data,
        removed=int((owners == REMOVED).sum()),
        absent=int(is_absent.sum()),
        removed_xxh3=hash_of_indices(owners == REMOVED),
        empty_shards=empty_shards,
        parts=parts,
    )


def add_generation(
    writer: PartWriter, inputs: LedgerInputs, number: int, new: NewGeneration
) -> Generation:
    """Write the arrays of a new generation."""
    of_sequences, of_owners = array_kinds(number)
    names = inputs.source.bucketing.names
    counts = dict(zip(names, new.counts, strict=True))
    buckets = np.repeat(np.arange(len(names)), new.counts)
    tokens = np.bincount(buckets, weights=new.sequences.tokens, minlength=len(names))
    parts, numbers = owning_parts(inputs, new.owners, counts)
    writer.write_arrays(of_sequences, *new.sequences)
    writer.write_arrays(of_owners, numbers)
    is_absent = np.zeros(len(buckets), np.bool_)
    return Generation(
        number=number,
        data=data_of(inputs.base, number, new.sequences, counts, is_absent),
        sequences=counts,
        tokens=dict(zip(names, map(int, tokens), strict=True)),
        text_bytes_per_token=inputs.text_bytes_per_token,
        parts=parts,
    )


def owning_parts(
    inputs: LedgerInputs, owners: NDArray[np.uint32], counts: dict[str, int]
) -> tuple[tuple[OwningPart, ...], NDArray[np.uint32]]:
    """Return the parts that hold rows of a generation, and the owners with their numbers there."""
    spans = spans_of(owners, list(counts.values()))
    owned = sorted(spans)
    numbers = np.array(owners)
    is_owned = numbers < UNOWNED
    numbers[is_owned] = np.searchsorted(np.array(owned, np.uint32), numbers[is_owned])
    return tuple(
        OwningPart(*inputs.parts[n].key, tuple((s.start, s.stop) for s in spans[n])) for n in owned
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
