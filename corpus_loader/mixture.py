"""The mixture of a phase: its sources, their shards and the identity of its order.

`mixture.json` is written by the stage `mixed` (`mixture_json`) and read by the loader and the mill
(`parse_mixture`); its keys are the fields of the classes here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from pathlib import PurePosixPath
from typing import Any

from corpus_loader.bucket_order import BucketedSource, OneBucketOrder
from corpus_loader.order import PhaseOrder, SourceShape, order_seed
from corpus_loader.places.errors import CorpusError

VERSION = 7  # of one with weights of the loss
WITH_WEIGHTS_AT = 6  # of one whose weights change, and of validation: others would train on it
WITH_CONTINUES = 5  # of one that continues another
WITH_MASKS = 4  # the version of a mixture with loss masks: older loaders would teach every token
WITH_ONE_BUCKET_BATCHES = 3  # of one with batches of one bucket
WITH_REMOVED = 2  # of one with removed rows
WITHOUT_REMOVED = 1  # of one without: older loaders read it
MIXTURE_FILE = "mixture"  # kind of the file, in the manifest
FLAT_SUFFIXES = frozenset({"bin", "idx", "spans"})
MASK_SUFFIX = "loss"  # of the file with the loss mask of a shard, if it has one
WEIGHT_SUFFIX = "weights"  # of the file that it has instead, if tokens have weights


@dataclass(frozen=True)
class FlatFile:
    """Size in bytes and sha256 of a file of a shard, as 64 hex digits."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """A shard of flat token files.

    path: relative to the store, without the suffixes of its files; rows: in these files; files: by
    suffix, empty if the shard is not stored in that format; tokens: of its live rows, without
    padding; bucket: of the lengths of its rows; removed: rows that are in the files but no longer
    drawn, listed in the source's file of removed rows from entry `removed_from` on.
    """

    path: str
    rows: int
    files: Mapping[str, FlatFile]
    tokens: int = 0
    bucket: str = ""
    removed: int = 0
    removed_from: int = 0

    @property
    def live_rows(self) -> int:
        """Rows that are drawn."""
        return self.rows - self.removed

    @property
    def mask_suffix(self) -> str | None:
        """Suffix of the file with flags of what is learned, or with weights; None without one."""
        return next((each for each in (MASK_SUFFIX, WEIGHT_SUFFIX) if each in self.files), None)

    @property
    def has_loss_mask(self) -> bool:
        """True if its tokens have flags of what is learned, or weights."""
        return self.mask_suffix is not None


@dataclass(frozen=True)
class RemovedFile:
    """File of the removed rows of a source; path: relative to the store.

    Row numbers, uint32 little-endian: those of a shard are together, and ascending.
    """

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class MixtureSource:
    """A source of a phase: `samples` rows are drawn from the live rows of its shards.

    rows: live rows of all shards; weight: share of the phase's tokens that was asked for;
    planned_tokens: the same in tokens; realised_tokens: of the samples that come nearest to it;
    available_tokens: of all `rows`; epochs: passes through the source; removed: None if no shard
    has removed rows; start: samples that the phases drew which this one continues; weights_at:
    `weight` at each of the phase's knots, if it changes; loss_weight: factor of the loss of its
    tokens. Of the numbers the loader needs samples, start, weights_at and loss_weight alone.
    """

    name: str
    samples: int
    shards: tuple[Shard, ...]
    rows: int = 0
    weight: float = 0.0
    planned_tokens: int = 0
    realised_tokens: int = 0
    available_tokens: int = 0
    epochs: float = 0.0
    removed: RemovedFile | None = None
    start: int = 0
    weights_at: tuple[float, ...] = ()
    loss_weight: float = 1.0


@dataclass(frozen=True)
class Mixture:
    """A phase: what is drawn, and the order's identity.

    sequence_length: stored tokens of every row, None if rows differ; token_dtype: "uint16" or
    "uint32"; fingerprint: of the data and the order, the same in every saved state; tokens: of an
    epoch of the phase; one_bucket_batches: every block of `batch_samples` is of one bucket;
    order_phase: the first of the phases that this one continues, whose order it is; "" if none;
    knots: shares of its tokens at which the sources have their `weights_at`, from 0 to 1.
    is_validation: the documents that are held out of training, in one order for all epochs.
    takedowns: the number of those that it obeys, which its manifest says, not mixture.json.
    """

    phase: str
    seed: int
    epoch_samples: int
    batch_samples: int
    window_shards: int | None
    sequence_length: int | None
    token_dtype: str
    tokenizer_fingerprint: str
    vocab_size: int
    end_of_document_id: int
    fingerprint: str
    sources: tuple[MixtureSource, ...]
    end_of_document: str = ""
    begin_of_document_id: int | None = None
    tokens: int = 0
    warnings: tuple[str, ...] = ()
    one_bucket_batches: bool = False
    order_phase: str = ""
    knots: tuple[float, ...] = ()
    is_validation: bool = False
    takedowns: int = 0

    @property
    def has_loss_mask(self) -> bool:
        """True if a shard of a source that is drawn from has a loss mask."""
        return any(shard.has_loss_mask for shard in self.drawn_shards())

    @property
    def has_loss_weights(self) -> bool:
        """True if some tokens count more or less in the loss than others."""
        return any(source.loss_weight != 1 for source in self.sources) or self.has_token_weights

    @property
    def has_token_weights(self) -> bool:
        """True if a shard of a source that is drawn from has weights of its tokens."""
        return any(shard.mask_suffix == WEIGHT_SUFFIX for shard in self.drawn_shards())

    def drawn_shards(self) -> Iterator[Shard]:
        """Yield the shards of the sources that are drawn from."""
        for source in self.sources:
            if source.samples:
                yield from source.shards

    def order(self, seed: int) -> PhaseOrder | OneBucketOrder:
        """Return the order of the phase's samples under a seed."""
        shapes = [
            SourceShape(
                source.name,
                source.samples,
                tuple(shard.live_rows for shard in source.shards),
                source.start,
                source.weights_at,
            )
            for source in self.sources
        ]
        if self.one_bucket_batches:
            bucketed = tuple(
                BucketedSource(shape, tuple(map(bucket_lengths, source.shards)))
                for shape, source in zip(shapes, self.sources, strict=True)
            )
            return OneBucketOrder(seed, self.batch_samples, self.window_shards, bucketed)
        return PhaseOrder(
            seed,
            self.batch_samples,
            self.window_shards,
            tuple(shapes),
            self.knots,
            self.is_validation,
        )

    def seed_of(self, seed: int | None) -> int:
        """Return the seed of the order that a loader's `seed` names, of the own one for None."""
        return self.seed if seed is None else order_seed(seed, self.order_phase or self.phase)

    @property
    def aligned_samples(self) -> int | None:
        """Samples of a block that no step should cross (see `Split`); None: steps may be anyhow."""
        return self.batch_samples if self.one_bucket_batches else None

    def for_loader(self) -> Mixture:
        """Return the mixture of the sources that are drawn from.

        Raises CorpusError if a shard of theirs has no flat token files.
        """
        for shard in self.drawn_shards():
            if missing := FLAT_SUFFIXES - set(shard.files):
                raise CorpusError(
                    f"shard {shard.path} has no flat token files ({', '.join(sorted(missing))}), "
                    "which the loader reads. Add megatron to `shards.formats` in pipeline.yaml, "
                    "then build `sharded` and `mixed` again."
                )
        return replace(self, sources=tuple(each for each in self.sources if each.samples))


