"""The sensors of the daemon, over real run records."""

import dagster as dg
from builders import open_corpus, write_corpus
from command_line import KEEPS, told
from prelude import Any, Iterator, Path, pytest, time

from pipeline_defs import jobs
from pipeline_defs.jobs import BUILD, MIX, mix_sensor, run_watcher
from pipeline_defs.lost_runs import (
    LONGEST_LINE,
    mark_lost_runs,
    source_faults,
    step_faults,
    tell_of,
)
from pipeline_defs.partitions import run_tags
from resources.runs.run_notes import (
    OpenNote,
    new_note,
    notes_folder,
    read_notes,
)
from resources.source_faults import FAILED_SOURCES_TAG, check_complete

SECRET = "T0K3N"
SECRET_URL = f"https://me:{SECRET}-of-a-user@web.example/a?key={SECRET}"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def corpus(tmp_path: Path) -> Any:
    return open_corpus(write_corpus(tmp_path, notify=KEEPS))


@pytest.fixture(autouse=True)
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "GRACE_SECONDS", 0.0)


def run_job(
    instance: dg.DagsterInstance, name: str, tags: dict[str, str], *, fails: bool = False
) -> str:
    """Run a job of that name, as the command line does: without an origin."""

    @dg.op
    def work() -> None:
        if fails:
            raise ValueError("one\ntwo")

    @dg.job(name=name)
    def job() -> None:
        work()

    return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False).run_id


def build_once(instance: dg.DagsterInstance, corpus: Any, *, fails: bool = False) -> str:
    tags = run_tags(corpus, corpus.settings.source_names())
    return run_job(instance, BUILD, tags, fails=fails)


def asked(instance: dg.DagsterInstance, corpus: Any) -> str | None:
    """Return the run key that the sensor asks a mix for, None if it skips."""
    found = mix_sensor(corpus)(dg.build_sensor_context(instance=instance))
    return found.run_key if isinstance(found, dg.RunRequest) else None


def test_a_mix_follows_a_build_of_the_command_line(
    instance: dg.DagsterInstance, corpus: Any
) -> None:
    assert asked(instance, corpus) is None
    build_once(instance, corpus)
    newest = build_once(instance, corpus)
    assert asked(instance, corpus) == newest


def test_a_build_that_was_mixed_is_not_mixed_again(
    instance: dg.DagsterInstance, corpus: Any
) -> None:
    build_once(instance, corpus)
    phases = run_tags(corpus, corpus.settings.phase_names())
    run_job(instance, MIX, run_tags(corpus, corpus.settings.phase_names()[:1]))
    assert asked(instance, corpus) is not None  # that was one phase only
    run_job(instance, MIX, phases)
    assert asked(instance, corpus) is None
    newest = build_once(instance, corpus)
    assert asked(instance, corpus) == newest


def test_a_build_of_another_store_or_that_failed_is_not_mixed(
    instance: dg.DagsterInstance, corpus: Any, tmp_path: Path
) -> None:
    build_once(instance, open_corpus(write_corpus(tmp_path / "other")))
    failed = build_once(instance, corpus, fails=True)
    assert asked(instance, corpus) is None
    instance.add_run_tags(failed, {FAILED_SOURCES_TAG: "notes"})
    assert asked(instance, corpus) == failed


def test_materialized_assets_are_not_mixed(instance: dg.DagsterInstance, corpus: Any) -> None:
    tags = run_tags(corpus, corpus.settings.source_names())
    run_job(instance, "__ASSET_JOB", tags)
    assert asked(instance, corpus) is None


def test_a_build_has_just_ended_and_may_be_mixed_by_its_command(
    instance: dg.DagsterInstance, corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "GRACE_SECONDS", 3600.0)
    build_once(instance, corpus)
    assert asked(instance, corpus) is None


def watch(instance: dg.DagsterInstance, corpus: Any, cursor: str | None = None) -> str:
    result = run_watcher(corpus)(dg.build_sensor_context(instance=instance, cursor=cursor))
    assert isinstance(result, dg.SensorResult) and result.cursor
    return result.cursor


def test_a_run_that_no_process_told_of_is_told_once(
    instance: dg.DagsterInstance, corpus: Any
) -> None:
    cursor = watch(instance, corpus)
    failed = build_once(instance, corpus, fails=True)
    for _ in range(2):
        cursor = watch(instance, corpus, cursor)
    [message] = told(corpus.config)
    assert message["run_id"] == failed
    assert message["failed"] == [{"step": "work", "error": "ValueError: one"}]
    logged = [entry.message for entry in instance.all_logs(failed)]
    assert any("notify.command: " in line and "exit code 0" in line for line in logged)


def test_runs_that_failed_before_the_first_look_are_not_told(
    instance: dg.DagsterInstance, corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_once(instance, corpus, fails=True)
    monkeypatch.setattr(jobs, "OVERLAP_SECONDS", -1.0)
    watch(instance, corpus)
    assert told(corpus.config) == []


def test_without_a_hook_nothing_is_claimed(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    build_once(instance, corpus, fails=True)
    watch(instance, corpus, str(time.time() - 60))
    assert list(notes_folder(corpus.store.root).glob("*.told")) == []


@dg.asset(check_specs=[dg.AssetCheckSpec("sources_complete", asset="raw")])
def raw() -> Any:
    """A stage that has failed at a source, and fails with a URL at the end of the longest line."""
    yield dg.MaterializeResult(check_results=[check_complete({"web": f"no {SECRET_URL}"}, {}, {})])
    raise ValueError(f"{'x' * (LONGEST_LINE - 35)} {SECRET_URL}")


def test_notes_and_the_hook_get_no_secret_of_a_url(
    instance: dg.DagsterInstance, corpus: Any
) -> None:
    run = dg.materialize([raw], instance=instance, raise_on_error=False).dagster_run
    tell_of(instance, corpus, run)
    [message] = told(corpus.config)
    assert message["failed_sources"] == {"web": "raw: no https://web.example/a?key=***"}
    noted = str([step_faults(instance, run.run_id), source_faults(instance, run)])
    for text in (noted, str(message)):
        assert "web.example" in text and SECRET not in text


def test_a_run_that_could_not_note_its_end_is_not_shown_as_running(
    instance: dg.DagsterInstance, corpus: Any
) -> None:
    for run_id in (build_once(instance, corpus), build_once(instance, corpus, fails=True), "gone"):
        OpenNote(corpus.store.root, new_note(run_id, BUILD, (), ())).close()
    assert mark_lost_runs(instance, corpus) == []
    assert [note.state for note in read_notes(corpus.store.root)] == ["lost", "failure", "success"]
