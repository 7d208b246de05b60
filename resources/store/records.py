"""Records of files, parts and manifests: the JSON of the store.

They hold no clock and nothing of the machine, so that the same input, config and code give the
same bytes. Times are kept in `resources/run_reports.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec

Compression = Literal["zstd", "lz4", "none"]
DUPLICATE, UNREADABLE = "duplicate", "unreadable"  # reasons beside those of stages
DEFAULT_COMPRESSION: Compression = "zstd"
LEVEL = 1  # of zstd: level 3 takes twice as long, for a tenth less
MANIFESTS, RECORDS = "_manifests", "_parts"  # folders of a partition
DOWNLOADS = "_downloads"  # folder of the store: copies of input files, which are the user's
JOURNALS = "_answers"  # folder of the store: answers of models that a killed run has got
FIND_INDEX = ".find-1.bin"  # what `corpus find` has of a part: no manifest names it
POLARS_NAMES: dict[Compression, Literal["zstd", "lz4", "uncompressed"]] = {
    "zstd": "zstd",
    "lz4": "lz4",
    "none": "uncompressed",
}


def compression_in_fingerprints(compression: Compression) -> tuple[str, ...]:
    """Return the part of a fingerprint that says how tables are written: nothing by default."""
    return () if compression == DEFAULT_COMPRESSION else (compression,)


class StoreError(RuntimeError):
    """A request that the store cannot serve; the message says what to do."""


class DamagedFileError(StoreError, ValueError):
    """A file that differs from what was published; no retry will read anything else."""


FINGERPRINT_HEX = 32  # 128 bits: no accidental collision below 1e18 parts


Provenance = TypeVar("Provenance")
Numbers = TypeVar("Numbers")
Record = TypeVar("Record")


class Stats(msgspec.Struct, Generic[Numbers], frozen=True, forbid_unknown_fields=True):
    """Count the rows of a part: in = kept + rejected + duplicates + quarantined.

    `rejected` counts every rejected row once, under its first reason. `text_bytes` is the UTF-8
    text read (a speed in MB/s refers to it); `bytes` is the size of the result: text, or token ids
    times their width. `numbers` (`extra` in JSON) is a record of the stage's own.
    """

    rows_in: int = 0
    rows_kept: int = 0
    rejected: dict[str, int] = {}
    duplicates: int = 0
    quarantined: int = 0
    tokens: int = 0
    bytes: int = 0
    text_bytes: int = 0
    numbers: Numbers = msgspec.field(default_factory=dict, name="extra")  # type: ignore[assignment]

    def is_conserved(self) -> bool:
        """Return whether every row is accounted for, and none twice."""
        out = self.rows_kept + sum(self.rejected.values()) + self.duplicates + self.quarantined
        return self.rows_in == out

    def removed(self) -> dict[str, int]:
        """Return the rows that are not kept by reason, the most frequent first."""
        beside = {DUPLICATE: self.duplicates, UNREADABLE: self.quarantined}
        ordered = sorted((self.rejected | beside).items(), key=lambda item: (-item[1], item[0]))
        return {reason: count for reason, count in ordered if count}


class FileRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published file; `path` is relative to its partition's folder.

    `blocks` is set for large files of which ranges are read: an xxh3_64 per BLOCK_BYTES, in hex.
    """

    kind: str
    path: str
    rows: int
    bytes: int
    sha256: str
    xxh3: str
    blocks: str | msgspec.UnsetType = msgspec.UNSET


class PartRecord(msgspec.Struct, Generic[Numbers], frozen=True, forbid_unknown_fields=True):
    """One published part: its files and the counts of its rows."""

    name: str
    fingerprint: str
    files: tuple[FileRecord, ...]
    stats: Stats[Numbers]

    def file(self, kind: str) -> FileRecord | None:
        """Return the part's file of that kind, None if it has none."""
        return next((file for file in self.files if file.kind == kind), None)


