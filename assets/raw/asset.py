"""raw: one document table from input files of any format; unreadable records go to quarantine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import polars as pl
from msgspec import UNSET, UnsetType

from assets.raw.file_groups import Piece, group_files, most_bytes, pack
from assets.raw.places.file_digests import check_unchanged, removed
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.observed_inputs import (
    INPUT_FILES,
    REHASH,
    known_files,
    remote_files,
    version_of,
)
from assets.raw.readers.decompress import Damage
from assets.raw.readers.documents import DOCUMENT_COLUMNS, mark_damaged
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.plain_lines import split_run
from assets.raw.readers.read_chunks import Slice, byte_spans, plan_slices, read_chunks, whole
from assets.raw.readers.read_lines import LineRun
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.progress import current
from resources.settings.pipeline import Settings
from resources.settings.sources import Source
from resources.stage import Conclusion, InputVersions, MainTable, Stage, WarningCheck
from resources.store.records import Manifest, PartRecord, Stats, add_counts, fingerprint_of
from resources.store.store import PartWriter, published_file
from resources.tasks import (
    Outcome,
    Plan,
    Task,
    Work,
    failed,
    run_tasks,
    stops_on_error,
    stream_name,
    tasks_of,
)

NOT_IN_THE_BYTES = {"where", "filters", "max_text_bytes", "allow_no_files", "domain"}
DAMAGED_FILE = "damaged_file"  # why this stage rejects a document
NUM_NAMED = 20  # files that a manifest or a message names
NUM_LISTED = 1000  # files whose digests a manifest holds: a million would be 100 MB in each


@dataclass(frozen=True)
class RawInputs:
    """Inputs of a task: a slice of one file, or a group of small files that are read whole.

    Reading stops after the chunk in which the texts reach `max_bytes`; None: at the end.
    """

    files: tuple[InputFile, ...]
    file_slice: Slice | None
    source: Source
    part_bytes: int
    max_bytes: int | None = None


class RawNumbers(msgspec.Struct, frozen=True):
    """Numbers of a part of raw documents.

    is_last        the last part of its slice; totals have none
    faulty_files   files whose reading ended in an error, with the rows that are kept as `damaged`,
                   or left out for it
    """

    is_last: bool | UnsetType = UNSET
    faulty_files: dict[str, int] | UnsetType = UNSET


class RawProvenance(msgspec.Struct, frozen=True):
    """Input files of a source.

    num_files      files that are read
    version        their data version: names and digests of all of them
    files          digest by name; of more than NUM_LISTED files, those behind URLs only
    left_out       why a file that `where` matches is not read, by name; NUM_NAMED at most
    num_left_out   all of these files
    size_cap       fingerprint of the source's size cap, if any
    """

    num_files: int = 0
    version: str = ""
    files: dict[str, str] = {}
    left_out: dict[str, str] | UnsetType = UNSET
    num_left_out: int | UnsetType = UNSET
    size_cap: str | UnsetType = UNSET


RawManifest = Manifest[RawProvenance, RawNumbers]


def plan_raw(corpus: Corpus, name: str) -> Plan:
    """Plan a task per group of small files, and per large file or slice of one."""
    source = corpus.settings.source(name)
    known = known_files(corpus, name)
    inputs = find_inputs(source, corpus.config.parent, corpus.downloads, known.digests)
    known.save()
    left_out = {each.name: each.reason for each in inputs.left_out[:NUM_NAMED]}
    config = read_config(source, NOT_IN_THE_BYTES)
    part_bytes = corpus.settings.part_bytes
    tasks = [
        raw_task(corpus, config, RawInputs(group, file_slice, source, part_bytes))
        for group in group_files(inputs.files, part_bytes)
        for file_slice in (plan_slices(group[0], part_bytes) if len(group) == 1 else [None])
    ]
    cap = source.max_text_bytes
    digests = {file.name: file.digest for file in inputs.files}
    provenance = RawProvenance(
        num_files=len(digests),
        version=version_of(digests),
        files=digests if len(digests) <= NUM_LISTED else remote_files(digests),
        left_out=left_out or UNSET,
        num_left_out=len(inputs.left_out) or UNSET,
        size_cap=UNSET if cap is None else cap_fingerprint(tasks, cap),
    )
    return Plan(tasks, config, provenance)


def read_config(source: Source, exclude: set[str]) -> dict[str, object]:
    """Return the keys of a source that its documents depend on, as JSON.

    `html: keep` is left out, as the documents are those from before the key.
    """
    kept = {"html"} if source.html == "keep" else set()
    return source.model_dump(mode="json", exclude=exclude | kept)


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
    return tasks_of(corpus, RAW, inputs.source.name).task(
        f"{fingerprint_of(first.name)[:12]}-{cut.index if cut else 0:04d}",
        (config, (*made_of, inputs.part_bytes)),
        inputs,
        work_bytes=work_bytes,
        is_stream=True,
    )


def read_part(task: Task[RawInputs]) -> list[PartRecord]:
    """Read a slice or group and publish its parts.

    The parts of a task are published together, at its end: only then is it known whether a file is
    damaged, or has changed since it was planned. Damaged files are read again, and all of their
    documents say so or are left out.
    """
    drafts = write_drafts(task, frozenset())
    if damaged := frozenset(name for draft in drafts for name in draft.damaged):
        for draft in drafts:
            draft.writer.discard()
        drafts = write_drafts(task, damaged)
    return [publish_draft(draft, draft is drafts[-1]) for draft in drafts]


def write_drafts(task: Task[RawInputs], damaged: Collection[str]) -> list[Draft]:
    """Write the parts of a task; `damaged` are the names of its damaged files.

    A chunk of a file with parts of its own is one part.
    """
    inputs = task.payload
    least_bytes = most_bytes(inputs.part_bytes) if inputs.file_slice is None else 0
    drafts: list[Draft] = []
    try:
        for number, pieces in enumerate(pack(read_files(inputs), least_bytes)):
            drafts.append(write_draft(task, number, pieces, damaged))
    except BaseException:
        for draft in drafts:
            draft.writer.discard()
        raise
    return drafts


def read_files(inputs: RawInputs) -> Iterator[Piece]:
    """Read the files of a task, to the size that it stops at, and check each when it is read."""
    is_capped, left = inputs.max_bytes is not None, inputs.max_bytes or 1
    for file in inputs.files:
        file_slice = inputs.file_slice or whole(file)
        try:
            for chunk in read_chunks(file, file_slice, inputs.source, inputs.part_bytes):
                yield Piece(file, chunk)
                left -= count_bytes(chunk.documents["text"]) if is_capped else 0
                if left <= 0:
                    break
        except FileNotFoundError:
            raise removed(file) from None
        check_unchanged(file, byte_spans(file, file_slice))
        if left <= 0:
            return


@dataclass(frozen=True)
class Draft:
    """A part that is written and not published; `damaged` files were found in it."""

    writer: PartWriter
    stats: Stats[RawNumbers]
    damaged: frozenset[str]


def write_draft(
    task: Task[RawInputs], number: int, pieces: Sequence[Piece], damaged: Collection[str]
) -> Draft:
    """Write one part of documents, and its quarantine if there is any."""
    source = task.payload.source
    documents = pl.concat([documents_of(piece, source, damaged) for piece in pieces])
    num_read = sum(piece.chunk.documents.height for piece in pieces)
    num_filtered = sum(piece.chunk.skipped_by_filter for piece in pieces)
    left_out = {"field_filter": num_filtered, DAMAGED_FILE: num_read - documents.height}
    quarantine = [piece.chunk.quarantine for piece in pieces if piece.chunk.quarantine.height]
    writer = task.writer(stream_name(task.name, number))
    writer.write_parquet("documents", documents)
    if quarantine:
        writer.write_parquet("quarantine", pl.concat(quarantine))
    num_bytes = count_bytes(documents["text"])
    stats = Stats(
        rows_in=sum(piece.chunk.rows_in for piece in pieces),
        rows_kept=documents.height,
        rejected={reason: count for reason, count in left_out.items() if count},
        quarantined=sum(map(len, quarantine)),
        bytes=num_bytes,
        text_bytes=num_bytes,
        numbers=RawNumbers(faulty_files=faulty_files(pieces, damaged) or UNSET),
    )
    found = (piece.file.name for piece in pieces if isinstance(piece.chunk.fault, Damage))
    return Draft(writer, stats, frozenset(found))


def documents_of(piece: Piece, source: Source, damaged: Collection[str]) -> pl.DataFrame:
    """Return the documents of a piece that are kept, marked if its file is damaged."""
    if piece.file.name not in damaged:
        return piece.chunk.documents
    is_dropped = source.on_damage == "drop"
    return piece.chunk.documents.clear() if is_dropped else mark_damaged(piece.chunk.documents)


def faulty_files(pieces: Sequence[Piece], damaged: Collection[str]) -> dict[str, int]:
    """Return the files of a part with a fault, with the rows damaged or left out for it."""
    return add_counts(
        {piece.file.name: piece.chunk.documents.height * (piece.file.name in damaged)}
        for piece in pieces
        if piece.chunk.fault or piece.file.name in damaged
    )


def publish_draft(draft: Draft, is_last: bool) -> PartRecord:
    """Publish a part; the last one of its slice says so."""
    numbers = msgspec.structs.replace(draft.stats.numbers, is_last=is_last)
    return draft.writer.publish(msgspec.structs.replace(draft.stats, numbers=numbers))


def run_within_caps(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the tasks; reading a source with a size cap stops at the cap."""
    caps = {source.name: source.max_text_bytes for source in corpus.settings.sources}
    outcomes = run_tasks(corpus, [task for task in tasks if caps[task.partition] is None], work)
    for source, cap in caps.items():
        if cap is not None:
            capped = [task for task in tasks if task.partition == source]
            outcomes += run_to_cap(corpus, capped, cap, work)
    return outcomes


