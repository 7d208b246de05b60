"""`corpus status`: fast, and right about what ran, runs, failed and never ran."""

import subprocess

from builders import Build, open_corpus, write_corpus
from prelude import Any, Path, json, os, pytest, sys, time

from assets.stages import STAGES
from corpus_loader.places.stage_names import GLOBAL_STAGES, PHASE_STAGES, SOURCE_STAGES
from pipeline_defs.commands.look.status import duration
from pipeline_defs.commands.main import main
from resources.runs.run_notes import OpenNote, StepFault, new_note

SECRET_ESCAPE = "\x1b[31mred [bold]"


@pytest.fixture
def built(tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A corpus of which `raw` is built."""
    config = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    corpus = open_corpus(config)
    build(corpus, "raw")
    return corpus


def status(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and output of the command."""
    capsys.readouterr()
    code = main(["status", *arguments])
    return code, capsys.readouterr().out


def ended_note(corpus: Any, run_id: str, **fields: Any) -> None:
    """Note a run over all sources that has just ended."""
    note = new_note(run_id, "build_corpus", ("raw", "filtered"), ("prose", "notes"))
    folder = OpenNote(corpus.store.root, note)
    folder.change(**({"state": "failure", "ended": time.time()} | fields))


def test_the_stages_are_those_of_the_registry() -> None:
    of = {"source": SOURCE_STAGES, "none": GLOBAL_STAGES, "phase": PHASE_STAGES}
    for partitions, names in of.items():
        registered = [stage.name for stage in STAGES if stage.partitions == partitions]
        assert list(names) == registered


def test_nothing_has_run_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    code, out = status(capsys)
    assert code == 0 and "Run: corpus build" in out


def test_a_stage_is_ok_failed_or_never_run(built: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = status(capsys, "--json")
    sources = json.loads(out)["sources"]
    assert code == 0
    assert {name: of["raw"]["rows"] for name, of in sources.items()} == {"prose": 40, "notes": 41}
    assert time.time() - sources["prose"]["raw"]["materialized"] < 60
    assert "filtered" not in sources["prose"]  # no source has it

    reason = f"no file matches {SECRET_ESCAPE}"
    ended_note(built, "a" * 32, failed_sources={"raw": {"notes": reason}})
    code, out = status(capsys, "--json")
    found = json.loads(out)
    assert code == 1
    assert found["sources"]["notes"]["raw"] == {
        "state": "failed",
        "rows": 41,
        "materialized": pytest.approx(time.time(), abs=60),
        "reason": reason,
    }
    assert found["sources"]["prose"]["raw"]["state"] == "ok"

    code, out = status(capsys)
    assert "\x1b" not in out and "red [bold]" in out


def test_a_step_that_failed_counts_for_the_sources_of_its_run(
    built: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ended_note(
        built, "b" * 32, partitions=("prose",), faults=(StepFault("filtered", "no such rule"),)
    )
    _, out = status(capsys, "--json")
    sources = json.loads(out)["sources"]
    assert sources["prose"]["filtered"]["reason"] == "no such rule"
    assert sources["prose"]["filtered"]["rows"] is None
    assert sources["notes"]["filtered"]["state"] == "never"


def test_a_later_success_ends_a_failure(
    built: Any, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    ended_note(built, "c" * 32, failed_sources={"raw": {"notes": "late"}})
    build(built, "raw")
    code, out = status(capsys, "--json")
    assert code == 0
    assert json.loads(out)["sources"]["notes"]["raw"]["state"] == "ok"


def test_a_running_run_is_shown_with_its_step(
    built: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    note = new_note("d" * 32, "build_corpus", ("raw", "filtered"), ("prose",))
    OpenNote(built.store.root, note).change(current=("filtered",))
    code, out = status(capsys)
    assert code == 0
    line = f"build_corpus, run dddddddd, process {os.getpid()} on "
    assert line in out and ": filtered (of 2 steps)" in out


def test_old_notes_are_removed(built: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(60):
        ended_note(built, f"{number:032d}", state="success")
    _, out = status(capsys, "--json", "--runs", "1000")
    ended = json.loads(out)["ended"]
    assert len(ended) == 50 and ended[0]["run_id"].endswith("59")


def test_nothing_heavy_is_imported(built: Any) -> None:
    code = "import sys; from pipeline_defs.commands.main import main; main(['status']);"
    code += "print(*sorted({'dagster', 'numpy', 'polars', 'pyarrow'} & set(sys.modules)), 'end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "end"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (119, "119 s"), (121, "2 min"), (7300, "2 h"), (200_000, "2 d")],
)
def test_durations_have_one_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text
