"""Iceberg tables over the published Parquet files: one for each source, a snapshot for each state.

    <store>/iceberg-filtered/web/metadata/v3.metadata.json      over <store>/filtered/web/*.parquet
    <store>/iceberg-deduped_copy/web/data/9f...-0000-<fp>.parquet

The files stay where they are, and metadata name them, without statistics, in which texts would be.
Removed rows of shards become position deletes. No catalog is needed. `corpus takedown prove` takes
the folders for partitions, and searches them.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import OutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO, _pyarrow_to_schema_without_ids
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Operation, Snapshot, Summary
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import Record

from assets.mixed.phase_source_files import ListedRows, bucket_of, removed_of
from assets.sharded.shard_files import files_of, split_of
from corpus_loader.places.stage_names import FILTERED
from corpus_loader.seal import sealed
from pipeline_defs.commands.life.faults import check_table
from pipeline_defs.commands.share.iceberg_folders import (
    STAGES,
    IcebergFolder,
    TableDigests,
    read_digests,
)
from pipeline_defs.commands.share.pushed_files import as_parquet, corpus_files, forbidden_state
from resources.store.disk import hash_file, make_folder, write_temporary
from resources.store.inventory import DIGESTS
from resources.store.medium import medium_of
from resources.store.named_states import read_tags
from resources.store.records import FileRecord, Manifest, StoreError, fingerprint_of, to_line
from resources.store.scratch import place_of, scratch_of

VERSION = re.compile(r"v([0-9]+)\.metadata\.json")
HINT = "metadata/version-hint.text"
PATH_ID = 2147483546
DELETES = pa.schema(  # of the format
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
)


class TableFile(NamedTuple):
    """A Parquet file of a state, and its rows that are removed; `path` is local."""

    path: Path
    rows: int
    bytes: int
    removed: ListedRows | None = None


class State(NamedTuple):
    """A kept manifest with its files; the snapshot's id follows from it and from the place."""

    number: int
    id: int
    files: Sequence[TableFile]


