"""The store: a folder per stage and partition, with parts, and manifests that name them.

    <store>/filtered/web/_manifests/00000003.json      the newest one counts
    <store>/filtered/web/_parts/9f...-0000-<fp>.json   a part is published when this file exists
    <store>/filtered/web/9f...-0000-<fp>.documents.parquet
    <store>/filtered/web/9f...-0000-<fp>.find-1.bin    if asked for, and named by no manifest
    <store>/sharded/web/mds-<fp>/shard.00000.mds       for readers that need a folder of their own

On an object store the layout is the same: object_store.py and scratch.py say what differs. On a
disk a file is written under a temporary name in the same folder and renamed; then the part's record
is written in the same way; a manifest comes last, by link(2), which fails if the name exists: of
two writers one commits and the other fails with a message. Readers trust the newest manifest and
what it names. All that was written, names too, is flushed once, by syncfs(2), before the manifest:
a power cut before that may lose parts, but never leaves a manifest that names a missing file. A
record may survive a power cut that its files have not survived: parts that no manifest names are
compared with their hashes by the first writer after it (disk.py). After a kill nothing is
lost: the kernel has it.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, overload

import msgspec
import polars as pl
from msgspec import UNSET
from numpy.typing import NDArray

from corpus_loader.seal import sealed, unsealed
from resources.store.disk import (
    BLOCK_BYTES,
    TEMPORARY_PREFIX,
    Lock,
    block_hashes,
    boot_before,
    has_size,
    hash_file,
    make_folder,
    note_boot,
    remove_temporaries,
    sync_folder,
    try_lock_alone,
    write_temporary,
    xxh3_of,
)
from resources.store.medium import Hold, medium_of
from resources.store.named_states import numbers_named
from resources.store.preview_files import PREVIEWS, REPORT
from resources.store.published import PublishedFile, copied_ahead
from resources.store.records import (
    DEFAULT_COMPRESSION,
    FIND_INDEX,
    LEVEL,
    MANIFESTS,
    POLARS_NAMES,
    RECORDS,
    Compression,
    FileRecord,
    Manifest,
    Numbers,
    PartRecord,
    Provenance,
    StageRecords,
    Stats,
    as_json_object,
    required_file,
    to_json,
    to_line,
)
from resources.store.records import StoreError as StoreError
from resources.store.scratch import place_of

REMOVED_AT_ONCE = 1000  # files between two looks at the lease: a second or two of requests
IS_MANIFEST = re.compile(r"[0-9]+\.json")
INDENTED = b"{\n"  # how the records of earlier versions begin
FINGERPRINT_IN_NAME = 16


class Store:
    """A corpus on a local disk, or on an object store: then `root` is its scratch."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    def __str__(self) -> str:
        return place_of(self.root)

    def partition(self, stage: str, partition: str) -> Partition:
        """Return one partition of one stage (`partition` is a checked name)."""
        return Partition(self.root / stage / partition, stage, partition)

    @overload
    def newest(
        self, stage: StageRecords[Provenance, Numbers], partition: str
    ) -> Manifest[Provenance, Numbers]: ...

    @overload
    def newest(self, stage: str, partition: str) -> Manifest: ...

    def newest(self, stage: StageRecords[Any, Any] | str, partition: str) -> Manifest:
        """Return the newest manifest, typed if the stage is given and not only its name.

        Raises StoreError, which says what to materialize, if there is none.
        """
        manifest = self.newest_or_none(stage, partition)
        if manifest is None:
            name = stage if isinstance(stage, str) else stage.name
            looked_for = self.partition(name, partition).manifests / "*.json"
            raise StoreError(
                f"{name}[{partition}] is not materialized (looked for {looked_for}). "
                f"Materialize `{name}` for {partition!r} first."
            )
        return manifest

    @overload
    def newest_or_none(
        self, stage: StageRecords[Provenance, Numbers], partition: str
    ) -> Manifest[Provenance, Numbers] | None: ...

    @overload
    def newest_or_none(self, stage: str, partition: str) -> Manifest | None: ...

    def newest_or_none(
        self, stage: StageRecords[Any, Any] | str, partition: str
    ) -> Manifest | None:
        """Return the newest manifest, None if nothing was ever committed."""
        if isinstance(stage, str):
            return self.partition(stage, partition).newest_manifest()
        return self.partition(stage.name, partition).newest_manifest(stage)

    def path_of(self, manifest: Manifest, file: FileRecord) -> Path:
        """Return the path of a file that a manifest names, not checked: see `file_of`."""
        return self.root / manifest.stage / manifest.partition / file.path

    def remove_temporaries(self) -> None:
        """Remove the temporary files of killed attempts, where no writer is at work."""
        for path in sorted(self.root.glob("*/*/.lock")):
            with open(path, "ab") as lock:
                if try_lock_alone(lock.fileno()):
                    remove_temporaries(path.parent)
        for folder in sorted((self.root / PREVIEWS).glob("*")):
            if folder.name != REPORT:  # which a command writes that waits for no run
                remove_temporaries(folder)

    def file_of(self, manifest: Manifest, file: FileRecord) -> PublishedFile:
        """Return a file that a manifest names, to be checked when it is read."""
        return published_file(self.path_of(manifest, file), file)

    def part_file(self, manifest: Manifest, part: PartRecord, kind: str) -> PublishedFile:
        """Return a part's file of a kind that every part of the stage has."""
        return self.file_of(manifest, required_file(manifest, part, kind))

    def checked_files(
        self, manifest: Manifest, parts: Iterable[PartRecord], kind: str
    ) -> Iterator[Path]:
        """Yield the path of each part's file of a kind, if it has one, as `checked` does."""
        files = [self.file_of(manifest, file) for part in parts if (file := part.file(kind))]
        yield from map(PublishedFile.checked, copied_ahead(files))

    def session(self, lease: str = "") -> AbstractContextManager[None]:
        """Remember what is listed of an object store, and hold one lease for all writers.

        `lease` is the key of one that another process holds for this one.
        """
        return medium_of(self.root).session(lease)

    def lease_key(self) -> str:
        """Return the key of the lease of this session, empty on a disk."""
        return medium_of(self.root).lease_key()

    def partitions(self) -> Iterator[Partition]:
        """Yield every partition that has a manifest, sorted."""
        medium = medium_of(self.root)
        stages = medium.names(self.root)
        names = medium.each(lambda stage: medium.names(self.root / stage), stages)
        places = [(stage, name) for stage, of in zip(stages, names, strict=True) for name in of]
        partitions = [self.partition(*place) for place in places]
        numbers = medium.each(Partition.manifest_numbers, partitions)
        yield from (each for each, found in zip(partitions, numbers, strict=True) if found)


