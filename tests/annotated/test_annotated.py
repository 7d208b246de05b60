"""The stages `annotators` and `annotated`, and what `bucketed` makes of what they say."""

import gzip
import json

import dagster as dg
import yaml
from builders import Build, deduped, hashes, open_corpus, write_corpus, write_jsonl
from prelude import Any, Path, pl, pytest
from verbs import Cli

from assets.annotated.answer_files import find_answer_files, read_answers
from assets.bucketed.annotated_files import label_name
from assets.bucketed.asset import plan_bucketed
from assets.bucketed.bucketed_records import BUCKETED, layout_of
from pipeline_defs.corpus_tables import newest_tables
from resources.errors import InputError
from resources.settings.annotations import FileAnnotator
from resources.settings.pipeline import SettingsError

EDU: dict[str, Any] = {
    "name": "edu",
    "where": "scores/*",
    "columns": {"score": "number", "topic": "label"},
    "sources": ["prose"],
    "min_matched": 0.2,
}
UP_TO_TOKENIZED = (
    *("raw", "filtered", "signatures", "band_index", "duplicates", "deduped"),
    *("tokenizer", "tokenized"),
)
ANNOTATED = ("annotators", "annotated", "bucketed")


def annotated_corpus(folder: Path, **changes: Any) -> Any:
    """The small corpus, with the config of an annotator and all up to `tokenized` to come."""
    return open_corpus(write_corpus(folder, **{"annotations": [EDU]} | changes))


def scores(corpus: Any, doc_ids: list[str], name: str = "a.jsonl") -> None:
    """Write a file that gives each document the number of its place as score, and a topic."""
    records = [
        {"doc_id": doc_id, "score": number, "topic": f"topic {number % 2}"}
        for number, doc_id in enumerate(doc_ids)
    ]
    write_jsonl(corpus.config.parent / "scores" / name, records)


def prose_ids(corpus: Any) -> list[str]:
    return sorted(pl.concat(deduped(corpus, "prose", "doc_id"))["doc_id"])


def annotations(corpus: Any, annotator: str = "edu") -> pl.DataFrame:
    manifest = corpus.store.newest("annotated", "prose")
    parts = [part for part in manifest.parts if part.stats.numbers["annotator"] == annotator]
    files = [corpus.store.part_file(manifest, part, "annotations") for part in parts]
    return pl.concat([pl.read_parquet(file.checked()) for file in files])


def trained(corpus: Any) -> set[str]:
    """Ids of the documents of prose in sequences."""
    manifest = corpus.store.newest("bucketed", "prose")
    files = [corpus.store.part_file(manifest, part, "sequences") for part in manifest.parts]
    tables = [pl.read_ipc(file.checked()) for file in files]
    return {span["doc_id"] for table in tables for spans in table["spans"] for span in spans}


def by_class(corpus: Any) -> dict[str, set[str]]:
    """Ids of the documents of prose in the sequences of each class."""
    manifest, found = corpus.store.newest(BUCKETED, "prose"), dict[str, set[str]]()
    names = layout_of(manifest).names
    [file] = [corpus.store.part_file(manifest, part, "sequences") for part in manifest.parts]
    for row in pl.read_ipc(file.checked()).iter_rows(named=True):
        group = names[row["bucket"]].partition(".")[2]
        found.setdefault(group, set()).update(span["doc_id"] for span in row["spans"])
    return found


def with_settings(corpus: Any, **changes: Any) -> Any:
    """The corpus under another config."""
    content = yaml.safe_load(corpus.config.read_text()) | changes
    corpus.config.write_text(yaml.safe_dump(content, sort_keys=False))
    return open_corpus(corpus.config)