class DeletesWriter(ManifestWriterV2):  # type: ignore[misc]
    """Writer of a list of delete files, which pyiceberg reads but does not write."""

    def content(self) -> ManifestContent:
        """Return what the list is of."""
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class IcebergTable(IcebergFolder):
    """The table of a source."""

    def write(self, newest: int | None = None) -> str:
        """Write the table anew from kept manifests, and remove what it no longer has.

        If a file is not as the last push left it, all are. Return what it has now. Without any
        state it is removed. Manifests after `newest`, by default the newest that it has, are left
        out.
        """
        medium, before, version = medium_of(self.folder), None, 0
        pushed = self.pushed_files()
        found = [VERSION.fullmatch(name) for name in medium.names(self.folder / "metadata")]
        if numbers := [int(each[1]) for each in found if each]:
            version = max(numbers)
            content = medium.read(self.folder / f"metadata/v{version}.metadata.json")
            with suppress(ValueError):  # damaged
                before = TableMetadataV2.model_validate_json(content)
        if not pushed:
            self.remove()
        known = {each.snapshot_id: each for each in before.snapshots} if before else {}
        states = [*self.states(known, newest or (before.last_sequence_number if before else 0))]
        known = known if pushed else {}
        kept = {name for each in states for name in self.own_files(each)}
        if states:
            after = self.metadata(states, known, before.table_uuid if before else uuid.uuid4())
            if before is None or not pushed or before.refs != after.refs:
                version += 1
                path = self.folder / f"metadata/v{version}.metadata.json"
                if not medium.create(path, after.model_dump_json().encode()):
                    raise StoreError(f"{place_of(path)} was written meanwhile. Push again.")
                self.put(HINT, str(version).encode())
            kept |= {f"metadata/v{version}.metadata.json", HINT}
            self.put_digests(pushed, kept)
            kept.add(DIGESTS)
        self.remove(kept)
        num_files = len(states[-1].files) if states else 0
        return f"{len(states):,} snapshots, the newest of {num_files:,} files"

    def pushed_files(self) -> dict[str, FileRecord]:
        """Return the files of the last push; none if one changed since: objects are not read."""
        with suppress(StoreError):
            if scratch_of(self.folder) is None:
                check_table(self.folder / DIGESTS)
            return {each.path: each for each in read_digests(self.folder / DIGESTS)}
        return {}

    def put_digests(self, pushed: Mapping[str, FileRecord], names: Collection[str]) -> None:
        """Write the digests of files, those of copies that stayed from the last push."""
        there, records = {*medium_of(self.folder).files_below(self.folder)}, []
        for name in sorted(there.intersection(names)):
            if name in pushed and name.startswith("data/"):
                records.append(pushed[name])
            elif medium_of(self.folder).bring(path := self.folder / name):
                records.append(FileRecord("", name, 0, path.stat().st_size, *hash_file(path)))
        self.put(DIGESTS, sealed(to_line(TableDigests((*records,)))))

    def states(self, known: Collection[int], newest: int) -> Iterator[State]:
        """Yield the kept states up to a number, but those with a document that was taken down.

        Of copies those that are known, and the newest, which is copied.
        """
        partition = self.store.partition(STAGES[self.name], self.source)
        numbers = [each for each in partition.manifest_numbers() if each <= newest]
        for number in numbers:
            manifest = partition.read_manifest(number)
            place = (place_of(self.folder), number, manifest.fingerprint)
            own = int(fingerprint_of(*place)[:15], 16)
            is_wanted = self.name != "deduped_copy" or own in known or number == numbers[-1]
            is_wanted = is_wanted and not forbidden_state(self.store, manifest)
            if is_wanted and (files := [*self.files(manifest)]):
                yield State(number, own, files)

    def files(self, manifest: Manifest[Any, Any]) -> Iterator[TableFile]:
        """Yield the files of a state that have rows, but shards that are held out of training."""
        if self.name == "deduped_copy":
            for each in corpus_files(self.store, "documents", [manifest]):
                name = f"data/{Path(each.path).stem}-{each.digest}.parquet"
                if medium_of(self.folder).size(self.folder / name) is None:
                    self.put(name, as_parquet(each.read()))
                size = medium_of(self.folder).size(self.folder / name) or 0
                yield TableFile(self.folder / name, each.rows, size)
            return
        removed = removed_of(manifest) if self.name == "shards" else {}
        for part in manifest.parts:
            if self.name == "shards":
                is_drawn = (bucket := bucket_of(part)) is not None and not split_of(bucket)
                file = next(iter(files_of(part, "parquet") if is_drawn else ()), None)
            else:
                file = part.file("documents" if self.name == FILTERED else "decisions")
            if file is not None and file.rows:
                path = self.store.path_of(manifest, file)
                yield TableFile(path, file.rows, file.bytes, removed.get(part.name))

    def own_files(self, state: State) -> Iterator[str]:
        """Yield the paths of a state below the folder."""
        yield from (f"metadata/{state.id}{end}.avro" for end in ("", "-files", "-removed"))
        for each in state.files:
            yield f"data/{each.path.name}"
            yield f"metadata/{state.id}-removed-{each.path.name}"

    def put(self, name: str, content: bytes) -> str:
        """Write a file; return its place."""
        path = self.folder / name
        make_folder(path.parent)
        medium_of(self.folder).publish(write_temporary(path.parent, path.name, content), path)
        return place_of(path)

    def put_avro(self, name: str, write: Callable[[OutputFile], Any]) -> str:
        """Write a file by a writer of pyiceberg; return its place."""
        with TemporaryDirectory() as folder:
            path = Path(folder) / "file.avro"
            write(PyArrowFileIO().new_output(str(path)))
            return self.put(f"metadata/{name}", path.read_bytes())

    def metadata(
        self, states: Sequence[State], known: dict[int, Snapshot], table_uuid: uuid.UUID
    ) -> TableMetadataV2:
        """Return the metadata, after writing the files of snapshots that are not known."""
        schema = schema_of([state.files[0].path for state in states])
        snapshots = [known.get(state.id) or self.snapshot(state, schema) for state in states]
        ids = {f"state-{state.number}": state.id for state in states}
        for name, tag in read_tags(self.store.root).items():
            if own := ids.get(f"state-{tag.number(STAGES[self.name], self.source)}"):
                ids[name] = own
        refs = {name: SnapshotRef(snapshot_id=each, type="tag") for name, each in ids.items()}
        newest = states[-1].id
        return TableMetadataV2(
            location=place_of(self.folder),
            table_uuid=table_uuid,
            last_column_id=schema.highest_field_id,
            schemas=[schema],
            current_schema_id=schema.schema_id,
            partition_specs=[UNPARTITIONED_PARTITION_SPEC],
            last_partition_id=PARTITION_FIELD_ID_START - 1,
            sort_orders=[UNSORTED_SORT_ORDER],
            properties={"schema.name-mapping.default": schema.name_mapping.model_dump_json()},
            current_snapshot_id=newest,
            snapshots=snapshots,
            refs={**refs, "main": SnapshotRef(snapshot_id=newest, type="branch")},
            last_sequence_number=states[-1].number,
        )

    def snapshot(self, state: State, schema: Schema) -> Snapshot:
        """Write the lists of the files of a state, and its removed rows; return the snapshot."""
        data = [data_file(place_of(each.path), each.rows, each.bytes) for each in state.files]
        lists = [self.names(state, schema, data, ManifestWriterV2, "files")]
        if deletes := [self.deletes(state, each) for each in state.files if each.removed]:
            lists.append(self.names(state, schema, deletes, DeletesWriter, "removed"))

        def write(out: OutputFile) -> None:
            with write_manifest_list(2, out, state.id, None, state.number, "deflate") as writer:
                writer.add_manifests(lists)

        return Snapshot(
            snapshot_id=state.id,
            sequence_number=state.number,
            manifest_list=self.put_avro(f"{state.id}.avro", write),
            summary=Summary(Operation.OVERWRITE),
            schema_id=schema.schema_id,
        )

    def names(
        self, state: State, schema: Schema, files: Sequence[DataFile], kind: Any, end: str
    ) -> ManifestFile:
        """Write a list of files that come with a snapshot."""
        found: list[ManifestFile] = []

        def write(out: OutputFile) -> None:
            with kind(UNPARTITIONED_PARTITION_SPEC, schema, out, state.id, "deflate") as writer:
                for each in files:
                    added = ManifestEntryStatus.ADDED
                    writer.add(ManifestEntry.from_args(status=added, data_file=each))
            found.append(writer.to_manifest_file())

        found[0][0] = self.put_avro(f"{state.id}-{end}.avro", write)  # it was written elsewhere
        return found[0]

    def deletes(self, state: State, file: TableFile) -> DataFile:
        """Write the removed rows of a file as position deletes: readers want one for each file."""
        assert file.removed is not None
        rows, place = file.removed.read(self.store.root), place_of(file.path)
        columns, sink = [pa.array([place] * len(rows)), pa.array(rows)], pa.BufferOutputStream()
        pq.write_table(pa.table(columns, names=DELETES.names).cast(DELETES), sink)
        name, content = f"metadata/{state.id}-removed-{file.path.name}", bytes(sink.getvalue())
        return data_file(self.put(name, content), len(rows), len(content), place)