def published_file(path: Path, file: FileRecord) -> PublishedFile:
    """Return a published file with the hashes of its record."""
    return PublishedFile(path, file.bytes, file.xxh3, file.blocks or "")


def typed(
    manifest: Manifest, stage: StageRecords[Provenance, Numbers]
) -> Manifest[Provenance, Numbers]:
    """Return a manifest with the records of its stage in place of JSON objects.

    Raises StoreError if the manifest was written by a version of the stage with other records.
    """
    return decoded(to_line(manifest), stage)  # in half the time of builtins and a conversion


def decoded(content: bytes, stage: StageRecords[Any, Any] | None) -> Manifest:
    """Decode a manifest once, with the records of its stage if that is given."""
    if stage is None:
        return msgspec.json.decode(content, type=Manifest)
    try:
        return msgspec.json.decode(content, type=Manifest[stage.provenance, stage.numbers])  # type: ignore[name-defined]
    except msgspec.ValidationError as error:
        raise other_version(msgspec.json.decode(content, type=Manifest), error) from error


def other_version(manifest: Manifest, error: msgspec.ValidationError) -> StoreError:
    """Return the error of a manifest that holds other records than its stage has today."""
    return StoreError(
        f"{manifest.stage}[{manifest.partition}] was made by another version of the code "
        f"({error}). Materialize `{manifest.stage}` for {manifest.partition!r} again."
    )


