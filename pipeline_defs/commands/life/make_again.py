"""Move files of a partition aside, and compute them again with Dagster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from assets.stages import used_stages
from pipeline_defs.commands.life.rebuild_checks import NotRebuilt, OtherPlan, check_plan, planned
from pipeline_defs.partitions import partitions_of
from resources.corpus import Corpus
from resources.materialization import stage_asset
from resources.store.store import Partition
from resources.tasks import GLOBAL

ASIDE = ".damaged"


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
    moved = [
        (path, path.with_name(path.name + ASIDE)) for path in sorted(set(paths)) if path.is_file()
    ]
    for path, aside in moved:
        path.rename(aside)
    try:
        yield
    except BaseException:
        for path, aside in moved:
            if aside.exists() and not path.exists():
                aside.rename(path)
        raise
    for _, aside in moved:
        aside.unlink(missing_ok=True)


def materialize(corpus: Corpus, partition: Partition, instance: dg.DagsterInstance) -> None:
    """Run one stage for one partition with Dagster; NotRebuilt if the run fails."""
    partitions = partitions_of(corpus.settings)
    result = dg.materialize(
        [
            stage_asset(stage, partitions, corpus.settings)
            for stage in used_stages(corpus.settings).values()
        ],
        selection=[partition.stage],
        partition_key=None if partition.name == GLOBAL else partition.name,
        resources={"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)},
        instance=instance,
        tags={"tokenmill/repair": "true"},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        raise_on_error=False,
    )
    if not result.success:
        failed = [e.step_failure_data for e in result.all_events if e.is_step_failure]
        reason = failed[-1].error_display_string if failed else f"run {result.run_id} failed"
        raise NotRebuilt(reason.strip())
