"""Materialize a stage: run its tasks, commit the manifests, report to Dagster.

Every stage goes through `run_stage`, so that every materialization has the same metadata keys, the
same checks and the same guarantees.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg

from resources.corpus import Corpus
from resources.errors import InputError
from resources.history_check import check_history, check_spec
from resources.metadata import log_line, metadata_of, shown
from resources.run_reports import RunReport, report_of, write_report
from resources.stage import Metadata, Partitioning, Stage, WarningCheck
from resources.store.disk import has_size, xxh3_of
from resources.store.records import Manifest, add_stats, as_json_object, fingerprint_of
from resources.store.store import Partition, StoreError, typed
from resources.tasks import GLOBAL, Outcome, Plan, group_by_partition

CHECK_CONSERVATION = "row_conservation"
CHECK_INTEGRITY = "manifest_integrity"
CHECKS = {
    CHECK_CONSERVATION: "rows in = kept + rejected + duplicates + quarantined, in every part",
    CHECK_INTEGRITY: "every file of the manifest is there with its size, new ones with their hash",
}
RETRIES = dg.RetryPolicy(
    max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)


def stage_asset(
    stage: Stage[Any, Any], partitions: Mapping[Partitioning, dg.PartitionsDefinition[str] | None]
) -> dg.AssetsDefinition:
    """Make the Dagster asset of a stage: group, retries, checks, one run for many partitions."""

    def materialize(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        return run_stage(context, stage)

    checks = [
        dg.AssetCheckSpec(name, asset=stage.name, blocking=True, description=description)
        for name, description in CHECKS.items()
    ]
    others = (stage.check, stage.warning_check)
    checks += [check_spec(check, stage.name) for check in others if check]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill_policy: dagster is pinned for it
        return dg.asset(
            name=stage.name,
            description=stage.description,
            deps=[dependency(stage, earlier) for earlier in stage.after],
            partitions_def=partitions[stage.partitions],
            group_name="corpus",
            kinds=set(stage.kinds),
            owners=["team:data"],
            tags={"stage": stage.name},
            code_version=stage.code_version,
            retry_policy=RETRIES,
            backfill_policy=dg.BackfillPolicy.single_run(),
            check_specs=checks,
            required_resource_keys={"corpus"},
        )(materialize)


def dependency(stage: Stage[Any, Any], earlier: Stage[Any, Any]) -> dg.AssetDep:
    """Return the dependency of a stage on an earlier one: a phase depends on every source."""
    crosses = stage.partitions == "phase" and earlier.partitions == "source"
    return dg.AssetDep(
        earlier.name, partition_mapping=dg.AllPartitionMapping() if crosses else None
    )


def run_stage(context: dg.AssetExecutionContext, stage: Stage[Any, Any]) -> dg.MaterializeResult:
    """Plan the run's partitions, compute what is missing, commit manifests, report to Dagster."""
    corpus: Corpus = context.resources.corpus
    is_partitioned = context.assets_def.partitions_def is not None
    partitions = list(context.partition_keys) if is_partitioned else [GLOBAL]
    with ExitStack() as writers, wrong_use_is_not_retried():
        plans, faults = plan_partitions(corpus, partitions, stage.plan)
        folders = {name: corpus.store.partition(stage.name, name) for name in plans}
        for folder in folders.values():
            writers.enter_context(folder.writing(corpus.settings.keep_manifests, stage.keep))
        tasks = [task for plan in plans.values() for task in plan.tasks]
        outcomes = group_by_partition(stage.run(corpus, tasks, stage.work))
        done = [
            commit(context, stage, folders[partition], plan, outcomes.get(partition, []))
            for partition, plan in plans.items()
        ]
        if faults:
            raise StoreError("\n".join(faults))
    context.log.info("\n".join(each.log for each in done))  # one event: each is a write
    warned = conclude(context, stage, corpus, [each.manifest for each in done])
    manifests = [each.manifest for each in done]
    results = check_results(manifests, [path for each in done for path in each.damaged])
    if stage.check:
        shown = {each.manifest.partition: each.metadata for each in done}
        results.append(check_history(context, stage.check, corpus, shown))
    results += [warning_result(stage.warning_check, warned)] if stage.warning_check else []
    return dg.MaterializeResult(check_results=results)


@dataclass(frozen=True)
class Committed:
    """A partition that a run has committed, with its metadata, damaged files and log line."""

    manifest: Manifest
    metadata: Metadata
    damaged: list[str]
    log: str


