"""The parts that a run adds are compared with the profiles in Dagster's real records."""

from collections.abc import Iterator, Sequence

import dagster as dg
from prelude import Any, pytest

from assets.report.drift import LEAST_RUNS, judge_drift
from pipeline_defs.partitions import partitions_of
from resources.materialize.history_checks import CHECK_DRIFT, drift_spec, drifts_of_run
from resources.materialize.materialization import stage_asset
from resources.profiles import Profile
from resources.stage import DriftCheck, Stage
from resources.store.records import Manifest, PartRecord, Stats
from resources.tasks import Plan, Task


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def add_part(task: Task[int]) -> list[PartRecord]:
    kept = task.payload
    return [task.writer().publish(Stats(1000, kept, rejected={"short": 1000 - kept}))]


def profile(_: Any, __: Any, parts: Sequence[PartRecord[Any]]) -> Profile:
    rows = sum(part.stats.rows_in for part in parts)
    kept = sum(part.stats.rows_kept for part in parts)
    return Profile(rows, numbers={"kept share": kept / rows})


def fewer_kept(_: Any, now: Manifest, before: Manifest) -> list[str]:
    kept, was = (each.stats.rows_kept / each.stats.rows_in for each in (now, before))
    return [f"kept share: {kept}, {was} before"] if kept < was - 0.2 else []


def run(
    instance: dg.DagsterInstance, corpus: Any, kept: Sequence[int], config: int = 0
) -> dg.ExecuteInProcessResult:
    """A run over parts that keep so many of 1,000 rows each; earlier parts are not made again."""

    def plan(corpus: Any, partition: str) -> Plan:
        tasks = [
            Task(corpus.store.root, "probe", partition, f"p{i:02}", f"{i}-{config}-{n}", 1, n)
            for i, n in enumerate(kept)
        ]
        return Plan(tasks, {"config": config})

    stage: Stage[Any, Any] = Stage(
        name="probe",
        code_version="1",
        description="A stage whose parts are numbers.",
        group="ingest",
        partitions="none",
        after=(),
        kinds=frozenset({"polars"}),
        provenance=dict,
        numbers=dict,
        plan=plan,
        work=add_part,
        drift=DriftCheck(profile, judge_drift, fewer_kept),
    )
    probe = stage_asset(stage, partitions_of(corpus.settings), corpus.settings)
    defs = dg.Definitions(
        assets=[probe],
        jobs=[dg.define_asset_job("probe_job", [probe])],
        resources={"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)},
    )
    return defs.resolve_job_def("probe_job").execute_in_process(instance=instance)


def verdict(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = (e for e in result.get_asset_check_evaluations() if e.check_name == CHECK_DRIFT)
    return found


NIGHTS = [900, 905, 895, 902, 898, 901, 899, 903, 897]


def test_a_night_that_differs_is_named_with_a_picture(
    corpus: Any, instance: dg.DagsterInstance
) -> None:
    for number in range(1, len(NIGHTS) + 1):
        assert verdict(run(instance, corpus, NIGHTS[:number])).passed

    found = run(instance, corpus, [*NIGHTS, 500])

    assert found.success and not verdict(found).passed
    assert verdict(found).severity == dg.AssetCheckSeverity.WARN
    assert "kept share is 0.5, 0.9 in the median of 9 runs" in str(verdict(found).description)
    assert "data:image/svg+xml" in str(verdict(found).metadata["pictures"].value)
    later = verdict(run(instance, corpus, [*NIGHTS, 500, 900]))
    assert later.passed, "one odd night must not change what is usual"


def test_a_whole_state_is_compared_with_the_one_before(
    corpus: Any, instance: dg.DagsterInstance
) -> None:
    run(instance, corpus, [900])
    found = run(instance, corpus, [900, 100])

    assert not verdict(found).passed
    assert str(verdict(found).description).startswith("all: kept share: 0.5, 0.9 before\n")
    assert drifts_of_run(instance, found.run_id) == ("probe, all: kept share: 0.5, 0.9 before",)
    again = run(instance, corpus, [900, 100])
    assert drifts_of_run(instance, again.run_id) == ()
    assert drifts_of_run(instance, run(instance, corpus, [900], config=1).run_id) == ()


def test_short_history_is_said(corpus: Any, instance: dg.DagsterInstance) -> None:
    first = verdict(run(instance, corpus, [900]))
    assert first.description == "all: first state in Dagster's records: nothing to compare"
    assert not first.metadata

    found = verdict(run(instance, corpus, [900, 800]))

    assert found.passed
    assert found.description == (
        f"all: 1 earlier runs under this config, too few to compare: {LEAST_RUNS}"
    )


def test_a_run_that_adds_nothing_is_no_history(corpus: Any, instance: dg.DagsterInstance) -> None:
    run(instance, corpus, [900])
    again = run(instance, corpus, [900])

    assert again.asset_materializations_for_node("probe") == []
    assert verdict(again).passed


def test_another_config_begins_another_history(corpus: Any, instance: dg.DagsterInstance) -> None:
    for number in range(1, len(NIGHTS) + 1):
        run(instance, corpus, NIGHTS[:number])

    found = verdict(run(instance, corpus, [*NIGHTS[:-1], 100], config=1))

    assert found.passed and "0 earlier runs" in str(found.description)


def test_the_check_stops_nothing() -> None:
    assert not drift_spec("probe").blocking
