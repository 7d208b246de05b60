"""`corpus estimate` before a build, and `--compare` after it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import Build, hashes

from pipeline_defs.commands.main import main


def said(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    """Return what a command prints as JSON."""
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_corpus_is_estimated_built_and_compared(
    corpus: Any, build: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert main(["estimate", "--compare"]) == 1
    assert "there is no estimate of this store. Run `corpus estimate`." in capsys.readouterr().err
    made = said(capsys, "estimate")
    assert main(["estimate", "--compare"]) == 1
    assert "is not materialized" in capsys.readouterr().err
    assert hashes(corpus.store.root) == {}

    build(corpus)
    compared = {
        (each["source"], each["amount"]): each for each in said(capsys, "estimate", "--compare")
    }

    actual = {key: each["actual"] for key, each in compared.items()}
    of_prose = "documents", "removed by rules", "removed as copies", "documents kept"
    assert [actual["prose", amount] for amount in of_prose] == [40, 7, 1, 32]
    assert actual["all", "documents"] == 81
    on_disk = sum(p.stat().st_size for p in corpus.store.root.rglob("*") if p.is_file())
    assert 0 < actual["all", "disk bytes"] <= on_disk
    assert actual["all", "CPU seconds"] > 0
    assert {amount for source, amount in compared if source == "all"} == made["total"].keys()
    for name, each in made["sources"].items():
        estimated = {key: compared[name, key]["estimated"] for key in each["amounts"]}
        assert estimated == each["amounts"]
    outside = [key for key, each in compared.items() if not each["held"]]
    costs = {("all", "CPU seconds"), ("all", "disk bytes")}  # of a corpus of 20 KB: of its files
    assert set(outside) <= costs
    assert main(["estimate", "--compare"]) == 0
    assert f" of {len(compared)} amounts are within their limits." in capsys.readouterr().out


def test_a_source_that_is_not_there_is_named(
    corpus: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert main(["estimate", "--source", "prse"]) == 2
    assert "prse" in capsys.readouterr().err