def commit(
    context: dg.AssetExecutionContext,
    stage: Stage[Any, Any],
    folder: Partition,
    plan: Plan,
    outcomes: list[Outcome],
) -> Committed:
    """Commit the manifest of one partition and report it."""
    corpus: Corpus = context.resources.corpus
    manifest = folder.commit(manifest_of(stage, folder.name, plan, outcomes))
    ran = report_of(outcomes)
    metadata = stage.describe(corpus, typed(manifest, stage)) if stage.describe else {}
    report(context, corpus, manifest, ran, metadata)
    damaged = damaged_files(corpus, manifest, outcomes)
    return Committed(manifest, metadata, damaged, log_line(manifest, ran))


def conclude(
    context: dg.AssetExecutionContext,
    stage: Stage[Any, Any],
    corpus: Corpus,
    manifests: Sequence[Manifest],
) -> list[str]:
    """Report the warnings and metadata that need all partitions of the run; return the former."""
    warned: list[str] = []
    for manifest in manifests if stage.conclude else ():
        conclusion = stage.conclude(corpus, typed(manifest, stage))  # type: ignore[misc]
        key = None if manifest.partition == GLOBAL else manifest.partition
        if conclusion.metadata:
            context.add_asset_metadata(shown(conclusion.metadata), partition_key=key)
        for warning in conclusion.warnings:
            context.log.warning(warning)
            warned.append(warning)
    return warned


def warning_result(check: WarningCheck, warned: list[str]) -> dg.AssetCheckResult:
    """Return the result of a check that shows warnings."""
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=not warned,
        severity=dg.AssetCheckSeverity.WARN,
        description="\n".join(warned) or None,
        metadata={"warnings": warned},
    )


def plan_partitions(
    corpus: Corpus, partitions: list[str], plan: Callable[[Corpus, str], Plan]
) -> tuple[dict[str, Plan], list[str]]:
    """(plans, faults): a partition that cannot be planned does not stop the others.

    A source whose files cannot be found does: that is said before any work.
    """
    plans: dict[str, Plan] = {}
    faults: list[str] = []
    for partition in partitions:
        try:
            plans[partition] = plan(corpus, partition)
        except InputError:
            raise
        except (ValueError, StoreError) as error:
            faults.append(str(error))
    if not plans and faults:
        raise StoreError("\n".join(faults))
    return plans, faults


@contextmanager
def wrong_use_is_not_retried() -> Iterator[None]:
    """Fail the step at once on errors of input and config: a retry would end the same way."""
    try:
        yield
    except (ValueError, StoreError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def report(
    context: dg.AssetExecutionContext,
    corpus: Corpus,
    manifest: Manifest,
    ran: RunReport,
    more: Metadata,
) -> None:
    """Record the work on a partition for `corpus summary` and in Dagster's event log."""
    write_report(corpus.store.root, manifest.stage, manifest.partition, ran)
    key = None if manifest.partition == GLOBAL else manifest.partition
    context.add_asset_metadata(metadata_of(corpus, manifest, ran) | shown(more), partition_key=key)


def manifest_of(
    stage: Stage[Any, Any], partition: str, plan: Plan, outcomes: list[Outcome]
) -> Manifest:
    """Make the manifest of a partition; its parts are in task order, not in order of completion."""
    parts = tuple(record for outcome in outcomes for record in outcome.records)
    provenance = as_json_object(plan.provenance)
    return Manifest(
        stage=stage.name,
        partition=partition,
        fingerprint=fingerprint_of([part.fingerprint for part in parts], plan.config, provenance),
        code_version=stage.code_version,
        config=plan.config,
        parts=parts,
        stats=add_stats(part.stats for part in parts),
        provenance=provenance,
    )


def damaged_files(corpus: Corpus, manifest: Manifest, outcomes: list[Outcome]) -> list[str]:
    """Return files that differ from the manifest: by hash if this run wrote them, else by size."""
    written = {record.name for o in outcomes if not o.is_reused for record in o.records}
    damaged = []
    for part in manifest.parts:
        for file in part.files:
            path = corpus.store.path_of(manifest, file)
            is_there = has_size(path, file.bytes)
            if not is_there or (part.name in written and xxh3_of(path) != file.xxh3):
                damaged.append(str(path))
    return damaged


def check_results(manifests: Sequence[Manifest], damaged: list[str]) -> list[dg.AssetCheckResult]:
    """Return the results of the two checks that every stage has."""
    lost = [
        f"{manifest.partition}/{part.name}"
        for manifest in manifests
        for part in manifest.parts
        if not part.stats.is_conserved()
    ]
    total = add_stats(manifest.stats for manifest in manifests)
    return [
        dg.AssetCheckResult(
            check_name=CHECK_CONSERVATION,
            passed=not lost and total.is_conserved(),
            metadata={"rows_in": total.rows_in, "rows_kept": total.rows_kept, "parts": lost},
        ),
        dg.AssetCheckResult(
            check_name=CHECK_INTEGRITY, passed=not damaged, metadata={"damaged": damaged}
        ),
    ]
