"""Materialize a stage: run its tasks, commit the manifests, report to Dagster.

Every stage goes through `run_stage`, so that every materialization has the same metadata keys, the
same checks and the same guarantees. Each partition fails alone (`resources/source_faults.py`).
"""

import inspect
import traceback
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg
import msgspec
from msgspec import UNSET

from resources.corpus import Corpus, stops_on_error
from resources.engine.system_errors import final_errors_explained
from resources.materialize.asset_events import (
    materialized,
    newest_versions,
    news,
    no_events_by_dagster,
    observed,
    partition_key,
    provenance_of,
)
from resources.materialize.history_checks import (
    PROFILE,
    check_drift,
    drift_spec,
    made_under,
)
from resources.materialize.lineage import with_lineage
from resources.materialize.metadata import log_line, metadata_of, shown
from resources.materialize.plan_rounds import plan_rounds
from resources.profiles import Profile
from resources.progress import shown_progress
from resources.rolled_back_sources import (
    rollback_of,
    rolled_back_line,
    rolled_back_manifest,
    with_rollbacks,
)
from resources.run_reports import report_of, write_report
from resources.run_tasks import run_partitions, stopped_by_errors
from resources.settings.pipeline import Settings
from resources.source_faults import (
    CHECK_COMPLETE,
    COMPLETE,
    WRONG_USE,
    SourceFaults,
    check_complete,
    earlier_failures,
    fail_at_the_end,
    names_of,
    sentence,
    state_of,
)
from resources.stage import (
    Conclusion,
    InputVersions,
    Metadata,
    Partitioning,
    Stage,
)
from resources.store.medium import medium_of
from resources.store.records import (
    DEFAULT_COMPRESSION,
    Manifest,
    add_stats,
    as_json_object,
    fingerprint_of,
)
from resources.store.snapshot import Listing
from resources.store.store import Partition, StoreError, typed
from resources.takedowns import check_rollback
from resources.tasks import GLOBAL, Outcome, Plan

CHECK_CONSERVATION = "row_conservation"
CHECK_INTEGRITY = "manifest_integrity"
CHECKS = {
    CHECK_CONSERVATION: "rows in = kept + rejected + duplicates + quarantined, in every part",
    CHECK_INTEGRITY: "every file of the manifest is there with its size",
}
RETRIES = dg.RetryPolicy(
    max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS
)


