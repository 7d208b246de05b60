"""What the UI calls stale, and why, as Dagster itself resolves it, on a corpus that is built."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import dagster as dg
import yaml
from builders import open_corpus, sentence, write_corpus, write_jsonl
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.definitions.observe import observe as observe_assets
from dagster._core.loader import LoadingContextForTest
from every_stage import build
from prelude import Any, Iterator, Path, os, pytest

import assets.stages as registry
from assets.raw.places import observed_inputs
from pipeline_defs import old_runs
from pipeline_defs.definitions import build_defs
from pipeline_defs.observed_inputs import KEY, versions_now
from pipeline_defs.old_runs import remove_old_runs

NEW_CODE = "has a new code version"
NEW_DATA = "has a new dependency data version"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def run(
    instance: dg.DagsterInstance, config: Path, *names: str, partition: str = "", backfill: str = ""
) -> Any:
    ends = {f"dagster/asset_partition_range_{end}": partition for end in ("start", "end")}
    tags = (ends if partition else {}) | ({"dagster/backfill": backfill} if backfill else {})
    return (
        build_defs(open_corpus(config))
        .resolve_job_def("build_corpus")
        .execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in names] or None,
            tags=tags or None,
        )
    )


def observe(instance: dg.DagsterInstance, config: Path) -> None:
    """Press `Observe` in the UI."""
    observed = build_defs(open_corpus(config)).resolve_asset_graph().get(KEY).assets_def
    observe_assets([observed], instance=instance)


def stale(instance: dg.DagsterInstance, config: Path) -> dict[str, set[tuple[str, str]]]:
    """(partition, reason) of all that is stale, by asset; of a dependency also its name."""
    graph = build_defs(open_corpus(config)).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    found: dict[str, set[tuple[str, str]]] = {}
    for key in graph.materializable_asset_keys:
        definition = graph.get(key).partitions_def
        for partition in definition.get_partition_keys() if definition else [None]:
            for cause in resolver.get_stale_causes(key, partition):
                on = cause.dependency_asset_key
                reason = f"{cause.reason}: {on.to_user_string()}" if on else cause.reason
                found.setdefault(key.to_user_string(), set()).add((partition or "", reason))
    return found


def change(config: Path, **changes: Any) -> None:
    content = yaml.safe_load(config.read_text()) | changes
    config.write_text(yaml.safe_dump(content, sort_keys=False))


@pytest.fixture
def config(tmp_path: Path, instance: dg.DagsterInstance) -> Path:
    """The small corpus, built."""
    path = write_corpus(tmp_path)
    assert run(instance, path).success
    return path


def both(reason: str) -> set[tuple[str, str]]:
    return {("prose", reason), ("notes", reason)}


def test_after_a_build_nothing_is_stale_and_versions_are_the_fingerprints(
    instance: dg.DagsterInstance, config: Path
) -> None:
    corpus = open_corpus(config)
    observe(instance, config)

    assert stale(instance, config) == {}
    for source in ("prose", "notes"):
        record = instance.get_latest_data_version_record(
            dg.AssetKey("filtered"), partition_key=source
        )
        assert record is not None and record.event_log_entry.tags is not None
        version = record.event_log_entry.tags["dagster/data_version"]
        assert version == corpus.store.newest("filtered", source).fingerprint


def test_a_partition_has_one_materialization_a_run(
    instance: dg.DagsterInstance, config: Path
) -> None:
    wanted = dg.AssetRecordsFilter(dg.AssetKey("filtered"), asset_partitions=["prose"])

    (record,) = instance.fetch_materializations(wanted, limit=9).records

    assert record.asset_materialization is not None
    assert {"rows_in", "fingerprint"} <= set(record.asset_materialization.metadata)


def recorded(result: Any) -> set[tuple[str, str | None]]:
    """The partitions that a run tells of: (asset, partition)."""
    return {
        (event.asset_key.to_user_string(), event.partition)
        for event in result.all_events
        if event.is_step_materialization or event.event_type_value == "ASSET_OBSERVATION"
    }


def test_what_the_newest_event_says_is_not_recorded_again(
    instance: dg.DagsterInstance, config: Path
) -> None:
    assert recorded(run(instance, config)) == set()
    write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])

    night = recorded(run(instance, config))

    own = {"input_files", "raw", "filtered", "signatures", "deduped", "tokenized", "bucketed"}
    assert {(name, "prose") for name in own | {"sharded"}} <= night
    assert {("raw", "prose"), ("raw", "notes")} <= recorded(run(instance, config, backfill="one"))
    assert {name for name, partition in night if partition == "notes"} == {
        "deduped",  # of other clusters
        "tokenized",  # whose fertility is compared with that of all sources
    }
    assert stale(instance, config) == {}
    assert recorded(run(instance, config)) == set()


def test_old_runs_go_but_those_that_made_what_is_there(
    config: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_runs, "FEWEST_RUNS", 1)
    later = datetime.now(UTC) + timedelta(days=91)

    def files_of(result: Any) -> list[Path]:
        return [path for path in dagster_home.rglob("*") if result.run_id in str(path)]

    with dg.DagsterInstance.get() as kept:
        first = run(kept, config)
        write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
        night, idle, newest = (run(kept, config) for _ in range(3))
        assert files_of(idle)
        corpus = open_corpus(config)

        assert remove_old_runs(kept, corpus, later - timedelta(days=2)) == 0
        assert remove_old_runs(kept, corpus, later) == 1

        there = {each.run_id for each in kept.get_runs()}
        assert there == {first.run_id, night.run_id, newest.run_id}
        assert not files_of(idle) and files_of(night)
        assert stale(kept, config) == {} and recorded(run(kept, config)) == set()
        for night_of in ("prose", "prose", "notes", "prose"):
            number = len(list((config.parent / "input").rglob("*")))
            path = config.parent / f"input/{night_of}/{number}.jsonl"
            write_jsonl(path, [{"text": sentence(900 + number)}])
            run(kept, config)
            remove_old_runs(kept, corpus, later)
            assert stale(kept, config) == {}
        assert len(list(kept.get_runs())) <= 4
        change(config, keep_run_days=None)
        assert remove_old_runs(kept, open_corpus(config), later) == 0
        for source in ("prose", "notes"):
            write_jsonl(config.parent / f"input/{source}/d.jsonl", [{"text": sentence(998)}])
        change(config, keep_run_days=90)
        newest = run(kept, config)
        assert remove_old_runs(kept, open_corpus(config), later)
        assert [each.run_id for each in kept.get_runs()] == [newest.run_id]  # nothing is as it was
        assert stale(kept, config) == {} and recorded(run(kept, config)) == set()


def test_a_run_stays_for_an_event_that_a_later_stage_names(
    config: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_runs, "FEWEST_RUNS", 1)
    later, names = datetime.now(UTC) + timedelta(days=91), set(registry.BY_NAME)

    def tell_more_of(changed: set[str]) -> None:
        stages = tuple(
            replace(stage, describe=lambda *_: {"more": "of it"})
            if stage.name in changed
            else stage
            for stage in registry.STAGES
        )
        monkeypatch.setattr(registry, "STAGES", stages)

    with dg.DagsterInstance.get() as kept:
        run(kept, config)
        change(config, filters={"rules": {"length": {"min_chars": 60}}})
        named = run(kept, config)  # deduped[notes] of this run
        tell_more_of({"tokenized"})
        run(kept, config)  # is what tokenized[notes] of this run was made of
        write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
        run(kept, config)  # deduped[notes] again, of other clusters: the same
        tell_more_of(names - {"tokenized"})
        run(kept, config)
        run(kept, config)

        assert remove_old_runs(kept, open_corpus(config), later)

        assert stale(kept, config) == {}
        assert named.run_id in {each.run_id for each in kept.get_runs()}


def test_a_state_whose_event_is_lost_is_recorded_by_the_next_run(
    instance: dg.DagsterInstance, config: Path
) -> None:
    write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
    build(open_corpus(config), [registry.BY_NAME["raw"]])  # as of a run killed after its commit

    assert ("raw", "prose") in recorded(run(instance, config, "raw"))
    run(instance, config)
    assert stale(instance, config) == {}


def test_an_event_is_recorded_again_for_new_code_or_another_metadatum_alone(
    instance: dg.DagsterInstance, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_stage(**changes: Any) -> set[tuple[str, str | None]]:
        filtered = replace(registry.BY_NAME["filtered"], **changes)
        stages = tuple(filtered if s.name == "filtered" else s for s in registry.STAGES)
        with monkeypatch.context() as patch:
            patch.setattr(registry, "STAGES", stages)
            return recorded(run(instance, config, "filtered"))

    both_sources = {("filtered", "prose"), ("filtered", "notes")}
    assert with_stage(describe=lambda *_: {"about": "the same"}) == both_sources
    assert with_stage(describe=lambda *_: {"about": "the same"}) == set()
    assert with_stage(settings=lambda _: "that make no other state") == both_sources


def test_a_changed_threshold_makes_filtered_stale_then_what_follows(
    instance: dg.DagsterInstance, config: Path
) -> None:
    change(config, filters={"rules": {"length": {"min_chars": 300}}})
    assert stale(instance, config) == {"filtered": both(NEW_CODE)}

    run(instance, config, "filtered")

    after = stale(instance, config)
    assert set(after) == {"signatures", "deduped"}
    assert after["signatures"] == both(f"{NEW_DATA}: filtered")
    run(instance, config)
    assert stale(instance, config) == {}


def test_a_change_of_bucketing_makes_bucketed_stale_and_nothing_before_it(
    instance: dg.DagsterInstance, config: Path
) -> None:
    change(config, buckets={"mode": "buckets", "edges": [16, 64], "window_tokens": 10**6})

    assert stale(instance, config) == {"bucketed": both(NEW_CODE)}


def test_a_new_code_version_makes_its_stage_stale(
    instance: dg.DagsterInstance, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tuple(
        replace(stage, code_version="99") if stage.name == "tokenized" else stage
        for stage in registry.STAGES
    )
    monkeypatch.setattr(registry, "STAGES", changed)

    assert stale(instance, config) == {"tokenized": both(NEW_CODE)}


def test_a_new_file_makes_raw_of_its_source_stale_when_it_is_observed(
    instance: dg.DagsterInstance, config: Path
) -> None:
    write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
    assert stale(instance, config) == {}

    observe(instance, config)

    assert stale(instance, config) == {"raw": {("prose", f"{NEW_DATA}: input_files")}}
    run(instance, config, "raw")
    assert stale(instance, config) == {"filtered": {("prose", f"{NEW_DATA}: raw")}}


def test_a_kept_tokenizer_is_stale_until_its_run_and_makes_nothing_stale(
    instance: dg.DagsterInstance, config: Path
) -> None:
    write_jsonl(config.parent / "input/prose/c.jsonl", [{"text": sentence(999)}])
    run(instance, config, "raw", "filtered", "signatures", "band_index", "duplicates", "deduped")
    new_documents = {("prose", f"{NEW_DATA}: deduped")}
    after = stale(instance, config)
    assert after["tokenizer"] == {("", f"{NEW_DATA}: deduped")}
    assert after["tokenized"] == new_documents

    run(instance, config, "tokenizer")

    assert stale(instance, config) == {"tokenized": new_documents}


def test_a_touched_file_is_not_stale_and_a_changed_one_of_equal_size_is(config: Path) -> None:
    corpus, path = open_corpus(config), config.parent / "input/notes/n.jsonl"
    before = versions_now(corpus)
    os.utime(path, ns=(1, 1))
    assert versions_now(corpus) == before

    path.write_bytes(path.read_bytes().replace(b"river", b"RIVER"))

    now = versions_now(corpus)
    assert now["prose"] == before["prose"] and now["notes"] != before["notes"]


def test_a_changed_file_of_equal_size_and_time_is_stale(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_inputs, "RACY_NS", 0)
    corpus, path = open_corpus(config), config.parent / "input/notes/n.jsonl"
    status, before = path.stat(), versions_now(corpus)

    path.write_bytes(path.read_bytes().replace(b"river", b"RIVER"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert versions_now(corpus)["notes"] != before["notes"]


def test_the_sensor_records_what_has_changed_once(
    instance: dg.DagsterInstance, config: Path
) -> None:
    sensor = build_defs(open_corpus(config)).resolve_sensor_def("observe_input_files")
    path = config.parent / "input/notes/n.jsonl"

    def tick() -> list[str | None]:
        context = dg.build_sensor_context(instance=instance)
        events = sensor.evaluate_tick(context).asset_events
        for event in events:
            instance.report_runless_asset_event(event)
        return [event.partition for event in events]

    assert tick() == []  # the run of `raw` has observed all
    path.unlink()
    assert tick() == ["notes"]
    assert tick() == []
    assert stale(instance, config) == {"raw": {("notes", f"{NEW_DATA}: input_files")}}


def test_a_source_that_fails_stays_stale(instance: dg.DagsterInstance, config: Path) -> None:
    (config.parent / "input/notes/n.jsonl").unlink()
    observe(instance, config)

    with pytest.raises(dg.Failure, match="notes: raw: source 'notes': no input file matches"):
        run(instance, config)

    assert stale(instance, config) == {"raw": {("notes", f"{NEW_DATA}: input_files")}}
