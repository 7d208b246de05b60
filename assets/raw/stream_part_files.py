"""Parts of `raw` that are ranges of a stream: planned from the last manifest, made only once.

What the server has given stays in the corpus, also when the server has trimmed it: a patch or a
takedown is applied to the published part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl
from msgspec import UNSET

from assets.raw.places.observed_inputs import NO_NEW_ENTRIES, version_of
from assets.raw.places.patch_files import named_patches, read_patches
from assets.raw.places.streams.stream_ranges import patch_chunk, plan_streams, rows_of
from assets.raw.raw_inputs import RawInputs, StreamPart
from assets.raw.raw_records import RAW, RawProvenance
from assets.raw.readers.archive_names import FIELD_FILTER
from assets.raw.readers.documents import NO_QUARANTINE, Chunk
from assets.raw.readers.input_record import Patch
from assets.raw.size_cap_files import cap_of
from assets.raw.taken_down_files import lost_its_record
from assets.text.takedown_files import TAKEN_DOWN, obeying, takedown_ids
from resources.corpus import Corpus
from resources.settings.full_source import Source
from resources.store.records import PartRecord, fingerprint_of
from resources.store.store import published_file
from resources.takedowns import read_recorded, read_takedowns, takedowns_by_part
from resources.tasks import Plan, Task, stream_name, tasks_of


def plan_ranges(corpus: Corpus, source: Source, config: dict[str, object]) -> Plan:
    """Plan a task per range of a source's streams; the known ones are those of its manifest.

    `config` has the keys of the source that its documents depend on.
    """
    newest = corpus.store.newest_or_none(RAW, source.name)
    known = (newest.provenance.streams or {}) if newest else {}
    states = known
    if NO_NEW_ENTRIES not in corpus.flags:
        left = cap_of(source)
        if newest is not None:
            left = left.after(newest.stats.text_bytes, newest.stats.rows_kept)
        states = plan_streams(source, known, corpus.settings.part_bytes, left)
    published = newest.parts if newest is not None and newest.config == config else ()
    patches, takedowns = read_patches(corpus, source.name), read_takedowns(corpus.store.root)
    named = takedowns_by_part(takedowns, source.name)
    recorded = takedowns_by_part(read_recorded(corpus.store.root), source.name)
    tasks = []
    for name, state in sorted(states.items()):
        of_known = known[name].ranges if name in known else ()
        for index, entries in enumerate(state.ranges):
            part = StreamPart(name, entries, is_known=index < len(of_known))
            first, last = rows_of(entries)
            of_part = (each for each in patches if each.file == name and first <= each.row <= last)
            inputs = RawInputs(
                (), None, source, 0, stream=part, patches=(*of_part,), takedowns=len(takedowns)
            )
            task_name = f"{fingerprint_of(name)[:12]}-{index:04d}"
            ids = named.get(task_name, ()), recorded.get(task_name, ())
            task = range_task(corpus, config, task_name, inputs, ids)
            tasks.append(with_published(task, published))
    newest_ids = {name: state.last for name, state in sorted(states.items())}
    provenance = RawProvenance(
        num_files=len(newest_ids),
        version=version_of(newest_ids),
        files=newest_ids,
        streams=states,
        takedowns=takedown_ids(named) or UNSET,
    )
    return Plan(tasks, config, provenance)


def range_task(
    corpus: Corpus,
    config: dict[str, object],
    name: str,
    inputs: RawInputs,
    takedowns: tuple[Sequence[str], Sequence[str]],
) -> Task[RawInputs]:
    """Make the task that reads a range of a stream: one part, whatever `part_bytes` is by now.

    `takedowns` are those that name it: those it obeys, and all with the withdrawn. The fingerprints
    that the part had with fewer patches and takedowns, or before a withdrawal, are among its
    inputs: its entries may be gone from the server.
    """
    stream, (ids, recorded) = inputs.stream, takedowns
    assert stream is not None, "this is a range of one"
    maker, made_of = tasks_of(corpus, RAW, inputs.source.name), ("entries", stream.name)

    def with_patches(patches: Sequence[Patch]) -> Task[RawInputs]:
        return maker.task(
            name,
            (config, (*made_of, stream.entries), *named_patches(patches)),
            inputs,
            work_bytes=stream.entries.bytes,
            is_stream=True,
        )

    tasks = [with_patches(inputs.patches[:n]) for n in reversed(range(len(inputs.patches) + 1))]
    now = obeying(tasks[0].fingerprint, ids)
    earlier = (
        obeying(task.fingerprint, known[:count])
        for task in tasks
        for known in dict.fromkeys((tuple(ids), tuple(recorded)))
        for count in reversed(range(len(known) + 1))
    )
    unpatched = tuple(each for each in dict.fromkeys(earlier) if each != now)
    return replace(tasks[0], fingerprint=now, payload=replace(inputs, unpatched=unpatched))


def with_published(task: Task[RawInputs], parts: Sequence[PartRecord]) -> Task[RawInputs]:
    """Let the published part be an input where a takedown removed a record from a patch of it.

    Nothing else tells the fingerprint that the part had with the record.
    """
    inputs, name = task.payload, stream_name(task.name, 0)
    if not any(lost_its_record(patch) for patch in inputs.patches):
        return task
    published = (part.fingerprint for part in parts if part.name == name)
    return replace(task, payload=replace(inputs, unpatched=(*inputs.unpatched, *published)))


def before_patches(task: Task[RawInputs]) -> list[Chunk] | None:
    """Return the part of a stream's range with fewer patches or takedowns, now with all patches.

    None if no such part is published.
    """
    inputs, name = task.payload, stream_name(task.name, 0)
    found = (task.folder.find_part(name, fingerprint) for fingerprint in inputs.unpatched)
    record = next((each for each in found if each is not None), None)
    if record is None:
        return None
    files = {f.kind: published_file(task.folder.folder / f.path, f) for f in record.files}
    tables = {kind: pl.read_parquet(file.checked()) for kind, file in files.items()}
    chunk = Chunk(
        documents=tables["documents"],
        quarantine=tables.get("quarantine", NO_QUARANTINE),
        rows_in=record.stats.rows_in,
        skipped_by_filter=record.stats.rejected.get(FIELD_FILTER, 0),
        left_out=Counter({TAKEN_DOWN: record.stats.rejected.get(TAKEN_DOWN, 0)}),
    )
    return [patch_chunk(chunk, inputs.source, inputs.patches) if inputs.patches else chunk]
