"""A run with little or nothing to compute takes its steps in its own process."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import open_corpus, sentence, write_corpus, write_jsonl
from command_line import LONGEST_SECONDS, start

import assets.raw.kernels
from assets.stages import used_stages
from pipeline_defs import pending_work
from pipeline_defs.pending_work import needs_processes
from resources.auto_choice import keep_measured
from resources.settings.engine import EngineConfig

BUILD = ("pipeline_defs.commands.main", "build")


def build(config: Path) -> str:
    assert start(config, *BUILD).wait(LONGEST_SECONDS) == 0
    return (config.parent / "out.log").read_text()


def is_for_processes(config: Path) -> bool:
    corpus = open_corpus(config)
    return needs_processes(corpus, list(used_stages(corpus.settings)))


def test_only_a_run_with_much_work_has_processes_for_its_steps(
    tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_STORE", str(tmp_path / "store"))
    assert is_for_processes(config)
    first = build(config)
    assert not is_for_processes(config)
    second = build(config)

    assert " 0 parts computed" not in first
    assert "Launching subprocess" in first and "Launching subprocess" not in second
    assert second.count(" 0 parts computed") == first.count(" parts computed")

    write_jsonl(tmp_path / "input/prose/c.jsonl", [{"text": sentence(200)}])
    assert not is_for_processes(config)
    third = build(config)

    assert "Launching subprocess" not in third
    assert "raw[prose]: 41 of 41 rows kept, 1 parts computed" in third

    write_jsonl(tmp_path / "input/prose/d.jsonl", [{"text": sentence(201)}])
    with monkeypatch.context() as few:
        few.setattr(pending_work, "MOST_PLANNED", 1)
        assert is_for_processes(config)
    with monkeypatch.context() as cold:
        cold.setattr(assets.raw.kernels, "IS_COLD", True)
        assert is_for_processes(config)
    keep_measured(1)  # processes pay from one byte on
    assert is_for_processes(config)


def test_little_work_is_taken_by_one_process_where_its_parts_would_be() -> None:
    mebibyte = 1 << 20

    assert pending_work.is_little(EngineConfig(), 127 * mebibyte)
    assert not pending_work.is_little(EngineConfig(), 128 * mebibyte)
    assert pending_work.is_little(EngineConfig(kind="in_process"), 128 * mebibyte)
    assert not pending_work.is_little(EngineConfig(kind="processes"), 1)
    assert not pending_work.is_little(EngineConfig(kind="ray"), 1)
    assert not pending_work.is_little(EngineConfig(steps="multiprocess"), 1)


def test_sources_on_the_web_are_work(tmp_path: Path) -> None:
    where = "https://127.0.0.1:1/a.jsonl"
    sources = [{"name": name, "where": where} for name in ("prose", "notes")]
    corpus = open_corpus(write_corpus(tmp_path, sources=sources))
    (tmp_path / "store/raw").mkdir(parents=True)

    assert needs_processes(corpus, ["raw"])


def test_what_cannot_be_planned_is_work(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    (tmp_path / "input/notes/n.jsonl").unlink()
    (tmp_path / "store/raw").mkdir(parents=True)

    assert needs_processes(open_corpus(config), ["raw"])


def test_steps_in_one_process_stay_there(tmp_path: Path) -> None:
    config = write_corpus(tmp_path, engine={"steps": "in_process"})

    assert not needs_processes(open_corpus(config), ["raw"])