def cap_fingerprint(tasks: list[Task[RawInputs]], cap: int) -> str:
    """Return the fingerprint of a capped source, which its manifest keeps."""
    return fingerprint_of(cap, [task.fingerprint for task in tasks])


def run_to_cap(corpus: Corpus, tasks: list[Task[RawInputs]], cap: int, work: Work) -> list[Outcome]:
    """Run tasks in order until their documents hold `cap` bytes or one fails; cut the last part."""
    if reused := reuse_capped(corpus, tasks, cap):
        return reused
    outcomes: list[Outcome] = []
    left = cap
    with current().one_pass(tasks):
        for task in tasks:
            if left <= 0:
                break
            outcome = run_tasks(corpus, [stopping_at(task, left)], work)[0]
            try:
                kept = up_to_cap(task, outcome.records, left)
            except Exception as error:
                if stops_on_error(corpus):
                    raise
                outcome = failed(task, error)
            if outcome.error is not None:
                return [outcome]
            left -= sum(record.stats.bytes for record in outcome.records)
            outcomes.append(replace(outcome, task=task, records=kept))
    return outcomes


def up_to_cap(task: Task[RawInputs], records: Sequence[PartRecord], left: int) -> list[PartRecord]:
    """Return the first parts with at most `left` bytes, the one that crosses the cap cut."""
    kept: list[PartRecord] = []
    for record in records:
        if left <= 0:
            break
        kept.append(record if record.stats.bytes <= left else cut_part(task, record, left))
        left -= record.stats.bytes
    return kept


