"""Sources of a phase: where it begins in them, their shards, rows and tokens, and rows' lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from assets.mixed.budgets import MixError
from assets.mixed.samples import SourceRows
from assets.sharded.ledger_files import LEDGER, read_ledger
from assets.sharded.shard_files import INDEX, RemovedRows, files_of
from assets.sharded.sharded_records import SHARDED
from assets.tokenized.tokenized_records import TokenFacts
from corpus_loader.bucket_order import BucketedSource, BucketedSourceOrder
from corpus_loader.flat import MappedFile, read_spans
from corpus_loader.mixture import FlatFile, RemovedFile, Shard
from corpus_loader.order import SourceOrder, SourceShape, order_seed
from corpus_loader.places.errors import CorpusError
from resources.settings.buckets import VALIDATION, bucket_length, split_bucket
from resources.settings.phases import PhaseConfig, ValidationPhase
from resources.store.records import FileRecord, Manifest, PartRecord, as_json_object, numbers_of
from resources.store.store import Store, StoreError, published_file
from resources.takedowns import Forbidden, forbidden_in

FLAT = "megatron"  # the format that corpus_loader reads
REMOVED_FILE = "removed"  # kind of the file, in the part `index`
ROW = np.dtype("<u4")


@dataclass(frozen=True)
class PhaseStart:
    """Seed of the order of a phase, and what was drawn of it before.

    phase: the one whose name and `seed` give the order's seed; samples, tokens: of earlier phases
    that this one continues, by what is drawn by itself.
    """

    phase: str
    seed: int
    samples: Mapping[str, int] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)


def own_start(config: PhaseConfig) -> PhaseStart:
    """Return the start of a phase with an order of its own."""
    return PhaseStart(config.name, order_seed(config.seed, config.name))


@dataclass(frozen=True)
class ListedRows:
    """Removed rows of one shard: `rows` entries of `file` from `first` on, and their tokens.

    The path of `file` is relative to the store.
    """

    file: FileRecord
    first: int
    rows: int
    tokens: int

    def read(self, root: Path) -> NDArray[np.uint32]:
        """Read the row numbers, ascending."""
        path = published_file(root / self.file.path, self.file).checked()
        return np.fromfile(path, ROW, self.rows, offset=self.first * ROW.itemsize)


@dataclass(frozen=True)
class PhaseShard:
    """Shard of a source; `path` is relative to the store, without suffix; `files` by suffix.

    `rows` and `tokens` (without padding) are those that are drawn, `removed` the others. `lengths`
    is the file with the tokens of each row, .spans or .parquet, with a path as `path`.
    """

    path: str
    rows: int
    tokens: int
    bucket: str
    files: dict[str, FlatFile]
    lengths: FileRecord | None
    removed: ListedRows | None = None

    @property
    def file_rows(self) -> int:
        """Number of rows in its files."""
        return self.rows + (self.removed.rows if self.removed else 0)

    def record(self) -> Shard:
        """Return the shard as the mixture names it."""
        shard = Shard(self.path, self.file_rows, self.files, self.tokens, self.bucket)
        if self.removed is None:
            return shard
        return replace(shard, removed=self.removed.rows, removed_from=self.removed.first)


@dataclass(frozen=True)
class PhaseSource:
    """Source with the shards that a phase draws from.

    `classes`: its classes, if each is drawn by itself; `weight`, `length`: of one of these, as in
    `ClassTokens`.
    """

    name: str
    shards: tuple[PhaseShard, ...]
    classes: tuple[PhaseSource, ...] = ()
    weight: Fraction = Fraction(1)
    length: int = 0

    @property
    def units(self) -> tuple[PhaseSource, ...]:
        """Sources that are drawn by themselves: its classes, or the source."""
        return self.classes or (self,)

    @property
    def rows(self) -> int:
        """Number of samples."""
        return sum(shard.rows for shard in self.shards)

    @property
    def tokens(self) -> int:
        """Number of tokens, without padding."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def removed(self) -> RemovedFile | None:
        """File of the removed rows of its shards, None if they have none."""
        files = (shard.removed.file for shard in self.shards if shard.removed)
        return next((RemovedFile(file.path, file.bytes, file.sha256) for file in files), None)

    @property
    def sequence_length(self) -> int | None:
        """Stored tokens of every row, None if rows differ."""
        return same_or_none(bucket_length(shard.bucket) for shard in self.shards)

    @property
    def equal_length(self) -> int | None:
        """Tokens of every row if all have the same number and no padding, else None."""
        length = self.sequence_length
        return length if length and self.tokens == self.rows * length else None

    @property
    def stored_tokens(self) -> int:
        """Number of tokens, with padding."""
        return sum(stored for _, stored in self.buckets.values())

    @property
    def buckets(self) -> dict[str, tuple[int, int]]:
        """Rows and tokens (with padding) of each bucket."""
        totals: dict[str, tuple[int, int]] = {}
        for shard in self.shards:
            rows, stored = totals.get(shard.bucket, (0, 0))
            more = shard.rows * (bucket_length(shard.bucket) or 0) or shard.tokens
            totals[shard.bucket] = rows + shard.rows, stored + more
        return totals


