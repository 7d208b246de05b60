"""`corpus verify --repair`: rebuild exactly the parts that differ, through Dagster.

The steps for each stage and partition, in the order of the flow: move damaged files aside and plan
the stage. If the plan equals the newest manifest (config, inputs, fingerprints of the parts), one
Dagster run computes the missing parts and commits the same manifest again. Otherwise move the files
back and give the reason: with another config or other inputs the stage, and all stages after it,
would compute something else. A build does that. A file whose content the store has under another
name, as a hard link of an older state that is damaged with it, gets it from there.

Nothing was made of a damaged file: stages compare each with its hash before they use it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import polars as pl

from assets.raw.places.observed_inputs import NO_NEW_ENTRIES
from assets.raw.raw_records import RAW
from assets.stages import BY_NAME, used_stages
from pipeline_defs.commands.life.faults import Fault, file_fault, find_faults, record_path
from pipeline_defs.lost_runs import ENDS, step_faults
from pipeline_defs.partitions import partitions_of
from resources.corpus import Corpus
from resources.materialize.materialization import stage_asset
from resources.run_reports import read_report
from resources.runs.run_notes import OpenNote, RunNote, new_note
from resources.store.disk import TEMPORARY_PREFIX, make_folder
from resources.store.medium import medium_of
from resources.store.records import Manifest, PartRecord, as_json_object, to_json
from resources.store.store import Partition
from resources.tasks import GLOBAL, Plan, stream_name

MAX_ROUNDS = 4  # a manifest, then the parts that it names; twice as many to be sure
ORDER = list(BY_NAME)
BUILD = "Remove what is damaged and build again."
ASIDE = ".damaged"
JOB = "repair"


class NotRebuilt(RuntimeError):
    """A part or manifest that cannot be rebuilt as it was; the message says why."""


class OtherPlan(NotRebuilt):
    """A plan that gives other parts than the manifest names."""


def repair(corpus: Corpus, faults: list[Fault], instance: dg.DagsterInstance) -> Iterator[str]:
    """Rebuild faulty parts; yield a line for each partition."""
    refused: dict[Path, str] = {}
    for _ in range(MAX_ROUNDS):
        twins = [fault for fault in faults if fault.twin]
        for fault in twins:
            yield f"restored {fault.title}: {fault.path.name}, from {restore(fault)}"
        waiting = [fault for fault in faults if not fault.twin and fault.path not in refused]
        if not waiting and not twins:
            break
        waiting.sort(key=place_of)
        for (_, stage, name), group in groupby(waiting, place_of):
            title, of_partition = f"{stage}[{name}]", list(group)
            try:
                yield f"rebuilt {title}: {rebuild(corpus, of_partition, instance)}"
            except NotRebuilt as error:
                line = f"not rebuilt {title}: {error}"
                refused |= dict.fromkeys((fault.path for fault in of_partition), line)
        faults = find_faults(corpus.store).faults
    left = [refused[fault.path] for fault in faults if fault.path in refused]
    yield from dict.fromkeys(left)


def faults_to_mend(faults: list[Fault], newest: int) -> list[Fault]:
    """Return the faults of the newest manifest; NotRebuilt for those that only a person can mend.

    A run ends by reading all kept manifests, to remove the files that none of them names.
    """
    made_again = [fault for fault in faults if not fault.remedy]
    if not made_again:
        by_hand = dict.fromkeys(f"{fault.path.name}: {fault.remedy}" for fault in faults)
        raise NotRebuilt("; ".join(by_hand))
    for fault in made_again:
        if fault.manifest != newest and fault.part is None:
            raise NotRebuilt(
                f"{fault.path} is older than the newest manifest and only kept for going back: "
                "nothing makes it again. Remove it and repair again."
            )
    if current := [fault for fault in made_again if fault.manifest == newest]:
        return current
    raise NotRebuilt(
        f"only manifest {made_again[0].manifest} names {made_again[0].path.name}. It is kept for "
        "going back, and nothing makes it again."
    )


def is_manifest_wrong(partition: Partition, part: PartRecord) -> bool:
    """Return whether the part's files agree with its record, but not with the manifest."""
    record = partition.find_part(part.name, part.fingerprint)
    if record is None or record == part:
        return False
    return all(file_fault(partition.folder / file.path, file) is None for file in record.files)


