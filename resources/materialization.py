"""From an asset to its materialization: run the tasks, commit the manifests, report to Dagster.

Every stage goes through `run_stage`, so that every materialization has the same metadata keys, the
same checks and the same guarantees.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl

from resources.corpus import Corpus
from resources.errors import InputError
from resources.history_check import HistoryCheck, check_history
from resources.run_reports import RunReport, report_of, write_report
from resources.store.disk import has_size, xxh3_of
from resources.store.records import Manifest, add_stats, fingerprint_of
from resources.store.store import Keep, StoreError
from resources.tasks import GLOBAL, Outcome, Plan, Task, Work, run_tasks

CHECK_CONSERVATION = "row_conservation"
CHECK_INTEGRITY = "manifest_integrity"
CHECKS = {
    CHECK_CONSERVATION: "rows in = kept + rejected + duplicates + quarantined, in every part",
    CHECK_INTEGRITY: "every file of the manifest is there with its size, new ones with their hash",
}
RETRIES = dg.RetryPolicy(
    max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)
MAIN_KINDS = ("documents", "sequences", "tokens", "signatures", "clusters", "parquet.parquet")


@dataclass(frozen=True)
class Stage:
    """A stage's name and the version of its code: raise it when its output changes.

    `check` looks at a number that `describe` gives, besides the checks that every stage has;
    `keep` names folders of a partition that outlive its own manifests.
    """

    name: str
    code_version: str
    check: HistoryCheck | None = None
    keep: Keep | None = None


def stage_asset(
    stage: Stage,
    *,
    deps: Sequence[Any],
    partitions: dg.PartitionsDefinition[str] | None,
    kinds: set[str],
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """The `@dg.asset` of every stage: group, retries, checks, one run for many partitions."""
    checks = [
        dg.AssetCheckSpec(name, asset=stage.name, blocking=True, description=description)
        for name, description in CHECKS.items()
    ]
    checks += [stage.check.spec(stage.name)] if stage.check else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # backfill_policy: dagster is pinned for it
        return dg.asset(
            name=stage.name,
            deps=deps,
            partitions_def=partitions,
            group_name="corpus",
            kinds=kinds,
            owners=["team:data"],
            tags={"stage": stage.name},
            code_version=stage.code_version,
            retry_policy=RETRIES,
            backfill_policy=dg.BackfillPolicy.single_run(),
            check_specs=checks,
            required_resource_keys={"corpus"},
        )


def run_stage(
    context: dg.AssetExecutionContext,
    stage: Stage,
    plan: Callable[[Corpus, str], Plan],
    work: Work,
    *,
    run: Callable[[Corpus, list[Task], Work], list[Outcome]] = run_tasks,
    describe: Callable[[Corpus, Manifest], Mapping[str, Any]] | None = None,
) -> dg.MaterializeResult:
    """Plan the run's partitions, compute what is missing, commit manifests, report to Dagster.

    `describe` gives metadata that only this stage has; a text is shown as Markdown.
    """
    corpus: Corpus = context.resources.corpus
    is_partitioned = context.assets_def.partitions_def is not None
    partitions = list(context.partition_keys) if is_partitioned else [GLOBAL]
    damaged: list[str] = []
    log: list[str] = []
    manifests: dict[str, Manifest] = {}
    shown: dict[str, Mapping[str, Any]] = {}
    with ExitStack() as writers, wrong_use_is_not_retried():
        plans, faults = plan_partitions(corpus, partitions, plan)
        folders = {name: corpus.store.partition(stage.name, name) for name in plans}
        for folder in folders.values():
            writers.enter_context(folder.writing(corpus.settings.keep_manifests, stage.keep))
        tasks = [task for each in plans.values() for task in each.tasks]
        outcomes = group_by_partition(run(corpus, tasks, work))
        for partition, each in plans.items():
            done = outcomes.get(partition, [])
            manifest = folders[partition].commit(manifest_of(stage, partition, each, done))
            manifests[partition] = manifest
            ran = report_of(done)
            shown[partition] = {} if describe is None else describe(corpus, manifest)
            report(context, corpus, manifest, ran, shown[partition])
            damaged += damaged_files(corpus, manifest, done)
            log.append(log_line(manifest, ran))
        if faults:
            raise StoreError("\n".join(faults))
    context.log.info("\n".join(log))  # one event: each is a write to Dagster's records
    results = check_results(manifests, damaged)
    results += [check_history(context, stage.check, corpus, shown)] if stage.check else []
    return dg.MaterializeResult(check_results=results)


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
    """Errors of input and config fail the step at once: trying again would end the same way."""
    try:
        yield
    except (ValueError, StoreError) as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def report(
    context: dg.AssetExecutionContext,
    corpus: Corpus,
    manifest: Manifest,
    ran: RunReport,
    more: Mapping[str, Any],
) -> None:
    """Tell `corpus summary` and Dagster's event log what was done for a partition."""
    write_report(corpus.store.root, manifest.stage, manifest.partition, ran)
    key = None if manifest.partition == GLOBAL else manifest.partition
    shown = {k: dg.MetadataValue.md(v) if isinstance(v, str) else v for k, v in more.items()}
    context.add_asset_metadata(metadata_of(corpus, manifest, ran) | shown, partition_key=key)


