"""raw: input files of any format to one document table; what cannot be read goes to quarantine."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from assets.raw.places.find_inputs import find_inputs
from assets.raw.readers.documents import Chunk
from assets.raw.readers.input_file import InputFile
from assets.raw.readers.read_chunks import Slice, plan_slices, read_chunks
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus
from resources.settings.sources import Source
from resources.stage import Stage
from resources.store.records import PartRecord, Stats, fingerprint_of
from resources.tasks import Outcome, Plan, Task, Work, run_tasks, stream_name

NOT_IN_THE_BYTES = {"where", "filters", "max_text_bytes", "allow_no_files", "domain"}


def plan_raw(corpus: Corpus, name: str) -> Plan:
    """One task per input file, or per slice of a file that can be read from the middle."""
    source = corpus.settings.source(name)
    config = source.model_dump(mode="json", exclude=NOT_IN_THE_BYTES)
    files = find_inputs(source, corpus.config.parent, corpus.downloads)
    tasks = [
        raw_task(corpus, config, file, piece, source)
        for file in files
        for piece in plan_slices(file, corpus.settings.part_bytes)
    ]
    about: dict[str, Any] = {"files": {file.name: file.digest for file in files}}
    if source.max_text_bytes is not None:
        about["size_cap"] = cap_fingerprint(tasks, source.max_text_bytes)
    return Plan(tasks, config, about)


def raw_task(
    corpus: Corpus, config: dict[str, Any], file: InputFile, piece: Slice, source: Source
) -> Task:
    """The task that reads one slice; its fingerprint starts from the file's bytes."""
    part_bytes = corpus.settings.part_bytes
    identity = (file.name, file.digest, piece.kind, piece.start, piece.stop, part_bytes)
    return Task(
        root=corpus.store.root,
        stage=RAW.name,
        partition=source.name,
        name=f"{fingerprint_of(file.name)[:12]}-{piece.index:04d}",
        fingerprint=fingerprint_of(RAW.name, RAW.code_version, config, identity),
        work_bytes=file.bytes if piece.kind == "stream" else piece.stop - piece.start,
        payload={"file": file, "piece": piece, "source": source, "part_bytes": part_bytes},
        is_stream=True,
    )


def read_part(task: Task) -> list[PartRecord]:
    """Read one slice and publish its parts as they come; published parts are not rewritten."""
    spec = task.payload
    chunks = read_chunks(spec["file"], spec["piece"], spec["source"], spec["part_bytes"])
    if "max_bytes" in spec:
        chunks = up_to(chunks, spec["max_bytes"])
    return [
        publish_chunk(task, stream_name(task.name, number), chunk, is_last)
        for number, (chunk, is_last) in enumerate(with_last(chunks))
    ]


def up_to(chunks: Iterator[Chunk], max_bytes: int) -> Iterator[Chunk]:
    """Chunks until their texts hold `max_bytes`, the one that crosses it included."""
    num_bytes = 0
    for chunk in chunks:
        yield chunk
        num_bytes += count_bytes(chunk.documents["text"])
        if num_bytes >= max_bytes:
            return


def with_last(chunks: Iterator[Chunk]) -> Iterator[tuple[Chunk, bool]]:
    """Each chunk, and whether it is the last one."""
    chunk = next(chunks)
    for following in chunks:
        yield chunk, False
        chunk = following
    yield chunk, True


def publish_chunk(task: Task, name: str, chunk: Chunk, is_last: bool) -> PartRecord:
    """Publish one part of documents, and its quarantine if there is any."""
    if (published := task.folder.find_part(name, task.fingerprint)) is not None:
        return published
    writer = task.writer(name)
    writer.write_parquet("documents", chunk.documents)
    if chunk.quarantine.height:
        writer.write_parquet("quarantine", chunk.quarantine)
    num_bytes = count_bytes(chunk.documents["text"])
    return writer.publish(
        Stats(
            rows_in=chunk.rows_in,
            rows_kept=chunk.documents.height,
            rejected={"field_filter": chunk.skipped_by_filter} if chunk.skipped_by_filter else {},
            quarantined=chunk.quarantine.height,
            bytes=num_bytes,
            text_bytes=num_bytes,
            numbers={"is_last": is_last},
        )
    )


