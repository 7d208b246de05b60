"""`corpus summary` fits 100 columns, and names the command to run while nothing is built."""

import json
from pathlib import Path

import pytest
from builders import Build, open_corpus, write_corpus

from pipeline_defs.commands.main import main


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


def test_before_any_build_it_says_what_to_run(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["summary"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == f"Nothing is built yet in {config.parent / 'store'}. Run: corpus build\n"

    assert main(["summary", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "store": str(config.parent / "store"),
        "sources": {"prose": {}, "notes": {}},
        "global": {},
        "phases": {"main": {}, "late": {}},
    }


def test_tables_fit_100_columns(
    config: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(config.parent, filters={"rules": {"length": {"min_chars": 200}}})
    build(open_corpus(config), "raw", "filtered")

    assert main(["summary"]) == 0

    lines = capsys.readouterr().out.splitlines()
    tables = [line for line in lines if not line.startswith(("The corpus", "See it"))]
    assert max(map(len, tables)) <= 100
    assert any(line.split()[:2] == ["raw", "40"] for line in lines)
    assert any("length.too_short" in line for line in lines)
    assert f"The corpus is in {config.parent / 'store'}" in lines