def test_documents_have_what_the_first_record_of_their_id_says(
    tmp_path: Path, build: Build
) -> None:
    corpus = annotated_corpus(tmp_path)
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids[:20])
    scores(corpus, ids[10:30], "b.jsonl")
    repeated = [{"doc_id": ids[30], "score": "7.5"}, {"doc_id": ids[30], "score": 8}]
    write_jsonl(
        tmp_path / "scores/c.jsonl",
        [*repeated, {"doc_id": ids[31], "topic": None}, {"score": 1}, "{"],
    )

    build(corpus, *ANNOTATED)

    expected = {doc_id: (float(n), f"topic {n % 2}") for n, doc_id in enumerate(ids[:20])}
    expected |= {
        doc_id: (float(n), f"topic {n % 2}") for n, doc_id in enumerate(ids[10:30]) if n >= 10
    }
    expected |= dict.fromkeys(ids[30:], (None, None)) | {ids[30]: (7.5, None)}
    assert {row[0]: row[1:] for row in annotations(corpus).iter_rows()} == expected
    stats = corpus.store.newest("annotators", "all").stats
    assert (stats.rows_in, stats.rows_kept, stats.duplicates, stats.quarantined) == (45, 42, 1, 2)
    assert trained(corpus) == {*ids}


def test_a_condition_leaves_documents_out_and_has_a_fate(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = annotated_corpus(tmp_path, annotations=[EDU | {"drop": "score < 5"}])
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids[:20])
    build(corpus, *ANNOTATED, "sharded")

    assert trained(corpus) == {*ids[5:]}
    fates = newest_tables(corpus)["fates"].filter(source="prose", stage="bucketed")
    dropped = fates.filter(fate="dropped by an annotation").rows(named=True)
    assert [(row["reason"], row["documents"]) for row in dropped] == [("annotation.edu", 5)]
    assert fates.filter(fate="in training shards")["documents"].to_list() == [len(ids) - 5]

    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    said = cli.json("trace", ids[3])["annotations"]
    columns = {"score": 3.0, "topic": "topic 1"}
    assert said == [{"annotator": "edu", "columns": columns, "is_dropped": True}]
    told = cli.out("trace", ids[3])
    assert "score 3, topic topic 1: in no sequence for it" in " ".join(told.split())
    assert cli.json("trace", ids[-1])["annotations"][0]["columns"]["score"] is None
    assert newest_tables(corpus)["annotated"].rows() == [("prose", "edu", len(ids), 20, 0, 5)]

    asked = cli.json("annotations", "--drop", "topic = 'topic 1'")
    assert [(row["when"], row["documents"]) for row in asked["dropped"]] == [
        ("now", 5),
        ("then", 10),
    ]
    assert [(row["label"], row["documents"]) for row in asked["labels"]] == [
        ("topic 0", 10),
        ("topic 1", 10),
    ]
    cli.out("report", "--out", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text().partition('id="annotated"')[2]
    assert '<td data-name="annotator">edu</td>' in page.partition("<h2")[0]
    [spread] = asked["numbers"]
    assert (spread["known"], spread["5%"], spread["95%"]) == (20, 1.0, 18.0)
    tokens = corpus.store.newest("tokenized", "prose").stats.tokens
    [now, _then] = asked["dropped"]
    assert now["tokens"] / now["tokens_share"] == pytest.approx(tokens)
    assert "no column 'x'" in cli.err(2, "annotations", "--drop", "x < 1")

    other = with_settings(corpus, annotations=[EDU | {"drop": "topic = 'topic 1'"}])
    before = {name for name in hashes(corpus.store.root) if name.startswith("annot")}
    build(other, *ANNOTATED)
    assert trained(other) == {*ids} - {*ids[1:20:2]}
    after = {name for name in hashes(corpus.store.root) if name.startswith("annot")}
    assert {name for name in after - before if "_manifests" not in name} == set()


def test_documents_are_in_classes_by_a_number_of_an_annotator(tmp_path: Path, build: Build) -> None:
    buckets = {
        "mode": "pack",
        "sequence_length": 64,
        "classes": {"score": "edu.score", "limits": [5]},
    }
    corpus = annotated_corpus(tmp_path, buckets=buckets)
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids[:20])
    build(corpus, *ANNOTATED)

    assert by_class(corpus) == {"class-0": {*ids[:5]}, "class-1": {*ids[5:20]}, "": {*ids[20:]}}
    assert layout_of(corpus.store.newest(BUCKETED, "notes")).groups == ()