def restore(fault: Fault) -> str:
    """Give a file its content by a link to a whole one; return the place of that."""
    assert fault.twin is not None, "the caller asks for those that have one"
    folder, medium = fault.path.parent, fault.partition.medium
    make_folder(folder)
    medium.bring(fault.twin)
    temporary = folder / f"{TEMPORARY_PREFIX}{uuid4().hex}-{fault.path.name}"
    os.link(fault.twin, temporary)
    medium.publish(temporary, fault.path)
    return "/".join(fault.twin.parts[-3:])


def place_of(fault: Fault) -> tuple[int, str, str]:
    """Return the place of a fault in the flow: number and name of the stage, and partition.

    A folder of an older version, whose stage is gone or has another name, comes last.
    """
    stage = fault.partition.stage
    return ORDER.index(stage) if stage in ORDER else len(ORDER), stage, fault.partition.name


def rebuild(corpus: Corpus, faults: list[Fault], instance: dg.DagsterInstance) -> str:
    """Rebuild faulty parts of one partition; return a summary, or raise NotRebuilt."""
    partition = faults[0].partition
    settings = corpus.settings
    if partition.stage not in ORDER:
        raise NotRebuilt(
            f"this version has no stage {partition.stage!r}, and nothing reads its folder "
            f"{partition.folder.parent}. Remove it."
        )
    if partition.stage not in used_stages(settings):
        raise NotRebuilt(
            f"pipeline.yaml does not use the stage, and nothing reads its folder "
            f"{partition.folder}. Remove it, or configure the stage."
        )
    if partition.name not in (*settings.source_names(), *settings.phase_names(), GLOBAL):
        raise NotRebuilt(f"pipeline.yaml has no {partition.name!r} any more")
    newest = partition.manifest_numbers()[-1]
    current = faults_to_mend(faults, newest)
    parts = {fault.part.name: fault.part for fault in current if fault.part is not None}
    wrong = (part for part in parts.values() if is_manifest_wrong(partition, part))
    if any(fault.part is None for fault in current) or any(wrong):
        with moved_aside([partition.manifest_path(newest)]):
            check_published(planned(corpus, partition))
            materialize(corpus, partition, instance)
        return f"manifest {newest}, from the records of its parts"
    records = [record_path(partition, part) for part in parts.values()]
    make_again(corpus, partition, [*(fault.path for fault in current), *records], instance)
    remove_contradicted(partition)
    done = read_report(corpus.store.root, partition.stage, partition.name)
    names = ", ".join(sorted(parts))
    return f"{names} ({done.parts_computed} computed, {done.parts_reused} as they were)"


def remove_contradicted(partition: Partition) -> None:
    """Remove older manifests that name a file of the newest one with another hash."""
    numbers = partition.manifest_numbers()
    now = hashes_of(partition, partition.read_manifest(numbers[-1]))
    for number in numbers[:-1]:
        older = hashes_of(partition, partition.read_manifest(number))
        if any(now.get(path, xxh3) != xxh3 for path, xxh3 in older.items()):
            partition.medium.remove_all([partition.manifest_path(number)])


def hashes_of(partition: Partition, manifest: Manifest) -> dict[Path, str]:
    """Return the xxh3 of every file that a manifest names."""
    files = (file for part in manifest.parts for file in part.files)
    return {partition.folder / file.path: file.xxh3 for file in files}


def planned(corpus: Corpus, partition: Partition) -> Plan:
    """Plan the stage with the current config and inputs; NotRebuilt if that fails.

    Of streams, without what is new on the server.
    """
    corpus = replace(corpus, flags=corpus.flags | {NO_NEW_ENTRIES})
    try:
        return BY_NAME[partition.stage].plan(corpus, partition.name)
    except (ValueError, RuntimeError, OSError, pl.exceptions.PolarsError) as error:
        raise NotRebuilt(f"it cannot be planned: {error}") from error


def check_published(plan: Plan) -> None:
    """Raise NotRebuilt unless all parts of the current plan are published."""
    for task in plan.tasks:
        if task.published() is None:
            raise NotRebuilt(
                f"under today's config and inputs {task.title} would have to be computed, and "
                "without the manifest it is not known whether it was the same then. Build again."
            )


