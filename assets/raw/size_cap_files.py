"""Run raw tasks: fetch the copies of URLs that they read, and stop at size caps.

Reading a source with a cap stops where its documents hold `max_text_bytes`, or are `max_documents`:
it is read part by part, and the part that crosses its cap is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import msgspec
import polars as pl

from assets.raw.places.downloads import fetch_copies
from assets.raw.raw_inputs import NO_CAP, Cap, RawInputs
from assets.raw.raw_records import RAW
from assets.raw.readers.input_file import STREAM_END, ChangedFileError
from assets.text.table_rows import count_bytes
from resources.corpus import Corpus, stops_on_error
from resources.errors import InputError
from resources.progress import current
from resources.settings.sources import SourceConfig, web_places
from resources.store.records import PartRecord, fingerprint_of
from resources.store.store import published_file
from resources.tasks import Outcome, PartitionOutcomes, RunPartitions, Task, Work, failed, look_up

OVER_SIZE_CAP = "over_size_cap"  # why a document of the part that crosses a cap is left out


def run_within_caps(
    corpus: Corpus, tasks: list[Task], work: Work, run: RunPartitions
) -> PartitionOutcomes:
    """Run the tasks; reading a source with a cap stops at the cap; streams are planned up to it."""
    caps = {
        source.name: NO_CAP if source.is_stream else cap_of(source)
        for source in corpus.settings.sources
    }
    whole = [task for task in tasks if caps[task.partition] == NO_CAP]
    fetched = partial(run_fetched, work=work, run=run)
    yield from fetched(corpus, whole)
    for source, cap in caps.items():
        capped = [task for task in tasks if task.partition == source]
        if cap != NO_CAP and (outcomes := run_to_cap(corpus, capped, cap, fetched)):
            yield outcomes


def cap_of(source: SourceConfig) -> Cap:
    """Return the cap of a source."""
    return Cap(source.max_text_bytes, source.max_documents)


def run_fetched(
    corpus: Corpus, tasks: list[Task[RawInputs]], work: Work, run: RunPartitions
) -> PartitionOutcomes:
    """Run tasks, with the copies of URLs that they read; a source that lacks one fails."""
    failed_sources: set[str] = set()
    for to_do in missing_by_source(tasks):
        source = to_do[0].payload.source
        files = {file.name: file for task in to_do for file in task.payload.files}
        try:
            fetch_copies(source, files.values(), corpus.downloads)
        except (ChangedFileError, InputError, OSError) as error:
            if stops_on_error(corpus):
                raise
            failed_sources.add(source.name)
            yield [failed(to_do[0], error)]
    ready = [task for task in tasks if task.partition not in failed_sources]
    yield from run(corpus, ready, work)


def missing_by_source(tasks: Sequence[Task[RawInputs]]) -> list[list[Task[RawInputs]]]:
    """Return the tasks of sources with URLs that are not published, by source."""
    remote = [task for task in tasks if web_places(task.payload.source)]
    missing: dict[str, list[Task[RawInputs]]] = {}
    for task, records in zip(remote, look_up(remote), strict=True):
        if records is None:
            missing.setdefault(task.partition, []).append(task)
    return [*missing.values()]


def cap_fingerprint(tasks: list[Task[RawInputs]], cap: Cap) -> str:
    """Return the fingerprint of a capped source, which its manifest keeps."""
    return fingerprint_of(cap.key(), [task.fingerprint for task in tasks])


def run_to_cap(
    corpus: Corpus, tasks: list[Task[RawInputs]], cap: Cap, run: Callable[..., PartitionOutcomes]
) -> list[Outcome]:
    """Run tasks in order until their documents reach the cap or one fails; cut the last part."""
    if reused := reuse_capped(corpus, tasks, cap):
        return reused
    outcomes: list[Outcome] = []
    left = cap
    with current().one_pass(tasks):
        for task in tasks:
            if left.is_spent():
                break
            # A task that stops at a cap has a fingerprint of its own.
            fingerprint = fingerprint_of(task.fingerprint, left.key())
            payload = replace(task.payload, cap=left)
            capped = replace(task, fingerprint=fingerprint, payload=payload)
            [[outcome]] = run(corpus, [capped])
            try:
                kept = up_to_cap(task, outcome.records, left)
            except Exception as error:
                if stops_on_error(corpus):
                    raise
                outcome = failed(task, error)
            if outcome.error is not None:
                return [outcome]
            for record in outcome.records:
                left = left.after(record.stats.bytes, record.stats.rows_kept)
            outcomes.append(replace(outcome, task=task, records=kept))
    return outcomes


def up_to_cap(task: Task[RawInputs], records: Sequence[PartRecord], left: Cap) -> list[PartRecord]:
    """Return the first parts with at most what is left, the one that crosses the cap cut."""
    kept: list[PartRecord] = []
    for record in records:
        if left.is_spent():
            break
        after = left.after(record.stats.bytes, record.stats.rows_kept)
        kept.append(cut_part(task, record, left) if after.is_crossed() else record)
        left = after
    return kept


def reuse_capped(corpus: Corpus, tasks: list[Task[RawInputs]], cap: Cap) -> list[Outcome]:
    """Return the parts of the newest manifest if it was made of these tasks and this cap.

    Parts beyond a cap are not kept, so that a task alone cannot tell that it was done.
    """
    newest = corpus.store.newest_or_none(RAW, tasks[0].partition) if tasks else None
    if newest is None or newest.provenance.size_cap != cap_fingerprint(tasks, cap):
        return []
    records = [tasks[0].folder.find_part(part.name, part.fingerprint) for part in newest.parts]
    kept = [record for record in records if record is not None]
    return [Outcome(tasks[0], kept, (), True)] if len(kept) == len(records) else []


def cut_part(task: Task[RawInputs], record: PartRecord, cap: Cap) -> PartRecord:
    """Publish the part that crosses the cap with only the documents that fit."""
    cut = replace(
        task,
        name=f"{record.name}-cut",
        fingerprint=fingerprint_of(record.fingerprint, cap.key()),
        work_bytes=record.stats.bytes,
        is_stream=False,
    )
    if (published := cut.published()) is not None:
        return published[0]
    files = {f.kind: published_file(task.folder.folder / f.path, f) for f in record.files}
    tables = {kind: pl.read_parquet(file.checked()) for kind, file in files.items()}
    documents = tables["documents"].head(cap.documents or STREAM_END)
    if cap.num_bytes is not None:
        documents = documents.filter(
            pl.col("text").str.len_bytes().cast(pl.UInt64).cum_sum() <= cap.num_bytes
        )
    num_cut = tables["documents"].height - documents.height
    writer = cut.writer()
    for kind, table in (tables | {"documents": documents}).items():
        writer.write_parquet(kind, table)
    return writer.publish(
        msgspec.structs.replace(
            record.stats,
            rows_kept=documents.height,
            rejected=record.stats.rejected | {OVER_SIZE_CAP: num_cut},
            bytes=count_bytes(documents["text"]),
        )
    )
