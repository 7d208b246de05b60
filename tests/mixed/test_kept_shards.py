"""Phases that continue a tag whose shards `sharded` has rewritten since."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl

from assets.mixed.asset import plan_mixed
from assets.mixed.budgets import MixError
from corpus_loader import CorpusLoader
from pipeline_defs.commands.main import main as run

CONFIG: dict[str, Any] = {
    "keep_manifests": 1,
    "buckets": {"mode": "pack", "sequence_length": 16},
    "shards": {"formats": ["megatron"], "target_bytes": 1024},
}
MAIN = {"name": "main", "budgets": {"prose": 200, "notes": 100}, "batch_samples": 4}
LATE = {
    "name": "late",
    "budgets": {"prose": 300, "notes": 150},
    "batch_samples": 4,
    "continues": {"phase": "main", "data": "v1"},
}


@pytest.fixture
def grown(tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A corpus that was tagged v1, and has grown by more than it was, so that no shard is left."""
    monkeypatch.setenv("TOKENMILL_CONFIG", str(tmp_path / "pipeline.yaml"))
    corpus = open_corpus(write_corpus(tmp_path, **CONFIG, phases=[MAIN]))
    build(corpus)
    build(corpus, "mixed")
    assert run(["tag", "v1"]) == 0
    return grow(corpus, build)


def grow(corpus: Any, build: Build, **changes: Any) -> Any:
    """Build the corpus with more documents, a phase that continues v1, and changed settings."""
    folder = corpus.config.parent
    later = open_corpus(write_corpus(folder, **CONFIG | changes, phases=[MAIN, LATE]))
    for number, source in enumerate(["prose", "notes"]):
        texts = [{"text": sentence(900 + 100 * number + each, 40)} for each in range(90)]
        write_jsonl(folder / f"input/{source}/new.jsonl", texts)
    build(later)
    return later


def rows_of(corpus: Any, phase: str, data: str | None = None) -> list[bytes]:
    """The rows that a loader reads in an epoch of a phase."""
    loader = CorpusLoader(corpus.store.root, phase, batch_size=1, data=data)
    return [row.tobytes() for batch in loader for row in batch.tokens]


def shard_paths(corpus: Any, phase: str, data: str | None = None) -> set[str]:
    """The shards that a phase draws from."""
    sources = CorpusLoader(corpus.store.root, phase, data=data).mixture.sources
    return {shard.path for source in sources for shard in source.shards}


def test_a_tag_keeps_the_shards_that_are_continued(
    grown: Any, build: Build, capsys: pytest.CaptureFixture[str]
) -> None:
    build(grown, "mixed")

    assert shard_paths(grown, "late") == shard_paths(grown, "main", "v1")
    assert not shard_paths(grown, "late") & shard_paths(grown, "main")
    drawn = rows_of(grown, "main", "v1") + rows_of(grown, "late")
    late = CorpusLoader(grown.store.root, "late").mixture
    assert sum(source.start for source in late.sources) == len(rows_of(grown, "main", "v1"))
    assert all(source.start + source.samples <= source.rows for source in late.sources)
    assert max(Counter(drawn).values()) == 1
    notes = next(source for source in late.sources if source.name == "notes")
    assert any(
        f"'notes' is drawn as in the mixture that is continued: without {now:,} rows of newer "
        f"shards, and with 0 rows that were removed since and {notes.rows:,} of shards that were "
        "rewritten since" in text
        for text in late.warnings
        for now in [sum(p.stats.rows_kept for p in grown.store.newest("sharded", "notes").parts)]
    )
    assert run(["verify"]) == 0
    assert run(["trace", "--phase", "late", "--sample", "0"]) == 0
    assert run(["gc", "--keep", "1", "--delete"]) == 0
    assert rows_of(grown, "late") == drawn[-len(rows_of(grown, "late")) :]


def test_what_was_taken_down_since_is_not_drawn(grown: Any, build: Build) -> None:
    (grown.config.parent / "passage").write_text(sentence(3, 23))
    match = str(grown.config.parent / "passage")
    assert run(["takedown", "--match", match, "--reason", "asked for"]) == 0
    build(grown)

    with pytest.raises(MixError, match=r"'prose' were rewritten since, and .* taken down since"):
        plan_mixed(grown, "late")


def test_what_is_held_out_since_is_not_drawn(grown: Any, build: Build) -> None:
    holding = grow(grown, build, holdout={"share": 0.3})

    with pytest.raises(MixError, match=r"rewritten since, and .* were held out for validation"):
        plan_mixed(holding, "late")


def test_shards_of_another_tokenizer_are_not_drawn(grown: Any, build: Build) -> None:
    tokenizer = {"vocab_size": 290, "sample_bytes": 100000, "retrain": "when_config_changes"}
    other = grow(grown, build, tokenizer=tokenizer)

    with pytest.raises(MixError, match="rewritten since, and the tokenizer is another now"):
        plan_mixed(other, "late")


def test_without_a_tag_there_is_nothing_to_continue(grown: Any, build: Build) -> None:
    build(grown, "mixed")
    assert run(["tag", "v1", "--delete"]) == 0
    assert run(["gc", "--delete"]) == 0
    with pytest.raises(MixError, match="data is 'v1', which is neither a tag"):
        plan_mixed(grown, "late")
    assert rows_of(grown, "late")
