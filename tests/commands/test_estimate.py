"""`corpus estimate` before a build, compared with it as benchmarks/estimate_coverage.py does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import Build, hashes

from pipeline_defs.commands.main import main
from pipeline_defs.forecast.estimation import Estimate

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

from estimate_coverage import compare_with_build


def test_the_build_is_within_the_limits_of_the_estimate_before_it(
    corpus: Any, build: Build, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert main(["estimate", "--json"]) == 0
    made = msgspec.json.decode(capsys.readouterr().out, type=Estimate)
    assert hashes(corpus.store.root) == {}

    build(corpus)
    compared = {(each.source, each.amount): each for each in compare_with_build(corpus, made)}

    actual = {key: each.actual for key, each in compared.items()}
    of_prose = "documents", "removed by rules", "removed as copies", "documents kept"
    assert [actual["prose", amount] for amount in of_prose] == [40, 7, 1, 32]
    assert actual["all", "documents"] == 81
    on_disk = sum(p.stat().st_size for p in corpus.store.root.rglob("*") if p.is_file())
    assert 0 < actual["all", "disk bytes"] <= on_disk
    assert actual["all", "CPU seconds"] > 0
    assert {amount for source, amount in compared if source == "all"} == made.total.keys()
    outside = {key for key, each in compared.items() if not each.estimated.holds(each.actual)}
    # The costs are those of files: of a corpus of 20 KB.
    assert outside <= {("all", "CPU seconds"), ("all", "disk bytes")}


def test_a_source_that_is_not_there_is_named(
    corpus: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    assert main(["estimate", "--source", "prse"]) == 2
    assert "prse" in capsys.readouterr().err
