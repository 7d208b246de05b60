"""`corpus shards simulate`: its counts are those of the loaders of such a job."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import pytest
from builders import open_corpus, write_corpus
from loader_corpus import two_sources

from corpus_loader import CorpusLoader, LoaderOptions
from pipeline_defs.commands.main import main


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus whose phase `main` has 37 rows in five shards of two sources."""
    corpus = open_corpus(write_corpus(tmp_path))
    root: Path = corpus.store.root
    two_sources(root, phase="main")
    monkeypatch.setattr("pipeline_defs.commands.train.loader_verbs.load_corpus", lambda: corpus)
    return root


def test_counts_are_those_of_the_loaders(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--world", "3", "--batch", "2", "--ranks-per-node", "2", "--format", "json"]
    assert main(["shards", "simulate", *args, "--cache-gb", "1e-9"]) == 0
    found = json.loads(capsys.readouterr().out)

    options = LoaderOptions(verify=False)
    ranks = [CorpusLoader(store, "main", rank, 3, 2, options=options) for rank in range(3)]
    batches = [list(loader) for loader in ranks]
    sources = [s for of_rank in batches for batch in of_rank for s in batch.sources.tolist()]
    names = ranks[0].sources
    assert found["steps"] == len(batches[0]) == 6
    assert {name: source["share"] for name, source in found["sources"].items()} == {
        name: sources.count(number) / len(sources) for number, name in enumerate(names)
    }
    assert found["rank_bytes"] == sum(batch.tokens.nbytes for batch in batches[0])
    shards = ranks[0].reader.shards.shards
    opened = ranks[0].reader.look_up
    of_rank = {shard for batch in batches[0] for shard in opened(batch.positions).shards}
    assert (found["shards"], found["shards_of_rank"]) == (len(shards), len(of_rank))
    of_node = of_rank | {s for batch in batches[1] for s in opened(batch.positions).shards}
    sizes = [sum(file.bytes for file in shard.files.values()) for shard in shards]
    assert found["download_bytes"] == sum(sizes[shard] for shard in of_node)
    assert found["cached_download_bytes"] > found["download_bytes"]
    first = opened(batches[0][0].positions)
    assert found["first_samples"][0].endswith(f"{shards[first.shards[0]].path} row {first.rows[0]}")


def test_steps_of_the_next_epoch_begin_after_what_was_dropped(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["--world", "3", "--batch", "2", "--steps", "9", "--format", "json"]
    assert main(["shards", "simulate", *args]) == 0
    found = json.loads(capsys.readouterr().out)

    ranks = [CorpusLoader(store, "main", rank, 3, 2) for rank in range(3)]
    batches = [[*loader, *islice(loader, 3)] for loader in ranks]
    assert [len(of_rank) for of_rank in batches] == [9, 9, 9]
    sources = [s for of_rank in batches for batch in of_rank for s in batch.sources.tolist()]
    assert found["sources"][ranks[0].sources[0]]["share"] == sources.count(0) / 54
    epochs = [batch.positions // 37 for of_rank in batches for batch in of_rank]
    assert sum(int((epoch == 1).sum()) for epoch in epochs) == 18


def test_more_ranks_than_samples_are_refused(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shards", "simulate", "--world", "64"]) == 2
    assert "the phase has 37 samples; 64 ranks with batches of 8" in capsys.readouterr().err


def test_an_unknown_phase_is_named(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shards", "simulate", "--world", "1", "--phase", "mian"]) == 2
    assert "main" in capsys.readouterr().err
