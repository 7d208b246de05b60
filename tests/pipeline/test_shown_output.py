"""What a step prints is in its file, and on the terminal of the run, in order and to the end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from dagster._core.execution import compute_logs

from pipeline_defs.shown_output import show_output_by_threads


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(compute_logs, "tail_to_stream", compute_logs.tail_to_stream)
    show_output_by_threads()


@pytest.mark.usefixtures("terminal")
def test_output_is_shown_and_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "step.out"
    with capfd.disabled(), open(tmp_path / "terminal", "w+") as terminal:
        stdout = os.dup(1)
        os.dup2(terminal.fileno(), 1)
        try:
            with compute_logs.mirror_stream_to_file(sys.__stdout__, str(file)):
                os.write(1, b"first\n")
                os.write(1, "the last line: \u00e9\n".encode())
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)

    assert file.read_text() == "first\nthe last line: \u00e9\n"
    assert (tmp_path / "terminal").read_text() == file.read_text()


@pytest.mark.usefixtures("terminal")
def test_a_step_goes_on_when_the_terminal_is_gone(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    path = tmp_path / "step.out"
    path.touch()
    with open(writer, "w") as gone, compute_logs.tail_to_stream(str(path), gone):
        path.write_text("more than nothing")

    assert path.read_text() == "more than nothing"
