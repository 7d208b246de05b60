"""Beside the imports of `corpus build`, kernels are loaded if there is little to compute."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import sentence, write_corpus, write_jsonl
from command_line import LONGEST_SECONDS, start


def run(config: Path, *command: str) -> str:
    """Run a command; return its output."""
    assert start(config, *command).wait(LONGEST_SECONDS) == 0
    return (config.parent / "out.log").read_text()


def test_kernels_are_loaded_for_little_work_alone(
    tmp_path: Path, dagster_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_STORE", str(tmp_path / "store"))
    look = "tests.pipeline.look_early"
    assert run(config, look).startswith("much")
    run(config, "pipeline_defs.commands.main", "build")

    assert run(config, look) == "nothing 0"
    write_jsonl(tmp_path / "input/prose/c.jsonl", [{"text": sentence(200)}])
    assert run(config, look) == "little 3"
    write_corpus(tmp_path, engine={"steps": "multiprocess"})
    assert run(config, look) == "none"