def data_file(place: str, rows: int, size: int, removes_from: str = "") -> DataFile:
    """Return a file as tables name it: of data, or of rows that are removed from another file."""
    bound = {PATH_ID: removes_from.encode()} if removes_from else None
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES if removes_from else DataFileContent.DATA,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=size,
        lower_bounds=bound,
        upper_bounds=bound,
    )


def schema_of(paths: Sequence[Path]) -> Schema:
    """Return the schema that has all columns of some files."""
    fields: dict[str, pa.Field] = {}
    for path in paths:
        medium_of(path.parent).bring(path)
        fields |= {field.name: signed(field) for field in pq.read_schema(path)}
    return assign_fresh_schema_ids(_pyarrow_to_schema_without_ids(pa.schema([*fields.values()])))


def signed(field: pa.Field) -> pa.Field:
    """Return a field that may be null, without the unsigned numbers that Iceberg has not."""
    kind: Any = field.type
    if pa.types.is_unsigned_integer(kind):
        kind = pa.int64() if kind.bit_width > 16 else pa.int32()
    elif hasattr(kind, "value_field"):
        kind = pa.large_list(signed(kind.value_field))
    elif pa.types.is_struct(kind):
        kind = pa.struct([signed(kind.field(n)) for n in range(kind.num_fields)])
    return pa.field(field.name, kind)