def labelled(corpus: Any, labels: dict[str, str], scored: list[str]) -> None:
    """Write a file of topics, and another of scores: 0, 1, 2, ... of these documents."""
    topics = [{"doc_id": doc_id, "topic": label} for doc_id, label in labels.items()]
    write_jsonl(corpus.config.parent / "topics/a.jsonl", topics)
    numbers = [{"doc_id": doc_id, "score": n} for n, doc_id in enumerate(scored)]
    write_jsonl(corpus.config.parent / "scores/a.jsonl", numbers)


def classes_by(folder: Path, build: Build, labels: list[str], **classes: Any) -> Any:
    """Build a corpus of which the first documents of prose have these labels, and all a score."""
    topics = EDU | {
        "name": "topics",
        "where": "topics/*",
        "columns": {"topic": "label"},
        "min_matched": 0,
    }
    quality = EDU | {"columns": {"score": "number"}}
    buckets = {"mode": "pack", "sequence_length": 64, "classes": classes}
    corpus = annotated_corpus(folder, annotations=[topics, quality], buckets=buckets)
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    labelled(corpus, dict(zip(ids, labels, strict=False)), ids)
    build(corpus, *ANNOTATED)
    return corpus


def test_each_label_is_a_class(tmp_path: Path, build: Build) -> None:
    labels = ["art", "C++", "validation", "art", "C#", "no-class", "zoo"] * 2
    corpus = classes_by(tmp_path, build, labels, label="topics.topic")
    ids = prose_ids(corpus)

    found = by_class(corpus)

    assert found.pop("") == {*ids[14:]}
    expected = {f"class-{label_name(label)}": set[str]() for label in labels}
    for doc_id, label in zip(ids, labels, strict=False):
        expected[f"class-{label_name(label)}"].add(doc_id)
    assert found == expected
    assert layout_of(corpus.store.newest(BUCKETED, "notes")).groups == ()


def test_classes_are_by_a_label_and_a_score(tmp_path: Path, build: Build) -> None:
    by = {"label": "topics.topic", "score": "edu.score", "limits": [4, 8]}
    corpus = classes_by(tmp_path, build, ["art", "a-1"] * 6, **by)
    ids = prose_ids(corpus)

    expected = {f"class-art-{n}": {ids[4 * n], ids[4 * n + 2]} for n in range(3)}
    expected |= {f"class-a-1-{n}": {ids[4 * n + 1], ids[4 * n + 3]} for n in range(3)}
    assert by_class(corpus) == expected | {"": {*ids[12:]}}


def test_small_classes_are_in_no_class(tmp_path: Path, build: Build) -> None:
    """The tokens of a class are those of all its documents in the source."""
    labels = ["art"] * 5 + ["law"] * 2 + ["zoo"]
    corpus = classes_by(tmp_path, build, labels, label="topics.topic")
    ids, numbers = prose_ids(corpus), corpus.store.newest(BUCKETED, "prose").stats.numbers
    tokens = numbers.class_tokens
    assert {f"64.{name}": tokens[name] for name in tokens}.items() < numbers.bucket_tokens.items()
    buckets = yaml.safe_load(corpus.config.read_text())["buckets"]

    def built(least: int) -> dict[str, set[str]]:
        classes = buckets["classes"] | {"min_tokens": least}
        build(with_settings(corpus, buckets=buckets | {"classes": classes}), "bucketed")
        return by_class(corpus)

    exactly = built(tokens["class-law"])
    assert exactly == {"class-art": {*ids[:5]}, "class-law": {*ids[5:7]}, "": {*ids[7:]}}
    assert built(tokens["class-law"] + 1) == {"class-art": {*ids[:5]}, "": {*ids[5:]}}
    assert built(10**9) == {"": {*ids}}


