"""Commands as users type them, on a small corpus with known counts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from builders import write_corpus

from pipeline_defs.load_corpus import load_corpus

ROOT = Path(__file__).resolve().parents[2]
MODULE = ["-m", "pipeline_defs.definitions"]


def run(config: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command over a corpus, in a process of its own."""
    environment = os.environ | {"TOKENMILL_CONFIG": str(config), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def dagster(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(config, "-m", "dagster", *arguments)


def corpus(config: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(config, "-m", "pipeline_defs.commands.main", *arguments)


def summary(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(corpus(config, "summary", "--json").stdout)
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_corpus(tmp_path)


def test_job_execute_builds_and_mixes_without_config_or_tags(config: Path) -> None:
    for job in ("build_corpus", "mix_corpus"):
        done = dagster(config, "job", "execute", *MODULE, "-j", job)
        assert done.returncode == 0, done.stderr[-2000:]

    found = summary(config)
    prose, notes = found["sources"]["prose"], found["sources"]["notes"]
    assert (prose["raw"]["rows_in"], notes["raw"]["rows_in"]) == (40, 41)
    assert prose["deduped"]["duplicates"] + notes["deduped"]["duplicates"] == 1
    assert prose["sharded"]["tokens"] == prose["tokenized"]["tokens"] > 0
    main = found["phases"]["main"]
    assert main["prose"]["weight"] == 0.75 and main["notes"]["planned_tokens"] > 0
    text = corpus(config, "summary")
    assert text.returncode == 0 and str(config.parent / "store") in text.stdout


def test_one_partition_at_a_time_in_step_processes(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, engine={"steps": "multiprocess"})
    for source in ("prose", "notes"):
        done = dagster(
            config, "asset", "materialize", *MODULE, "--select", "raw", "--partition", source
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "in subprocess" in done.stderr + done.stdout

    assert summary(config)["sources"]["prose"]["raw"]["rows_kept"] == 40


def test_verify_names_what_differs(config: Path) -> None:
    assert corpus(config, "verify").returncode == 1  # nothing there yet
    dagster(config, "asset", "materialize", *MODULE, "--select", "raw", "--partition", "prose")
    assert corpus(config, "verify").returncode == 0

    victim = next((config.parent / "store/raw/prose").glob("*.documents.parquet"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)

    done = corpus(config, "verify")
    assert done.returncode == 1
    assert victim.name in done.stdout and "sha256" in done.stdout


def test_a_mistake_in_the_config_is_refused_when_the_code_location_loads(config: Path) -> None:
    config.write_text(config.read_text().replace("vocab_size", "vocabsize"))

    done = dagster(config, "definitions", "validate", "-w", "workspace.yaml")
    assert done.returncode != 0
    assert (
        "tokenizer.vocabsize: unknown key (did you mean 'vocab_size'?)" in done.stdout + done.stderr
    )
    assert corpus(config, "summary").returncode == 2


@pytest.mark.parametrize(
    ("schedule", "named"),
    [({"cron": "at night"}, "cron 'at night'"), ({"timezone": "Mars/Base"}, "'Mars/Base'")],
)
def test_a_schedule_that_cannot_be_is_refused(
    tmp_path: Path, schedule: dict[str, str], named: str
) -> None:
    done = run(write_corpus(tmp_path, schedule=schedule), "-c", "import pipeline_defs.definitions")

    assert done.returncode != 0
    assert "pipeline.yaml: schedule" in done.stderr and named in done.stderr


@pytest.mark.parametrize(
    ("tokenizer", "named"),
    [
        ({"path": "no/tokenizer.json"}, "tokenizer.path: no file 'no/tokenizer.json'"),
        ({"special_tokens": ["<s>"]}, "end_of_document '<|endoftext|>' is not among"),
        ({"vocab_size": 256}, "vocab_size"),
    ],
)
def test_a_tokenizer_that_cannot_be_is_refused_before_any_work(
    tmp_path: Path, tokenizer: dict[str, Any], named: str
) -> None:
    done = corpus(write_corpus(tmp_path, tokenizer=tokenizer), "summary")

    assert done.returncode == 2
    assert named in done.stderr


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"custom": "nowhere.py"}, "filters.custom: no file 'nowhere.py'"),
        ({"fasttext": {"path": "m.bin", "label": "x"}}, "filters.fasttext.path: no file 'm.bin'"),
    ],
)
def test_a_file_that_filters_name_is_checked_before_any_work(
    tmp_path: Path, filters: dict[str, Any], message: str
) -> None:
    done = dagster(write_corpus(tmp_path, filters=filters), "definitions", "validate", *MODULE)
    assert done.returncode != 0
    assert message in done.stderr + done.stdout


def test_custom_rules_do_not_run_when_a_corpus_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("raise RuntimeError('it ran')")
    filters = {"custom": "mine.py", "rules": {"custom": {"shout": 1}}}
    monkeypatch.setenv("TOKENMILL_CONFIG", str(write_corpus(tmp_path, filters=filters)))

    assert load_corpus().settings.filters_for("prose").custom == "mine.py"


def test_presets_are_listed_and_printed_as_yaml(config: Path) -> None:
    assert "gopher-repetition: 14 rules" in corpus(config, "presets").stdout
    assert "min_sentences: 3" in corpus(config, "presets", "c4").stdout
    wrong = corpus(config, "presets", "c5")
    assert wrong.returncode == 2 and "did you mean c4" in wrong.stderr


def test_definitions_validate_passes(config: Path) -> None:
    done = dagster(config, "definitions", "validate", "-w", "workspace.yaml")

    assert done.returncode == 0, done.stdout + done.stderr
