"""Write parts of `raw`, which are published when all of their task's inputs are read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from assets.raw.raw_inputs import RawInputs
from assets.raw.raw_records import RawNumbers, Resume
from assets.raw.read_inputs import chunks_of
from assets.raw.readers.decompress import Damage
from assets.raw.readers.documents import FIELD_FILTER, Chunk, is_from, mark_damaged
from assets.raw.state_counts import state_counts
from assets.raw.stream_part_files import before_patches
from assets.raw.taken_down_files import TAKEN_DOWN, wanted_at, without_taken_down
from assets.text.table_rows import count_bytes
from resources.settings.sources import Source
from resources.store.records import PartRecord, Stats
from resources.store.store import PartWriter
from resources.tasks import Task, stream_name

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
    left_out = {
        **chunk.left_out,
        FIELD_FILTER: chunk.skipped_by_filter,
        DAMAGED_FILE: chunk.documents.height - documents.height,
    }
    if count := task.payload.takedowns:
        before = documents.height + quarantine.height
        wanted = wanted_at(task.root, count)
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
    stats = Stats(
        rows_in=chunk.rows_in,
        rows_kept=documents.height,
        rejected={reason: count for reason, count in left_out.items() if count},
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=RawNumbers(
            faulty_files=faulty_files(chunk, damaged) or UNSET,
            containers={name: dict(counts) for name, counts in chunk.containers.items()} or UNSET,
            unread_members=dict(chunk.unread) or UNSET,
            num_unread_members=chunk.num_unread or UNSET,
            counts=state_counts(documents) or UNSET,
            patched=dict.fromkeys(patched, 1) or UNSET,
        ),
    )
    found = (name for name, fault in chunk.faults.items() if isinstance(fault, Damage))
    return Draft(writer, stats, frozenset(found))


def kept_documents(chunk: Chunk, source: Source, damaged: Collection[str]) -> pl.DataFrame:
    """Return the documents of a chunk that are kept, those of damaged files marked."""
    of_chunk = {*damaged}.intersection(chunk.files)
    if not of_chunk:
        return chunk.documents
    if source.on_damage == "drop":
        return chunk.documents.filter(~is_from(of_chunk))
    return mark_damaged(chunk.documents, of_chunk)


def faulty_files(chunk: Chunk, damaged: Collection[str]) -> dict[str, int]:
    """Return the files of a chunk with a fault, with the rows damaged or left out for it."""
    names = sorted(name for name in chunk.files if name in chunk.faults or name in damaged)
    documents = chunk.documents
    return {
        name: documents.filter(is_from([name])).height if name in damaged else 0 for name in names
    }


def publish_draft(draft: Draft, is_last: bool, resume: Resume | UnsetType = UNSET) -> PartRecord:
    """Publish a part; the last one of its slice says so."""
    numbers = msgspec.structs.replace(draft.stats.numbers, is_last=is_last, resume=resume)
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
