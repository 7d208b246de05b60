"""Compute parts again as they were: plan a stage, move files aside, and run it with Dagster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import polars as pl

from assets.raw.places.observed_inputs import NO_NEW_ENTRIES
from assets.raw.raw_records import RAW
from assets.stages import BY_NAME, used_stages
from pipeline_defs.lost_runs import ENDS, step_faults
from pipeline_defs.partitions import partitions_of
from resources.corpus import Corpus
from resources.materialize.materialization import stage_asset
from resources.runs.run_notes import OpenNote, RunNote, new_note
from resources.store.medium import medium_of
from resources.store.records import Manifest, as_json_object, to_json
from resources.store.store import Partition
from resources.tasks import GLOBAL, Plan, stream_name

ORDER = list(BY_NAME)
BUILD = "Remove what is damaged and build again."
ASIDE = ".damaged"
JOB = "repair"


class NotRebuilt(RuntimeError):
    """A part or manifest that cannot be rebuilt as it was; the message says why."""


class OtherPlan(NotRebuilt):
    """A plan that gives other parts than the manifest names."""


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


def check_config(plan: Plan, manifest: Manifest) -> None:
    """Raise NotRebuilt unless the manifest was made under today's config by today's code."""
    code_version = BY_NAME[manifest.stage].code_version
    if code_version != manifest.code_version:
        raise NotRebuilt(
            f"it was made with version {manifest.code_version} of the stage's code, this is "
            f"version {code_version}. {BUILD}"
        )
    if changed := differing_keys(plan.config, manifest.config):
        raise NotRebuilt(f"its config changed since ({', '.join(changed)}). {BUILD}")


def check_plan(plan: Plan, manifest: Manifest) -> None:
    """Raise NotRebuilt unless the plan gives the parts that the manifest names."""
    check_config(plan, manifest)
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
