"""A build that would find nothing to do makes no run: decided by plans and notes of runs."""

import dagster as dg
import msgspec
from builders import hashes, open_corpus, write_corpus, write_jsonl
from command_line import start
from prelude import Any, Callable, Path, json, pytest
from verbs import Cli

from assets.stages import used_stages
from pipeline_defs.definitions import build_defs
from pipeline_defs.forecast.nothing_new import is_whole_build, last_build
from resources.runs.run_notes import BUILD, MIX, RunNote, digest_of, new_note, read_notes

FIRST_RUNS = 2


def build(config: Path, *options: str) -> str:
    """Run `corpus build`; return what it says."""
    assert start(config, "pipeline_defs.commands.main", "build", *options).wait() == 0
    return (config.parent / "out.log").read_text()


@pytest.mark.slow
def test_a_build_with_nothing_new_makes_no_run(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    assert "Nothing is new" not in build(config)
    corpus, store = open_corpus(config), config.parent / "store"
    before = hashes(store)

    said = build(config)

    assert "Nothing is new since run" in said and "Report: " in said and "dagster job" not in said
    assert len(read_notes(store)) == FIRST_RUNS and hashes(store) == before
    assert "Nothing was new " in cli.out("status")
    raw = json.loads(cli.out("summary", "--json"))["sources"]["prose"]["raw"]
    assert (raw["parts_computed"], raw["parts_reused"]) == (0, 2)
    assert ticks(corpus) == (["Nothing is new."], 1, 0)
    shard = next((store / "sharded/prose").rglob("shard-*.parquet"))
    mistakes: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "a new file": (
            lambda: write_jsonl(tmp_path / "input/prose/new.jsonl", [{"text": "new"}]),
            lambda: (tmp_path / "input/prose/new.jsonl").unlink(),
        ),
        "a file that is gone": (
            lambda: shard.rename(tmp_path / "kept"),
            lambda: (tmp_path / "kept").rename(shard),
        ),
        "a rollback": (
            lambda: cli.out("states", "rollback", "notes", "--to", "1"),
            lambda: cli.out("states", "rollback", "notes", "--release"),
        ),
    }
    for name, (make, undo) in mistakes.items():
        make()
        assert last_build(corpus) is None, name
        undo()
        assert last_build(corpus) is not None, name
    assert build(config, "--rehash").count("\ndagster ") + 1 == FIRST_RUNS + 1
    assert len(read_notes(store)) == 2 * FIRST_RUNS + 1


def ticks(corpus: Any) -> tuple[list[str], int, int]:
    """What the schedule says, and how many events two ticks of the sensor record."""
    defs = build_defs(corpus)
    with dg.DagsterInstance.get() as instance:
        schedule = defs.resolve_schedule_def("nightly")
        tick = schedule.evaluate_tick(dg.build_schedule_context(instance=instance))
        sensor = defs.resolve_sensor_def("watch_runs")
        first = sensor.evaluate_tick(dg.build_sensor_context(instance=instance))
        again = dg.build_sensor_context(instance=instance, cursor=first.cursor)
        events = sensor.evaluate_tick(again).asset_events
    return [str(tick.skip_message)], len(first.asset_events), len(events)


def whole(corpus: Any) -> tuple[RunNote, RunNote]:
    """The notes of a mix, and of the build before it."""
    settings, stages = corpus.settings, used_stages(corpus.settings)
    versions = {name: stage.version_under(settings) for name, stage in stages.items()}
    built = new_note("b", BUILD, tuple(stages), tuple(settings.source_names()))
    mixed = new_note("m", MIX, ("mixed",), tuple(settings.phase_names()))
    rest = {"state": "success", "settings": digest_of(settings)}
    late = versions.pop("mixed")
    return (
        msgspec.structs.replace(mixed, versions={"mixed": late}, **rest),
        msgspec.structs.replace(built, versions=versions, **rest),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"state": "failure"},
        {"state": "running"},
        {"job": "__ASSET_JOB"},
        {"partitions": ("prose",)},
        {"settings": "of another pipeline.yaml"},
        {"versions": {}},
    ],
    ids=str,
)
def test_the_last_two_runs_have_to_be_of_all_and_well(
    change: dict[str, Any], corpus: Any, dagster_home: Path
) -> None:
    mixed, built = whole(corpus)
    settings = corpus.settings
    assert is_whole_build(settings, (mixed, built))

    assert not is_whole_build(settings, (mixed, msgspec.structs.replace(built, **change)))
    assert not is_whole_build(settings, (msgspec.structs.replace(mixed, **change), built))
    with open(dagster_home / "dagster.yaml", "a") as file:
        file.write("# another database\n")
    assert not is_whole_build(settings, (mixed, built))
    assert not is_whole_build(settings, (built, mixed)) and not is_whole_build(settings, ())
