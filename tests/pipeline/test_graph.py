"""The code location as Dagster sees it."""

import dagster as dg
from builders import open_corpus, write_corpus
from prelude import Any, Path, pytest

from pipeline_defs.definitions import build_defs, defs

SOURCE_STAGES = {
    *("raw", "filtered", "signatures", "deduped", "tokenized", "bucketed", "sharded"),
}
GRAPH: dict[str, set[str]] = {  # of a config that leaves out what it can
    "raw": set(),
    "filtered": {"raw"},
    "signatures": {"filtered"},
    "band_index": {"signatures"},
    "duplicates": {"band_index"},
    "deduped": {"filtered", "duplicates"},
    "tokenizer": {"deduped"},
    "tokenized": {"deduped", "tokenizer"},
    "bucketed": {"tokenized"},
    "sharded": {"bucketed"},
    "mixed": {"sharded"},
    "corpus_report": {"mixed"},
}


WHOLE_GRAPH = GRAPH | {
    "classifier": {"raw"},
    "quality_scale": {"raw", "classifier"},
    "filtered": {"raw", "classifier", "quality_scale"},
    "signatures": {"filtered", "evaluation"},
    "repeated": {"filtered", "duplicates"},
    "substrings": {"filtered", "duplicates"},
    "evaluation": set(),
    "deduped": {"filtered", "duplicates", "repeated", "substrings"},
    "held_out": {"signatures", "duplicates", "tokenized"},
    "leakage": {"deduped", "held_out"},
    "annotators": set(),
    "annotated": {"deduped", "annotators"},
    "bucketed": {"annotated", "tokenized", "held_out", "leakage"},
}
OUTSIDE: dict[str, set[str]] = {"raw": {"input_files"}, "input_files": set()}
EVERYTHING: dict[str, Any] = {
    "classifier": {"good": ["prose"], "bad": ["notes"]},
    "filters": {"rules": {"quality": {"min_percentile": 0}}},
    "dedup": {
        "decontamination": {"sets": [{"name": "quiz", "where": "quiz.jsonl"}]},
        "lines": {},
        "substrings": {},
    },
    "annotations": [{"name": "edu", "where": "edu.jsonl", "columns": {"score": "number"}}],
    "holdout": {"share": 0.001},
}
GROUPS = {
    "ingest": {"raw", "input_files"},
    "curate": {"filtered", "classifier", "quality_scale"},
    "deduplicate": {
        *("evaluation", "signatures", "band_index", "duplicates"),
        *("repeated", "substrings", "deduped"),
    },
    "annotate": {"annotators", "annotated"},
    "tokenize": {"tokenizer", "tokenized"},
    "train": {"held_out", "leakage", "bucketed", "sharded", "mixed", "corpus_report"},
}


def parents(definitions: dg.Definitions) -> dict[str, set[str]]:
    """Names of the assets that each asset reads."""
    graph = definitions.resolve_asset_graph()
    return {
        key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }


def node(name: str) -> dg.AssetSpec:
    return defs.resolve_asset_graph().get(dg.AssetKey(name))


def test_the_graph_is_the_documented_one() -> None:
    assert parents(defs) == GRAPH | OUTSIDE


def test_what_the_config_asks_for_is_in_the_graph_and_its_jobs(tmp_path: Path) -> None:
    whole = build_defs(open_corpus(write_corpus(tmp_path, **EVERYTHING)))

    assert parents(whole) == WHOLE_GRAPH | OUTSIDE
    job = whole.resolve_job_def("build_corpus")
    selected = {key.to_user_string() for key in job.asset_layer.selected_asset_keys}
    assert selected == set(WHOLE_GRAPH) - {"mixed", "corpus_report"}


def test_assets_are_grouped_by_act(tmp_path: Path) -> None:
    graph = build_defs(open_corpus(write_corpus(tmp_path, **EVERYTHING))).resolve_asset_graph()

    groups: dict[str, set[str]] = {}
    for key in graph.get_all_asset_keys():
        groups.setdefault(graph.get(key).group_name, set()).add(key.to_user_string())
    assert groups == GROUPS


@pytest.mark.parametrize("name", GRAPH)
def test_every_asset_is_described_and_partitioned(name: str) -> None:
    asset = node(name)

    assert asset.description and asset.group_name in GROUPS and asset.kinds and asset.owners
    keys = asset.partitions_def.get_partition_keys() if asset.partitions_def else None
    expected = {"mixed": ["main", "late"], **{stage: ["prose", "notes"] for stage in SOURCE_STAGES}}
    assert keys == expected.get(name)


def test_two_jobs_cover_everything_in_one_run_each() -> None:
    build, mix = defs.resolve_job_def("build_corpus"), defs.resolve_job_def("mix_corpus")

    selected = {key.to_user_string() for key in build.asset_layer.selected_asset_keys}
    assert selected == set(GRAPH) - {"mixed", "corpus_report"}
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
    stages = set(GRAPH) - {"corpus_report"}
    every = {(asset, check) for asset in stages for check in names}
    complete = {(asset, "sources_complete") for asset in stages}
    own = {("raw", "inputs_read"), ("tokenized", "round_trip")}
    own |= {("tokenized", "served_by_tokenizer"), ("raw", "few_bad_records")}
    own |= {("tokenized", "rendered_by_template"), ("bucketed", "conversations_fit")}
    own |= {(stage, "drift") for stage in ("raw", "filtered", "deduped", "tokenized")}
    assert checks == every | complete | own
    for key in graph.asset_check_keys:
        assert graph.get_check_spec(key).blocking == (key.name in names)
