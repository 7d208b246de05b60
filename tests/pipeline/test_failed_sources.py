"""A source that fails does so alone: the others are built, its last good state stays."""

import subprocess
from dataclasses import replace

import dagster as dg
import yaml
from builders import hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Iterator, Path, os, pytest, sys

import resources.materialize.materialization as module
from assets.stages import BY_NAME
from pipeline_defs.definitions import build_defs
from pipeline_defs.partitions import partitions_of, run_tags
from resources.materialize.materialization import checks_of
from resources.source_faults import has_failed_sources_only
from resources.stage import Conclusion

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [{"name": name, "where": f"input/{name}/*"} for name in ("prose", "letters", "notes")]
PHASES = [
    {"name": "main", "weights": {"prose": 0.75, "notes": 0.25}},
    {"name": "late", "budgets": {"letters": 200, "prose": 500}},
]
BROKEN_RULE = """
import polars as pl
from assets.filtered.rules.custom import CustomRule

def measure(texts):
    if len(texts) > 9:  # more than the examples
        raise OSError("no luck")
    return texts.str.len_chars()

LENGTH = pl.col("text").map_batches(measure, return_dtype=pl.UInt32)
RULES = [CustomRule("short", LENGTH, maximum=5, keeps=["Hello"], rejects=["Hello there"])]
"""
BY_SOURCE = ("raw", "filtered", "signatures", "deduped", "tokenized", "bucketed", "sharded")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A corpus of three sources and two phases; `late` draws from `letters`."""
    path = write_corpus(tmp_path, sources=SOURCES, phases=PHASES)
    letters = [{"text": sentence(300 + i, 20 + i % 7)} for i in range(30)]
    write_jsonl(tmp_path / "input/letters/l.jsonl", letters)
    return path


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRIES", dg.RetryPolicy(max_retries=1, delay=0))


def run(instance: dg.DagsterInstance, config: Path, *names: str, job: str = "build_corpus") -> Any:
    """Run a job, or some of its assets, in this process."""
    selection = [dg.AssetKey(name) for name in names] or None
    return (
        build_defs(open_corpus(config))
        .resolve_job_def(job)
        .execute_in_process(instance=instance, asset_selection=selection, raise_on_error=False)
    )


def materialized(result: Any) -> dict[str, list[str | None]]:
    """Partitions by asset, in the order of the events."""
    found: dict[str, list[str | None]] = {}
    for event in result.get_asset_materialization_events():
        found.setdefault(event.asset_key.to_user_string(), []).append(event.partition)
    return found


def check(result: Any, asset: str) -> dg.AssetCheckEvaluation:
    (found,) = (
        evaluation
        for evaluation in result.get_asset_check_evaluations()
        if evaluation.check_name == "sources_complete"
        and evaluation.asset_key == dg.AssetKey(asset)
    )
    return found


def shown(found: dg.AssetCheckEvaluation, kind: str) -> dict[str, str]:
    value = found.metadata[kind].value
    assert isinstance(value, dict)
    return value


def observed(result: Any, asset: str) -> dict[str | None, dict[str, Any]]:
    """Metadata of the observations of an asset, by partition."""
    events = [event for event in result.all_events if event.event_type_value == "ASSET_OBSERVATION"]
    return {
        event.partition: {key: value.value for key, value in observation.metadata.items()}
        for event in events
        if (observation := event.asset_observation_data.asset_observation).asset_key
        == dg.AssetKey(asset)
    }


def step_failure(result: Any) -> tuple[str, str]:
    """(step, message) of the only step that failed."""
    ((step, data),) = (
        (event.step_key, event.step_failure_data)
        for event in result.all_events
        if event.is_step_failure
    )
    return step, data.user_failure_data.description


def errors_logged(instance: dg.DagsterInstance, result: Any) -> list[str]:
    records = instance.all_logs(result.run_id)
    return [each.user_message for each in records if each.level == 40 and not each.dagster_event]


def failed_partitions(instance: dg.DagsterInstance, config: Path, asset: str) -> set[str]:
    """Partitions that Dagster shows as failed."""
    from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

    definition = build_defs(open_corpus(config)).resolve_asset_graph().get(dg.AssetKey(asset))
    partitions = definition.partitions_def
    assert partitions is not None
    cached = get_and_update_asset_status_cache_value(instance, dg.AssetKey(asset), partitions)
    assert cached is not None
    return set(cached.deserialize_failed_partition_subsets(partitions).get_partition_keys())


def lose_letters(config: Path) -> None:
    (config.parent / "input/letters/l.jsonl").unlink()


def test_a_source_that_was_never_there_is_left_out(
    instance: dg.DagsterInstance, config: Path
) -> None:
    lose_letters(config)

    result = run(instance, config)

    done = materialized(result)
    assert all(done[stage] == ["prose", "notes"] for stage in BY_SOURCE)
    assert done["duplicates"] == done["tokenizer"] == [None]
    assert not (config.parent / "store/raw/letters/_manifests").exists()
    found = check(result, "raw")
    assert not found.passed and not found.blocking
    assert shown(found, "failed")["letters"].startswith("source 'letters': no input file matches")
    assert shown(found, "failed")["letters"].endswith("In the corpus: none yet.")
    assert list(observed(result, "raw")["letters"]) == ["error", "in_the_corpus"]
    assert observed(result, "raw")["letters"]["error"].startswith("source 'letters': no input file")
    assert observed(result, "raw")["letters"]["in_the_corpus"] == "none yet"
    assert failed_partitions(instance, config, "raw") == {"letters"}


def test_stages_after_a_source_without_a_state_skip_it_in_one_line(
    instance: dg.DagsterInstance, config: Path
) -> None:
    lose_letters(config)

    result = run(instance, config)

    (error,) = errors_logged(instance, result)
    assert error.startswith("raw[letters] failed: source 'letters': no input file matches")
    for stage in BY_SOURCE[1:]:
        assert list(shown(check(result, stage), "skipped")) == ["letters"]
        assert not shown(check(result, stage), "failed")
    for stage in ("band_index", "duplicates", "tokenizer"):
        assert list(shown(check(result, stage), "left_out")) == ["letters"]
    step, message = step_failure(result)
    assert step == "sharded"
    assert message.startswith("letters: raw: source 'letters': no input file matches")
    assert message.count("\n") == 0
    run_record = instance.get_run_by_id(result.run_id)
    assert run_record is not None and has_failed_sources_only(run_record)
    assert not [event for event in result.all_events if event.is_step_up_for_retry]


def test_a_phase_that_draws_from_a_source_without_a_state_fails_alone(
    instance: dg.DagsterInstance, config: Path
) -> None:
    lose_letters(config)
    run(instance, config)

    result = run(instance, config, job="mix_corpus")

    assert materialized(result) == {"mixed": ["main"]}
    step, message = step_failure(result)
    assert step == "mixed" and message.startswith("late: mixed: sharded[letters] is not material")


def test_a_source_that_vanishes_stays_in_its_last_good_state(
    instance: dg.DagsterInstance, config: Path
) -> None:
    assert run(instance, config).success
    before = hashes(config.parent / "store")
    manifest = open_corpus(config).store.newest("raw", "letters")
    lose_letters(config)

    result = run(instance, config)

    assert hashes(config.parent / "store") == before
    assert materialized(result) == {}
    state = f"manifest 1, fingerprint {manifest.fingerprint}"
    assert observed(result, "raw")["letters"]["in_the_corpus"] == state
    assert shown(check(result, "raw"), "failed")["letters"].endswith(f"In the corpus: {state}.")
    assert all(check(result, stage).passed for stage in (*BY_SOURCE[1:], "duplicates"))
    assert step_failure(result)[0] == "sharded"
    assert run(instance, config, job="mix_corpus").success


def test_a_part_that_cannot_be_computed_fails_its_source_after_a_retry(
    instance: dg.DagsterInstance, config: Path
) -> None:
    (config.parent / "rules.py").write_text(BROKEN_RULE)
    content = yaml.safe_load(config.read_text())
    content["sources"][1]["filters"] = {"custom": "rules.py"}
    config.write_text(yaml.safe_dump(content, sort_keys=False))

    result = run(instance, config)

    done = materialized(result)
    assert done["raw"] == ["prose", "letters", "notes"]
    assert all(done[stage] == ["prose", "notes"] for stage in BY_SOURCE[1:])
    retried = [event.step_key for event in result.all_events if event.is_step_up_for_retry]
    assert retried == ["filtered"]
    step, message = step_failure(result)
    assert step == "sharded" and message.startswith("letters: filtered: filtered[letters] part ")
    assert len(errors_logged(instance, result)) == 1


def test_a_source_that_fails_between_stages_keeps_one_state_in_all_of_them(
    instance: dg.DagsterInstance, config: Path
) -> None:
    assert run(instance, config).success
    corpus = open_corpus(config)
    before = {stage: corpus.store.newest(stage, "letters") for stage in BY_SOURCE}
    more = [{"text": sentence(700 + i)} for i in range(5)]
    write_jsonl(config.parent / "input/letters/more.jsonl", more)
    run(instance, config, "raw", "filtered")
    newest = corpus.store.newest("filtered", "letters")
    new_part = next(part for part in newest.parts if part not in before["filtered"].parts)
    path = corpus.store.path_of(newest, new_part.file("documents"))
    path.write_bytes(b"x" * path.stat().st_size)

    result = run(instance, config)

    assert step_failure(result)[1].startswith("letters: signatures: signatures[letters] part ")
    assert corpus.store.newest("filtered", "letters") == newest
    for stage in BY_SOURCE[2:]:
        assert corpus.store.newest(stage, "letters") == before[stage]
    assert {tuple(names) for names in materialized(result).values()} == {("letters",), (None,)}
    assert check(result, "duplicates").passed and check(result, "deduped").passed


def test_a_damaged_manifest_stops_only_its_source(
    instance: dg.DagsterInstance, config: Path
) -> None:
    run(instance, config, "raw")
    damaged = config.parent / "store/raw/letters/_manifests/00000001.json"
    damaged.write_bytes(b"{")

    result = run(instance, config, "filtered")

    assert materialized(result) == {"filtered": ["prose", "notes"]}
    assert shown(check(result, "filtered"), "failed")["letters"].startswith(f"{damaged}: not a man")
    assert step_failure(result)[0] == "filtered"
    again = run(instance, config, "raw")  # written again as number 2; the damaged one is named
    assert materialized(again) == {}
    assert observed(again, "raw")["letters"]["in_the_corpus"].startswith("manifest 2, fingerprint")


def test_a_run_in_which_every_source_fails_ends_at_that_step(
    instance: dg.DagsterInstance, config: Path
) -> None:
    for path in (config.parent / "input").rglob("*.jsonl"):
        path.unlink()

    result = run(instance, config)

    step, message = step_failure(result)
    assert step == "raw" and message.count("no input file matches") == 3
    assert not set(materialized(result)) & set(BY_SOURCE)
    run_record = instance.get_run_by_id(result.run_id)
    assert run_record is not None and not has_failed_sources_only(run_record)
    found = result.get_asset_check_evaluations()  # a check without a result is shown as failed
    planned = {each.name for each in checks_of(BY_NAME["raw"])}
    assert {each.check_name for each in found} == planned
    assert [each.check_name for each in found if not each.passed] == ["sources_complete"]
    assert shown(check(result, "raw"), "failed").keys() == {"prose", "letters", "notes"}


def test_a_conclusion_that_fails_fails_its_check_and_no_step(
    instance: dg.DagsterInstance, config: Path
) -> None:
    def conclude(corpus: Any, manifest: Any) -> Conclusion:
        if manifest.partition == "letters":
            raise OSError("no luck")
        return Conclusion(metadata={"is_concluded": "yes"})

    corpus = open_corpus(config)
    stage = replace(BY_NAME["raw"], conclude=conclude)
    resources = {"corpus": dg.ResourceDefinition.hardcoded_resource(corpus)}
    asset = module.stage_asset(stage, partitions_of(corpus.settings), corpus.settings)
    tags = run_tags(corpus, corpus.settings.source_names())

    result = dg.materialize([asset], instance=instance, resources=resources, tags=tags)

    assert materialized(result)["raw"] == ["prose", "letters", "notes"]
    [warned] = [e for e in result.get_asset_check_evaluations() if e.check_name == "inputs_read"]
    assert not warned.passed and not warned.blocking
    assert "raw[letters] is built" in str(warned.description) and "no luck" in str(warned)


def test_on_source_error_stop_ends_the_step_at_once(
    instance: dg.DagsterInstance, config: Path
) -> None:
    lose_letters(config)
    content = yaml.safe_load(config.read_text()) | {"on_source_error": "stop"}
    config.write_text(yaml.safe_dump(content, sort_keys=False))

    result = run(instance, config)

    step, message = step_failure(result)
    assert step == "raw" and "no input file matches" in message
    assert not set(materialized(result)) & set(BY_SOURCE)


def command(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "TOKENMILL_CONFIG": str(config),
        "DAGSTER_HOME": str(config.parent / "home"),
        "PYTHONPATH": str(ROOT),
    }
    (config.parent / "home").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_the_commands_build_and_mix_what_they_can_and_exit_with_1(config: Path) -> None:
    lose_letters(config)

    done = command(config, "pipeline_defs.commands.main", "build")

    assert done.returncode == 1, done.stderr[-3000:]
    assert "-j build_corpus" in done.stdout and "-j mix_corpus" in done.stdout
    store = open_corpus(config).store
    assert store.newest("sharded", "notes").stats.rows_kept > 0
    assert store.newest("mixed", "main").stats.rows_kept > 0
    assert store.partition("mixed", "late").newest_manifest() is None
    assert "raw[letters]: source 'letters': no input file matches" in done.stderr

    job = ("dagster", "job", "execute", "-m", "pipeline_defs.definitions", "-j", "mix_corpus")
    assert command(config, *job).returncode == 1
