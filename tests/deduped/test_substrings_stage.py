"""Repeated spans through Dagster: found over all sources, in any number of pieces, and shown."""

import pickle

from builders import Build, hashes, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, pl, pytest

from assets.deduped import substrings_asset as stage
from assets.deduped.repeats.substrings import cut_spans
from resources import exchange, passes
from resources import run_tasks as runner
from resources.run_reports import read_report
from resources.store.store import StoreError

PASSAGE = " ".join(f"river{i} and bridge{i}" for i in range(30))  # 90 words
# Enough other words that the documents are no near-duplicates.
OWN = [" ".join(f"the {name}{i}" for i in range(100)) for name in ("valley", "meadow", "forest")]
FIRST = f"{OWN[0]} Before. {PASSAGE} After."
STAGES = (
    *("raw", "classifier", "filtered", "evaluation", "signatures", "band_index", "duplicates"),
    "substrings",
)
FOUND = ("doc_id", "start", "stop", "num_words")


def corpus_with_passages(
    folder: Path, dedup: Any = None, part_bytes: int = 8192, **substrings: Any
) -> Any:
    """The small corpus, and three documents that share a passage: `FIRST` has it first."""
    substrings = {"min_words": 50} | substrings
    dedup = {"substrings": substrings} | (dedup or {})
    config = write_corpus(folder, dedup=dedup, part_bytes=part_bytes)
    others = [f"{own}: {PASSAGE.upper()}." for own in OWN[1:]]
    write_jsonl(folder / "input/prose/c.jsonl", [{"text": FIRST}])
    write_jsonl(folder / "input/notes/m.jsonl", [{"text": text} for text in others])
    return open_corpus(config)


def spans_of(corpus: Any) -> pl.DataFrame:
    """All spans, in the order of the parts."""
    manifest = corpus.store.newest("substrings", "all")
    files = [part.file("spans") for part in manifest.parts]
    return pl.concat([pl.read_parquet(corpus.store.path_of(manifest, file)) for file in files])


def documents_of(corpus: Any) -> pl.DataFrame:
    """All filtered documents."""
    frames = []
    for source in corpus.settings.source_names():
        manifest = corpus.store.newest("filtered", source)
        files = [part.file("documents") for part in manifest.parts]
        frames += [pl.read_parquet(corpus.store.path_of(manifest, file)) for file in files]
    return pl.concat(frames)


