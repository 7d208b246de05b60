"""Move files of a partition aside, and compute them again with Dagster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import dagster as dg

from assets.raw.places.observed_inputs import NO_NEW_ENTRIES
from assets.raw.raw_records import RAW
from assets.stages import used_stages
from pipeline_defs.commands.life.rebuild_checks import NotRebuilt, OtherPlan, check_plan, planned
from pipeline_defs.lost_runs import ENDS, step_faults
from pipeline_defs.partitions import partitions_of
from resources.corpus import Corpus
from resources.materialize.materialization import stage_asset
from resources.runs.run_notes import OpenNote, RunNote, new_note
from resources.store.medium import medium_of
from resources.store.store import Partition
from resources.tasks import GLOBAL

ASIDE = ".damaged"
JOB = "repair"


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