@pytest.mark.parametrize("labels", [["art"] * 5, []], ids=["some classes", "no class"])
def test_a_window_that_was_counted_is_not_read_again(
    tmp_path: Path, build: Build, labels: list[str]
) -> None:
    corpus = classes_by(tmp_path, build, labels, label="topics.topic", min_tokens=2)
    manifest = corpus.store.newest("tokenized", "prose")
    files = [corpus.store.part_file(manifest, part, "tokens") for part in manifest.parts]

    planned = plan_bucketed(corpus, "prose")
    for file in files:
        file.unchecked_path.unlink()

    assert plan_bucketed(corpus, "prose") == planned
    again = corpus.store.newest(BUCKETED, "prose").parts
    assert [task.fingerprint for task in planned.tasks] == [part.fingerprint for part in again]


def test_more_classes_than_there_can_be_are_refused(tmp_path: Path, build: Build) -> None:
    corpus = classes_by(tmp_path, build, [f"t{n}" for n in range(20)], label="topics.topic")
    buckets = {"mode": "buckets", "edges": [*range(1, 256)], "classes": {"label": "topics.topic"}}

    many = r"source 'prose': 256 lengths .* 21 groups .* 4096.*raise `classes.min_tokens`"
    with pytest.raises(dg.Failure, match=many):
        build(with_settings(corpus, buckets=buckets), "bucketed")


def test_a_phase_weighs_a_class_of_all_sources_by_name(tmp_path: Path, build: Build) -> None:
    corpus = classes_by(tmp_path, build, ["art", "law", "zoo"] * 4, label="topics.topic")
    build(corpus, "sharded")
    phase = {"name": "main", "weights": {"prose": 1, "notes": 1}, "tokens": 2000, "max_epochs": 99}

    def mixed(upsample: Any) -> Any:
        phases = [phase | {"upsample": upsample}]
        return with_settings(corpus, phases=phases)

    build(mixed({"class-art": 2, "class-law": 0, "no-class": 0.5}), "mixed")
    shares = corpus.store.newest("mixed", "main").parts[0].stats.numbers["mix"]
    names = {"prose/class-art", "prose/class-law", "prose/class-zoo", "prose/no-class", "notes"}
    assert {*shares} == names
    assert shares["prose/class-law"]["realised_tokens"] == 0
    epochs = {name: shares[name]["epochs"] for name in shares}
    assert epochs["prose/class-art"] == pytest.approx(2 * epochs["prose/class-zoo"], rel=0.05)
    assert epochs["prose/no-class"] == pytest.approx(epochs["prose/class-zoo"] / 2, rel=0.05)

    unknown = "weighs 'class-x' .*that no document .*: class-art, class-law, class-zoo, no-class"
    with pytest.raises(dg.Failure, match=unknown):
        build(mixed({"class-x": 2}), "mixed")
    with pytest.raises(SettingsError, match="by a label alone have no borders"):
        mixed([[0.5, 1], [1, 2]])


def test_a_phase_draws_of_more_than_ten_classes(tmp_path: Path, build: Build) -> None:
    classes = {"score": "edu.score", "limits": [*range(1, 14)]}
    phase = {"name": "main", "weights": {"prose": 1}, "tokens": 9000, "max_epochs": 99}
    corpus = annotated_corpus(
        tmp_path,
        buckets={"mode": "pack", "sequence_length": 64, "classes": classes},
        phases=[phase | {"upsample": [[11, 0], [12, 3], [99, 3]]}],
    )
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids)
    build(corpus, *ANNOTATED, "sharded", "mixed")

    expected = {f"class-{number:02}": {doc_id} for number, doc_id in enumerate(ids[:13])}
    assert by_class(corpus) == expected | {"class-13": {*ids[13:]}}
    shares = corpus.store.newest("mixed", "main").parts[0].stats.numbers["mix"]
    drawn = {name for name, share in shares.items() if share["realised_tokens"]}
    assert drawn == {"prose/class-11", "prose/class-12", "prose/class-13"}