def test_a_passage_is_cut_from_all_but_the_first_document(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with_passages(tmp_path)

    build(corpus, *STAGES)

    table, _ = cut_spans(documents_of(corpus), spans_of(corpus), corpus.settings.dedup.substrings)
    texts = table["text"].to_list()
    assert {FIRST, *(f"{own}:." for own in OWN[1:])} <= set(texts)
    stats = corpus.store.newest("substrings", "all").stats
    assert (stats.numbers["spans"], stats.numbers["span_words"]) == (2, 180)
    assert stats.rows_kept == corpus.store.newest("duplicates", "all").stats.rows_kept


def test_sources_may_be_compared_each_with_itself(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with_passages(tmp_path, within="source")

    build(corpus, *STAGES)

    assert spans_of(corpus).height == 1


@pytest.mark.parametrize("keep_first", [True, False])
def test_pieces_of_the_hashes_do_not_matter(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch, keep_first: bool
) -> None:
    found = []
    for bits in (0, 4):
        monkeypatch.setattr(exchange, "prefix_bits_for", lambda *_, bits=bits: bits)
        corpus = corpus_with_passages(tmp_path / str(bits), keep_first=keep_first)
        build(corpus, *STAGES)
        found.append(spans_of(corpus).rows())

    assert found[0] == found[1]
    assert len(found[0]) == (2 if keep_first else 3)


def test_tasks_are_as_large_for_many_parts_as_for_few(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a file of every part in each of them they would take the square of the parts."""
    seen: list[Any] = []

    def run_tasks(corpus: Any, tasks: list[Any], work: Any) -> list[Any]:
        seen.extend(tasks)
        return runner.run_tasks(corpus, tasks, work)

    monkeypatch.setattr(passes, "run_tasks", run_tasks)
    sizes: list[dict[str, int]] = []
    for folder, number in (("few0", 2), ("many", 12)):
        lines = {"min_count": 2, "min_chars": 10}
        corpus = corpus_with_passages(tmp_path / folder, dedup={"lines": lines}, part_bytes=2048)
        for index in range(number):
            documents = [{"text": f"{OWN[index % 3]} {sentence(index, 300)}\n{PASSAGE}"}]
            write_jsonl(corpus.config.parent / f"input/prose/more{index:02}.jsonl", documents)
        seen.clear()
        build(corpus, *STAGES, "repeated")
        sizes.append({task.name.split("-")[0]: len(pickle.dumps(task)) for task in seen})

    assert {"picks", "twice", "runs", "elsewhere", "spans"} < sizes[0].keys()
    assert {"count", "select", "collect", "total", "merged", "pairs"} < sizes[0].keys()
    once = {"found", "components"}  # of duplicates: one task each, 50 and 160 bytes a part
    assert all(
        abs(sizes[1][name] - size) < 100
        for name, size in sizes[0].items()
        if "0" not in name and name not in once
    )


def test_a_second_run_changes_no_byte_and_leaves_spans_only(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with_passages(tmp_path)
    build(corpus, *STAGES)
    before = hashes(corpus.store.root)

    build(corpus, "substrings")

    assert read_report(corpus.store.root, "substrings", "all").parts_computed == 0
    assert hashes(corpus.store.root) == before
    folder = corpus.store.partition("substrings", "all").folder
    assert {path.name.split(".", 1)[1] for path in folder.glob("spans*")} == {
        "spans.parquet",
        "longest.json",
    }
    assert not list(folder.glob("runs*"))


def test_how_documents_are_rejected_finds_nothing_anew(tmp_path: Path, build: Build) -> None:
    build(corpus_with_passages(tmp_path), *STAGES)

    corpus = corpus_with_passages(tmp_path, min_kept_share=0.9)
    build(corpus, "substrings")

    assert read_report(corpus.store.root, "substrings", "all").parts_computed == 0


def test_removed_duplicates_take_no_part(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with_passages(tmp_path)
    write_jsonl(tmp_path / "input/notes/k.jsonl", [{"text": FIRST}])

    build(corpus, *STAGES)

    assert corpus.store.newest("duplicates", "all").stats.duplicates >= 1
    assert spans_of(corpus)["num_words"].to_list() == [90, 90]


@pytest.mark.parametrize(("action", "words"), [("reject", [90]), ("tag", [90, 90])])
def test_contaminated_documents_take_part_if_they_stay(
    tmp_path: Path, build: Build, action: str, words: list[int]
) -> None:
    write_jsonl(tmp_path / "quiz.jsonl", [{"text": OWN[1]}])
    for each in ("tag", "reject", action):  # a change of what is done is noticed
        quiz = {"sets": [{"name": "quiz", "where": "quiz.jsonl"}], "action": each}
        corpus = corpus_with_passages(tmp_path, {"decontamination": quiz})
        build(corpus, *STAGES)

    assert spans_of(corpus)["num_words"].to_list() == words


def test_what_was_found_is_shown(tmp_path: Path, dagster_build: Build) -> None:
    corpus = corpus_with_passages(tmp_path)

    result = dagster_build(corpus, *STAGES)

    event = result.get_asset_materialization_events()[-1]
    shown = Path(str(event.materialization.metadata["preview"].value)).read_text()
    assert "**2 repeated spans** of 180 words in 2 documents" in shown
    assert "| 90 | 2 |" in shown and "RIVER0 AND BRIDGE0" in shown


def test_without_a_config_nothing_is_looked_at(corpus: Any, build: Build) -> None:
    build(corpus, *STAGES)

    assert not (corpus.store.root / "substrings").exists()


def test_clusters_of_other_documents_are_refused(tmp_path: Path, build: Build) -> None:
    corpus = corpus_with_passages(tmp_path)
    build(corpus, *STAGES)
    write_jsonl(tmp_path / "input/notes/new.jsonl", [{"text": PASSAGE}])
    build(corpus, "raw", "classifier", "filtered")

    with pytest.raises(StoreError, match=r"other documents than the newest filtered\[notes\]"):
        stage.plan_substrings(corpus, "all")

    build(corpus, "signatures")
    with pytest.raises(StoreError, match=r"duplicates\[all\] are of other signatures"):
        stage.plan_substrings(corpus, "all")
