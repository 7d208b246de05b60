"""A number is compared with the partition's own history, read from Dagster's real records."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg
import pytest

from assets.deduped.clusters.report import rate_jump
from pipeline_defs.partitions import partitions_of
from resources.materialize.history_checks import check_spec
from resources.materialize.materialization import stage_asset
from resources.stage import HistoryCheck, Stage
from resources.tasks import GLOBAL, Plan

Numbers = dict[str, Any]


def has_jumped(
    corpus: Any, number: float, earlier: Sequence[float]
) -> tuple[bool, Mapping[str, float]]:
    return rate_jump(number, earlier, corpus.settings.dedup.max_rate_jump)


CHECK = HistoryCheck("rate_check", "rate", "compares the rate", has_jumped)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def run(
    instance: dg.DagsterInstance, corpus: Any, numbers: Numbers, *partitions: str
) -> dg.ExecuteInProcessResult:
    """One run of a stage that does nothing but say its `rate`; without partitions: a global one."""
    stage = Stage(
        name="probe",
        code_version="1",
        description="A stage without parts.",
        group="ingest",
        partitions="source" if partitions else "none",
        after=(),
        kinds=frozenset({"polars"}),
        provenance=dict,
        numbers=dict,
        plan=lambda corpus, partition: Plan([], {}),
        work=lambda task: [],
        describe=lambda corpus, manifest: numbers[manifest.partition],
        check=CHECK,
    )
    probe = stage_asset(stage, partitions_of(corpus.settings), corpus.settings)
    ends = {"start": partitions[0], "end": partitions[-1]} if partitions else {}
    tags = {f"dagster/asset_partition_range_{end}": name for end, name in ends.items()}
    defs = dg.Definitions(
        assets=[probe],
        jobs=[dg.define_asset_job("probe_job", [probe])],
        resources={"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)},
    )
    job = defs.resolve_job_def("probe_job")
    return job.execute_in_process(instance=instance, tags=tags)


def verdict(result: dg.ExecuteInProcessResult) -> dg.AssetCheckEvaluation:
    (found,) = (e for e in result.get_asset_check_evaluations() if e.check_name == "rate_check")
    return found


def both(prose: float, notes: float) -> Numbers:
    return {"prose": {"rate": prose}, "notes": {"rate": notes}}


def test_a_run_over_many_partitions_names_those_that_jumped(
    corpus: Any, instance: dg.DagsterInstance
) -> None:
    for rate in (0.1, 0.12, 0.11):
        calm = run(instance, corpus, both(rate, 0.5), "prose", "notes")
        assert verdict(calm).passed

    found = run(instance, corpus, both(0.11, 0.7), "prose", "notes")

    assert found.success
    assert not verdict(found).passed
    assert verdict(found).severity == dg.AssetCheckSeverity.WARN
    assert verdict(found).description == "notes: rate 0.7, median 0.5, runs 3"
    assert verdict(found).metadata["jumped"].value == ["notes"]
    assert verdict(found).metadata["partitions"].value == {
        "prose": {"rate": 0.11, "median": 0.11, "runs": 3},
        "notes": {"rate": 0.7, "median": 0.5, "runs": 3},
    }


def test_a_partition_has_its_own_history(corpus: Any, instance: dg.DagsterInstance) -> None:
    run(instance, corpus, both(0.1, 0.0), "prose")

    first = verdict(run(instance, corpus, both(0.0, 0.9), "notes"))
    second = verdict(run(instance, corpus, both(0.9, 0.0), "prose"))

    assert first.passed and first.metadata["partitions"].value == {
        "notes": {"rate": 0.9, "runs": 0}
    }
    assert not second.passed


def test_a_stage_without_partitions_is_compared_too(
    corpus: Any, instance: dg.DagsterInstance
) -> None:
    assert verdict(run(instance, corpus, {GLOBAL: {"rate": 0}})).passed
    assert not verdict(run(instance, corpus, {GLOBAL: {"rate": 1}})).passed


@pytest.mark.parametrize("shown", [{}, {"rate": "none"}, {"rate": True}], ids=str)
def test_what_is_no_number_is_not_compared(
    corpus: Any, instance: dg.DagsterInstance, shown: dict[str, Any]
) -> None:
    run(instance, corpus, {GLOBAL: {"rate": 0.1}})

    assert verdict(run(instance, corpus, {GLOBAL: shown})).metadata["partitions"].value == {}
    later = verdict(run(instance, corpus, {GLOBAL: {"rate": 0.1}}))
    assert later.passed and later.metadata["partitions"].value[GLOBAL]["runs"] == 1


def test_only_the_newest_runs_count(corpus: Any, instance: dg.DagsterInstance) -> None:
    for rate in (*[0.9] * 12, *[0.1] * 9):
        run(instance, corpus, {GLOBAL: {"rate": rate}})
    assert verdict(run(instance, corpus, {GLOBAL: {"rate": 0.1}})).passed


def test_the_check_stops_nothing() -> None:
    assert not check_spec(CHECK, "probe").blocking