def test_only_what_is_new_to_an_annotator_is_computed(tmp_path: Path, build: Build) -> None:
    corpus = annotated_corpus(tmp_path, annotations=[EDU | {"drop": "score < 5"}])
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids)
    build(corpus, *ANNOTATED)
    before = corpus.store.newest("annotated", "prose").parts

    likes = {"name": "likes", "where": "likes.jsonl", "by": "meta.n", "min_matched": 0.1}
    write_jsonl(tmp_path / "likes.jsonl", [{"n": str(n)} for n in range(40)])
    more = with_settings(
        corpus,
        annotations=[
            EDU | {"drop": "score < 5"},
            likes | {"sources": ["prose"], "columns": {"n": "label"}},
        ],
    )
    with pytest.raises(dg.Failure, match="no record has a label 'n'"):
        build(more, *ANNOTATED)
    write_jsonl(tmp_path / "likes.jsonl", [{"n": str(n), "likes": n} for n in range(0, 40, 2)])
    more = with_settings(
        corpus,
        annotations=[
            EDU | {"drop": "score < 5"},
            likes | {"sources": ["prose"], "columns": {"likes": "number"}},
        ],
    )
    build(more, *ANNOTATED)

    after = corpus.store.newest("annotated", "prose").parts
    assert {part.fingerprint for part in before} < {part.fingerprint for part in after}
    n = dict(pl.concat(deduped(corpus, "prose", "doc_id", "meta")).iter_rows())
    expected = {doc_id: json.loads(meta)["n"] for doc_id, meta in n.items()}
    found = dict(annotations(corpus, "likes").iter_rows())
    assert found == {
        d: (float(number) if number % 2 == 0 else None) for d, number in expected.items()
    }


def test_a_source_that_few_records_are_of_keeps_its_last_state(
    tmp_path: Path, build: Build
) -> None:
    corpus = annotated_corpus(tmp_path, annotations=[EDU | {"min_matched": 0.5}])
    build(corpus, *UP_TO_TOKENIZED)
    ids = prose_ids(corpus)
    scores(corpus, ids[:10])

    with pytest.raises(dg.Failure, match=r"a record for 10 of \d+ documents.*min_matched \(0.5\)"):
        build(corpus, *ANNOTATED)

    assert corpus.store.newest_or_none("annotated", "prose") is None


def test_sequences_are_not_made_of_other_annotations_than_the_config_names(
    tmp_path: Path, build: Build
) -> None:
    corpus = annotated_corpus(tmp_path)
    build(corpus, *UP_TO_TOKENIZED)
    scores(corpus, prose_ids(corpus))
    build(corpus, *ANNOTATED)
    average = with_settings(corpus, annotations=[EDU | {"drop": "score < AVG(score)"}])
    with pytest.raises(dg.Failure, match="annotator 'edu': drop: .* depends on other documents"):
        build(average, "bucketed")
    other = with_settings(
        corpus, annotations=[EDU | {"columns": {"score": "number"}, "drop": "score < 5"}]
    )

    with pytest.raises(dg.Failure, match="Materialize `annotated` for 'prose' first"):
        build(other, "bucketed")


def test_answers_are_read_with_the_readers_of_sources(tmp_path: Path) -> None:
    lines = b'{"url":"https://a.example/","score":1.5}\n{"url":"https://b.example/","score":"x"}\n'
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    pl.DataFrame({"url": ["c", None], "score": [3, 4]}).write_parquet(tmp_path / "b.parquet")
    annotator = FileAnnotator.model_validate(
        {"name": "edu", "where": str(tmp_path / "*"), "by": "url", "columns": {"score": "number"}}
    )
    files = find_answer_files(annotator, tmp_path, tmp_path / "downloads")

    tables = [read_answers(file, annotator) for file in files]

    assert [table.rows() for table, _ in tables] == [
        [("https://a.example/", 1.5), ("https://b.example/", None)],
        [("c", 3.0)],
    ]
    assert [unreadable.height for _, unreadable in tables] == [0, 1]


def test_a_file_without_the_key_is_refused_by_name(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"url": "a", "score": 1}])
    annotator = FileAnnotator.model_validate(
        {"name": "edu", "where": str(tmp_path / "*"), "columns": {"score": "number"}}
    )
    [file] = find_answer_files(annotator, tmp_path, tmp_path / "downloads")

    with pytest.raises(InputError, match=r"annotator 'edu'.*`doc_id` is missing.*Correct `key`"):
        read_answers(file, annotator)
