"""`corpus push FILE.lance` writes a dataset of Lance, which its own reader opens at any row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from builders import Build, open_corpus, write_corpus
from polars.testing import assert_frame_equal
from verbs import Cli

from pipeline_defs.commands.share.pushed_files import corpus_files

lance = pytest.importorskip("lance")


def published(corpus: Any, stage: str, what: Any) -> pl.DataFrame:
    manifests = [corpus.store.newest(stage, name) for name in ("prose", "notes")]
    files = [file for each in manifests for file in corpus_files(corpus.store, what, each)]
    return pl.concat(file.read() for file in files)


def test_any_row_is_read_back_and_nothing_is_left_of_earlier_pushes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build, cli: Cli
) -> None:
    shards = {"target_bytes": 4096, "formats": ["megatron", "parquet"]}
    names = ("prose", "notes")
    sources = [{"name": n, "where": f"input/{n}/*", "license": "CC0-1.0"} for n in names]
    config = write_corpus(tmp_path, shards=shards, sources=sources)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(config))
    corpus = open_corpus(config)
    build(corpus)
    for stage, what in (("sharded", "shards"), ("deduped", "documents")):
        path = str(tmp_path / f"{what}.lance")
        cli.out("push", path, "--what", what)
        expected, found = published(corpus, stage, what), lance.dataset(path)
        assert_frame_equal(pl.DataFrame(found.to_table()), expected)
        some = [expected.height - 1, 0, 7]
        assert_frame_equal(pl.DataFrame(found.take(some)), expected[some])
    gone = expected["doc_id"][0]
    cli.out("takedown", "--doc", gone, "--reason", "asked")
    assert "has documents of takedown 1 (asked)" in cli.err(1, "push", path)
    build(open_corpus(config))
    cli.out("push", path)
    assert lance.dataset(path).count_rows() == expected.height - 1
    assert not [f for f in Path(path).rglob("*") if f.is_file() and gone.encode() in f.read_bytes()]

    lance.write_dataset(pa.table({"n": [1]}), tmp_path / "own.lance")
    assert "was not written by `corpus push`" in cli.err(2, "push", str(tmp_path / "own.lance"))