def stopping_at(task: Task[RawInputs], max_bytes: int) -> Task[RawInputs]:
    """Return the task that stops after the part in which the texts reach `max_bytes`."""
    fingerprint = fingerprint_of(task.fingerprint, max_bytes)
    return replace(
        task, fingerprint=fingerprint, payload=replace(task.payload, max_bytes=max_bytes)
    )


def reuse_capped(corpus: Corpus, tasks: list[Task[RawInputs]], cap: int) -> list[Outcome]:
    """Return the parts of the newest manifest if it was made of these tasks and this cap.

    Parts beyond a cap are not kept, so that a task alone cannot tell that it was done.
    """
    newest = corpus.store.newest_or_none(RAW, tasks[0].partition) if tasks else None
    if newest is None or newest.provenance.size_cap != cap_fingerprint(tasks, cap):
        return []
    records = [tasks[0].folder.find_part(part.name, part.fingerprint) for part in newest.parts]
    kept = [record for record in records if record is not None]
    return [Outcome(tasks[0], kept, (), True)] if len(kept) == len(records) else []


def cut_part(task: Task[RawInputs], record: PartRecord, max_bytes: int) -> PartRecord:
    """Publish the part that crosses the size cap with only the documents that fit."""
    cut = replace(
        task,
        name=f"{record.name}-cut",
        fingerprint=fingerprint_of(record.fingerprint, max_bytes),
        work_bytes=record.stats.bytes,
        is_stream=False,
    )
    if (published := cut.published()) is not None:
        return published[0]
    files = {f.kind: published_file(task.folder.folder / f.path, f) for f in record.files}
    tables = {kind: pl.read_parquet(file.checked()) for kind, file in files.items()}
    documents = tables["documents"].filter(
        pl.col("text").str.len_bytes().cast(pl.UInt64).cum_sum() <= max_bytes
    )
    num_cut = tables["documents"].height - documents.height
    writer = cut.writer()
    for kind, table in (tables | {"documents": documents}).items():
        writer.write_parquet(kind, table)
    return writer.publish(
        msgspec.structs.replace(
            record.stats,
            rows_kept=documents.height,
            rejected=record.stats.rejected | {"over_size_cap": num_cut},
            bytes=count_bytes(documents["text"]),
        )
    )


