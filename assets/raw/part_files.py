"""Read the inputs of a task of `raw`, and write their parts.

Parts are published when all inputs of their task are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import msgspec
import polars as pl
from msgspec import UNSET

from assets.raw.places.file_digests import check_unchanged, removed
from assets.raw.places.streams.stream_ranges import read_range
from assets.raw.raw_inputs import RawInputs, most_bytes
from assets.raw.raw_records import RawNumbers
from assets.raw.readers.archive_names import FIELD_FILTER
from assets.raw.readers.decompress import Damage
from assets.raw.readers.documents import Chunk, DocumentBuilder
from assets.raw.readers.open_input import with_content
from assets.raw.readers.read_chunks import byte_spans, read_chunks, read_into, whole
from assets.raw.state_counts import state_counts
from assets.raw.stream_part_files import before_patches
from assets.raw.taken_down_files import without_taken_down
from assets.text.table_rows import count_bytes
from assets.text.takedown_files import TAKEN_DOWN, wanted_at
from resources.settings.full_source import Source
from resources.store.records import PartRecord, Stats
from resources.store.store import PartWriter
from resources.tasks import Task, stream_name

MARKED_META = pl.col("meta").str.strip_suffix("}") + ","
DAMAGED_FILE = "damaged_file"  # why this stage rejects a document


@dataclass(frozen=True)
class Draft:
    """A part that is written and not published; `damaged` files were found in it."""

    writer: PartWriter
    stats: Stats[RawNumbers]
    damaged: frozenset[str]


def write_draft(
    task: Task[RawInputs], number: int, chunk: Chunk, damaged: Collection[str]
) -> Draft:
    """Write one part of documents, and its quarantine if there is any."""
    documents, quarantine = kept_documents(chunk, task.payload.source, damaged), chunk.quarantine
    left_out = {**chunk.left_out, FIELD_FILTER: chunk.skipped_by_filter}
    left_out[DAMAGED_FILE] = chunk.documents.height - documents.height
    if count := task.payload.takedowns:
        before, wanted = documents.height + quarantine.height, wanted_at(task.root, count)
        documents, quarantine = without_taken_down(documents, quarantine, wanted)
        num_taken = before - documents.height - quarantine.height
        left_out[TAKEN_DOWN] = left_out.get(TAKEN_DOWN, 0) + num_taken
    writer = task.writer(stream_name(task.name, number))
    writer.write_parquet("documents", documents)
    if quarantine.height:
        writer.write_parquet("quarantine", quarantine)
    num_bytes = count_bytes(documents["text"])
    # a part of a stream may be made of an earlier one, in which patched records are like others
    patched = () if task.payload.stream else chunk.patched
    numbers = RawNumbers(
        faulty_files=faulty_files(chunk, damaged) or UNSET,
        containers={name: dict(each) for name, each in chunk.containers.items()} or UNSET,
        unread_members=dict(chunk.unread) or UNSET,
        num_unread_members=chunk.num_unread or UNSET,
        counts=state_counts(documents) or UNSET,
        patched=dict.fromkeys(patched, 1) or UNSET,
    )
    stats = Stats(
        rows_in=chunk.rows_in,
        rows_kept=documents.height,
        rejected={reason: count for reason, count in left_out.items() if count},
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=numbers,
    )
    found = frozenset(name for name, fault in chunk.faults.items() if isinstance(fault, Damage))
    return Draft(writer, stats, found)


def kept_documents(chunk: Chunk, source: Source, damaged: Collection[str]) -> pl.DataFrame:
    """Return the documents of a chunk that are kept, those of damaged files marked."""
    of_chunk = {*damaged}.intersection(chunk.files)
    if not of_chunk:
        return chunk.documents
    if source.on_damage == "drop":
        return chunk.documents.filter(~is_from(of_chunk))
    return mark_damaged(chunk.documents, of_chunk)


def mark_damaged(documents: pl.DataFrame, files: Collection[str]) -> pl.DataFrame:
    """Return documents with `damaged: true` as the last key of `meta` in those of some files."""
    before = pl.when(pl.col("meta") == "{}").then(pl.lit("{")).otherwise(MARKED_META)
    marked = pl.when(is_from(files)).then(before + '"damaged":true}').otherwise("meta")
    return documents.with_columns(meta=marked)


def is_from(files: Collection[str]) -> pl.Expr:
    """Return whether a document is from one of some files."""
    return pl.col("origin").struct.field("file").is_in(list(files))


def faulty_files(chunk: Chunk, damaged: Collection[str]) -> dict[str, int]:
    """Return the files of a chunk with a fault, with the rows damaged or left out for it."""
    names = sorted(name for name in chunk.files if name in chunk.faults or name in damaged)
    documents = chunk.documents
    return {
        name: documents.filter(is_from([name])).height if name in damaged else 0 for name in names
    }


def publish_draft(draft: Draft, is_last: bool) -> PartRecord:
    """Publish a part; the last one of its slice says so."""
    numbers = msgspec.structs.replace(draft.stats.numbers, is_last=is_last)
    return draft.writer.publish(msgspec.structs.replace(draft.stats, numbers=numbers))


def write_drafts(task: Task[RawInputs], damaged: Collection[str]) -> list[Draft]:
    """Write the parts of a task, a chunk each; `damaged` are the names of its damaged files."""
    inputs = task.payload
    chunks = before_patches(task) or chunks_of(inputs)
    drafts: list[Draft] = []
    try:
        for number, chunk in enumerate(chunks):
            drafts.append(write_draft(task, number, chunk, damaged))
    except BaseException:
        for draft in drafts:
            draft.writer.discard()
        raise
    return drafts


def chunks_of(inputs: RawInputs) -> Iterator[Chunk]:
    """Read the inputs of a task, whatever they are."""
    if inputs.stream is not None:
        return read_range(inputs.stream, inputs.source, inputs.patches)
    return read_group(inputs) if inputs.file_slice is None else read_slice(inputs)


def read_slice(inputs: RawInputs) -> Iterator[Chunk]:
    """Read a slice of one file, to the size that it stops at, and check it when it is read."""
    [file], left = inputs.files, inputs.cap
    file_slice = inputs.file_slice or whole(file)
    if not inputs.source.columns:
        [file] = with_content([file])
    most = inputs.cap.documents
    try:
        chunks = read_chunks(
            file, file_slice, inputs.source, inputs.part_bytes, most, inputs.patches
        )
        for chunk in chunks:
            yield chunk
            left = left.after(count_bytes(chunk.documents["text"]), chunk.documents.height)
            if left.is_spent():
                break
    except FileNotFoundError:
        raise removed(file) from None
    if not file.is_remote:
        check_unchanged(file, byte_spans(file, file_slice))


def read_group(inputs: RawInputs) -> Iterator[Chunk]:
    """Read small files into one chunk after the other, and check each when it is read."""
    builder = DocumentBuilder(most_bytes(inputs.part_bytes), inputs.cap.documents, inputs.patches)
    left = inputs.cap
    for file in with_content(inputs.files):
        try:
            for chunk in read_into(builder, file, inputs.source, inputs.part_bytes):
                yield chunk
                left = left.after(count_bytes(chunk.documents["text"]), chunk.documents.height)
        except FileNotFoundError:
            raise removed(file) from None
        check_unchanged(file, [(0, file.bytes)])
        # Counting makes a table of the documents of each file (0.3 ms): only where a cap needs it.
        is_spent = left.num_bytes is not None and builder.text_bytes() >= left.num_bytes
        if is_spent or builder.is_full():
            break
    if builder.has_files():
        yield builder.take()
