"""The tokenizer through Dagster: drawn by weight, trained once, loaded, refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from small_tokenizer import trained

from resources.reports import read_report
from resources.settings import SettingsError

DOCUMENTS = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped")
SMALL = {"vocab_size": 300, "sample_bytes": 100_000}


@pytest.fixture
def deduped(corpus: Any, build: Build) -> Any:
    """The small corpus up to what the tokenizer is trained on."""
    build(corpus, *DOCUMENTS)
    return corpus


def with_tokenizer(corpus: Any, **tokenizer: Any) -> Any:
    """The same corpus with another tokenizer."""
    content = yaml.safe_load(corpus.config.read_text()) | {"tokenizer": SMALL | tokenizer}
    corpus.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return open_corpus(corpus.config)


def made(corpus: Any) -> tuple[str, dict[str, Any], int]:
    """(tokenizer.json, what its record says, parts that the last run computed)."""
    manifest = corpus.store.newest("tokenizer", "all")
    part = manifest.parts[0]
    content = corpus.store.path_of(manifest, part.file("tokenizer")).read_text()
    computed = read_report(corpus.store.root, "tokenizer", "all").parts_computed
    return content, part.stats.extra, computed


def test_the_sample_is_drawn_by_weight(deduped: Any, build: Build) -> None:
    weighted = with_tokenizer(deduped, sample_bytes=4000, weights={"prose": 3, "notes": 1})
    build(weighted, "tokenizer")

    _, extra, _ = made(weighted)

    assert extra["sample_wanted_bytes"] == {"prose": 3000, "notes": 1000}
    assert extra["sample_takes_all_of"] == []
    assert 1500 < extra["sample_bytes"]["prose"] < 4500  # whole documents
    assert 200 < extra["sample_bytes"]["notes"] < 1800


def test_weights_of_unknown_sources_are_refused(corpus: Any) -> None:
    with pytest.raises(SettingsError, match=r"tokenizer.weights.proes: unknown source.*'prose'"):
        with_tokenizer(corpus, weights={"proes": 1})


def test_a_source_that_is_short_gives_all_and_that_is_said(deduped: Any, build: Build) -> None:
    build(with_tokenizer(deduped, sample_bytes=1_000_000, vocab_size=5000), "tokenizer")

    _, extra, _ = made(deduped)

    there = {s: deduped.store.newest("deduped", s).stats for s in ("prose", "notes")}
    assert extra["sample_takes_all_of"] == ["prose", "notes"]
    assert extra["sample_bytes"] == {name: stats.bytes for name, stats in there.items()}
    assert extra["sample_documents"] == {name: stats.rows_kept for name, stats in there.items()}
    assert extra["entries_unfilled"] == 5000 - extra["vocab_size"] > 0


def test_it_is_trained_again_only_when_its_inputs_or_settings_change(
    deduped: Any, build: Build
) -> None:
    def computed(**tokenizer: Any) -> int:
        corpus = with_tokenizer(deduped, **tokenizer)
        build(corpus, "tokenizer")
        return made(corpus)[2]

    assert computed(weights={"prose": 1}) == 1
    assert computed(weights={"prose": 1}) == 0
    before = hashes(deduped.store.root)
    assert computed(weights={"prose": 1}, trainer="tokenizers", offsets=True) == 0
    assert hashes(deduped.store.root) == before
    assert computed(weights={"prose": 1}, vocab_size=310) == 1

    write_jsonl(deduped.config.parent / "input/notes/m.jsonl", [{"text": sentence(300)}])
    build(deduped, *DOCUMENTS)
    assert computed(weights={"prose": 1}) == 0  # notes give nothing to it
    assert computed() == 1
    write_jsonl(deduped.config.parent / "input/prose/c.jsonl", [{"text": sentence(301)}])
    build(deduped, *DOCUMENTS)
    assert computed() == computed(weights={"prose": 1}) == 1


def test_both_trainers_publish_the_same_bytes(deduped: Any, build: Build, tmp_path: Path) -> None:
    build(with_tokenizer(deduped, trainer="tokenizers"), "tokenizer")
    other = open_corpus(write_corpus(tmp_path / "other"))
    build(other, *DOCUMENTS, "tokenizer")
    assert made(other)[:2] == made(deduped)[:2]


def test_a_loaded_tokenizer_is_published_as_it_is(corpus: Any, build: Build) -> None:
    (corpus.config.parent / "my.json").write_text(trained(), encoding="utf-8")
    build(with_tokenizer(corpus, path="my.json"), "tokenizer")

    content, extra, computed = made(corpus)

    assert (content, computed) == (trained(), 1)
    assert extra["end_of_document_id"] == 0
    assert extra["begin_of_document_id"] is None
    assert "sample_bytes" not in extra


@pytest.mark.parametrize(
    ("content", "config", "fault"),
    [
        ("{", {}, r"not a tokenizer.json: it is no JSON.*Check tokenizer.path"),
        ("{}", {}, r"not a tokenizer.json that `tokenizers` can read.*Check tokenizer.path"),
        (None, {"end_of_document": "</s>"}, r"'</s>' for tokenizer.end_of_document.*endoftext"),
        (None, {"begin_of_document": "<s>"}, r"'<s>' for tokenizer.begin_of_document"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(
    corpus: Any, build: Build, content: str | None, config: dict[str, str], fault: str
) -> None:
    (corpus.config.parent / "my.json").write_text(content or trained(), encoding="utf-8")
    with pytest.raises(Exception, match=fault):
        build(with_tokenizer(corpus, path="my.json", **config), "tokenizer")


def test_a_sample_without_documents_is_refused(deduped: Any, build: Build) -> None:
    with pytest.raises(Exception, match=r"no document to train.*Raise tokenizer.sample_bytes"):
        build(with_tokenizer(deduped, sample_bytes=1), "tokenizer")