def check_plan(plan: Plan, manifest: Manifest) -> None:
    """Raise NotRebuilt unless the plan gives the parts that the manifest names."""
    code_version = BY_NAME[manifest.stage].code_version
    if code_version != manifest.code_version:
        raise NotRebuilt(
            f"it was made with version {manifest.code_version} of the stage's code, this is "
            f"version {code_version}. {BUILD}"
        )
    if changed := differing_keys(plan.config, manifest.config):
        raise NotRebuilt(f"its config changed since ({', '.join(changed)}). {BUILD}")
    provenance = as_json_object(plan.provenance)
    if changed := differing_keys(provenance, as_json_object(manifest.provenance)):
        raise OtherPlan(f"what it is made of changed since ({', '.join(changed)}). {BUILD}")
    published = {(part.name, part.fingerprint) for part in manifest.parts}
    # Parts of a source with a size cap have fingerprints of their own: see assets/raw/asset.py.
    for task in () if "size_cap" in provenance else plan.tasks:
        name = stream_name(task.name, 0) if task.is_stream else task.name
        if (name, task.fingerprint) not in published:
            raise OtherPlan(f"the inputs of {task.title} changed since. {BUILD}")


def differing_keys(now: dict[str, Any], then: dict[str, Any]) -> list[str]:
    """Return the keys whose values are not the same as JSON."""
    return sorted(
        key for key in now.keys() | then.keys() if to_json(now.get(key)) != to_json(then.get(key))
    )


def make_again(
    corpus: Corpus, partition: Partition, paths: Sequence[Path], instance: dg.DagsterInstance
) -> None:
    """Compute files of the newest manifest again; NotRebuilt if the plan gives other parts.

    An index is continued from its newest manifest: it is then planned without that, as the run did
    that made it.
    """
    manifest = partition.newest_manifest()
    assert manifest is not None, f"{partition.folder} has no manifest"
    own = partition.manifest_path(partition.manifest_numbers()[-1])
    try:
        with moved_aside(paths):
            check_plan(planned(corpus, partition), manifest)
            materialize(corpus, partition, instance)
    except OtherPlan as other:
        try:
            with moved_aside([*paths, own]):
                check_plan(planned(corpus, partition), manifest)
                materialize(corpus, partition, instance)
        except OtherPlan:
            raise other from None


@contextmanager
def moved_aside(paths: Sequence[Path]) -> Iterator[None]:
    """Move files aside; move them back if the rebuild fails."""
    medium = medium_of(paths[0].parent)
    moved = [
        (path, path.with_name(path.name + ASIDE))
        for path in sorted(set(paths))
        if medium.size(path) is not None
    ]
    for path, aside in moved:
        medium.take_away(path, aside)
    try:
        yield
    except BaseException:
        for path, aside in moved:
            if aside.exists() and medium.size(path) is None:
                medium.publish(aside, path)
        raise
    for _, aside in moved:
        aside.unlink(missing_ok=True)


def materialize(corpus: Corpus, partition: Partition, instance: dg.DagsterInstance) -> None:
    """Run one stage for one partition with Dagster; NotRebuilt if the run fails."""
    partitions = partitions_of(corpus.settings)
    key = None if partition.name == GLOBAL else partition.name
    definitions = dg.Definitions(
        assets=[
            stage_asset(stage, partitions, corpus.settings)
            for stage in used_stages(corpus.settings).values()
        ],
        jobs=[dg.define_asset_job(JOB, selection=[partition.stage])],
        resources={"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)},
    )
    note = new_note(str(uuid4()), JOB, (partition.stage,), (key,) if key else ())
    with noted(corpus, instance, note):
        result = definitions.resolve_job_def(JOB).execute_in_process(
            run_id=note.run_id,
            partition_key=key,
            instance=instance,
            tags={"tokenmill/repair": "true"},
            run_config=run_config(partition.stage),
            raise_on_error=False,
        )
    if not result.success:
        failed = [e.step_failure_data for e in result.all_events if e.is_step_failure]
        reason = failed[-1].error_display_string if failed else f"run {result.run_id} failed"
        raise NotRebuilt(reason.strip())


def run_config(stage: str) -> dict[str, object]:
    """Return the config of a run that makes what was there, and takes nothing new."""
    level = {"config": {"log_level": "CRITICAL"}}
    console: dict[str, object] = {"loggers": {"console": level}}
    if stage != RAW.name:
        return console
    return console | {"ops": {stage: {"config": {NO_NEW_ENTRIES: True}}}}


@contextmanager
def noted(corpus: Corpus, instance: dg.DagsterInstance, note: RunNote) -> Iterator[None]:
    """Keep a note on a run: if this process is killed, the next command marks the run as failed."""
    kept = OpenNote(corpus.store.root, note)
    try:
        yield
    finally:
        run = instance.get_run_by_id(note.run_id)
        if run is not None and run.is_finished:
            faults = step_faults(instance, note.run_id)
            kept.change(state=ENDS[run.status], ended=time.time(), faults=faults)
        kept.close()
