"""Find faults of a store: files of a kept manifest that are not as published.

A manifest must be canonical JSON whose fingerprint and sums are those of its parts. A part's record
must equal the part in the manifest. A file must have its size and sha256. Hashing runs in threads;
xxh3 is faster and finds damage, but not forgery.

Two rules go beyond the manifests. The shards that the newest mixture of a phase names must exist,
also those that `sharded` has replaced since. A folder of shards must hold no other file, since
trainers read all files of it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import xxhash

from assets.mixed.mixed_records import MIXED
from assets.mixed.mixture_files import mixture_files, read_mixture
from assets.raw.places.patch_files import read_patch_file
from assets.sharded.shard_files import MANIFEST_NAME
from pipeline_defs.commands.look.find_index import check_index
from pipeline_defs.commands.share.iceberg_folders import read_digests
from resources.dagster_home import records_folder
from resources.store.inventory import DIGESTS, stored_files
from resources.store.medium import medium_of
from resources.store.named_states import Rollback, Tag, read_named
from resources.store.records import FileRecord, Manifest, PartRecord, add_stats, fingerprint_of
from resources.store.scratch import place_of
from resources.store.store import Partition, Store, StoreError, is_written, part_stem
from resources.takedowns import count_takedowns, read_takedown
from resources.takedowns import path_of as takedown_path

STRAY = "not in the manifest"
MISSING = "missing"
REMOVE = "remove it"
MIX_AGAIN = (
    "only the mixture names it, `sharded` was built again: run the job mix_corpus to mix what is "
    "there now"
)
AT_ONCE = 8  # files: those of an object store wait for their requests
UNREADABLE = (
    *(StoreError, AssertionError, FileNotFoundError, ValueError, KeyError, TypeError, IndexError),
)


@dataclass(frozen=True)
class Fault:
    """File that differs from its record: of `part`, or the manifest itself if that is None.

    `remedy`: the user's next step where `--repair` cannot rebuild the file; `twin`: a whole file
    with the content that it should have, as a second name of a rebuilt one.
    """

    partition: Partition
    manifest: int  # number of the newest manifest that names it
    part: PartRecord | None
    path: Path
    what: str = ""
    remedy: str = ""
    twin: Path | None = None

    @property
    def title(self) -> str:
        """Stage, partition and part, for messages."""
        of_part = f"manifest {self.manifest}" if self.part is None else f"part {self.part.name}"
        return f"{self.partition.stage}[{self.partition.name}] {of_part}"

    def __str__(self) -> str:
        return f"{place_of(self.path)}: {self.what}{self.remedy and f': {self.remedy}'}"


Named = dict[Path, tuple[Fault, FileRecord]]  # the place of a file in its manifest, and its record


@dataclass(frozen=True)
class Findings:
    """Faults of a store, and the number of files and bytes compared.

    `unreadable` are lines on the files that no manifest names and no build makes again.
    """

    faults: list[Fault]
    num_files: int
    num_bytes: int
    seconds: float
    unreadable: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether nothing differs, and all can be read."""
        return not self.faults and not self.unreadable

    def lines(self) -> list[str]:
        """Return a line for each file that differs, then the sums."""
        return [*map(str, self.faults), *self.unreadable, str(self)]

    def __str__(self) -> str:
        speed = self.num_bytes / 1e6 / max(self.seconds, 1e-9)
        num_faults = len(self.faults) + len(self.unreadable)
        verdict = f"{num_faults} differ" if num_faults else "all as published"
        return (
            f"{self.num_files:,} files, {self.num_bytes / 1e6:,.1f} MB in {self.seconds:.1f} s "
            f"({speed:,.0f} MB/s): {verdict}"
        )


def find_faults(store: Store, *, is_fast: bool = False) -> Findings:
    """Check every file that a kept manifest of any partition names."""
    start = time.perf_counter()
    faults: list[Fault] = []
    named: Named = {}
    partitions = list(store.partitions())
    for partition in partitions:
        own, files = check_partition(partition)
        faults += own
        named |= files
    for phase in (each for each in partitions if each.stage == MIXED.name):
        for path, drawn in drawn_by_newest(store, phase).items():
            named.setdefault(path, drawn)
    differing = compare({path: file for path, (_, file) in named.items()}, is_fast=is_fast)
    whole = {file.sha256: path for path, (_, file) in named.items() if path not in differing}
    faults += [
        replace(named[path][0], what=what, twin=whole.get(named[path][1].sha256))
        for path, what in differing.items()
    ]
    # A file of several manifests counts for the newest: files of older ones alone are not rebuilt.
    ordered = sorted({(fault.path, fault.what): fault for fault in reversed(faults)}.items())
    num_bytes = sum(file.bytes for _, file in named.values())
    seconds = time.perf_counter() - start
    unreadable = (*unreadable_files(store.root),)
    return Findings([fault for _, fault in ordered], len(named), num_bytes, seconds, unreadable)


def drawn_by_newest(store: Store, phase: Partition) -> Named:
    """Return the files that the newest mixture of a phase draws from; none if it is damaged."""
    try:
        number = phase.manifest_numbers()[-1]
        manifest = phase.read_manifest(number)
        files = {
            store.root / name: file for name, file in mixture_files(read_mixture(store, manifest))
        }
    except UNREADABLE:
        return {}  # a fault of its own
    place = Fault(phase, number, manifest.parts[0], store.root, "", MIX_AGAIN)
    return {path: (replace(place, path=path), file) for path, file in files.items()}


