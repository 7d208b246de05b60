"""A source that lacks many documents of its last good state fails, unless that is accepted."""

from dataclasses import replace

import yaml
from builders import open_corpus, sentence, write_jsonl
from every_stage import run_stage
from prelude import Any, Path, pytest

from assets.raw.asset import STAGE as RAW
from assets.raw.shrink_files import ACCEPT_SHRINK
from resources.accepted_shrinks import ANY_STATE, AcceptedShrink, record_consent
from resources.store.store import StoreError


def corpus_of(folder: Path, **options: Any) -> Any:
    """A corpus of one source, `in`, with options."""
    config = {
        "store": "store",
        "sources": [{"name": "news", "where": "in", **options}],
        "phases": [{"name": "main", "weighting": "natural"}],
    }
    (folder / "pipeline.yaml").write_text(yaml.safe_dump(config))
    return open_corpus(folder / "pipeline.yaml")


def write(folder: Path, file: str, first: int, stop: int, field: str = "text") -> None:
    """Write numbered documents to a file of the source."""
    rows: list[Any] = [{field: sentence(i)} for i in range(first, stop)]
    write_jsonl(folder / "in" / file, rows)


def rows_kept(corpus: Any) -> int:
    """Documents of the newest state."""
    return int(corpus.store.newest("raw", "news").stats.rows_kept)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The folder of a corpus with 60 documents in two files that was built."""
    write(tmp_path, "a.jsonl", 0, 20)
    write(tmp_path, "b.jsonl", 20, 60)
    run_stage(corpus_of(tmp_path), RAW)
    return tmp_path


def test_a_file_that_is_gone_fails_the_source_until_that_is_accepted(built: Path) -> None:
    (built / "in/b.jsonl").unlink()
    corpus = corpus_of(built)
    with pytest.raises(
        StoreError, match=r"40 of the 60 .* above max_shrink 30.0%.*b.jsonl"
    ) as said:
        run_stage(corpus, RAW)
    assert "1 file is gone (40 documents)" in str(said.value)
    assert str(said.value).endswith("corpus build --accept-shrink news")
    assert rows_kept(corpus) == 60

    run_stage(replace(corpus, flags=frozenset({ACCEPT_SHRINK})), RAW)
    assert rows_kept(corpus) == 20
    [record] = (built / "store" / "_accepted").iterdir()
    assert record.name.startswith("news-00000001-")
    run_stage(corpus, RAW)


def test_a_last_good_state_that_is_damaged_can_be_given_up(built: Path) -> None:
    for file in (built / "store/raw/news").glob("*documents*.parquet"):
        file.unlink()
    (built / "in/b.jsonl").unlink()
    corpus = corpus_of(built)
    with pytest.raises(StoreError, match=r"accept today's: corpus build --accept-shrink news"):
        run_stage(corpus, RAW)
    run_stage(replace(corpus, flags=frozenset({ACCEPT_SHRINK})), RAW)
    assert rows_kept(corpus) == 20


def test_a_consent_that_was_recorded_before_a_kill_needs_no_other(built: Path) -> None:
    (built / "in/b.jsonl").unlink()
    corpus = corpus_of(built)
    run_stage(replace(corpus, flags=frozenset({ACCEPT_SHRINK})), RAW)
    (built / "store/raw/news/_manifests/00000002.json").unlink()

    run_stage(corpus, RAW)

    assert rows_kept(corpus) == 20


@pytest.mark.parametrize("options", [{}, {"max_shrink": None}, {"field_filter": {"n": 1}}])
def test_no_source_becomes_empty_by_itself(built: Path, options: dict[str, Any]) -> None:
    write(built, "a.jsonl", 0, 20, field="content")
    write(built, "b.jsonl", 20, 60, field="content")
    with pytest.raises(StoreError, match=r"60 of the 60 .*and none is left"):
        run_stage(corpus_of(built, **options), RAW)


def test_a_source_of_three_documents_does_not_become_empty_either(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl", 0, 3)
    corpus = corpus_of(tmp_path)
    run_stage(corpus, RAW)
    (tmp_path / "in/a.jsonl").write_bytes(b"")
    with pytest.raises(StoreError, match=r"1 file is without any record \(3 documents\)"):
        run_stage(corpus, RAW)


@pytest.mark.parametrize(
    "options",
    [{"max_shrink": None}, {"max_documents": 20}, {"max_text_bytes": 3000}],
    ids=["no limit", "a new cap of documents", "a new cap of bytes"],
)
def test_what_the_config_asks_for_is_no_loss(built: Path, options: dict[str, Any]) -> None:
    if "max_shrink" in options:
        (built / "in/b.jsonl").unlink()
    corpus = corpus_of(built, **options)
    run_stage(corpus, RAW)
    assert 0 < rows_kept(corpus) <= 20


def test_renamed_and_corrected_files_and_twenty_lost_documents_are_ordinary(built: Path) -> None:
    (built / "in/b.jsonl").rename(built / "in/z.jsonl")
    run_stage(corpus_of(built), RAW)
    file = built / "in/z.jsonl"
    file.write_text(file.read_text().replace("the", "The"))
    run_stage(corpus_of(built), RAW)
    (built / "in/a.jsonl").unlink()
    run_stage(corpus_of(built), RAW)
    assert rows_kept(corpus_of(built)) == 40


def test_the_first_build_after_a_release_may_give_anything(built: Path) -> None:
    corpus = corpus_of(built)
    record_consent(corpus.store.root, AcceptedShrink("news", 1, ANY_STATE))
    (built / "in/b.jsonl").unlink()
    run_stage(corpus, RAW)
    assert rows_kept(corpus) == 20


def test_a_release_that_changed_nothing_is_used_up_by_the_first_build(built: Path) -> None:
    corpus = corpus_of(built)
    record_consent(corpus.store.root, AcceptedShrink("news", 1, ANY_STATE))
    run_stage(corpus, RAW)
    (built / "in/b.jsonl").unlink()
    with pytest.raises(StoreError, match="40 of the 60"):
        run_stage(corpus, RAW)


def test_a_state_is_compared_with_the_last_good_one(built: Path) -> None:
    with (built / "in/b.jsonl").open("a") as file:
        file.write("{\n" * 40)
    strict = corpus_of(built, max_bad_share=0.1)
    write(built, "a.jsonl", 0, 2)
    with pytest.raises(StoreError, match="40 of 82 records are in quarantine"):
        run_stage(strict, RAW)  # committed, and refused by later stages
    write(built, "b.jsonl", 20, 40)
    with pytest.raises(StoreError, match="38 of the 60"):
        run_stage(strict, RAW)