def bucket_lengths(shard: Shard) -> str:
    """Return the name of a shard's bucket without its group's: "2048" of "2048.class-1"."""
    return shard.bucket.partition(".")[0]


def check_version(content: bytes) -> None:
    """Raise CorpusError for a mixture.json of a newer version than this module reads."""
    header = json.loads(content)
    if header["version"] > VERSION:
        raise CorpusError(
            f"the mixture of phase {header['phase']!r} has version {header['version']}, this "
            f"corpus_loader reads up to {VERSION}. Install the Tokenmill that wrote it, or a newer."
        )


def mixture_json(mixture: Mixture) -> dict[str, Any]:
    """Return the content of mixture.json; the store encodes it, with sorted keys.

    Fields of removed rows, of batches of one bucket, of phases that continue another, of weights
    that change, of validation and of weights of the loss are left out where there are none.
    """
    encoded = asdict(mixture)
    del encoded["takedowns"]
    of_phases = {"order_phase": "start", "knots": "weights_at"}
    of_phases |= {"one_bucket_batches": "", "is_validation": ""}
    unset = {key: of_source for key, of_source in of_phases.items() if not encoded[key]}
    for source in encoded["sources"]:
        if source["removed"] is None:
            del source["removed"]
        if source["loss_weight"] == 1:
            del source["loss_weight"]
        for shard in source["shards"]:
            if not shard["removed"]:
                del shard["removed"], shard["removed_from"]
    for key, of_source in unset.items():
        del encoded[key]
        for source in encoded["sources"]:
            source.pop(of_source, None)
    return {"version": version_of(mixture), **encoded}


