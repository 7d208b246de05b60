"""`corpus summary` fits 100 columns, and names the command to run while nothing is built."""

import json
from pathlib import Path

import pytest
import yaml
from builders import Build, open_corpus, write_corpus, write_jsonl
from verbs import Cli


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = write_corpus(tmp_path)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    return path


def test_before_any_build_it_says_what_to_run(config: Path, cli: Cli) -> None:
    output = cli.printed(("summary",), 1)
    assert output.out == ""
    assert output.err == f"Nothing is built yet in {config.parent / 'store'}. Run: corpus build\n"

    assert json.loads(cli.out("summary", "--json", code=1)) == {
        "store": str(config.parent / "store"),
        "sources": {"prose": {}, "notes": {}},
        "global": {},
        "phases": {"main": {}, "late": {}},
    }


def test_tables_fit_100_columns(config: Path, build: Build, cli: Cli) -> None:
    write_corpus(config.parent, filters={"rules": {"length": {"min_chars": 200}}})
    build(open_corpus(config), "raw", "filtered")

    lines = cli.out("summary").splitlines()

    tables = [line for line in lines if not line.startswith(("The corpus", "See it"))]
    assert max(map(len, tables)) <= 100
    assert any(line.split()[:2] == ["raw", "40"] for line in lines)
    assert any("length.too_short" in line for line in lines)
    assert f"The corpus is in {config.parent / 'store'}" in lines


def test_documents_in_other_languages_are_counted_by_source(
    config: Path, build: Build, cli: Cli
) -> None:
    content = yaml.safe_load(config.read_text())
    content["filters"] = {"rules": {"length": None}}
    content["sources"][1] |= {"language": "en", "where": "input/notes/german.jsonl"}
    config.write_text(yaml.safe_dump(content))
    german = "Der Fluss stieg in jenem Jahr zweimal, und die Leute verließen ihre Häuser am Ufer. "
    write_jsonl(config.parent / "input/notes/german.jsonl", [{"text": german * 3}])
    build(open_corpus(config), "raw", "classifier", "filtered")

    assert cli.json("summary")["other_languages"] == {"notes": {"de": 1}}
    line = "notes: 1 documents in other languages than its `language` (de 1)"
    assert line in cli.out("summary").splitlines()