def settings_of_raw(settings: Settings) -> Any:
    """Return the settings that raw documents depend on; their files are observed instead."""
    exclude = NOT_IN_THE_BYTES - {"max_text_bytes"}
    sources = [read_config(source, exclude) for source in settings.sources]
    return [settings.part_bytes, sources]


def unread_lines(manifest: RawManifest) -> list[str]:
    """Say in a line each of the files of a source that are not read, or not whole."""
    provenance, faulty = manifest.provenance, manifest.stats.numbers.faulty_files
    lines: list[str] = []
    if provenance.left_out and provenance.num_left_out:
        num_matched = provenance.num_left_out + provenance.num_files
        reasons = [f"{name} ({reason})" for name, reason in provenance.left_out.items()]
        lines.append(
            f"{manifest.partition}: {provenance.num_left_out:,} of {num_matched:,} files that "
            f"`where` matches are not read: {named(reasons, provenance.num_left_out)}. Convert "
            "them, or match fewer files with `where`."
        )
    if faulty:
        reasons = [
            f"{name} ({rows:,} damaged rows)" if rows else name
            for name, rows in sorted(faulty.items())
        ]
        lines.append(
            f"{manifest.partition}: {len(faulty):,} of {provenance.num_files:,} files could not "
            f"be read whole: {named(reasons, len(faulty))}. Their errors are in the table "
            "`quarantine`, each with a next step."
        )
    return lines


def named(items: list[str], number: int) -> str:
    """Join the first NUM_NAMED of a number of items, and say how many follow."""
    rest = f" and {number - NUM_NAMED:,} more" if number > NUM_NAMED else ""
    return ", ".join(items[:NUM_NAMED]) + rest


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


ANY_LINE = LineRun(0, b'{"text": "a"}\n')  # its reader is compiled before processes are forked

RAW = Stage(
    name="raw",
    code_version="3",
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
    work=read_part,
    main_table=MainTable("documents", DOCUMENT_COLUMNS),
    run=run_within_caps,
    conclude=warn_of_unread,
    warning_check=WarningCheck(
        "inputs_read", "every file that `where` matches is read, from its first row to its last"
    ),
    flags={REHASH: "read every input file, also where size and time say that it is unchanged"},
    inputs=InputVersions(INPUT_FILES, lambda manifest: manifest.provenance.version),
    warm_up=lambda corpus: [partial(split_run, ANY_LINE, corpus.settings.sources[0])],
)
