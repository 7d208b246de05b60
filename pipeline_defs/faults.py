"""What of a store is not as published: every file that a kept manifest names, and how it differs.

A manifest must be canonical JSON whose fingerprint and sums are those of its parts; a part's record
must be what the manifest says of the part; a file must have its size and sha256. Hashing runs in
threads at 1.5 GB/s a core; xxh3 (10 GB/s) finds damage, but not forgery.
"""

from __future__ import annotations

import hashlib
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from resources.records import (
    FileRecord,
    Manifest,
    PartRecord,
    add_stats,
    fingerprint_of,
    to_json,
)
from resources.store import Partition, Store, StoreError, part_stem, xxh3_of


@dataclass(frozen=True)
class Fault:
    """A file that differs, of `part` or the manifest itself if that is None, and how."""

    partition: Partition
    manifest: int  # number of the newest manifest that names it
    part: PartRecord | None
    path: Path
    what: str = ""

    @property
    def title(self) -> str:
        """Stage, partition and part, for people."""
        of_part = f"manifest {self.manifest}" if self.part is None else f"part {self.part.name}"
        return f"{self.partition.stage}[{self.partition.name}] {of_part}"

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True)
class Findings:
    """What was looked at, and what differs."""

    faults: list[Fault]
    num_files: int
    num_bytes: int
    seconds: float

    def __str__(self) -> str:
        speed = self.num_bytes / 1e6 / max(self.seconds, 1e-9)
        verdict = f"{len(self.faults)} differ" if self.faults else "all as published"
        return (
            f"{self.num_files:,} files, {self.num_bytes / 1e6:,.1f} MB in {self.seconds:.1f} s "
            f"({speed:,.0f} MB/s): {verdict}"
        )


def find_faults(store: Store, *, is_fast: bool = False) -> Findings:
    """Check all that the kept manifests of every partition name."""
    start = time.perf_counter()
    faults: list[Fault] = []
    named: dict[Path, tuple[Fault, FileRecord]] = {}
    for partition in store.partitions():
        for number in reversed(partition.manifest_numbers()):
            manifest, what = read_checked(partition, number)
            if what is not None:
                faults.append(Fault(partition, number, None, partition.manifest_path(number), what))
            for part in () if manifest is None else manifest.parts:
                place = Fault(partition, number, part, record_path(partition, part))
                faults += [replace(place, what=found) for found in record_faults(place, part)]
                for file in part.files:
                    path = partition.folder / file.path
                    named.setdefault(path, (replace(place, path=path), file))
    differing = compare({path: file for path, (_, file) in named.items()}, is_fast=is_fast)
    faults += [replace(named[path][0], what=what) for path, what in differing.items()]
    ordered = sorted({(fault.path, fault.what): fault for fault in faults}.items())
    num_bytes = sum(file.bytes for _, file in named.values())
    return Findings(
        [fault for _, fault in ordered], len(named), num_bytes, time.perf_counter() - start
    )


def compare(files: dict[Path, FileRecord], *, is_fast: bool = False) -> dict[Path, str]:
    """How files differ from their records, as many at a time as there are cores."""
    largest_first = sorted(files, key=lambda path: -files[path].bytes)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(lambda path: file_fault(path, files[path], is_fast), largest_first)
        return {p: what for p, what in zip(largest_first, found, strict=True) if what is not None}


def read_checked(partition: Partition, number: int) -> tuple[Manifest | None, str | None]:
    """A manifest, if it can be read, and what is wrong with it."""
    try:
        manifest = partition.read_manifest(number)
    except StoreError as error:
        return None, str(error).partition(": ")[2]
    computed = fingerprint_of(
        [part.fingerprint for part in manifest.parts], manifest.config, manifest.about
    )
    is_whole = (
        manifest.fingerprint == computed
        and manifest.stats == add_stats(part.stats for part in manifest.parts)
        and partition.manifest_path(number).read_bytes() == to_json(manifest)
    )
    return manifest, None if is_whole else "not what was committed: its sums do not hold"


def record_path(partition: Partition, part: PartRecord) -> Path:
    """Where the record of a published part lies."""
    return partition.records / f"{part_stem(part.name, part.fingerprint)}.json"


def record_faults(place: Fault, part: PartRecord) -> list[str]:
    """How a part's record differs from what the manifest says of the part; at most one line."""
    if not place.path.is_file():
        return ["missing"]
    return [] if place.path.read_bytes() == to_json(part) else ["differs from the manifest"]


def file_fault(path: Path, file: FileRecord, is_fast: bool = False) -> str | None:
    """How a file differs from its record, None if it does not."""
    if not path.is_file():
        return "missing"
    if path.stat().st_size != file.bytes:
        return f"{path.stat().st_size} bytes, the manifest says {file.bytes}"
    if is_fast:
        return None if xxh3_of(path) == file.xxh3 else "xxh3 differs from the manifest's"
    with open(path, "rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    return None if sha256 == file.sha256 else f"sha256 {sha256}, the manifest says {file.sha256}"