class Partition:
    """One partition of one stage: its parts and manifests."""

    def __init__(self, folder: Path, stage: str, partition: str) -> None:
        self.folder = folder
        self.stage = stage
        self.name = partition
        self.manifests = folder / MANIFESTS
        self.records = folder / RECORDS
        self.medium = medium_of(folder)
        self.seen: int | None = None  # the newest manifest's number when this writer began
        self.held: Hold | None = None

    def find_part(self, name: str, fingerprint: str) -> PartRecord | None:
        """Return the published part of that name and fingerprint, None if a file is missing."""
        record = self.read_record(record_name(name, fingerprint))
        if record is None or (record.name, record.fingerprint) != (name, fingerprint):
            return None
        is_complete = all(
            self.medium.size(self.folder / file.path) == file.bytes for file in record.files
        )
        return record if is_complete else None

    def read_record(self, name: str) -> PartRecord | None:
        """Read the record of a part by its file's name; None if it is missing or damaged.

        The part is then computed again.
        """
        try:
            content = self.medium.read(self.records / name)
            return msgspec.json.decode(unsealed(content), type=PartRecord)
        except (FileNotFoundError, msgspec.MsgspecError, ValueError):
            return None

    def manifest_numbers(self) -> list[int]:
        """Return the numbers of the manifests, ascending."""
        names = self.medium.names(self.manifests)
        return sorted(int(name[:-5]) for name in names if IS_MANIFEST.fullmatch(name))

    def manifest_path(self, number: int) -> Path:
        """Return the path of the manifest of that number."""
        return self.manifests / f"{number:08d}.json"

    def read_manifest(self, number: int, stage: StageRecords[Any, Any] | None = None) -> Manifest:
        """Read the manifest of that number, typed if the stage is given.

        Raises StoreError if it is damaged, or of another place or version of the stage.
        """
        path = self.manifest_path(number)
        try:
            manifest = decoded(unsealed(self.medium.read(path)), stage)
            if (manifest.stage, manifest.partition) != (self.stage, self.name):
                raise ValueError(f"it says that it is of {manifest.stage}[{manifest.partition}]")
        except (msgspec.MsgspecError, ValueError) as error:
            raise StoreError(
                f"{path}: not a manifest: {error}. `corpus verify --repair` writes it again, from "
                "its parts' records; or remove it to go back to an older one."
            ) from error
        return manifest

    def newest_manifest(self, stage: StageRecords[Any, Any] | None = None) -> Manifest | None:
        """Read the newest manifest, typed if the stage is given; None if there is none."""
        numbers = self.manifest_numbers()
        return self.read_manifest(numbers[-1], stage) if numbers else None

    def commit(self, manifest: Manifest, *, has_new_files: bool = True) -> Manifest:
        """Make `manifest` the newest, unless it already is.

        Inside `writing` it follows the manifest that was the newest when the writer began:
        StoreError if another writer committed meanwhile. `has_new_files`: parts were computed for
        it, perhaps ones that the newest manifest names, too.
        """
        numbers = self.manifest_numbers()
        if numbers and is_written(self.medium.read(self.manifest_path(numbers[-1])), manifest):
            if has_new_files:
                self.medium.sync(self.folder)
            return manifest
        if self.held is not None:
            self.held.check()
        newest = numbers[-1] if numbers else 0
        number = 1 + (newest if self.seen is None else self.seen)
        if not self.medium.create(self.manifest_path(number), sealed(to_line(manifest))):
            raise StoreError(
                f"{self.stage}[{self.name}]: another run committed manifest {number} "
                "meanwhile. Nothing was overwritten; run again to build on what it wrote."
            )
        return manifest

    def collect_garbage(self, keep_manifests: int, keep: Keep | None = None) -> list[Path]:
        """Remove old manifests and all files that no kept manifest names; return what was removed.

        `keep` names files and folders of the partition that something else still needs.
        """
        removed = self.garbage(keep_manifests, keep)
        self.remove_garbage(removed)
        return removed

    def remove_garbage(self, removed: Sequence[Path]) -> None:
        """Remove files, then folders that are empty without them."""
        for start in range(0, len(removed), REMOVED_AT_ONCE):
            if self.held is not None:
                self.held.check()
            self.medium.remove_all(removed[start : start + REMOVED_AT_ONCE])
        for folder in {path.parent for path in removed} - {self.folder, self.records}:
            if folder != self.manifests:
                with suppress(OSError):  # it has other files
                    folder.rmdir()

    def garbage(self, keep_manifests: int, keep: Keep | None = None) -> list[Path]:
        """Return what `collect_garbage` removes: manifests first, which name the files after them.

        While another writer works here, files that it has not committed are among them.
        """
        numbers, kept = self.manifest_numbers(), self.kept_numbers(keep_manifests)
        named = self.named_by(kept)
        old = [self.manifest_path(number) for number in numbers if number not in kept]
        below = self.medium.files_below(self.folder)
        unnamed = [self.folder / name for name in below if named.isdisjoint((name, owner(name)))]
        needed = {self.manifests, *(keep(self) if keep else ())}
        return old + [
            path
            for path in unnamed
            if path.name != ".lock" and not needed.intersection((path, path.parent))
        ]

    def kept_numbers(self, keep_manifests: int) -> list[int]:
        """Return the numbers of the newest manifests, and of those that a tag or a hold names."""
        numbers = self.manifest_numbers()
        named = numbers_named(self.folder.parent.parent, self.stage, self.name)
        newest = numbers[max(0, len(numbers) - keep_manifests) :]
        return [n for n in numbers if n in named or n in newest]

    def named_by(self, numbers: Iterable[int]) -> set[str]:
        """Return the files and records that some manifests name, relative to the folder."""
        parts = [part for number in numbers for part in self.read_manifest(number).parts]
        records = {f"{RECORDS}/{record_name(part.name, part.fingerprint)}" for part in parts}
        return records | {file.path for part in parts for file in part.files}

    def check_after_power_cut(self, lock: Lock) -> None:
        """Remove the records of parts that a power cut may have damaged; the caller is alone.

        Those of a manifest were flushed before it was.
        """
        if boot_before(lock):
            return
        named: set[str] = set()
        for number in self.manifest_numbers():
            with suppress(StoreError):  # what only a damaged one names is compared
                named |= self.named_by([number])
        for path in self.records.glob("*.json"):
            if f"{RECORDS}/{path.name}" not in named and not self.is_whole(path.name):
                path.unlink()
        note_boot(lock)
        sync_folder(self.folder)

    def is_whole(self, name: str) -> bool:
        """Return whether the files of a part are as its record says, by their hashes."""
        record = self.read_record(name)
        files = [(self.folder / file.path, file) for file in record.files] if record else []
        return record is not None and all(
            has_size(path, file.bytes) and xxh3_of(path) == file.xxh3 for path, file in files
        )

    @contextmanager
    def writing(self, keep_manifests: int, keep: Keep | None = None) -> Iterator[None]:
        """Hold the partition as a writer; clean up before and after if no other writer is there.

        On a disk, one that is alone may remove the temporary files of killed attempts; anywhere it
        may remove files that no manifest names.
        """
        with self.medium.hold(self.folder) as hold:
            if hold.lock is not None and hold.is_alone():
                remove_temporaries(self.folder)
                self.check_after_power_cut(hold.lock)
            hold.share()
            self.held, self.seen = hold, max(self.manifest_numbers(), default=0)
            try:
                yield
            finally:
                self.medium.settle(self.folder)
            is_needed = hold.lock is not None or self.garbage(keep_manifests, keep)
            if is_needed and hold.is_alone():  # what others named until then is seen
                self.medium.begin_step(self.stage, sweeps=True)
                self.collect_garbage(keep_manifests, keep)
                hold.share()

    def sweep(
        self, keep_manifests: int, keep: Keep | None = None, *, is_dry: bool
    ) -> dict[Path, int] | None:
        """Collect garbage outside of a run, or look for it; return what goes, with its bytes.

        None while a writer works here: what it has not committed yet looks like garbage.
        """
        with self.medium.hold(self.folder) as hold:
            if not hold.is_alone():
                return None
            self.held = hold
            found = self.garbage(keep_manifests, keep)
            sizes = self.medium.each(self.medium.size, found)
            if not is_dry:
                self.remove_garbage(found)
            return dict(zip(found, (size or 0 for size in sizes), strict=True))


