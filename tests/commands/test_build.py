"""`corpus build`: the commands of Dagster that it runs, and builds as users start them."""

import shutil
import subprocess

import dagster as dg
import msgspec
from builders import open_corpus, write_corpus
from prelude import Path, os, pytest, sys, time
from verbs import Cli

from pipeline_defs.commands.build.dagster_commands import (
    MODULE,
    commands_for,
    failed_sources_only,
    raw_commands,
)
from pipeline_defs.commands.main import main
from resources.runs.run_notes import OpenNote, change_note, new_note
from resources.source_faults import FAILED_SOURCES_TAG

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BUILD, MIX = "job execute -j build_corpus", "job execute -j mix_corpus"
ALL = "--partition-range prose...notes"


@pytest.mark.parametrize(
    ("sources", "stage", "expected"),
    [
        ([], None, [BUILD, MIX]),
        ([], "mixed", [BUILD, MIX]),
        ([], "sharded", [BUILD]),
        ([], "filtered", [f"asset materialize --select *filtered {ALL}"]),
        (["notes"], "raw", ["asset materialize --select *raw --partition notes"]),
        (["notes"], "duplicates", [f"asset materialize --select *duplicates {ALL}"]),
        (
            ["prose", "notes"],
            "deduped",
            [
                f"asset materialize --select *duplicates {ALL}",
                "asset materialize --select *deduped --partition prose",
                "asset materialize --select *deduped --partition notes",
            ],
        ),
        (
            ["notes"],
            None,
            [
                f"asset materialize --select *tokenizer {ALL}",
                "asset materialize --select *sharded --partition notes",
            ],
        ),
        (
            ["notes"],
            "mixed",
            [
                f"asset materialize --select *tokenizer {ALL}",
                "asset materialize --select *sharded --partition notes",
                MIX,
            ],
        ),
    ],
)
def test_commands_of_dagster(
    tmp_path: Path, sources: list[str], stage: str | None, expected: list[str]
) -> None:
    commands = commands_for(open_corpus(write_corpus(tmp_path)), sources, stage)
    shown = [[word for word in command if word not in MODULE] for command in commands]
    assert [" ".join(words) for words in shown] == expected


def test_rehash_reads_the_files_of_the_sources_first(tmp_path: Path) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    config = '--config-json {"ops": {"raw": {"config": {"rehash": true}}}}'

    shown = [
        [" ".join(word for word in command if word not in MODULE) for command in commands]
        for commands in (
            raw_commands(corpus, [], "rehash"),
            raw_commands(corpus, ["notes"], "rehash"),
        )
    ]

    assert shown == [
        [f"asset materialize --select *raw {ALL} {config}"],
        [f"asset materialize --select *raw --partition notes {config}"],
    ]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--source", "prosa"], "unknown source 'prosa'; did you mean prose?"),
        (["--to", "dedupd"], "unknown stage 'dedupd'; did you mean deduped?"),
        (["--to", "repeated"], "does not use the stage 'repeated'"),
    ],
)
def test_unknown_names_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    hint: str,
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path)))
    assert main(["build", *arguments]) == 2
    assert hint in capsys.readouterr().err


def run(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "TOKENMILL_CONFIG": str(config),
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(config.parent / "home"),
    }
    command = [sys.executable, "-m", "pipeline_defs.commands.main", "build", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_failure_ends_with_its_causes_and_its_frames_are_in_a_file(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    shutil.rmtree(tmp_path / "input/notes")

    done = run(config, "--to", "filtered")

    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[-1].startswith("raw[notes]: source 'notes': no input file matches")
    assert not [line for line in lines if line.startswith(("  File", "Traceback", "Stack"))]
    frames = Path(lines[-2].rpartition(": ")[2])
    assert "source_faults.py" in frames.read_text()
    assert ["prose", "40", "7", "0", "33", "0", "0"] in [
        line.split() for line in done.stdout.splitlines()
    ]


def test_where_all_documents_are_removed_the_rule_is_named(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, filters={"rules": {"length": {"min_chars": 1_000_000}}})

    done = run(config, "--to", "tokenizer")

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("tokenizer: no document is left to train the tokenizer on, of ")
    assert "length.too_short" in last


def test_one_source_is_built_as_far_as_a_stage(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)

    done = run(config, "--source", "prose", "--to", "filtered")

    assert done.returncode == 0, done.stderr[-2000:]
    line = "dagster asset materialize -m pipeline_defs.definitions --select '*filtered'"
    assert done.stdout.startswith(f"{line} --partition prose\n")
    assert (tmp_path / "store/filtered/prose/_manifests").is_dir()
    assert not (tmp_path / "store/raw/notes").exists()
    assert (tmp_path / "home/tokenmill_runs").is_dir()
    assert (tmp_path / "home/dagster.yaml").is_file()


def test_a_run_says_what_it_has_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    config = write_corpus(tmp_path)
    for _ in range(2):  # the second has nothing to do
        assert run(config, "--source", "prose", "--to", "raw").returncode == 0
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))

    second, first = (run["used"] for run in cli.json("status")["ended"])

    files = [*(tmp_path / "store/raw/prose").rglob("*.parquet")]
    assert first["written_bytes"] == sum(path.stat().st_size for path in files) > 0
    assert first["read_bytes"] > 0 and first["core_hours"] > 0
    assert set(second.values()) == {0}
    with dg.DagsterInstance.get() as instance:
        tags = instance.get_runs()[1].tags
    written = {name: tags[f"tokenmill/{name}"] for name in first}
    assert {name: float(text) for name, text in written.items()} == pytest.approx(first, abs=1e-6)
    assert not any("e" in text for text in written.values())


def test_the_exit_code_is_that_of_the_command_that_fails(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    for path in (tmp_path / "input/prose").iterdir():
        path.unlink()

    done = run(config, "--source", "prose", "--source", "notes", "--to", "raw")

    assert done.returncode == 1
    assert done.stdout.count("dagster asset materialize") == 1


def fail_run(tags: dict[str, str]) -> str:
    """Run a job that fails, and return the id of the run."""

    @dg.op
    def work() -> None:
        raise ValueError

    @dg.job
    def job() -> None:
        work()

    with dg.DagsterInstance.get() as instance:
        return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False).run_id


@pytest.mark.parametrize("has_own_failed_sources", [True, False])
def test_a_run_beside_the_command_counts_for_nothing(
    tmp_path: Path, has_own_failed_sources: bool
) -> None:
    tags = [{FAILED_SOURCES_TAG: "prose"}, {}]
    begun = time.time()
    own = OpenNote(tmp_path, new_note(fail_run(tags[not has_own_failed_sources]), "own", (), ()))
    other = new_note(fail_run(tags[has_own_failed_sources]), "other", (), ())
    for index, place in enumerate(({"pid": 1}, {"host": "elsewhere"}, {"boot": "before"})):
        run_id = other.run_id if index == 0 else f"{index}"
        change_note(tmp_path, msgspec.structs.replace(other, run_id=run_id, **place))
    assert failed_sources_only(tmp_path, begun) is has_own_failed_sources
    assert not failed_sources_only(tmp_path, time.time())
    own.close()