def unreadable_files(root: Path) -> Iterator[str]:
    """Say which files that no manifest names are not what their reader expects."""
    reads: dict[Path, Callable[[Path], object]] = {}
    for each in stored_files(root, records_folder(root), with_stages=True):
        if each.declared and each.declared.check == "reader":
            reads[each.path] = READERS[each.declared.name]
        elif each.declared and each.declared.check == "digests":
            reads[each.path.parents[1] / DIGESTS] = check_table  # which may be missing
    for number in range(1, count_takedowns(root) + 1):  # likewise
        reads[takedown_path(root, number)] = read_takedown
    for path, read in reads.items():
        try:
            read(path)
        except StoreError as error:
            yield str(error)


def check_table(path: Path) -> None:
    """Raise StoreError if files of a table are not as the digests of the last push say."""
    differing = compare({path.parent / each.path: each for each in read_digests(path)})
    if lines := [f"{place_of(path)}: {what}" for path, what in sorted(differing.items())]:
        raise StoreError("\n".join([*lines, "The next push of the table writes them again."]))


READERS: dict[str, Callable[[Path], object]] = {
    "patches": read_patch_file,
    "takedowns": read_takedown,
    "tags": partial(read_named, kind=Tag),
    "holds": partial(read_named, kind=Rollback),
    "find indexes": check_index,
    "digests": check_table,
}


def check_partition(partition: Partition) -> tuple[list[Fault], Named]:
    """Return the faults of the manifests and records of a partition, and the files they name.

    A file in a folder of shards that no kept manifest names is a fault, too. Folders below are
    ignored: they are readers' caches. So is the manifest.json of an older state: the folder stays
    as it was while a mixture draws from it.
    """
    faults: list[Fault] = []
    named: Named = {}
    numbers, is_read = partition.manifest_numbers(), True
    for number in reversed(numbers):
        manifest, what = read_checked(partition, number)
        is_read &= manifest is not None
        if what is not None:
            faults.append(Fault(partition, number, None, partition.manifest_path(number), what))
        for part in () if manifest is None else manifest.parts:
            place = Fault(partition, number, part, record_path(partition, part))
            if what := record_fault(place, part):
                faults.append(replace(place, what=what))
            for file in part.files:
                path = partition.folder / file.path
                named.setdefault(path, (replace(place, path=path), file))
    if is_read:  # a manifest that cannot be read may name any file
        for folder in sorted({path.parent for path in named} - {partition.folder}):
            strays = (path for path in files_of(folder) if path not in named)
            kept = (path for path in strays if path.name != MANIFEST_NAME)
            faults += [Fault(partition, numbers[-1], None, path, STRAY, REMOVE) for path in kept]
    return faults, named


def record_fault(place: Fault, part: PartRecord) -> str:
    """Compare a part's record with the part in the manifest; return the difference, if any."""
    try:
        content = place.partition.medium.read(place.path)
    except FileNotFoundError:
        return MISSING
    return "" if is_written(content, part) else "differs from the manifest"


def files_of(folder: Path) -> list[Path]:
    """Return the files of a folder that a pattern like *.bin could match."""
    names = medium_of(folder).sizes(folder)
    return [folder / name for name in sorted(names) if not name.startswith(".")]


def compare(files: dict[Path, FileRecord], *, is_fast: bool = False) -> dict[Path, str]:
    """Compare files with their records, many at a time; return the differences."""
    largest_first = sorted(files, key=lambda path: -files[path].bytes)
    with ThreadPoolExecutor(max(AT_ONCE, len(os.sched_getaffinity(0)))) as pool:
        faults = pool.map(lambda path: file_fault(path, files[path], is_fast), largest_first)
        return {p: what for p, what in zip(largest_first, faults, strict=True) if what is not None}


def read_checked(partition: Partition, number: int) -> tuple[Manifest | None, str | None]:
    """Return a manifest (None if it cannot be read) and its fault (None if it has none)."""
    try:
        manifest = partition.read_manifest(number)
    except StoreError as error:
        is_newest = number == partition.manifest_numbers()[-1]
        hint = (
            "`corpus verify --repair` writes it again, from its parts' records"
            if is_newest
            else "older than the newest and only kept for going back: remove it"
        )
        return None, f"not a manifest ({error.__cause__}); {hint}"
    computed = fingerprint_of(
        [part.fingerprint for part in manifest.parts], manifest.config, manifest.provenance
    )
    is_whole = (
        manifest.fingerprint == computed
        and manifest.stats == add_stats(part.stats for part in manifest.parts)
        and is_written(partition.medium.read(partition.manifest_path(number)), manifest)
    )
    return manifest, None if is_whole else "not what was committed: its sums do not hold"


def record_path(partition: Partition, part: PartRecord) -> Path:
    """Return the path of the record of a published part."""
    return partition.records / f"{part_stem(part.name, part.fingerprint)}.json"


def file_fault(path: Path, file: FileRecord, is_fast: bool = False) -> str | None:
    """Compare a file with its record; return the difference, None if they agree."""
    medium = medium_of(path.parent)
    size = medium.size(path)
    if size is None:
        return MISSING
    if size != file.bytes:
        return f"{size} bytes, the manifest says {file.bytes}"
    is_xxh3 = is_fast and bool(file.xxh3)  # a mixture has sha256 only
    digest = xxhash.xxh3_128() if is_xxh3 else hashlib.sha256()
    for block in medium.blocks(path):
        digest.update(block)
    if is_xxh3:
        return None if digest.hexdigest() == file.xxh3 else "xxh3 differs from the manifest's"
    sha256 = digest.hexdigest()
    return None if sha256 == file.sha256 else f"sha256 {sha256}, the manifest says {file.sha256}"
