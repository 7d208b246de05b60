"""The code location as Dagster sees it."""

import dagster as dg
import pytest

from pipeline_defs.definitions import defs

SOURCE_STAGES = {
    *("raw", "filtered", "signatures", "repeated", "deduped", "tokenized", "bucketed", "sharded"),
}
GRAPH = {
    "raw": set(),
    "classifier": {"raw"},
    "filtered": {"raw", "classifier"},
    "signatures": {"filtered", "evaluation"},
    "band_index": {"signatures"},
    "duplicates": {"band_index"},
    "repeated": {"filtered", "duplicates"},
    "substrings": {"filtered", "duplicates"},
    "evaluation": set(),
    "deduped": {"filtered", "duplicates", "repeated", "substrings"},
    "tokenizer": {"deduped"},
    "tokenized": {"deduped", "tokenizer"},
    "bucketed": {"tokenized"},
    "sharded": {"bucketed"},
    "mixed": {"sharded"},
}


def node(name: str) -> dg.AssetSpec:
    return defs.resolve_asset_graph().get(dg.AssetKey(name))


def test_the_graph_is_the_documented_one() -> None:
    graph = defs.resolve_asset_graph()

    found = {
        key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }
    assert found == GRAPH


@pytest.mark.parametrize("name", GRAPH)
def test_every_asset_is_described_and_partitioned(name: str) -> None:
    asset = node(name)

    assert asset.description and asset.group_name == "corpus" and asset.kinds and asset.owners
    keys = asset.partitions_def.get_partition_keys() if asset.partitions_def else None
    expected = {"mixed": ["main", "late"], **{stage: ["prose", "notes"] for stage in SOURCE_STAGES}}
    assert keys == expected.get(name)


def test_two_jobs_cover_everything_in_one_run_each() -> None:
    build, mix = defs.resolve_job_def("build_corpus"), defs.resolve_job_def("mix_corpus")

    selected = {key.to_user_string() for key in build.asset_layer.selected_asset_keys}
    assert selected == set(GRAPH) - {"mixed"}
    assert build.tags["dagster/asset_partition_range_start"] == "prose"
    assert build.tags["dagster/asset_partition_range_end"] == "notes"
    assert mix.tags["dagster/asset_partition_range_end"] == "late"


def test_the_schedule_runs_the_whole_build() -> None:
    schedule = defs.resolve_schedule_def("nightly")

    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_schedule_context(instance=instance)
        ticks = schedule.evaluate_tick(context).run_requests

    assert schedule.job_name == "build_corpus" and schedule.cron_schedule == "0 2 * * *"
    assert ticks is not None and len(ticks) == 1


def test_every_stage_has_blocking_checks() -> None:
    graph = defs.resolve_asset_graph()
    checks = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}

    names = ("row_conservation", "manifest_integrity")
    every = {(asset, check) for asset in GRAPH for check in names}
    own = {("raw", "inputs_read"), ("deduped", "duplicate_rate"), ("tokenized", "round_trip")}
    assert checks == every | own
    for key in graph.asset_check_keys:
        assert graph.get_check_spec(key).blocking == (key.name in names)
