"""Events of runs are lines of JSON, whole ones from every process, in files of a bounded size."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resources.errors import UsageError
from resources.event_lines import About, events_written, message_of, write_event
from resources.settings.operations import LoggingConfig

ROOT = Path(__file__).resolve().parents[2]
WRITERS, LINES = 4, 1000
WRITER = """
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from resources.event_lines import About, events_written, write_event
from resources.settings.operations import LoggingConfig

folder, writer, lines = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = LoggingConfig(path="events.jsonl", max_bytes=20_000, keep_files=1000)
corpus = SimpleNamespace(settings=SimpleNamespace(logging=config), config=folder / "pipeline.yaml")
(folder / f"ready-{writer}").touch()
while len(list(folder.glob("ready-*"))) < int(sys.argv[4]):
    time.sleep(0.001)
with events_written(corpus, f"run-{writer}"):
    for number in range(lines):
        write_event("tick", "x" * (number % 700), About("raw", writer), {"number": number})
"""


def logged(corpus: Any, **keys: Any) -> Any:
    """The corpus with events written to events.jsonl."""
    config = LoggingConfig(path="logs/events.jsonl", **keys)
    return replace(corpus, settings=corpus.settings.model_copy(update={"logging": config}))


def lines_in(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("events.jsonl*"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def test_lines_of_several_processes_are_whole_and_none_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    running = [
        subprocess.Popen([*command, str(writer), str(LINES), str(WRITERS)], cwd=ROOT)
        for writer in range(WRITERS)
    ]
    assert [process.wait(60) for process in running] == [0] * WRITERS

    lines = lines_in(tmp_path)

    assert len(list(tmp_path.glob("events.jsonl.*"))) > 5, "the file is rotated meanwhile"
    seen = sorted((line["partition"], line["numbers"]["number"]) for line in lines)
    assert seen == sorted((str(w), n) for w in range(WRITERS) for n in range(LINES))


def test_full_files_are_kept_up_to_their_number(corpus: Any) -> None:
    small = logged(corpus, max_bytes=4096, keep_files=2)

    with events_written(small, "run"):
        for number in range(200):
            write_event("tick", "x" * 100, numbers={"number": number})

    folder = corpus.config.parent / "logs"
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    assert names == ["events.jsonl", "events.jsonl.1", "events.jsonl.2"]
    assert all((folder / name).stat().st_size <= 4096 for name in names)
    assert max(line["numbers"]["number"] for line in lines_in(folder)) == 199


def test_a_run_writes_its_partitions_and_no_text(corpus: Any, dagster_build: Any) -> None:
    small = logged(corpus, level="debug")

    dagster_build(small, "raw", "filtered")

    lines = lines_in(corpus.config.parent / "logs")
    committed = {
        (line["stage"], line["partition"]) for line in lines if line["event"] == "committed"
    }
    sources = corpus.settings.source_names()
    assert committed == {(stage, name) for stage in ("raw", "filtered") for name in sources}
    assert len({line["run"] for line in lines}) == 1 and lines[0]["run"]
    parts = [line for line in lines if line["event"] == "part_published"]
    assert all(line["part"] and line["numbers"]["rows_in"] for line in parts) and parts
    known = {"time", "level", "event", "run", "host", "pid", "stage", "partition", "part"}
    assert all(set(line) <= known | {"numbers", "message"} for line in lines)


def test_nothing_is_written_by_default(corpus: Any) -> None:
    with events_written(corpus, "run"):
        write_event("tick")

    assert not (corpus.config.parent / "logs").exists()


def test_a_level_leaves_out_lower_lines(corpus: Any, dagster_build: Any) -> None:
    dagster_build(logged(corpus, level="info"), "raw")

    events = {line["event"] for line in lines_in(corpus.config.parent / "logs")}
    assert "committed" in events and "part_published" not in events


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (UsageError("unknown source 'wbe'"), "unknown source 'wbe'"),
        (ValueError("bad record: Dear diary"), "ValueError; Dagster's records have the rest"),
    ],
)
def test_an_error_that_is_not_ours_is_told_by_its_type(error: Exception, told: str) -> None:
    assert message_of(error) == told


def test_secrets_of_urls_are_taken_out(corpus: Any) -> None:
    with events_written(logged(corpus), "run"):
        write_event("failed", "https://me:hunter2@example.org/a.jsonl?key=abc", About("raw", "a"))

    [line] = lines_in(corpus.config.parent / "logs")
    assert "hunter2" not in json.dumps(line) and "abc" not in line["message"]
