"""`corpus rules propose` turns losses into one edit of pipeline.yaml, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from builders import Build, open_corpus, write_corpus

from pipeline_defs.commands.main import main
from pipeline_defs.commands.rules.propose import read_losses
from resources.errors import UsageError
from resources.settings.filtering.presets import lay_over

DOCUMENTS = 400


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build) -> Any:
    """A source of 400 documents, the shortest of which are to be the hardest, and another."""
    path = write_corpus(tmp_path, part_bytes=1_000_000)
    content = yaml.safe_load(path.read_text())
    for name in ("long", "other"):
        lines = [
            json.dumps({"text": f"{name} {number}: " + "plain words of text " * (5 + number)})
            for number in range(DOCUMENTS)
        ]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    content["sources"] = [
        {"name": name, "where": str(tmp_path / f"{name}.jsonl")} for name in ("long", "other")
    ]
    content["filters"] = {"rules": {"length": {"min_chars": 50}}}
    content["phases"] = [{"name": "main", "weighting": "natural"}]
    content.pop("dedup", None)
    path.write_text(yaml.safe_dump(content))
    monkeypatch.setenv("TOKENMILL_CONFIG", str(path))
    opened = open_corpus(path)
    build(opened, "raw", "filtered")
    return opened


def decisions(corpus: Any, source: str) -> pl.DataFrame:
    manifest = corpus.store.newest("filtered", source)
    paths = [corpus.store.path_of(manifest, part.file("decisions")) for part in manifest.parts]
    return pl.concat(map(pl.read_parquet, paths))


def propose(capsys: pytest.CaptureFixture[str], path: Path, *more: str) -> dict[str, Any]:
    code = main(["rules", "propose", "--loss", str(path), "--json", *more])
    output = capsys.readouterr()
    assert code == 0, output.err
    found: dict[str, Any] = json.loads(output.out)
    return found


def test_the_edit_gives_what_was_counted(
    corpus: Any, tmp_path: Path, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    table = decisions(corpus, "long").with_columns(
        loss=pl.when(pl.col("num_bytes") < 1500).then(4.0).otherwise(2.0)
        + pl.int_range(pl.len()) % 7 * 0.01
    )
    table.select("doc_id", "loss").write_ndjson(tmp_path / "losses.jsonl")
    before = corpus.config.read_text()

    (tmp_path / "losses.csv").write_text("source,loss\nlong,2.0\nother,2.5\n")
    by_source = propose(capsys, tmp_path / "losses.csv")
    found = propose(capsys, tmp_path / "losses.jsonl")

    assert by_source["thresholds"] == {}
    assert by_source["weights"]["other"] > 0.5 > by_source["weights"]["long"]
    assert yaml.safe_load(by_source["edit"])["phases"][0]["weights"] == by_source["weights"]
    assert corpus.config.read_text() == before
    [proposal] = found["thresholds"]["long"]
    assert proposal["key"] == "length.min_chars" and 200 < proposal["proposed"] <= 1700
    assert proposal["text_share"] <= 0.05
    edit = yaml.safe_load(found["edit"])
    content = yaml.safe_load(before)
    content["sources"][0] = lay_over(content["sources"][0], edit["sources"][0])
    corpus.config.write_text(yaml.safe_dump(content))
    changed = open_corpus(corpus.config)
    build(changed, "raw", "filtered")
    kept = changed.store.newest("filtered", "long").stats.rows_kept
    assert kept == found["kept"]["long"]["then"]["documents"] < DOCUMENTS


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a,loss\n1,2\n", "it needs loss, and one of"),
        ("source,loss\nlong,much\n", "must be numbers"),
        ("source,loss\nlong,\n", "no finite number"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "losses.csv").write_text(content)

    with pytest.raises(UsageError, match=told):
        read_losses(tmp_path / "losses.csv")
