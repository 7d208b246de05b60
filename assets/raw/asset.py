"""raw: one document table from input files of any format; unreadable records go to quarantine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import UNSET

from assets.raw.part_files import publish_draft, write_drafts
from assets.raw.places.downloads import remove_copies
from assets.raw.places.find_inputs import find_inputs
from assets.raw.places.hub_files import commits_of
from assets.raw.places.known_borders import known_borders
from assets.raw.places.observed_inputs import (
    INPUT_FILES,
    NO_NEW_ENTRIES,
    REHASH,
    known_files,
    remote_files,
    version_of,
)
from assets.raw.places.patch_files import named_patches, patches_among, read_patches
from assets.raw.raw_inputs import NO_CAP, RawInputs, group_files, text_bytes
from assets.raw.raw_records import DOCUMENT_COLUMNS, RAW, RawNumbers, RawProvenance
from assets.raw.readers.formats import foreign_code, format_of, is_cuttable
from assets.raw.readers.input_file import InputFile, Slice
from assets.raw.readers.input_record import LineRun
from assets.raw.readers.plain_lines import split_run
from assets.raw.readers.read_chunks import plan_slices
from assets.raw.shrink_files import ACCEPT_SHRINK, refuse_shrink
from assets.raw.size_cap_files import cap_fingerprint, cap_of, run_within_caps
from assets.raw.stream_part_files import plan_ranges
from assets.raw.unread_files import NUM_NAMED, unread_lines, unused_patches
from assets.raw.usable_raw_files import records_read, why_unusable
from assets.report.drift import judge_drift, new_drifts, state_drifts
from assets.text.takedown_files import obeying, takedown_ids
from corpus_loader.places.urls import Url
from resources.corpus import Corpus
from resources.profiles import Profile
from resources.settings.full_source import Source
from resources.settings.pipeline import Settings
from resources.settings.sources import SourceConfig
from resources.stage import (
    Check,
    Conclusion,
    DriftCheck,
    InputVersions,
    MainTable,
    Outlook,
    Stage,
    any_warnings,
)
from resources.store.records import Manifest, PartRecord, add_stats, fingerprint_of
from resources.takedowns import read_takedowns, takedowns_by_part
from resources.tasks import Plan, Task, tasks_of

CAPS = {"max_text_bytes", "max_documents"}
NOT_IN_THE_BYTES = {"where", "filters", "allow_no_files", "domain"} | CAPS
LATER_KEYS = (
    *("html", "columns", "max_documents", "stream_field", "kind"),
    *("separator", "quoting", "zstd_window_log", "column_names"),
)
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
    cut = [group[0] for group in groups if len(group) == 1 and is_cut(group[0], source, part_bytes)]
    borders = dict(zip(cut, known_borders(corpus, source, cut), strict=True))
    for group in groups:
        if len(group) > 1:
            yield group, [None]
        else:
            yield group, plan_slices(group[0], part_bytes, borders.get(group[0], ()))


def is_cut(file: InputFile, source: Source, part_bytes: int) -> bool:
    """Return whether a file is read for where it can be cut: a large one, and any of Parquet.

    On the hub only the ends of Parquet files are read for it, and none where a cap may leave most
    of them unread.
    """
    has_index = format_of(file).slices == "row_groups"
    if Url(file.place).kind == "hub" and (cap_of(source) != NO_CAP or not has_index):
        return False
    return is_cuttable(file, source) and (has_index or text_bytes(file) > part_bytes)


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
        work_bytes = first.bytes if cut.unit == "stream" else cut.num_bytes
    return tasks_of(corpus, RAW, inputs.source.name).task(
        f"{fingerprint_of(first.name)[:12]}-{cut.index if cut else 0:04d}",
        (
            config,
            (*made_of, inputs.part_bytes, *foreign_code(first)),
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
    drafts = write_drafts(task, frozenset())
    if damaged := frozenset(name for draft in drafts for name in draft.damaged):
        for draft in drafts:
            draft.writer.discard()
        drafts = write_drafts(task, damaged)
    return [publish_draft(draft, draft is drafts[-1]) for draft in drafts]


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
        "members_not_read": manifest.stats.numbers.num_unread_members or 0,
    }
    patches = read_patches(corpus, manifest.partition)
    lines = [*unread_lines(manifest), *unused_patches(patches, manifest)]
    more = {"unread": "\n".join(f"- {line}" for line in lines)} if lines else {}
    return Conclusion(lines, {**counts, **more})


def profile_of_raw(_: Corpus, __: RawManifest, parts: Sequence[PartRecord[RawNumbers]]) -> Profile:
    """Return the bytes of a document, and the share of records in quarantine, of some parts."""
    stats = add_stats(part.stats for part in parts)
    num_read = records_read(stats)
    return Profile(
        num_read,
        numbers={
            "bytes per document": stats.text_bytes / max(1, stats.rows_kept),
            "quarantined share": stats.quarantined / max(1, num_read),
        },
    )


def drifts_of_raw(_: Corpus, manifest: RawManifest, before: RawManifest) -> list[str]:
    """Compare all documents of a state, and those of its new parts, with the state before."""
    had = {part.fingerprint for part in before.parts}
    new = add_stats(part.stats for part in manifest.parts if part.fingerprint not in had)
    was = before.stats.numbers.counts or {}
    return [
        *state_drifts(manifest.stats.numbers.counts or {}, was),
        *new_drifts(new.numbers.get("counts", {}), was),
        *state_drifts(quarantine_counts(manifest), quarantine_counts(before)),
    ]


def quarantine_counts(manifest: RawManifest) -> dict[str, int]:
    """Return the number of records, and of those in quarantine."""
    stats = manifest.stats
    return {"documents": stats.rows_in, "in quarantine": stats.quarantined}


ANY_LINE = LineRun(0, b'{"text": "a"}\n')  # its reader is compiled before processes are forked

STAGE = Stage(
    *RAW.fields(),
    description="Documents as read: one table for every format; bad records in quarantine, with "
    "reasons.",
    group="ingest",
    partitions="source",
    after=(),
    outlook=Outlook("same", cpu_per_mb=0.007, first_seconds=0.3),
    kinds=frozenset({"parquet", "polars"}),
    settings=settings_of_raw,
    plan=plan_raw,
    stays_rolled_back=True,
    work=read_part,
    main_table=MainTable("documents", DOCUMENT_COLUMNS),
    run=run_within_caps,
    conclude=conclude_raw,
    checks=(
        Check(
            "inputs_read",
            "every file that `where` matches is read, from its first row to its last",
            any_warnings,
        ),
        Check(
            "few_bad_records",
            "at most `max_bad_share` of a source's records are in quarantine, and its keys fit "
            "some of them; else it fails alone",
            lambda corpus, manifest, _: why_unusable(corpus, manifest) or "",
            refuses=True,
        ),
    ),
    before_commit=refuse_shrink,
    flags={
        ACCEPT_SHRINK: "take the state of the run's sources, also where it lacks more documents of "
        "the last good state than `max_shrink` allows",
        REHASH: "read every input file, also where size and time say that it is unchanged",
        NO_NEW_ENTRIES: "take no entries of streams but those of the newest manifest, for a repair",
    },
    drift=DriftCheck(profile_of_raw, judge_drift, drifts_of_raw),
    inputs=InputVersions(INPUT_FILES, lambda manifest: manifest.provenance.version),
    warm_up=lambda corpus: [partial(split_run, ANY_LINE, corpus.settings.sources[0])],
)
