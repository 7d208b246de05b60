"""`corpus engines`: the fit of what was timed, and a real trial of a little text."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from builders import Build, open_corpus, write_corpus, write_jsonl

from pipeline_defs.commands.build import engines
from pipeline_defs.commands.build.engines import (
    StageTrial,
    Timed,
    Trial,
    choice_of,
    process_bytes,
    published_texts,
    ray_bytes,
    trial_of,
)
from pipeline_defs.commands.main import main
from resources.auto_choice import choice_file, read_measured

TEXT = "The river rose twice that year, and the people of the lower town left their houses. "


def stage(threads: tuple[float, float], processes: tuple[float, float]) -> StageTrial:
    return StageTrial("raw", 1000, Timed(*threads), Timed(*processes))


def test_processes_pay_where_their_lines_cross() -> None:
    one = stage((0.25, 0.5), (1.25, 0.25))
    assert process_bytes([one]) == 4.0
    assert 0.25 + 4 * 0.5 == 1.25 + 4 * 0.25


def test_stages_share_one_crossing() -> None:
    both = [stage((0.0, 0.5), (1.0, 0.25)), stage((0.0, 0.5), (1.0, 0.5))]
    assert process_bytes(both) == 8.0


def test_processes_that_are_no_faster_never_pay() -> None:
    never = stage((0.0, 0.5), (1.0, 0.5))
    assert process_bytes([never]) == math.inf
    assert choice_of(Trial(1000, True, 2, (never,))).process_bytes is None


def test_processes_that_begin_no_later_always_pay() -> None:
    assert process_bytes([stage((1.0, 0.5), (0.5, 0.25))]) == 0.0


def test_the_fastest_round_of_each_size_counts() -> None:
    threads, processes = ("raw", "in_process"), ("raw", "processes")
    rounds = [
        (
            {threads: (100, 1.5), processes: (100, 9.0)},
            {threads: (1100, 9.0), processes: (1100, 4.0)},
        ),
        (
            {threads: (100, 9.0), processes: (100, 3.0)},
            {threads: (1100, 6.5), processes: (1100, 9.0)},
        ),
    ]
    fitted = trial_of("raw", rounds)  # type: ignore[arg-type]
    assert fitted.work_bytes == 1100
    assert (fitted.threads.per_byte, fitted.processes.per_byte) == (0.005, 0.001)
    assert (fitted.threads.least, fitted.processes.least) == (1.0, pytest.approx(2.9))


def test_more_machines_pay_for_less_text() -> None:
    trial = Trial(1000, True, 2, (stage((0.0, 1e-7), (1.0, 5e-8)),))
    assert ray_bytes(trial, 2) > ray_bytes(trial, 10) > ray_bytes(trial, 1000)


def test_the_texts_of_a_corpus_are_taken_first(tmp_path: Path, build: Build) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    assert list(published_texts(corpus)) == []
    write_jsonl(tmp_path / "input/notes/0.jsonl", [{"text": TEXT}, {"text": TEXT * 2}])
    build(corpus, "raw")
    assert {TEXT, TEXT * 2} <= set(published_texts(corpus))


def test_a_real_trial_is_printed_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    monkeypatch.setenv("TOKENMILL_STORE", str(corpus.store.root))
    monkeypatch.setattr(engines, "WORKER_BYTES", 50_000)
    monkeypatch.setattr(engines, "ROUNDS", 1)

    assert main(["engines", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    measured = read_measured()
    assert set(found["stages"]) == {"raw", "filtered"}
    assert not found["is_own_text"]
    assert measured is not None and measured.process_bytes == found["process_bytes"]


@pytest.mark.parametrize("keep", [True, False])
def test_advice_names_all_engines_and_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    corpus = open_corpus(write_corpus(tmp_path))
    trial = Trial(16_000_000, True, 2, (stage((0.1, 1e-7), (0.6, 5e-8)),))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    monkeypatch.setattr("pipeline_defs.commands.build.engines.try_engines", lambda *_: trial)

    assert main(["engines", *([] if keep else ["--no-keep"])]) == 0
    printed = capsys.readouterr().out
    assert "16 MB of your own text, 2 workers" in printed
    assert "Threads (in_process): below 10 MB of work in a stage." in printed
    assert "a stage begins 0.50 s later" in printed.lower()
    assert "Ray (ray): by name only" in printed
    assert (str(choice_file()) in printed) == choice_file().exists() == keep
