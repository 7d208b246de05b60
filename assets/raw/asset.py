"""raw: one document table from input files of any format; unreadable records go to quarantine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from assets.raw.file_groups import group_files, most_bytes, text_bytes
from assets.raw.packaged_part_files import (
    chunks_behind,
    has_packaged,
    named_package,
    parts_so_far,
    resume_behind,
)
from assets.raw.places.downloads import remove_copies
from assets.raw.places.file_digests import check_unchanged, removed
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.hub_files import commits_of
from assets.raw.places.known_borders import BORDERS, ROW_GROUPS, known_cuts
from assets.raw.places.observed_inputs import (
    INPUT_FILES,
    NO_NEW_ENTRIES,
    REHASH,
    known_files,
    remote_files,
    version_of,
)
from assets.raw.places.open_input import with_content
from assets.raw.places.patch_files import named_patches, patches_among, read_patches
from assets.raw.places.streams.stream_chunks import read_range
from assets.raw.raw_records import (
    NO_CAP,
    Cap,
    RawInputs,
    RawNumbers,
    RawProvenance,
    RawRecords,
    Resume,
)
from assets.raw.readers.decompress import Damage
from assets.raw.readers.documents import (
    DOCUMENT_COLUMNS,
    Chunk,
    DocumentBuilder,
    is_from,
    mark_damaged,
)
from assets.raw.readers.find_borders import is_cuttable
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.plain_lines import split_run
from assets.raw.readers.read_chunks import (
    Slice,
    byte_spans,
    plan_slices,
    read_chunks,
    read_into,
    whole,
)
from assets.raw.readers.read_lines import LineRun
from assets.raw.size_cap_files import cap_fingerprint, cap_of, run_within_caps
from assets.raw.stream_part_files import FIELD_FILTER, before_patches, plan_ranges
from assets.raw.taken_down_files import (
    TAKEN_DOWN,
    obeying,
    takedown_ids,
    wanted_at,
    without_taken_down,
)
from assets.raw.unread_files import NUM_NAMED, unread_lines
from assets.raw.usable_raw_files import too_many_bad
from assets.report.drift import judge_drift
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.profiles import Profile
from resources.settings.pipeline import Settings
from resources.settings.sources import Source, SourceConfig, is_hub_url
from resources.stage import (
    Conclusion,
    DriftCheck,
    InputVersions,
    MainTable,
    Refusal,
    Stage,
    WarningCheck,
)
from resources.store.records import Manifest, PartRecord, Stats, add_stats, fingerprint_of
from resources.store.store import PartWriter
from resources.takedowns import read_takedowns, takedowns_by_part
from resources.tasks import (
    Plan,
    Task,
    stream_name,
    tasks_of,
)

CAPS = {"max_text_bytes", "max_documents"}
NOT_IN_THE_BYTES = {"where", "filters", "allow_no_files", "domain"} | CAPS
LATER_KEYS = ("html", "columns", "max_documents", "stream_field", "kind")
DAMAGED_FILE = "damaged_file"  # why this stage rejects a document
NUM_LISTED = 1000  # files whose digests a manifest holds: a million would be 100 MB in each

RawManifest = Manifest[RawProvenance, RawNumbers]


def plan_raw(corpus: Corpus, name: str) -> Plan:
    """Plan a task per group of small files, and per large file or slice of one."""
    source = corpus.settings.source(name)
    if source.is_stream:
        return plan_ranges(corpus, source, read_config(source, NOT_IN_THE_BYTES))
    known = known_files(corpus, name)
    found = find_inputs(
        source, corpus.config.parent, corpus.downloads, known.digests, needs_copies=False
    )
    known.save()
    left_out = {each.name: each.reason for each in found.left_out[:NUM_NAMED]}
    config = read_config(source, NOT_IN_THE_BYTES)
    part_bytes, patches = corpus.settings.part_bytes, read_patches(corpus, name)
    takedowns = read_takedowns(corpus.store.root)
    named = takedowns_by_part(takedowns, name)
    tasks = [
        without_documents(task, named, len(takedowns))
        for group, slices in cut_large(corpus, source, group_files(found.files, part_bytes))
        for file_slice in slices
        for of_part in [patches_among(patches, group, file_slice)]
        for inputs in [RawInputs(group, file_slice, source, part_bytes, patches=of_part)]
        for task in [raw_task(corpus, config, inputs)]
    ]
    cap = cap_of(source)
    digests = {file.name: file.digest for file in found.files}
    provenance = RawProvenance(
        num_files=len(digests),
        version=version_of(digests),
        files=digests if len(digests) <= NUM_LISTED else remote_files(digests),
        left_out=left_out or UNSET,
        num_left_out=len(found.left_out) or UNSET,
        commits=commits_of(found.files) or UNSET,
        size_cap=UNSET if cap == NO_CAP else cap_fingerprint(tasks, cap),
        takedowns=takedown_ids(named) or UNSET,
    )
    return Plan(tasks, config, provenance)


def cut_large(
    corpus: Corpus, source: Source, groups: Sequence[tuple[InputFile, ...]]
) -> Iterator[tuple[tuple[InputFile, ...], Sequence[Slice | None]]]:
    """Yield the groups with the slices of those that are one file; a slice of None is a group."""
    part_bytes = corpus.settings.part_bytes
    alone = [group[0] for group in groups if len(group) == 1 and is_cut(group[0], source)]
    large = [f for f in alone if text_bytes(f) > part_bytes and is_cuttable(f, source)]
    tables = [f for f in alone if f.format == "parquet" and f.compression is None]
    borders = dict(zip(large, known_cuts(corpus, source, large, BORDERS), strict=True))
    row_groups = dict(zip(tables, known_cuts(corpus, source, tables, ROW_GROUPS), strict=True))
    for group in groups:
        if len(group) > 1:
            yield group, [None]
        else:
            [file] = group
            known = borders.get(file, ()), row_groups.get(file, [] if file.is_remote else None)
            yield group, plan_slices(file, part_bytes, *known)


def is_cut(file: InputFile, source: Source) -> bool:
    """Return whether it is worth looking where a file can be cut.

    On the hub only the ends of Parquet files are read for it, and none where a cap may leave most
    of them unread.
    """
    is_capped = cap_of(source) != NO_CAP
    return not is_hub_url(file.place) or (file.format == "parquet" and not is_capped)


def read_config(source: Source, exclude: set[str]) -> dict[str, object]:
    """Return the keys of a source that its documents depend on, as JSON.

    Keys that came later are left out with their default, which gives the documents from before.
    """
    fields = SourceConfig.model_fields
    unset = {key for key in LATER_KEYS if getattr(source, key) == fields[key].default}
    return source.model_dump(mode="json", exclude=exclude | unset)


def raw_task(corpus: Corpus, config: dict[str, object], inputs: RawInputs) -> Task[RawInputs]:
    """Make the task that reads a slice or group; its fingerprint starts from the files' bytes.

    `config` holds the keys of the source that its documents depend on, as JSON. The name is that
    of the (first) file, so that it stays while other files of a group come and go.
    """
    first, cut = inputs.files[0], inputs.file_slice
    work_bytes = sum(file.bytes for file in inputs.files)
    made_of: list[object] = [(file.name, file.digest) for file in inputs.files]
    if cut is not None:
        made_of = [first.name, first.digest, cut.unit, cut.start, cut.stop]
        work_bytes = first.bytes if cut.unit == "stream" else cut.stop - cut.start
    return tasks_of(corpus, RawRecords, inputs.source.name).task(
        f"{fingerprint_of(first.name)[:12]}-{cut.index if cut else 0:04d}",
        (
            config,
            (*made_of, inputs.part_bytes, *named_package(inputs.files)),
            *named_patches(inputs.patches),
        ),
        inputs,
        work_bytes=work_bytes,
        is_stream=True,
    )


def without_documents(
    task: Task[RawInputs], named: Mapping[str, Sequence[str]], count: int
) -> Task[RawInputs]:
    """Let a task obey the first `count` takedowns; those that name it are in its fingerprint.

    One that does not name it found no document in any part of that name, so that none which is
    published has to be read again.
    """
    if not count:
        return task
    fingerprint = obeying(task.fingerprint, named.get(task.name, ()))
    return replace(task, fingerprint=fingerprint, payload=replace(task.payload, takedowns=count))


def read_part(task: Task[RawInputs]) -> list[PartRecord]:
    """Read a slice or group and publish its parts.

    The parts of a task are published together, at its end: only then is it known whether a file is
    damaged, or has changed since it was planned. Damaged files are read again, and all of their
    documents say so or are left out.
    """
    if has_packaged(task.payload.files):
        return read_on(task)
    drafts = write_drafts(task, frozenset())
    if damaged := frozenset(name for draft in drafts for name in draft.damaged):
        for draft in drafts:
            draft.writer.discard()
        drafts = write_drafts(task, damaged)
    return [publish_draft(draft, draft is drafts[-1]) for draft in drafts]


def read_on(task: Task[RawInputs]) -> list[PartRecord]:
    """Read files with the package `datasets`, from where an interrupted run has ended.

    Each part is published when it is known whether another one follows.
    """
    parts, cap = parts_so_far(task), task.payload.cap
    for part in parts:
        cap = cap.after(part.stats.bytes, part.stats.rows_kept)
    chunks = chunks_behind(task.payload, resume_behind(parts))
    for chunk, following in pairwise(chain(chunks, [None])):
        assert chunk is not None, "None is the last"
        draft = write_draft(task, len(parts), chunk.chunk, frozenset())
        cap = cap.after(draft.stats.bytes, draft.stats.rows_kept)
        if following is None or cap.is_spent():
            return [*parts, publish_draft(draft, is_last=True)]
        parts.append(publish_draft(draft, is_last=False, resume=chunk.behind))
    return parts


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
        if builder.is_full() or is_spent_by(left, builder):
            break
    if builder.has_files():
        yield builder.take()


def is_spent_by(cap: Cap, builder: DocumentBuilder) -> bool:
    """Return whether the texts that wait reach a cap of bytes; without one, they stay together.

    Counting makes a table of the documents of each file, which takes 0.3 ms.
    """
    return cap.num_bytes is not None and builder.text_bytes() >= cap.num_bytes


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
    stats = Stats(
        rows_in=chunk.rows_in,
        rows_kept=documents.height,
        rejected={reason: count for reason, count in left_out.items() if count},
        quarantined=quarantine.height,
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=RawNumbers(faulty_files=faulty_files(chunk, damaged) or UNSET),
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


def settings_of_raw(settings: Settings) -> Any:
    """Return the settings that raw documents depend on; their files are observed instead."""
    exclude = NOT_IN_THE_BYTES - CAPS
    sources = [read_config(source, exclude) for source in settings.sources]
    return [settings.part_bytes, sources]


def conclude_raw(corpus: Corpus, manifest: RawManifest) -> Conclusion:
    """Remove the copies of URLs, whose parts are published now; warn of what is not read."""
    if not corpus.settings.keep_downloads:
        remove_copies(remote_files(manifest.provenance.files), corpus.downloads)
    return warn_of_unread(corpus, manifest)


def warn_of_unread(corpus: Corpus, manifest: RawManifest) -> Conclusion:
    """Warn of files that are not read, or not whole, and count them in the metadata."""
    left_out, faulty = manifest.provenance.num_left_out, manifest.stats.numbers.faulty_files
    counts: dict[str, int] = {
        "files": manifest.provenance.num_files,
        "files_left_out": left_out or 0,
        "files_not_read_whole": len(faulty or ()),
    }
    lines = unread_lines(manifest)
    more = {"unread": "\n".join(f"- {line}" for line in lines)} if lines else {}
    return Conclusion(lines, {**counts, **more})


def profile_of_raw(_: Corpus, __: RawManifest, parts: Sequence[PartRecord[RawNumbers]]) -> Profile:
    """Return the bytes of a document, and the share of records in quarantine, of some parts."""
    stats = add_stats(part.stats for part in parts)
    return Profile(
        stats.rows_in,
        numbers={
            "bytes per document": stats.text_bytes / max(1, stats.rows_kept),
            "quarantined share": stats.quarantined / max(1, stats.rows_in),
        },
    )


ANY_LINE = LineRun(0, b'{"text": "a"}\n')  # its reader is compiled before processes are forked

RAW = Stage(
    name=RawRecords.name,
    code_version=RawRecords.code_version,
    description="Documents as read: one table for every format; bad records in quarantine, with "
    "reasons.",
    group="ingest",
    partitions="source",
    after=(),
    kinds=frozenset({"parquet", "polars"}),
    provenance=RawProvenance,
    numbers=RawNumbers,
    settings=settings_of_raw,
    plan=plan_raw,
    is_held=True,
    work=read_part,
    main_table=MainTable("documents", DOCUMENT_COLUMNS),
    run=run_within_caps,
    conclude=conclude_raw,
    warning_check=WarningCheck(
        "inputs_read", "every file that `where` matches is read, from its first row to its last"
    ),
    refusal=Refusal(
        "few_bad_records",
        "at most `max_bad_share` of a source's records are in quarantine; else it fails alone",
        too_many_bad,
    ),
    flags={
        REHASH: "read every input file, also where size and time say that it is unchanged",
        NO_NEW_ENTRIES: "take no entries of streams but those of the newest manifest, for a repair",
    },
    drift=DriftCheck(profile_of_raw, judge_drift),
    inputs=InputVersions(INPUT_FILES, lambda manifest: manifest.provenance.version),
    warm_up=lambda corpus: [partial(split_run, ANY_LINE, corpus.settings.sources[0])],
)
