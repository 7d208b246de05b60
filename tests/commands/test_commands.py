"""Commands as users type them, on a small corpus with known counts."""

import subprocess

from builders import Build, open_corpus, write_corpus
from prelude import Any, Callable, Path, json, os, pytest, sys

from pipeline_defs.commands.main import main
from pipeline_defs.definitions import build_defs
from pipeline_defs.load_corpus import load_corpus
from resources.settings.pipeline import SettingsError

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MODULE = ["-m", "pipeline_defs.definitions"]
Command = Callable[..., tuple[int, str]]


def dagster(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Dagster over a corpus, in a process of its own."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "dagster", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command over a corpus; returns its exit code, and what it printed."""

    def run(config: Path, *arguments: str) -> tuple[int, str]:
        monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
        code = main(arguments)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_job_execute_builds_and_mixes_without_config_or_tags(config: Path, corpus: Command) -> None:
    for job in ("build_corpus", "mix_corpus"):
        done = dagster(config, "job", "execute", *MODULE, "-j", job)
        assert done.returncode == 0, done.stderr[-2000:]

    found = json.loads(corpus(config, "summary", "--json")[1])
    prose, notes = found["sources"]["prose"], found["sources"]["notes"]
    assert (prose["raw"]["rows_in"], notes["raw"]["rows_in"]) == (40, 41)
    assert prose["deduped"]["duplicates"] + notes["deduped"]["duplicates"] == 1
    assert prose["sharded"]["tokens"] == prose["tokenized"]["tokens"] > 0
    main = found["phases"]["main"]
    assert main["prose"]["weight"] == 0.75 and main["notes"]["planned_tokens"] > 0
    code, text = corpus(config, "summary")
    assert code == 0 and str(config.parent / "store") in text


def test_one_partition_at_a_time(tmp_path: Path, corpus: Command) -> None:
    config = write_corpus(tmp_path)
    of_notes = ("--select", "raw", "--partition", "notes")
    done = dagster(config, "asset", "materialize", *MODULE, *of_notes)
    assert done.returncode == 0, done.stderr[-2000:]

    found = json.loads(corpus(config, "summary", "--json")[1])
    assert found["sources"]["notes"]["raw"]["rows_kept"] == 41


def test_verify_names_what_differs(config: Path, corpus: Command, build: Build) -> None:
    assert corpus(config, "verify")[0] == 1  # nothing there yet
    build(open_corpus(config), "raw")
    assert corpus(config, "verify")[0] == 0

    victim = next((config.parent / "store/raw/prose").glob("*.documents.parquet"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)

    code, printed = corpus(config, "verify")
    assert code == 1
    assert victim.name in printed and "sha256" in printed


def test_a_mistake_in_the_config_is_refused_when_the_code_location_loads(
    config: Path, corpus: Command
) -> None:
    config.write_text(config.read_text().replace("vocab_size", "vocabsize"))

    done = dagster(config, "definitions", "validate", "-w", "workspace.yaml")
    assert done.returncode != 0
    assert (
        "tokenizer.vocabsize: unknown key (did you mean 'vocab_size'?)" in done.stdout + done.stderr
    )
    assert corpus(config, "summary")[0] == 2


@pytest.mark.parametrize(
    ("schedule", "named"),
    [({"cron": "at night"}, "cron 'at night'"), ({"timezone": "Mars/Base"}, "'Mars/Base'")],
)
def test_a_schedule_that_cannot_be_is_refused(
    tmp_path: Path, schedule: dict[str, str], named: str
) -> None:
    with pytest.raises(SettingsError, match=rf"pipeline.yaml: schedule.*{named}"):
        build_defs(open_corpus(write_corpus(tmp_path, schedule=schedule)))


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [
        ({"path": "no/tokenizer.json"}, "tokenizer.path: no file 'no/tokenizer.json'"),
        ({"special_tokens": ["<s>"]}, "end_of_document '<|endoftext|>' is not among"),
        ({"vocab_size": 256}, "vocab_size"),
    ],
)
def test_a_tokenizer_that_cannot_be_is_refused_before_any_work(
    tmp_path: Path, corpus: Command, tokenizer: dict[str, Any], named: str
) -> None:
    code, printed = corpus(write_corpus(tmp_path, tokenizer=tokenizer), "summary")

    assert code == 2
    assert named in printed


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"custom": "nowhere.py"}, "filters.custom: no file 'nowhere.py'"),
        ({"fasttext": {"path": "m.bin", "label": "x"}}, "filters.fasttext.path: no file 'm.bin'"),
    ],
)
def test_a_file_that_filters_name_is_checked_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any], message: str
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path, filters=filters)))

    with pytest.raises(SettingsError, match=message):
        load_corpus()


def test_custom_rules_do_not_run_when_a_corpus_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("raise RuntimeError('it ran')")
    filters = {"custom": "mine.py", "rules": {"custom": {"shout": 1}}}
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path, filters=filters)))

    assert load_corpus().settings.filters_for("prose").custom == "mine.py"


def test_presets_are_listed_and_printed_as_yaml(config: Path, corpus: Command) -> None:
    assert "gopher-repetition: 14 rules" in corpus(config, "presets")[1]
    assert "min_sentences: 3" in corpus(config, "presets", "c4")[1]
    assert json.loads(corpus(config, "rules", "presets", "c4", "--json")[1])["lines"]["c4"]
    code, printed = corpus(config, "presets", "c5")
    assert code == 2 and "did you mean c4" in printed


def test_definitions_validate_passes(config: Path) -> None:
    done = dagster(config, "definitions", "validate", "-w", "workspace.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