def version_of(mixture: Mixture) -> int:
    """Return the least version that says what a mixture needs of its loader."""
    needs = {
        WITH_REMOVED: any(source.removed for source in mixture.sources),
        WITH_ONE_BUCKET_BATCHES: mixture.one_bucket_batches,
        WITH_MASKS: mixture.has_loss_mask,
        WITH_CONTINUES: bool(mixture.order_phase),
        WITH_WEIGHTS_AT: bool(mixture.knots) or mixture.is_validation,
        VERSION: mixture.has_loss_weights,
    }
    return max(
        (version for version, is_needed in needs.items() if is_needed), default=WITHOUT_REMOVED
    )


def parse_mixture(content: bytes) -> Mixture:
    """Read mixture.json; KeyError, TypeError or ValueError if it is damaged."""
    mixture = json.loads(content)
    sources = tuple(parse_source(source) for source in mixture["sources"])
    warnings = tuple(mixture.get("warnings", ()))
    given = fields_of(Mixture, mixture) | {"sources": sources, "warnings": warnings}
    return Mixture(**given | {"knots": tuple(mixture.get("knots", ()))})


def drawn_paths(content: bytes) -> set[str]:
    """Read the folders of the shards, and the files of removed rows: of mixtures of any version.

    Raises KeyError, TypeError or ValueError if mixture.json is damaged.
    """
    sources = json.loads(content)["sources"]
    shards = {shard["path"] for source in sources for shard in source["shards"]}
    removed = {source["removed"]["path"] for source in sources if source.get("removed")}
    return {str(PurePosixPath(path).parent) for path in shards} | removed


def parse_source(source: Mapping[str, Any]) -> MixtureSource:
    """Read one of `sources`."""
    shards = tuple(parse_shard(shard) for shard in source["shards"])
    removed = source.get("removed")
    file = None if removed is None else RemovedFile(**fields_of(RemovedFile, removed))
    if file is None and any(shard.removed for shard in shards):
        raise ValueError(f"{source['name']!r} has removed rows, but no file of them")
    given = fields_of(MixtureSource, source) | {"shards": shards, "removed": file}
    return MixtureSource(**given | {"weights_at": tuple(source.get("weights_at", ()))})


def parse_shard(shard: Mapping[str, Any]) -> Shard:
    """Read one of `shards`."""
    files = {
        suffix: FlatFile(file["bytes"], file["sha256"]) for suffix, file in shard["files"].items()
    }
    return Shard(**fields_of(Shard, shard) | {"files": files})


def fields_of(record: type, encoded: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the fields of a dataclass from JSON; KeyError if one without a default is missing."""
    return {
        field.name: encoded[field.name]
        for field in fields(record)
        if field.default is MISSING or field.name in encoded
    }
