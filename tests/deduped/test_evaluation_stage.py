"""The index of evaluation sets through Dagster: published, found again, read by workers."""

import dagster as dg
from builders import hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, pl, pytest

from assets.deduped.decontamination.contamination import find_contamination
from assets.deduped.evaluation_asset import STAGE as EVALUATION
from assets.deduped.evaluation_index_files import find_evaluation_index, load_index
from resources.materialize.materialization import stage_asset
from resources.run_reports import read_report
from resources.store.store import StoreError

QUIZ = {"name": "quiz", "where": "quiz/*.jsonl", "fields": ["question"], "id_field": "n"}


def with_quiz(folder: Path, **changes: Any) -> Any:
    """A corpus with an evaluation set: a sentence of `prose`, one that is nowhere, a short one."""
    questions = [sentence(3, 23), " ".join(f"nowhere{i}" for i in range(15)), "too short"]
    records: list[Any] = [{"question": text, "n": i} for i, text in enumerate(questions)]
    write_jsonl(folder / "quiz/a.jsonl", [*records, "{"])
    decontamination = {"sets": [QUIZ]} | changes
    return open_corpus(write_corpus(folder, dedup={"decontamination": decontamination}))


def index(corpus: Any) -> dg.ExecuteInProcessResult:
    """Materialize `evaluation`."""
    with dg.DagsterInstance.ephemeral() as instance:
        asset = stage_asset(EVALUATION, {"none": None}, corpus.settings)
        return dg.materialize([asset], instance=instance, resources={"corpus": corpus})


def test_an_index_is_published_and_finds_documents(tmp_path: Path) -> None:
    corpus = with_quiz(tmp_path)

    index(corpus)

    found = find_evaluation_index(corpus)
    assert found is not None
    documents = pl.DataFrame({"doc_id": ["a", "b"], "text": [sentence(4), sentence(3, 23)]})
    hits = find_contamination(
        documents, load_index(found[0]), corpus.settings.dedup.decontamination
    )
    assert hits.select("doc_id", "set", "item", "item_share").rows() == [("b", "quiz", "0", 1.0)]
    stats = corpus.store.newest("evaluation", "all").stats
    assert (stats.rows_in, stats.rows_kept, stats.quarantined) == (4, 2, 1)
    assert stats.rejected == {"too_short": 1}


def test_the_report_counts_items_of_each_set(tmp_path: Path) -> None:
    result = index(with_quiz(tmp_path))

    metadata = result.get_asset_materialization_events()[-1].materialization.metadata
    report = metadata["report"]
    assert isinstance(report, dg.MarkdownMetadataValue)
    assert "| quiz | 3 | " in str(report.value)
    assert "1 records could not be read" in str(report.value)
    assert metadata["files"].value == 1
    assert metadata["ngrams"].value == load_ngrams(tmp_path)


def load_ngrams(folder: Path) -> int:
    (path,) = folder.glob("store/evaluation/all/*ngrams.parquet")
    return pl.read_parquet(path).height


def test_without_a_config_there_is_no_index(corpus: Any) -> None:
    assert not EVALUATION.is_used(corpus.settings)
    assert find_evaluation_index(corpus) is None


def test_a_second_run_changes_no_byte_and_another_threshold_nothing(tmp_path: Path) -> None:
    corpus = with_quiz(tmp_path)
    index(corpus)
    before, found = hashes(corpus.store.root), find_evaluation_index(corpus)

    other = with_quiz(tmp_path, min_hits=3, action="tag")
    index(other)

    assert read_report(other.store.root, "evaluation", "all").parts_computed == 0
    assert hashes(other.store.root) == before
    assert find_evaluation_index(other) == found


def test_a_changed_item_makes_another_index(tmp_path: Path) -> None:
    corpus = with_quiz(tmp_path)
    index(corpus)
    before = find_evaluation_index(corpus)

    write_jsonl(tmp_path / "quiz/a.jsonl", [{"question": sentence(4), "n": 0}])
    index(corpus)

    after = find_evaluation_index(corpus)
    assert before is not None and after is not None
    assert before[1] != after[1]
    assert load_index(after[0]).items["item"].to_list() == ["0"]


def test_an_index_that_is_missing_or_old_says_what_to_materialize(tmp_path: Path) -> None:
    corpus = with_quiz(tmp_path)
    with pytest.raises(StoreError, match="Materialize `evaluation`"):
        find_evaluation_index(corpus)
    index(corpus)

    with pytest.raises(StoreError, match=r"another config.*Materialize `evaluation` first"):
        find_evaluation_index(with_quiz(tmp_path, ngram="8-words"))


def test_a_missing_field_stops_the_step_before_any_work(tmp_path: Path) -> None:
    corpus = with_quiz(tmp_path, sets=[QUIZ | {"fields": ["prompt"]}])

    with pytest.raises(dg.Failure, match=r"'quiz', file 'quiz/a.jsonl': text field `prompt`"):
        index(corpus)

    assert corpus.store.partition("evaluation", "all").newest_manifest() is None
