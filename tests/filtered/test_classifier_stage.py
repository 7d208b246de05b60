"""The classifier through Dagster: trained on raw documents, published, found again."""

import dagster as dg
from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, json, np, pl, pytest
from tables import cases

from assets.filtered.classifier.classifier import score_quality
from assets.filtered.classifier.classifier_files import load_classifier
from resources.run_reports import read_report
from resources.store.store import StoreError

EXAMPLES = {"good": ["prose"], "bad": ["notes"]}
LABELLED = [{"text": f"a fine day {i}", "label": "good"} for i in range(20)] + [
    {"text": f"buy cheap {i}", "label": 0} for i in range(20)
]


def trained(folder: Path, build: Build, **classifier: Any) -> Any:
    """Open a small corpus and train its classifier."""
    corpus = open_corpus(write_corpus(folder, classifier={"held_out": 0.3} | classifier))
    build(corpus, "raw", "classifier")
    return corpus


def test_a_classifier_is_trained_on_two_sources_and_found(tmp_path: Path, build: Build) -> None:
    corpus = trained(tmp_path, build, **EXAMPLES)

    found = load_classifier(corpus)

    assert found is not None
    examples = pl.Series([sentence(3, 23), sentence(103, 13)])  # as write_corpus makes them
    good, bad = score_quality(examples, found[0])
    assert 0 < bad < 0.5 < good < 1
    manifest = corpus.store.newest("classifier", "all")
    assert found[1] == manifest.parts[0].file("model").sha256
    assert manifest.stats.rows_in == 81


def test_the_report_is_shown(tmp_path: Path, dagster_build: Build) -> None:
    corpus = open_corpus(write_corpus(tmp_path, classifier=EXAMPLES | {"held_out": 0.3}))

    result = dagster_build(corpus, "raw", "classifier")

    event = result.get_asset_materialization_events()[-1]
    shown = event.materialization.metadata["report"]
    assert isinstance(shown, dg.MarkdownMetadataValue)
    assert "**AUC" in str(shown.value) and "data:image/svg+xml" in str(shown.value)
    assert event.materialization.metadata["auc"].value > 0.5
    manifest = corpus.store.newest("classifier", "all")
    path = corpus.store.path_of(manifest, manifest.parts[0].file("report"))
    report = json.loads(path.read_text())
    held = report["n_good"] + report["n_bad"]
    assert held == event.materialization.metadata["held_out_documents"].value > 0


def test_without_a_config_nothing_is_trained(corpus: Any, build: Build) -> None:
    build(corpus, "raw", "classifier", "filtered")

    assert not (corpus.store.root / "classifier").exists()
    assert load_classifier(corpus) is None


def test_a_second_run_trains_nothing_and_changes_no_byte(tmp_path: Path, build: Build) -> None:
    corpus = trained(tmp_path, build, **EXAMPLES)
    before = hashes(corpus.store.root)

    build(corpus, "raw", "classifier")

    assert read_report(corpus.store.root, "classifier", "all").parts_computed == 0
    assert hashes(corpus.store.root) == before


def test_engine_does_not_change_the_model(tmp_path: Path, build: Build) -> None:
    stores = []
    for name, engine in (("a", {"kind": "in_process"}), ("b", {"kind": "processes", "workers": 2})):
        corpus = open_corpus(write_corpus(tmp_path / name, classifier=EXAMPLES, engine=engine))
        build(corpus, "raw", "classifier")
        stores.append(hashes(corpus.store.root))

    assert stores[0] == stores[1]


def test_a_labelled_file_is_enough_and_a_changed_one_trains_again(
    tmp_path: Path, build: Build
) -> None:
    write_jsonl(tmp_path / "labels.jsonl", LABELLED)

    corpus = trained(tmp_path, build, labelled="labels.jsonl")

    before = load_classifier(corpus)
    assert before is not None
    scores = score_quality(pl.Series(["a fine day", "buy cheap", "..."]), before[0]).to_list()
    assert scores[0] > 0.5 > scores[1] and scores[2] is None

    write_jsonl(tmp_path / "labels.jsonl", LABELLED[1:])
    build(corpus, "classifier")

    after = load_classifier(corpus)
    assert after is not None and before[1] != after[1]
    assert not np.array_equal(before[0].weights, after[0].weights)


def test_a_sample_stays_below_its_bytes(tmp_path: Path, build: Build) -> None:
    corpus = trained(tmp_path, build, sample_bytes=4000, **EXAMPLES)

    stats = corpus.store.newest("classifier", "all").stats
    assert 0 < stats.text_bytes <= 8000
    assert min(stats.numbers["good_documents"], stats.numbers["bad_documents"]) > 5


def test_a_model_that_is_missing_or_old_says_what_to_materialize(
    tmp_path: Path, build: Build
) -> None:
    corpus = open_corpus(write_corpus(tmp_path, classifier=EXAMPLES))
    with pytest.raises(StoreError, match="Materialize `classifier`"):
        load_classifier(corpus)
    build(corpus, "raw", "classifier")

    changed = open_corpus(write_corpus(tmp_path, classifier=EXAMPLES | {"seed": 1}))

    with pytest.raises(StoreError, match=r"another config.*Materialize `classifier` first"):
        load_classifier(changed)


@cases("""
    lines                                                    | message
    ["{"]                                                    | line 1: not JSON
    [{"text": "a", "label": 1}, "", {"text": 5, "label": 1}] | line 3: `text` must be
    [{"text": "a", "label": "great"}]                        | `label` must be 1 or 0.*got 'great'
    [{"text": "a", "label": 1}]                              | 1 good and 0 bad documents
    None                                                     | no file 'labels.jsonl'
""")
def test_a_bad_labelled_file_says_what_is_wrong(
    tmp_path: Path, build: Build, lines: list[Any] | None, message: str
) -> None:
    if lines is not None:
        write_jsonl(tmp_path / "labels.jsonl", lines)

    with pytest.raises(dg.Failure, match=message):
        trained(tmp_path, build, labelled="labels.jsonl", held_out=1e-9)