Keep = Callable[[Partition], set[Path]]


class PartWriter:
    """The files of one part, collected and published together.

    Each attempt writes under names of its own, so that attempts never meet before the rename.
    """

    def __init__(
        self,
        partition: Partition,
        name: str,
        fingerprint: str,
        compression: Compression = DEFAULT_COMPRESSION,
    ) -> None:
        self.partition = partition
        self.compression = compression
        self.name = name
        self.fingerprint = fingerprint
        self.pending: list[tuple[Path, FileRecord]] = []
        make_folder(partition.records)

    def new_file(self, kind: str, suffix: str) -> tuple[Path, str]:
        """Return a temporary path to write to, and the final name of the file."""
        final = f"{part_stem(self.name, self.fingerprint)}.{kind}.{suffix}"
        return self.partition.folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{final}", final

    def new_file_in(self, folder: str, name: str) -> tuple[Path, str]:
        """Return a temporary path and the name `folder/name`, for readers with names of their own.

        `folder` carries a fingerprint: it is what tells one state of the partition from the next.
        """
        make_folder(self.partition.folder / folder)
        return self.partition.folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{name}", (
            f"{folder}/{name}"
        )

    def add_file(
        self, kind: str, temporary: Path, final: str, rows: int, *, in_blocks: bool = False
    ) -> None:
        """Hash a file that was written to a path of `new_file`.

        `in_blocks`: also block by block, if it has several.
        """
        num_bytes = temporary.stat().st_size
        blocks = block_hashes(temporary) if in_blocks and num_bytes > BLOCK_BYTES else UNSET
        record = FileRecord(kind, final, rows, num_bytes, *hash_file(temporary), blocks)
        self.pending.append((temporary, record))

    def keep_files(self, files: Iterable[FileRecord]) -> None:
        """Take over files that have their final names already: renamed to themselves."""
        self.pending += [(self.partition.folder / file.path, file) for file in files]

    def link_file(
        self, kind: str, file: FileRecord, final: str | None = None, source: Path | None = None
    ) -> FileRecord:
        """Give a published file a second name, by a hard link; return its record.

        The name is that of a new file unless `final` is given. `source` is the file's path if it is
        of another partition. On an object store it is sent once more.
        """
        final = final or self.new_file(kind, Path(file.path).suffix.removeprefix("."))[1]
        record = msgspec.structs.replace(file, kind=kind, path=final)
        source = source or self.partition.folder / file.path
        target = self.partition.folder / final
        make_folder(target.parent)
        self.partition.medium.bring(source)
        if target.exists() and target.samefile(source):
            temporary = target  # renaming one link of a file to another would leave both
        else:
            name = f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}-{target.name}"
            temporary = self.partition.folder / name
            os.link(source, temporary)
        self.pending.append((temporary, record))
        return record

    def write_parquet(self, kind: str, frame: pl.DataFrame) -> None:
        """Write a table as Parquet."""
        temporary, final = self.new_file(kind, "parquet")
        level = LEVEL if self.compression == "zstd" else None
        name = POLARS_NAMES[self.compression]
        frame.write_parquet(temporary, compression=name, compression_level=level)
        self.add_file(kind, temporary, final, frame.height)

    def write_arrow(self, kind: str, frame: pl.DataFrame) -> None:
        """Write a table as an uncompressed Arrow file, which keeps uint16 at two bytes."""
        temporary, final = self.new_file(kind, "arrow")
        frame.write_ipc(temporary, compression="uncompressed")
        self.add_file(kind, temporary, final, frame.height)

    def write_arrays(self, kind: str, *arrays: NDArray[Any]) -> None:
        """Write arrays of equal length one after the other, as they are in memory.

        Such a file is mapped in 50 microseconds, an Arrow file in a millisecond. It is hashed block
        by block too: of an index, a run reads ranges.
        """
        temporary, final = self.new_file(kind, "bin")
        with open(temporary, "wb") as file:
            for array in arrays:
                array.tofile(file)
        self.add_file(kind, temporary, final, len(arrays[0]), in_blocks=True)

    def write_text(self, kind: str, suffix: str, text: str) -> None:
        """Write a text file."""
        temporary, final = self.new_file(kind, suffix)
        temporary.write_text(text, encoding="utf-8")
        self.add_file(kind, temporary, final, 0)

    def discard(self) -> None:
        """Remove the files that were written, which are not published."""
        for temporary, _ in self.pending:
            temporary.unlink()
        self.pending = []

    def publish(self, stats: Stats) -> PartRecord:
        """Rename the files to their final names, then write the record that makes them count."""
        if not stats.is_conserved():
            raise StoreError(
                f"{self.partition.stage}[{self.partition.name}] part {self.name} lost rows: "
                f"{stats}. This is a bug in the stage; nothing was published."
            )
        stats = msgspec.structs.replace(stats, numbers=as_json_object(stats.numbers))
        folder, medium = self.partition.folder, self.partition.medium
        medium.each(lambda each: medium.publish(each[0], folder / each[1].path), self.pending)
        files = tuple(file for _, file in self.pending)
        record = PartRecord(self.name, self.fingerprint, files, stats)
        target = self.partition.records / record_name(self.name, self.fingerprint)
        content = sealed(to_line(record))
        medium.publish(write_temporary(target.parent, target.name, content), target)
        return record


def is_written(content: bytes, record: Manifest | PartRecord) -> bool:
    """Return whether a file holds the record, as this version or as an earlier one wrote it."""
    if content.startswith(INDENTED):
        plain = to_json(record)
        return content in (sealed(plain), plain)
    return content == sealed(to_line(record))


def newest_first(folder: Partition) -> Iterator[Manifest]:
    """The manifests of a partition."""
    for number in reversed(folder.manifest_numbers()):
        yield folder.read_manifest(number)


def owner(name: str) -> str:
    """Return the record of the part that an index is of, "" for other files: it stays as long."""
    stem = name.removesuffix(FIND_INDEX)
    return "" if stem == name else f"{RECORDS}/{stem}.json"


def part_stem(name: str, fingerprint: str) -> str:
    """Return the file name of a part without its kind: its name and 64 bits of its fingerprint."""
    return f"{name}-{fingerprint[:FINGERPRINT_IN_NAME]}"


def record_name(name: str, fingerprint: str) -> str:
    """Return the file name of a part's record."""
    return f"{part_stem(name, fingerprint)}.json"