def phase_source(manifest: Manifest[Any, Any], config: PhaseConfig) -> PhaseSource:
    """Return a source's shards of the buckets that a phase draws from, in order."""
    removed = removed_of(manifest)
    by_part = ((part, bucket_of(part)) for part in manifest.parts)
    return PhaseSource(
        manifest.partition,
        tuple(
            phase_shard(manifest, part, bucket, removed.get(part.name))
            for part, bucket in by_part
            if bucket is not None and is_drawn(bucket, config)
        ),
    )


def removed_of(manifest: Manifest[Any, Any]) -> dict[str, ListedRows]:
    """Return the removed rows of the shards of a source by the names of their parts, if any."""
    last = next((part for part in manifest.parts if part.name == INDEX), None)
    if last is None or (found := last.file(REMOVED_FILE)) is None:
        return {}
    file = structs.replace(found, path=f"{manifest.stage}/{manifest.partition}/{found.path}")
    numbers = numbers_of(last, RemovedRows)
    removed, first = {}, 0
    for part in manifest.parts:
        if rows := numbers.removed_rows.get(part.name, 0):
            tokens = numbers.removed_tokens[part.name]
            removed[part.name] = ListedRows(file, first, rows, tokens)
            first += rows
    if first * ROW.itemsize != file.bytes:
        raise StoreError(
            f"{file.path} has {file.bytes:,} bytes, but its manifest names {first:,} removed rows "
            f"of {ROW.itemsize} bytes. Materialize `sharded` for {manifest.partition!r} again."
        )
    return removed


def is_drawn(bucket: str, config: PhaseConfig) -> bool:
    """Return whether a phase draws from a bucket: validation from those held out, others never."""
    plain, group = split_bucket(bucket)
    if (group == VALIDATION) != isinstance(config, ValidationPhase):
        return False
    return config.buckets is None or plain in config.buckets


def bucket_of(part: PartRecord[Any]) -> str | None:
    """Return the bucket of a shard's rows; None for the part with the index files."""
    return next(iter(as_json_object(part.stats.numbers).get("shards", {})), None)


def phase_shard(
    manifest: Manifest[Any, Any], part: PartRecord[Any], bucket: str, removed: ListedRows | None
) -> PhaseShard:
    """Describe one part of `sharded` as the mixture names it."""
    flat = {file.kind.split(".", 1)[1]: file for file in files_of(part, FLAT)}
    lengths = flat.get("spans") or next(iter(files_of(part, "parquet")), None)
    folder = f"{manifest.stage}/{manifest.partition}"
    first = next(iter(flat.values()), None) or part.files[0]
    return PhaseShard(
        path=f"{folder}/{first.path.rsplit('.', 1)[0]}",
        rows=part.stats.rows_kept - (removed.rows if removed else 0),
        tokens=part.stats.tokens - (removed.tokens if removed else 0),
        bucket=bucket,
        files={key: FlatFile(f.bytes, f.sha256) for key, f in sorted(flat.items())},
        lengths=lengths and structs.replace(lengths, path=f"{folder}/{lengths.path}"),
        removed=removed,
    )


