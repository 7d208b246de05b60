"""The ledger of a source's generations, and the arrays of their sequences, as files of a part.

    sharded/web/ledger-<fp>.ledger.json            the generations: rows, parts, folder
    sharded/web/ledger-<fp>.g0002.sequences.bin    identities in index order, and tokens
    sharded/web/ledger-<fp>.g0002.holders.bin      the part that holds each row now, or what it is

A part `ledger` names the arrays of all generations: those that did not change keep their files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from assets.sharded.formats import ShardSchema
from assets.sharded.generations import HeldSequences, PartKey, Sequences
from assets.sharded.shard_files import ShardSet
from assets.sharded.shuffle import BucketShards, plan_shards, stored_buckets
from resources.settings.buckets import BucketLayout
from resources.settings.shards import ShardConfig
from resources.store.mapped_files import map_array
from resources.store.published import PublishedFile
from resources.store.records import FileRecord, PartRecord, fingerprint_of
from resources.store.store import Partition, published_file

LEDGER = "ledger"  # the part that comes before all shards


class HeldPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    parts: tuple[HeldPart, ...] = ()

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
        if not self.schema.has_loss_mask:  # as before there were masks
            del schema["has_loss_mask"]
        return fingerprint_of(code_version, self.config.data(), bucketing, schema)

    def plans(self, generation: Generation) -> list[BucketShards]:
        """Plan the shards of each bucket of a generation, in the order of its own groups."""
        names = self.bucketing.with_groups_of(generation.sequences).names
        buckets = stored_buckets(generation.sequences, generation.tokens, names)
        token_bytes = self.schema.token_bytes
        return plan_shards(self.name, buckets, token_bytes, self.config, generation.number)

    def shards(self, data: str, split: str = "") -> ShardSet:
        """Return what the shards of a split with this fingerprint of their rows have in common."""
        return ShardSet(self.config.formats, data, self.schema, split)


@dataclass(frozen=True)
class GenerationFiles:
    """Files with the arrays of a generation, and their number of rows."""

    sequences: PublishedFile
    holders: PublishedFile
    rows: int

    def read(self) -> HeldSequences:
        """Map the identities and tokens into memory; read the holders."""
        holders = map_array(self.holders.checked(), np.uint32, (self.rows,))
        return HeldSequences(read_sequences(self.sequences, self.rows), holders)


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
        sequences, holders = (file_of(folder, record, kind) for kind in kinds)
        files[generation.number] = GenerationFiles(sequences, holders, generation.rows)
        found = [record.file(kind) for kind in kinds]
        assert found[0] is not None and found[1] is not None, f"{record.name} lacks {kinds}"
        records[generation.number] = found[0], found[1]
    return PublishedLedger(ledger, files, records)


def file_of(folder: Partition, record: PartRecord, kind: str) -> PublishedFile:
    """Return the file of a kind that a part has."""
    file = record.file(kind)
    assert file is not None, f"{folder.stage}[{folder.name}] {record.name} has no {kind}"
    return published_file(folder.folder / file.path, file)
