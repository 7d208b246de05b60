"""A run that has nothing to compute takes its steps in its own process."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import open_corpus, sentence, write_corpus, write_jsonl
from command_line import LONGEST_SECONDS, start

from assets.stages import used_stages
from pipeline_defs.pending_work import has_pending_work

BUILD = ("pipeline_defs.commands.main", "build")


def build(config: Path) -> str:
    assert start(config, *BUILD).wait(LONGEST_SECONDS) == 0
    return (config.parent / "out.log").read_text()


def is_pending(config: Path) -> bool:
    corpus = open_corpus(config)
    return has_pending_work(corpus, list(used_stages(corpus.settings)))


def test_only_a_run_with_work_has_processes_for_its_steps(
    tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_STORE", str(tmp_path / "store"))
    assert is_pending(config)
    first = build(config)
    assert not is_pending(config)
    second = build(config)

    assert " 0 parts computed" not in first
    assert "Launching subprocess" in first and "Launching subprocess" not in second
    assert second.count(" 0 parts computed") == first.count(" parts computed")

    write_jsonl(tmp_path / "input/prose/c.jsonl", [{"text": sentence(200)}])
    assert is_pending(config)


def test_sources_on_the_web_are_work(tmp_path: Path) -> None:
    where = "https://127.0.0.1:1/a.jsonl"
    sources = [{"name": name, "where": where} for name in ("prose", "notes")]
    corpus = open_corpus(write_corpus(tmp_path, sources=sources))

    assert has_pending_work(corpus, ["raw"])


def test_what_cannot_be_planned_is_work(tmp_path: Path) -> None:
    config = write_corpus(tmp_path)
    (tmp_path / "input/notes/n.jsonl").unlink()

    assert has_pending_work(open_corpus(config), ["raw"])