def run_within_caps(corpus: Corpus, tasks: list[Task], work: Work) -> list[Outcome]:
    """Run the tasks; a source with a size cap stops reading where the cap is reached."""
    caps = {source.name: source.max_text_bytes for source in corpus.settings.sources}
    outcomes = run_tasks(corpus, [task for task in tasks if caps[task.partition] is None], work)
    for source, cap in caps.items():
        mine = [task for task in tasks if task.partition == source]
        if cap is not None:
            outcomes += run_to_cap(corpus, mine, cap, work)
    return outcomes


def cap_fingerprint(tasks: list[Task], cap: int) -> str:
    """Names what a capped source is made of: the manifest keeps it."""
    return fingerprint_of(cap, [task.fingerprint for task in tasks])


def run_to_cap(corpus: Corpus, tasks: list[Task], cap: int, work: Work) -> list[Outcome]:
    """Run tasks in order until their documents hold `cap` bytes; the last part is cut."""
    outcomes = reuse_capped(tasks, cap)
    left = 0 if outcomes else cap
    for task in tasks:
        if left <= 0:
            break
        outcome = run_tasks(corpus, [stopping_at(task, left)], work)[0]
        kept: list[PartRecord] = []
        for record in outcome.records:
            if left > 0:
                kept.append(record if record.stats.bytes <= left else cut_part(task, record, left))
                left -= record.stats.bytes
        outcomes.append(Outcome(task, kept, outcome.seconds, outcome.is_reused))
    return outcomes


def stopping_at(task: Task, max_bytes: int) -> Task:
    """The task that reads no further than the part in which `max_bytes` of text are reached."""
    fingerprint = fingerprint_of(task.fingerprint, max_bytes)
    return replace(task, fingerprint=fingerprint, payload={**task.payload, "max_bytes": max_bytes})


def reuse_capped(tasks: list[Task], cap: int) -> list[Outcome]:
    """The parts of the newest manifest, if it was made of these tasks and this cap.

    What lies beyond a cap is not kept, so that a task alone cannot tell that it was done.
    """
    newest = tasks[0].folder.newest_manifest() if tasks else None
    if newest is None or newest.provenance.get("size_cap") != cap_fingerprint(tasks, cap):
        return []
    records = [tasks[0].folder.find_part(part.name, part.fingerprint) for part in newest.parts]
    kept = [record for record in records if record is not None]
    return [Outcome(tasks[0], kept, 0.0, True)] if len(kept) == len(records) else []


def cut_part(task: Task, record: PartRecord, max_bytes: int) -> PartRecord:
    """The part that crosses the size cap, with only the documents that fit."""
    cut: Task[Any] = Task(
        task.root,
        task.stage,
        task.partition,
        f"{record.name}-cut",
        fingerprint_of(record.fingerprint, max_bytes),
        record.stats.bytes,
    )
    if (published := cut.published()) is not None:
        return published[0]
    tables = {file.kind: pl.read_parquet(task.folder.folder / file.path) for file in record.files}
    documents = tables["documents"].filter(
        pl.col("text").str.len_bytes().cast(pl.UInt64).cum_sum() <= max_bytes
    )
    stats: dict[str, Any] = {
        **{name: getattr(record.stats, name) for name in record.stats.__struct_fields__},
        "rows_kept": documents.height,
        "rejected": record.stats.rejected
        | {"over_size_cap": tables["documents"].height - documents.height},
        "bytes": count_bytes(documents["text"]),
    }
    writer = cut.writer()
    for kind, table in (tables | {"documents": documents}).items():
        writer.write_parquet(kind, table)
    return writer.publish(Stats(**stats))


RAW = Stage(
    name="raw",
    code_version="1",
    description="Documents as read: one table for every format; bad records in quarantine, with "
    "reasons.",
    partitions="source",
    after=(),
    kinds=frozenset({"parquet", "polars"}),
    provenance=dict,
    numbers=dict,
    plan=plan_raw,
    work=read_part,
    run=run_within_caps,
)