def same_or_none(values: Iterable[int | None]) -> int | None:
    """Return the value that all have, None if they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def source_order(
    config: PhaseConfig, source: PhaseSource, seed: int
) -> SourceOrder | BucketedSourceOrder:
    """Return the order in which a phase draws from a source, for any number of samples."""
    shape = SourceShape(source.name, 1, tuple(shard.rows for shard in source.shards))
    if config.one_bucket_batches:
        bucketed = BucketedSource(shape, tuple(shard.bucket for shard in source.shards))
        return BucketedSourceOrder(seed, config.window_shards, bucketed)
    return SourceOrder(seed, config.window_shards, shape)


def source_rows(
    root: Path, config: PhaseConfig, source: PhaseSource, start: PhaseStart
) -> SourceRows:
    """Describe a source's rows for a plan; at most the file with the first drawn row is read."""
    first = source.equal_length or 0
    if source.rows and not first:
        draw = start.samples.get(source.name, 0)
        row = int(source_order(config, source, start.seed).rows([draw])[0][0])
        ends = np.cumsum([shard.rows for shard in source.shards])
        number = int(np.searchsorted(ends, row, side="right"))
        first = int(shard_lengths(root, source.shards[number])[row - ends[number]])
    return SourceRows(first, source.buckets)


def row_lengths(root: Path, source: PhaseSource) -> NDArray[np.uint32]:
    """Read the tokens (without padding) of every drawn row of a source, shard after shard."""
    return np.concatenate([shard_lengths(root, shard) for shard in source.shards])


def shard_lengths(root: Path, shard: PhaseShard) -> NDArray[np.uint32]:
    """Read the tokens of every drawn row of a shard; MixError if no file has them."""
    if shard.lengths is None:
        raise MixError(
            f"{shard.path}: none of its formats stores the lengths of its rows. Add "
            f"{FLAT!r} to `shards.formats` and materialize `sharded` again."
        )
    path = published_file(root / shard.lengths.path, shard.lengths).checked()
    if path.suffix == ".parquet":
        lengths = pl.read_parquet(path, columns=["num_tokens"])["num_tokens"].to_numpy()
    else:
        lengths = lengths_of_rows(path, shard.file_rows)
    return lengths if shard.removed is None else np.delete(lengths, shard.removed.read(root))


def lengths_of_rows(path: Path, rows: int) -> NDArray[np.uint32]:
    """Read the tokens of each row of a shard, without padding; StoreError if .spans is damaged."""
    try:
        by_row = read_spans(MappedFile(path, path.stat().st_size), rows)
    except CorpusError as error:
        raise StoreError(str(error)) from error
    ends = np.concatenate(([0], np.cumsum(by_row.spans.lengths, dtype=np.int64)))
    return np.diff(ends[by_row.first.astype(np.int64)]).astype(np.uint32)


def check_flat(phase: str, sources: list[PhaseSource]) -> None:
    """Raise MixError if a source has no flat files, in which single samples are looked up."""
    missing = [source.name for source in sources if not all(s.files for s in source.shards)]
    if missing:
        raise MixError(
            f"phase {phase!r} is to be written as shards, for which {missing} lack flat files. Add "
            f"{FLAT!r} to `shards.formats` and materialize `sharded` again."
        )


def one_tokenizer(phase: str, manifests: Sequence[Manifest[Any, Any]]) -> TokenFacts:
    """Return the tokenizer of a phase's sources; MixError if they differ or lack it."""
    by_source = {manifest.partition: tokenizer_of(manifest) for manifest in manifests}
    old = [source for source, tokens in by_source.items() if tokens is None]
    if old:
        raise MixError(
            f"phase {phase!r}: the shards of {old} are of an older version of Tokenmill, which "
            "recorded less of their tokenizer. Materialize `sharded` for these sources first."
        )
    known = {source: tokens for source, tokens in by_source.items() if tokens is not None}
    fingerprints = {source: tokens.tokenizer_fingerprint for source, tokens in known.items()}
    if len(set(fingerprints.values())) > 1:
        raise MixError(
            f"phase {phase!r} would mix shards of different tokenizers: {fingerprints}. "
            "Materialize `tokenized`, `bucketed` and `sharded` for all of these sources first."
        )
    return next(iter(known.values()))


def tokenizer_of(manifest: Manifest[Any, Any]) -> TokenFacts | None:
    """Return the tokenizer that a source's shards record; None if they record less."""
    try:
        return msgspec.convert(as_json_object(manifest.provenance), TokenFacts)
    except msgspec.ValidationError:
        return None


def forbidden_shards(store: Store, manifest: Manifest[Any, Any]) -> Forbidden | None:
    """Return the takedowns that mean a document in the shards of a state of `sharded`."""
    part = next((part for part in manifest.parts if part.name == LEDGER), None)
    folder = store.partition(SHARDED.name, manifest.partition)
    obeyed = read_ledger(folder, part).ledger.takedowns if part else ()
    return forbidden_in(store, SHARDED.name, manifest, obeyed or ())