def group_by_partition(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes of each partition, in task order."""
    grouped: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        grouped.setdefault(outcome.task.partition, []).append(outcome)
    return grouped


def manifest_of(stage: Stage, partition: str, plan: Plan, outcomes: list[Outcome]) -> Manifest:
    """The manifest of a partition: its parts in order, never in the order they finished."""
    parts = tuple(record for outcome in outcomes for record in outcome.records)
    return Manifest(
        stage=stage.name,
        partition=partition,
        fingerprint=fingerprint_of([part.fingerprint for part in parts], plan.config, plan.about),
        code_version=stage.code_version,
        config=plan.config,
        parts=parts,
        stats=add_stats(part.stats for part in parts),
        about=plan.about,
    )


def metadata_of(corpus: Corpus, manifest: Manifest, ran: RunReport) -> dict[str, Any]:
    """The metadata of a materialization: the same keys for every stage, numbers as numbers."""
    stats = manifest.stats
    schema = table_schema(corpus, manifest)
    return {
        "rows_in": stats.rows_in,
        "rows_kept": stats.rows_kept,
        "rows_rejected": sum(stats.rejected.values()),
        "rejected": dict(stats.rejected),
        "duplicates": stats.duplicates,
        "quarantined": stats.quarantined,
        "tokens": stats.tokens,
        "bytes": stats.bytes,
        "seconds": ran.seconds,
        "mb_per_second": ran.mb_per_second,
        "parts_computed": ran.parts_computed,
        "parts_reused": ran.parts_reused,
        "fingerprint": manifest.fingerprint,
        "path": dg.MetadataValue.path(
            str(corpus.store.partition(manifest.stage, manifest.partition).folder)
        ),
        "schema": schema,
        "dagster/column_schema": schema,
        "dagster/row_count": stats.rows_kept,
        **{f"rejected/{reason}": count for reason, count in stats.rejected.items()},
        **{
            key: dg.MetadataValue.json(value) if isinstance(value, dict) else value
            for key, value in stats.extra.items()
        },
    }


def table_schema(corpus: Corpus, manifest: Manifest) -> dg.TableSchemaMetadataValue:
    """Columns of the stage's main table."""
    files = [file for part in manifest.parts for file in part.files if file.kind in MAIN_KINDS]
    columns: list[dg.TableColumn] = []
    if files:
        path = corpus.store.path_of(manifest, files[0])
        read = pl.read_parquet_schema if path.suffix == ".parquet" else pl.read_ipc_schema
        columns = [dg.TableColumn(name, str(dtype)) for name, dtype in read(path).items()]
    return dg.MetadataValue.table_schema(dg.TableSchema(columns))


def log_line(manifest: Manifest, ran: RunReport) -> str:
    """One line for the run's log."""
    stats = manifest.stats
    return (
        f"{manifest.stage}[{manifest.partition}]: {stats.rows_kept:,} of {stats.rows_in:,} rows "
        f"kept, {ran.parts_computed} parts computed, {ran.parts_reused} reused, "
        f"{ran.seconds:.1f} s, {ran.mb_per_second:.0f} MB/s"
    )


def damaged_files(corpus: Corpus, manifest: Manifest, outcomes: list[Outcome]) -> list[str]:
    """Files that differ from the manifest: by hash if this run wrote them, else by size."""
    written = {record.name for o in outcomes if not o.is_reused for record in o.records}
    damaged = []
    for part in manifest.parts:
        for file in part.files:
            path = corpus.store.path_of(manifest, file)
            is_there = has_size(path, file.bytes)
            if not is_there or (part.name in written and xxh3_of(path) != file.xxh3):
                damaged.append(str(path))
    return damaged


def check_results(
    manifests: Mapping[str, Manifest], damaged: list[str]
) -> list[dg.AssetCheckResult]:
    """Results of the two checks that every stage has."""
    lost = [
        f"{manifest.partition}/{part.name}"
        for manifest in manifests.values()
        for part in manifest.parts
        if not part.stats.is_conserved()
    ]
    total = add_stats(manifest.stats for manifest in manifests.values())
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