class Manifest(
    msgspec.Struct, Generic[Provenance, Numbers], frozen=True, forbid_unknown_fields=True
):
    """The parts of one partition of one stage, in order, and the config and inputs that made them.

    `config` is the JSON of the stage's config model; `provenance` (`about` in JSON) a record of
    the stage's own that names its inputs. `compression` is that of the tables, if it is not the
    default.
    """

    stage: str
    partition: str
    fingerprint: str
    code_version: str
    config: dict[str, Any]
    parts: tuple[PartRecord[Numbers], ...]
    stats: Stats[Numbers]
    provenance: Provenance = msgspec.field(default_factory=dict, name="about")  # type: ignore[assignment]
    compression: Compression | msgspec.UnsetType = msgspec.UNSET


@dataclass(frozen=True)
class StageRecords(Generic[Provenance, Numbers]):
    """All that other stages and the store know of a stage.

    code_version         raised when the stage's output changes
    provenance, numbers  types of the stage's own records in its manifests
    """

    name: str
    code_version: str
    provenance: type[Provenance]
    numbers: type[Numbers]

    def fields(self) -> tuple[str, str, type[Provenance], type[Numbers]]:
        """Return all of it, in this order, for the description of the stage."""
        return self.name, self.code_version, self.provenance, self.numbers


class Empty(msgspec.Struct, frozen=True):
    """A record without fields: the stage has no numbers, or no inputs, of its own."""


def as_json_object(record: Any) -> dict[str, Any]:
    """Return a record of a stage as the store keeps it; keys sorted, unset fields left out."""
    encoded: dict[str, Any] = msgspec.to_builtins(record, order="sorted")
    return encoded


def numbers_of(part: PartRecord, numbers: type[Record]) -> Record:
    """Return the numbers of a part that was just published, as a record of its stage."""
    return msgspec.convert(part.stats.numbers, numbers)


def to_json(value: Any) -> bytes:
    """Return canonical JSON: sorted keys, two-space indent, UTF-8, a newline at the end."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return msgspec.json.format(encoded, indent=2) + b"\n"


def to_line(value: Any) -> bytes:
    """Return canonical JSON on one line: in a third of the time, and two thirds of the bytes."""
    return msgspec.json.encode(value, order="deterministic") + b"\n"


def fingerprint_of(*parts: Any) -> str:
    """Return the 128-bit hex digest of the canonical JSON of `parts`."""
    encoded = msgspec.json.encode(parts, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:FINGERPRINT_HEX]


def add_counts(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Sum dictionaries of counts key by key; keys sorted."""
    total: dict[str, int] = {}
    for count in counts:
        for key, value in count.items():
            total[key] = total.get(key, 0) + value
    return dict(sorted(total.items()))


def is_counts(value: Any) -> bool:
    """Return whether a value is a dictionary of whole numbers."""
    return isinstance(value, dict) and all(isinstance(count, int) for count in value.values())


def is_number(value: Any) -> bool:
    """Return whether a value is a number; a flag is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def add_stats(all_stats: Iterable[Stats[Any]]) -> Stats[Any]:
    """Sum the numbers of many parts; of `numbers`, what is a number or a dictionary of counts.

    Of a single part all of `numbers` stays, except flags.
    """
    stats = list(all_stats)
    objects = [as_json_object(s.numbers) for s in stats]
    numbers: dict[str, Any] = {}
    for key in sorted({key for each in objects for key in each}):
        values = [each[key] for each in objects if key in each]
        if all(is_counts(value) for value in values):
            numbers[key] = add_counts(values)
        elif all(is_number(value) for value in values):
            numbers[key] = sum(values)
        elif len(stats) == 1 and not isinstance(values[0], bool):
            numbers[key] = values[0]
    return Stats(
        rows_in=sum(s.rows_in for s in stats),
        rows_kept=sum(s.rows_kept for s in stats),
        rejected=add_counts(s.rejected for s in stats),
        duplicates=sum(s.duplicates for s in stats),
        quarantined=sum(s.quarantined for s in stats),
        tokens=sum(s.tokens for s in stats),
        bytes=sum(s.bytes for s in stats),
        text_bytes=sum(s.text_bytes for s in stats),
        numbers=numbers,
    )


def required_file(manifest: Manifest, part: PartRecord, kind: str) -> FileRecord:
    """Return a part's file of a kind that every part of the stage has."""
    file = part.file(kind)
    assert file is not None, f"{manifest.stage}[{manifest.partition}] {part.name} has no {kind}"
    return file
