"""Sources that fail in a run: each alone, while the others are built.

A partition that cannot be planned, computed or published commits nothing: its last good state stays
in the corpus, and later stages read that. What failed is kept where step processes and later runs
can read it, in the event log: the check `sources_complete` of each asset has the failures of its
last run as metadata. The steps that end a run read them there and fail, when all else is done.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg

from resources.engine.system_errors import concerns_all, errno_of
from resources.errors import and_more
from resources.store.store import Partition, StoreError

CHECK_COMPLETE = "sources_complete"
CORPUS_REPORT = "corpus_report"  # the asset that follows all others, and says what failed
COMPLETE = "no source failed, and none is left out: each is in the state of this run"
DISCLOSURE = "disclosure"  # likewise, the summary of training content
FAILED, SKIPPED, LEFT_OUT = "failed", "skipped", "left_out"  # metadata of the check
FAILED_SOURCES_TAG = "tokenmill/failed_sources"
WRONG_USE = (ValueError, StoreError)  # a retry would end the same way


@dataclass
class SourceFaults:
    """Errors of a step, by partition.

    `earlier` are the sources that failed in earlier stages of the run, with the reason. A partition
    of theirs that cannot be planned is `skipped`: that follows from the first failure.
    """

    stops: bool  # the first error ends the step
    earlier: Mapping[str, str] = field(default_factory=dict)
    failed: dict[str, Exception] = field(default_factory=dict)
    skipped: dict[str, Exception] = field(default_factory=dict)

    @contextmanager
    def of(self, partition: str, *, is_planned: bool = True) -> Iterator[None]:
        """Take the error of a partition, so that the others go on; a full disk stops all."""
        try:
            yield
        except Exception as error:
            if self.stops or concerns_all(errno_of(error.__cause__ or error)):
                raise
            is_consequence = (
                not is_planned and partition in self.earlier and isinstance(error, WRONG_USE)
            )
            self.add(partition, error, is_consequence=is_consequence)

    def add(self, partition: str, error: Exception, *, is_consequence: bool = False) -> None:
        """Add an error; the first of a partition counts."""
        faults = self.skipped if is_consequence else self.failed
        faults.setdefault(partition, error)

    def sort(self, partitions: Sequence[str]) -> None:
        """Bring the errors, which were added as partitions ended, in the order of partitions."""
        names = dict.fromkeys((*partitions, *self.failed))  # those of rolled-back sources stay
        self.failed = {name: self.failed[name] for name in names if name in self.failed}

    def has(self, partition: str) -> bool:
        """Return whether something went wrong with a partition."""
        return partition in self.failed or partition in self.skipped

    def raise_unless_survived(self, num_partitions: int, *, is_last_attempt: bool) -> None:
        """Raise what another attempt may mend, or what no partition survived."""
        passing = [error for error in self.failed.values() if not isinstance(error, WRONG_USE)]
        if passing and not is_last_attempt:
            raise passing[0]
        errors = [*self.failed.values(), *self.skipped.values()]
        if len(errors) == 1 == num_partitions:
            raise errors[0]
        if len(self.failed | self.skipped) == num_partitions:
            raise StoreError("\n".join(dict.fromkeys(str(error) for error in errors)))


def state_of(folder: Partition) -> str:
    """Describe the state of a partition that is in the corpus."""
    numbers = folder.manifest_numbers()
    if not numbers:
        return "none yet"
    try:
        fingerprint = folder.read_manifest(numbers[-1]).fingerprint
    except StoreError:
        return f"manifest {numbers[-1]}, which cannot be read"
    return f"manifest {numbers[-1]}, fingerprint {fingerprint}"


def sentence(error: Exception, state: str) -> str:
    """Return the error in one line, and the state that is in the corpus."""
    line = " ".join(str(error).split()) or type(error).__name__
    return f"{line}{'' if line.endswith('.') else '.'} In the corpus: {state}."


def check_complete(
    failed: Mapping[str, str], skipped: Mapping[str, str], left_out: Mapping[str, str]
) -> dg.AssetCheckResult:
    """Return the check on sources that failed, were skipped, or are left out: reason by source."""
    reasons = {**left_out, **skipped, **failed}
    given = {FAILED: failed, SKIPPED: skipped, LEFT_OUT: left_out}
    return dg.AssetCheckResult(
        check_name=CHECK_COMPLETE,
        passed=not reasons,
        description="; ".join(f"{name}: {reasons[name]}" for name in sorted(reasons)) or None,
        metadata={kind: dg.MetadataValue.json(dict(faults)) for kind, faults in given.items()},
    )


def failures_of_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, dict[str, str]]:
    """Return the sources that failed in a run, by stage: reason by source.

    A run that continues another (from its failure) has the failures of the steps that it does not
    repeat, too.
    """
    found: dict[str, dict[str, str]] = {}
    records = instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ).records
    for record in records:
        event = record.event_log_entry.dagster_event
        evaluation = event.asset_check_evaluation_data if event else None
        if evaluation is not None and evaluation.check_name == CHECK_COMPLETE:
            stage = evaluation.asset_key.to_user_string()
            found[stage] = dict(evaluation.metadata[FAILED].value)  # type: ignore[arg-type]
    parent = instance.get_run_by_id(run.parent_run_id) if run.parent_run_id else None
    repeated = run.step_keys_to_execute
    if parent is None or not repeated:
        return found
    before = failures_of_run(instance, parent)
    return {stage: of for stage, of in before.items() if stage not in repeated} | found


def earlier_failures(context: dg.AssetExecutionContext) -> dict[str, str]:
    """Return the sources that failed in earlier stages of the run, with the first reason."""
    reasons: dict[str, str] = {}
    for stage, failed in failures_of_run(context.instance, context.run).items():
        if stage != context.asset_key.to_user_string():
            reasons = {source: f"{stage}: {reason}" for source, reason in failed.items()} | reasons
    return reasons


def ends_run(context: dg.AssetExecutionContext) -> bool:
    """Return whether no step of the run comes after this one."""
    graph = context.job_def.asset_layer.asset_graph
    selected = context.job_def.asset_layer.selected_asset_keys
    after = graph.get(context.asset_key).child_keys - {
        dg.AssetKey(name) for name in (CORPUS_REPORT, DISCLOSURE)
    }
    return not (after & selected)


def fail_at_the_end(
    context: dg.AssetExecutionContext, failed: Mapping[str, str], *, is_all_else_well: bool
) -> None:
    """Fail the step that ends a run in which sources failed, with a line for each of them.

    The run gets a tag by which `has_failed_sources_only` knows it.
    """
    if not failed or not ends_run(context):
        return
    if is_all_else_well:
        names = ", ".join(failed)
        context.instance.add_run_tags(context.run.run_id, {FAILED_SOURCES_TAG: names})
    lines = [f"{source}: {reason}" for source, reason in failed.items()]
    raise dg.Failure("\n".join(lines), allow_retries=False)


def has_failed_sources_only(run: dg.DagsterRun) -> bool:
    """Return whether a run built all that could be built, and failed for that at its end only.

    Mixing follows such a run as it follows a successful one.
    """
    return run.status == dg.DagsterRunStatus.FAILURE and FAILED_SOURCES_TAG in run.tags


def names_of(partitions: Iterable[str]) -> str:
    """Return names in quotes, for messages."""
    return and_more([repr(name) for name in partitions])