def stage_asset(
    stage: Stage[Any, Any],
    partitions: Mapping[Partitioning, dg.PartitionsDefinition[str] | None],
    settings: Settings,
) -> dg.AssetsDefinition:
    """Make the Dagster asset of a stage: group, retries, checks, one run for many partitions."""

    def materialize(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        with interruption_is_not_retried():  # Dagster refuses the type of a generator of results
            yield from with_lineage(context, run_stage(context, stage))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # of two arguments: dagster is pinned
        code = dg.LocalFileCodeReference(
            file_path=inspect.getfile(stage.plan), line_number=None, label="code of the stage"
        )
        references = dg.CodeReferencesMetadataValue(code_references=[code])
        return dg.asset(
            name=stage.name,
            description=stage.description,
            deps=[
                *(dependency(stage, earlier) for earlier in stage.after),
                *([dg.AssetDep(stage.inputs.asset)] if stage.inputs else []),
            ],
            partitions_def=partitions[stage.partitions],
            group_name=stage.group,
            kinds=set(stage.kinds),
            owners=["team:data"],
            tags={"stage": stage.name},
            metadata={"dagster/code_references": references},
            code_version=stage.version_under(settings),
            retry_policy=RETRIES,
            backfill_policy=dg.BackfillPolicy.single_run(),
            check_specs=[*checks_of(stage)],
            required_resource_keys={"corpus"},
            config_schema={
                flag: dg.Field(bool, default_value=False, description=meaning)
                for flag, meaning in stage.flags.items()
            },
        )(materialize)


def checks_of(stage: Stage[Any, Any]) -> Iterator[dg.AssetCheckSpec]:
    """Yield the checks of a stage as Dagster lists them; two of them block."""
    for name, description in CHECKS.items():
        yield dg.AssetCheckSpec(name, asset=stage.name, blocking=True, description=description)
    yield dg.AssetCheckSpec(CHECK_COMPLETE, asset=stage.name, description=COMPLETE)
    for check in stage.checks:
        yield dg.AssetCheckSpec(check.name, asset=stage.name, description=check.description)
    if stage.drift:
        yield drift_spec(stage.name)


def dependency(stage: Stage[Any, Any], earlier: str) -> dg.AssetDep:
    """Return the dependency of a stage on an earlier one: a phase depends on every source."""
    crosses = stage.partitions == "phase"
    return dg.AssetDep(earlier, partition_mapping=dg.AllPartitionMapping() if crosses else None)


StepEvents = Iterator[dg.AssetMaterialization | dg.AssetObservation | dg.MaterializeResult]


def run_stage(context: dg.AssetExecutionContext, stage: Stage[Any, Any]) -> StepEvents:
    """Plan the run's partitions, compute what is missing, commit manifests, report to Dagster.

    The step that ends a run then fails if sources failed in it, in this step or an earlier one.
    """
    earlier = earlier_failures(context)
    corpus = corpus_of_step(context, stage, earlier)
    is_partitioned = context.assets_def.partitions_def is not None
    partitions = list(context.partition_keys) if is_partitioned else [GLOBAL]
    rollbacks = {source: str(each) for source, each in corpus.rollbacks.items()}
    faults = SourceFaults(stops_on_error(corpus), rollbacks | earlier)
    provenance = provenance_of(context)
    with shown_progress(stage.name, context.log.info), wrong_use_is_not_retried():
        with final_errors_explained(corpus.store.root):
            left = commit_rolled_back(corpus, stage, partitions, faults)
            planned = [name for name in partitions if rollback_of(corpus, stage, name) is None]
            done = publish_partitions(corpus, stage, planned, faults)
        is_last_attempt = context.retry_number >= RETRIES.max_retries
        try:
            faults.raise_unless_survived(len(partitions), is_last_attempt=is_last_attempt)
        except WRONG_USE:
            with no_events_by_dagster(context.run):
                yield nothing_published(context, corpus, stage, faults)
            raise
    for each in left:
        context.log.warning(rolled_back_line(stage.name, corpus.rollbacks[each.manifest.partition]))
    if done:
        context.log.info("\n".join(log_lines(stage, done)))  # one event: each is a write
    if stage.inputs is not None:
        yield from observed_inputs(context, stage, stage.inputs, done)
        provenance = provenance_of(context)  # of what was planned: now the newest observation
    results = [*check_results(done), *drift_results(context, stage, done)]  # before it is history
    concluded = conclude(context, stage, corpus, done)
    events = [
        materialized(
            context.asset_key,
            each.manifest,
            each.metadata,
            provenance.tags(each.manifest.partition),
        )
        for each in (*concluded, *left)
    ]
    yield from news(context, events, provenance.followed)
    failed = yield from report_failed(context, corpus, stage, faults)
    results += own_results(corpus, stage, concluded)
    left_out = {name: why for each in done for name, why in each.left_out.items()}
    skipped = report_skipped(context, corpus, stage, faults, left_out)
    results.append(check_complete(failed, skipped, left_out))
    with no_events_by_dagster(context.run):
        yield dg.MaterializeResult(check_results=results)
    here = {source: f"{stage.name}: {reason}" for source, reason in failed.items()}
    is_all_else_well = all(check.passed for check in results if check.check_name in CHECKS)
    fail_at_the_end(context, here | earlier, is_all_else_well=is_all_else_well)


def nothing_published(
    context: dg.AssetExecutionContext, corpus: Corpus, stage: Stage[Any, Any], faults: SourceFaults
) -> dg.MaterializeResult[None]:
    """Return the results of the checks for a step that published nothing: only one fails.

    Checks without a result are shown as failed, for the partitions that are well, too.
    """
    failed = {
        name: sentence(error, state_of(corpus.store.partition(stage.name, name)))
        for name, error in (faults.skipped | faults.failed).items()
    }
    results = [*check_results(()), *drift_results(context, stage, ())]
    results += [*own_results(corpus, stage, ()), check_complete(failed, {}, {})]
    return dg.MaterializeResult(check_results=results)


def corpus_of_step(
    context: dg.AssetExecutionContext, stage: Stage[Any, Any], earlier: Mapping[str, str]
) -> Corpus:
    """Return the corpus as a step sees it: flags of the run, sources that failed or stay behind."""
    config = context.op_execution_context.op_config
    flags = frozenset(flag for flag in stage.flags if config[flag])
    corpus = replace(context.resources.corpus, behind=frozenset(earlier), flags=flags)
    medium_of(corpus.store.root).begin_step(stage.name)
    return with_rollbacks(corpus)


def own_results(
    corpus: Corpus, stage: Stage[Any, Any], concluded: Sequence["Committed"]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of each check of a stage's own: what it finds, by partition.

    None blocks in Dagster, where that would stop the other partitions, too.
    """
    for check in stage.checks:
        texts = {
            each.manifest.partition: check.finds(corpus, typed(each.manifest, stage), each.warnings)
            for each in concluded
        }
        found = {name: text for name, text in texts.items() if text}
        yield dg.AssetCheckResult(
            check_name=check.name,
            passed=not found,
            severity=dg.AssetCheckSeverity.ERROR if check.refuses else dg.AssetCheckSeverity.WARN,
            description="\n".join(f"{name}: {text}" for name, text in found.items()) or None,
            metadata={"found": found},
        )


def drift_results(
    context: dg.AssetExecutionContext, stage: Stage[Any, Any], done: Sequence["Committed"]
) -> Iterator[dg.AssetCheckResult]:
    """Yield the result of the check of what a run adds."""
    if stage.drift:
        profiles = {each.manifest.partition: each.profile for each in done if each.profile}
        states = {each.manifest.partition: each.drifts for each in done if each.drifts}
        yield check_drift(context, stage.drift, profiles, states)


def observed_inputs(
    context: dg.AssetExecutionContext,
    stage: Stage[Any, Any],
    inputs: InputVersions,
    done: Sequence["Committed"],
) -> Iterator[dg.AssetObservation]:
    """Yield an observation of the inputs from outside of each partition that are others now."""
    known = newest_versions(context.instance, dg.AssetKey(inputs.asset), is_external=True)
    for each in done:
        version = inputs.version(typed(each.manifest, stage))
        if version != known.get(each.manifest.partition, ("", 0))[0]:
            yield observed(inputs.asset, each.manifest, version)


def commit_rolled_back(
    corpus: Corpus, stage: Stage[Any, Any], partitions: Sequence[str], faults: SourceFaults
) -> list["Committed"]:
    """Leave partitions that are rolled back as they are; finish a rollback that was killed."""
    done = []
    for name in partitions:
        rollback = rollback_of(corpus, stage, name)
        if rollback is None:
            continue
        folder = corpus.store.partition(stage.name, name)
        with faults.of(name), folder.writing(corpus.settings.keep_manifests, stage.keep):
            check_rollback(corpus.store, rollback)
            manifest = rolled_back_manifest(corpus, stage, rollback)
            if manifest is not None:
                manifest = folder.commit(manifest, has_new_files=False)
                own = {"held": str(rollback)}
                metadata = metadata_of(corpus, stage, manifest, report_of([]), own)
                done.append(Committed(manifest, metadata, {}, [], []))
    return done


@dataclass(frozen=True)
class Committed:
    """A partition that a run has committed, with its metadata, damaged files and outcomes.

    `described` is the metadata of the stage's own, `left_out` are sources that it does without,
    `warnings` those of `conclude`, `profile` is that of what the run added, if it added anything,
    `drifts` are lines on the whole state.
    """

    manifest: Manifest
    metadata: Mapping[str, Any]
    described: Metadata
    damaged: list[str]
    outcomes: list[Outcome]
    left_out: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    profile: Profile | None = None
    drifts: Sequence[str] = ()


def publish_partitions(
    corpus: Corpus, stage: Stage[Any, Any], partitions: Sequence[str], faults: SourceFaults
) -> list[Committed]:
    """Plan, compute and commit partitions; `faults` takes the errors of each."""
    done: dict[str, Committed] = {}
    for plans in plan_rounds(corpus, stage, partitions, faults):
        done |= publish_planned(corpus, stage, plans, faults)
    faults.sort(partitions)
    return [done[name] for name in partitions if name in done]


def publish_planned(
    corpus: Corpus, stage: Stage[Any, Any], plans: Mapping[str, Plan], faults: SourceFaults
) -> dict[str, Committed]:
    """Compute and commit the partitions of some plans."""
    done: dict[str, Committed] = {}
    with corpus.store.session(), ExitStack() as every_writer:
        writers = {name: every_writer.enter_context(ExitStack()) for name in plans}
        folders = {name: corpus.store.partition(stage.name, name) for name in plans}
        for name, folder in folders.items():
            writers[name].enter_context(folder.writing(corpus.settings.keep_manifests, stage.keep))
        with stopped_by_errors(partition_outcomes(corpus, stage, plans)) as ended:
            for name, outcomes in ended:
                for outcome in outcomes:
                    if outcome.error is not None:
                        faults.add(name, outcome.error)
                if not faults.has(name):
                    with faults.of(name), final_errors_explained(corpus.store.root):
                        done[name] = commit(corpus, stage, folders[name], plans[name], outcomes)
                        refuse(corpus, stage, done[name].manifest)
                with faults.of(name):
                    release(writers[name], faults.failed.get(name))
    return done


def release(writer: ExitStack, error: Exception | None) -> None:
    """Let go of a partition; after an error its finished parts are kept for the next attempt."""
    writer.__exit__(type(error) if error else None, error, None)


def partition_outcomes(
    corpus: Corpus, stage: Stage[Any, Any], plans: Mapping[str, Plan]
) -> Generator[tuple[str, list[Outcome]], None, None]:
    """Run the plans; yield each partition with its outcomes as soon as it has all of them.

    Where the first error ends all, none is yielded before the last has ended.
    """
    tasks = [task for plan in plans.values() for task in plan.tasks]
    left = dict.fromkeys(plans)
    if tasks:
        run = stage.run or (lambda *arguments: run_partitions(*arguments[:3]))
        with stopped_by_errors(run(corpus, tasks, stage.work, run_partitions)) as ended:
            for outcomes in [*ended] if stops_on_error(corpus) else ended:
                name = outcomes[0].task.partition
                del left[name]
                yield name, outcomes
    for name in left:
        yield name, []


def commit(
    corpus: Corpus,
    stage: Stage[Any, Any],
    folder: Partition,
    plan: Plan,
    outcomes: list[Outcome],
) -> Committed:
    """Commit the manifest of one partition, and describe it."""
    folder.medium.settle(folder.folder)
    manifest = manifest_of(stage, folder.name, plan, outcomes)
    if stage.before_commit:
        stage.before_commit(corpus, typed(manifest, stage), plan)
    drifts = state_drifts(corpus, stage, folder, manifest)
    has_new_files = not all(outcome.is_reused for outcome in outcomes)
    manifest = folder.commit(manifest, has_new_files=has_new_files)
    ran = report_of(outcomes)
    write_report(corpus.store.root, manifest.stage, manifest.partition, ran)
    described = stage.describe(corpus, typed(manifest, stage)) if stage.describe else {}
    profile = profile_of(corpus, stage, manifest, outcomes)
    metadata = metadata_of(corpus, stage, manifest, ran, described)
    kept_profile = {PROFILE: dg.MetadataValue.json(msgspec.to_builtins(profile))} if profile else {}
    return Committed(
        manifest,
        metadata | kept_profile,
        described,
        damaged_files(corpus, manifest),
        outcomes,
        plan.left_out,
        profile=profile,
        drifts=drifts,
    )


def refuse(corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest) -> None:
    """Raise StoreError if the stage refuses a manifest that was committed."""
    for check in stage.checks:
        if check.refuses and (reason := check.finds(corpus, typed(manifest, stage), ())):
            raise StoreError(reason)


def profile_of(
    corpus: Corpus, stage: Stage[Any, Any], manifest: Manifest, outcomes: Sequence[Outcome]
) -> Profile | None:
    """Return the numbers of the parts that a run computed, None if there are none to compare."""
    new = {record.name for each in outcomes if not each.is_reused for record in each.records}
    if stage.drift is None or not new:
        return None
    given = typed(manifest, stage)
    profile = stage.drift.profile(corpus, given, [p for p in given.parts if p.name in new])
    return msgspec.structs.replace(profile, made_under=made_under(manifest))


def state_drifts(
    corpus: Corpus, stage: Stage[Any, Any], folder: Partition, manifest: Manifest
) -> Sequence[str]:
    """Compare a whole state with the newest one, if both are of the same code and config."""
    if stage.drift is None or stage.drift.states is None:
        return ()
    with suppress(StoreError):  # a damaged state is no state to compare with: `verify` names it
        before = folder.newest_manifest()
        is_new = before is not None and before.fingerprint != manifest.fingerprint
        if before and is_new and made_under(before) == made_under(manifest):
            return stage.drift.states(corpus, typed(manifest, stage), typed(before, stage))
    return ()


def log_lines(stage: Stage[Any, Any], done: Sequence[Committed]) -> list[str]:
    """Return a line on each partition, and one on all of them."""
    lines = []
    for each in done:
        title = f"{stage.name}[{each.manifest.partition}]"
        lines.append(log_line(title, each.manifest.stats, report_of(each.outcomes)))
    if len(done) > 1:
        total = add_stats(each.manifest.stats for each in done)
        ran = report_of([outcome for each in done for outcome in each.outcomes])
        lines.append(log_line(f"{stage.name}, all {len(done)}", total, ran))
    return lines


def report_failed(
    context: dg.AssetExecutionContext, corpus: Corpus, stage: Stage[Any, Any], faults: SourceFaults
) -> Generator[dg.AssetObservation, None, dict[str, str]]:
    """Yield an observation of every failed partition, and log a line; return the lines.

    No materialization: the partition is as it was, and Dagster shows that the run failed it.
    """
    lines: dict[str, str] = {}
    for name, error in faults.failed.items():
        state = state_of(corpus.store.partition(stage.name, name))
        lines[name] = sentence(error, state)
        context.log.error(f"{stage.name}[{name}] failed: {lines[name]}")
        context.log.debug("".join(traceback.format_exception(error)))
        metadata = {"error": str(error), "in_the_corpus": state}
        yield dg.AssetObservation(
            context.asset_key, partition=partition_key(name), metadata=metadata
        )
    return lines


def report_skipped(
    context: dg.AssetExecutionContext,
    corpus: Corpus,
    stage: Stage[Any, Any],
    faults: SourceFaults,
    left_out: Mapping[str, str],
) -> dict[str, str]:
    """Log one line on sources that are skipped and one on those left out; return why skipped."""
    if left_out:
        context.log.warning(f"{stage.name} is without {names_of(left_out)}: no usable state")
    skipped = {
        name: sentence(error, state_of(corpus.store.partition(stage.name, name)))
        for name, error in faults.skipped.items()
    }
    if skipped:
        line = f"{stage.name} skips {names_of(skipped)}, which failed before"
        is_rolled_back = not corpus.rollbacks.keys().isdisjoint(skipped)
        context.log.warning(f"{line} or are rolled back" if is_rolled_back else line)
    return skipped


def conclude(
    context: dg.AssetExecutionContext,
    stage: Stage[Any, Any],
    corpus: Corpus,
    done: Sequence[Committed],
) -> list[Committed]:
    """Log the warnings, and add the metadata, that depend on all partitions of the run.

    An error is a warning, too: the partition is published, and the cause may be another one.
    """
    if stage.conclude is None:
        return list(done)
    concluded, corpus = [], replace(corpus, shared={})
    faults = SourceFaults(stops_on_error(corpus))
    for each in done:
        name, conclusion = each.manifest.partition, Conclusion()
        with faults.of(name):
            conclusion = stage.conclude(corpus, typed(each.manifest, stage))
        for warning in conclusion.warnings:
            context.log.warning(warning)
        if error := faults.failed.get(name):
            line = f"{stage.name}[{name}] is built, but its warnings are missing: {error}"
            context.log.error(line)
            conclusion = Conclusion([line])
        metadata = {**each.metadata, **shown(conclusion.metadata)}
        concluded.append(replace(each, metadata=metadata, warnings=conclusion.warnings))
    return concluded


@contextmanager
def interruption_is_not_retried() -> Iterator[None]:
    """Fail the step of a stopped run: Dagster's retry policy would begin it again."""
    try:
        yield
    except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError) as error:
        message = "The run was stopped. Published parts are kept: run again to continue."
        raise dg.Failure(message, allow_retries=False) from error


@contextmanager
def wrong_use_is_not_retried() -> Iterator[None]:
    """Fail the step at once on errors of input and config: a retry would end the same way."""
    try:
        yield
    except WRONG_USE as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def manifest_of(
    stage: Stage[Any, Any], partition: str, plan: Plan, outcomes: list[Outcome]
) -> Manifest:
    """Make the manifest of a partition; its parts are in task order, not in order of completion."""
    parts = tuple(record for outcome in outcomes for record in outcome.records)
    provenance = as_json_object(plan.provenance)
    compressions = {outcome.task.compression for outcome in outcomes} - {DEFAULT_COMPRESSION}
    return Manifest(
        stage=stage.name,
        partition=partition,
        fingerprint=fingerprint_of([part.fingerprint for part in parts], plan.config, provenance),
        code_version=stage.code_version,
        config=plan.config,
        parts=parts,
        stats=add_stats(part.stats for part in parts),
        provenance=provenance,
        compression=compressions.pop() if compressions else UNSET,
    )


def damaged_files(corpus: Corpus, manifest: Manifest) -> list[str]:
    """Return files of a manifest that are not there, or have another size.

    Their bytes were hashed after they were written, and are compared by whoever reads them.
    """
    listing = Listing(corpus.store.partition(manifest.stage, manifest.partition).folder)
    files = (file for part in manifest.parts for file in part.files)
    return [str(listing.folder / file.path) for file in files if not listing.has_size(file)]


def check_results(done: Sequence[Committed]) -> list[dg.AssetCheckResult]:
    """Return the results of the two blocking checks that every stage has."""
    manifests = [each.manifest for each in done]
    damaged = [path for each in done for path in each.damaged]
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
