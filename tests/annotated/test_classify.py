"""Classifiers that learn from the answers of another annotator: trained once, kept, and renewed."""

from dataclasses import replace

import dagster as dg
import msgspec
from builders import Build, open_corpus, write_corpus, write_jsonl
from chat_server import chat_server
from prelude import Any, Path, assert_frame_equal, pl, pytest
from verbs import Cli

from assets.annotated.asset import plan_annotated
from assets.annotated.held_out_report import HeldOutReport, report_markdown, report_on
from assets.annotated.models_asset import plan_models, read_examples
from assets.text.document_ids import is_sampled
from resources.settings.pipeline import SettingsError
from resources.store.store import StoreError

BEFORE = ("raw", "filtered", "signatures", "band_index", "duplicates", "deduped", "tokenizer")
STAGES = (*BEFORE, "tokenized", "annotators", "asked", "annotation_models", "annotated")
LIKES: dict[str, Any] = {
    **{"name": "likes", "where": "likes/*.jsonl", "by": "meta.n", "min_matched": 0},
    "columns": {"score": "number"},
}
JUDGE: dict[str, Any] = {
    **{"name": "judge", "kind": "ask", "model": "any", "prompt": "prompt.txt", "parallel": 4},
    **{"columns": {"score": "number"}, "pattern": r"Score: (?P<score>\d+)", "share": 0.4},
}
EDU: dict[str, Any] = {"name": "edu", "kind": "classify", "by": "likes", "good": "score >= 3"}


def text(n: int) -> str:
    """A text about rivers for an even n, about engines for an odd one; no two are alike."""
    subject = ("river", "engine")[n % 2]
    words = [
        f"{subject}{(n * 7 + i * i) % 40} and the {'abcdefgh'[n % 8]}{n}x{i}" for i in range(25)
    ]
    return " ".join(words) + "."


def labelled_corpus(folder: Path, *annotators: Any, labels: int = 120) -> Any:
    """Documents about rivers and engines in two sources, of which the first have likes."""
    config = write_corpus(folder, annotations=[*annotators])
    for source in ("prose", "notes"):
        for path in (folder / "input" / source).iterdir():
            path.unlink()
    records = [{"text": text(n), "n": n} for n in range(200)]
    write_jsonl(folder / "input/prose/a.jsonl", records[::3])
    write_jsonl(folder / "input/notes/a.jsonl", [r for r in records if r["n"] % 3])
    likes = [{"n": str(n), "score": 5 * (n % 2 == 0)} for n in range(labels)]
    write_jsonl(folder / "likes/a.jsonl", [*likes, {"n": "150", "score": None}])
    return open_corpus(config)


def scores(corpus: Any) -> dict[int, float]:
    """The score of each document of both sources, by its n."""
    found = {}
    for source in ("prose", "notes"):
        manifest, deduped = (corpus.store.newest(s, source) for s in ("annotated", "filtered"))
        texts = pl.concat(
            pl.read_parquet(corpus.store.part_file(deduped, part, "documents").checked())
            for part in deduped.parts
        )
        numbers = texts.select("doc_id", n=pl.col("meta").str.json_path_match("$.n").cast(int))
        own = [part for part in manifest.parts if part.stats.numbers["annotator"] == "edu"]
        for part in own:
            file = corpus.store.part_file(manifest, part, "annotations").checked()
            joined = pl.read_parquet(file).join(numbers, on="doc_id")
            found |= dict(joined.select("n", "score").iter_rows())
    return found


def model_files(corpus: Any) -> list[str]:
    manifest = corpus.store.newest("annotation_models", "all")
    return [file.xxh3 for part in manifest.parts for file in part.files]


def report_of(corpus: Any) -> HeldOutReport:
    manifest = corpus.store.newest("annotation_models", "all")
    [part] = manifest.parts
    content = corpus.store.part_file(manifest, part, "report").checked().read_bytes()
    return msgspec.json.decode(content, type=HeldOutReport)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"by": "none"}, "'none' is no annotator of kind file or ask; there are: likes"),
        ({"by": "edu"}, "'edu' is no annotator of kind file or ask"),
        ({"good": "stars > 3"}, "no column 'stars'; there are score"),
        ({"good": "score >="}, "no condition in SQL"),
        ({"drop": "stars > 3"}, "no column 'stars'; there are score"),
        ({"held_out": 0}, "held_out"),
    ],
)
def test_what_a_classifier_learns_from_is_checked(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    config = write_corpus(tmp_path, annotations=[LIKES, EDU | change])

    with pytest.raises(SettingsError, match=message):
        open_corpus(config)


def test_some_labels_give_all_documents_a_score_and_its_model_is_kept(
    tmp_path: Path, build: Build
) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU | {"held_out": 0.3, "drop": "score < 0.5"})
    build(corpus, *STAGES, "bucketed")
    first, model = scores(corpus), model_files(corpus)

    assert sorted(first) == [*range(200)]
    assert all((first[n] > 0.5) == (n % 2 == 0) for n in first)
    assert all(score == round(score, 3) for score in first.values())
    assert len({*first.values()}) > 20
    left_out = [corpus.store.newest("bucketed", s).stats.rejected for s in ("prose", "notes")]
    assert sum(each["annotation.edu"] for each in left_out) == 100
    report = report_of(corpus)
    assert report.measures.auc == 1.0 and report.warnings == ()
    assert report.measures.n_good + report.measures.n_bad < 60
    assert corpus.store.newest("annotation_models", "all").parts[0].stats.rows_kept == 120

    write_jsonl(tmp_path / "input/notes/b.jsonl", [{"text": text(301), "n": 301}])
    write_jsonl(tmp_path / "likes/b.jsonl", [{"n": str(n), "score": 5} for n in range(120, 160)])
    build(corpus, *STAGES)

    assert model_files(corpus) == model
    assert scores(corpus) == first | {301: scores(corpus)[301]} and scores(corpus)[301] < 0.5
    renewed = open_corpus(corpus.config)
    object.__setattr__(renewed, "flags", frozenset({"renew"}))
    build(renewed, "annotation_models")
    assert (
        corpus.store.newest("annotation_models", "all").parts[0].stats.rows_kept == 159
    )  # n 150 has none
    build(corpus, *STAGES)
    assert model_files(corpus) != model and scores(corpus) != first


def test_other_settings_train_it_again(tmp_path: Path, build: Build) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU)
    build(corpus, *STAGES)
    model = model_files(corpus)
    corpus.config.write_text(corpus.config.read_text().replace("score >= 3", "score < 3"))

    with pytest.raises(StoreError, match="annotation_models.* another `annotations` config.*first"):
        plan_annotated(other := open_corpus(corpus.config), "prose")

    build(other, *STAGES)
    assert model_files(other) != model
    assert all((score > 0.5) == (n % 2 == 1) for n, score in scores(other).items())


def test_it_learns_from_a_language_model_and_is_kept_while_answers_come(
    tmp_path: Path, build: Build
) -> None:
    def judge(message: str) -> tuple[int, dict[str, str], str]:
        return 200, {}, f"Score: {5 if 'river' in message else 0}"

    (tmp_path / "prompt.txt").write_text("How much of it is about rivers?")
    with chat_server(judge) as (url, seen):
        ask = JUDGE | {"endpoint": url, "max_requests": 60}
        corpus = labelled_corpus(tmp_path, LIKES, ask, EDU | {"by": "judge"})
        build(corpus, *STAGES)
        first, model = scores(corpus), model_files(corpus)
        assert len(seen) == 60 and len(first) == 200
        assert corpus.store.newest("annotation_models", "all").stats.rows_kept == 60
        assert all((score > 0.5) == (n % 2 == 0) for n, score in first.items())

        build(corpus, *STAGES)
        assert len(seen) > 60 and (scores(corpus), model_files(corpus)) == (first, model)

        (tmp_path / "prompt.txt").write_text("Is it about rivers?")
        build(corpus, "asked")
        with pytest.raises(StoreError, match="annotation_models.* another `annotations` config"):
            plan_annotated(corpus, "prose")
        build(corpus, *STAGES)
        assert model_files(corpus) != model


def test_too_few_labels_are_told(tmp_path: Path, build: Build) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU, labels=19)

    with pytest.raises(
        dg.Failure,
        match="annotator 'edu': 'likes' gives 10 good and 9 bad examples by 'score >= 3'; at "
        "least 10 of each are needed. Label more documents, change `good`",
    ):
        build(corpus, *STAGES)


def test_a_condition_of_many_documents_is_told(tmp_path: Path, build: Build) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU | {"good": "score >= AVG(score)"})

    with pytest.raises(dg.Failure, match="'edu': good: .* depends on other"):
        build(corpus, *STAGES)


def test_examples_are_bounded_by_a_sample(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU)
    build(corpus, *BEFORE, "annotators")
    [task] = plan_models(corpus, "all").tasks
    annotator = corpus.settings.classifying[0]
    every = read_examples(task.payload, annotator)
    assert every.height == 120 and sorted({*every["source"]}) == ["notes", "prose"]
    assert int(every["is_good"].sum()) == 60

    limit = int(every["text"].str.len_bytes().sum() * 0.55)
    monkeypatch.setattr("assets.annotated.models_asset.EXAMPLE_BYTES", limit)
    half = every.filter(is_sampled(every["doc_id"], 0.5, "examples")).sort("doc_id")
    assert 0 < half["text"].str.len_bytes().sum() <= limit
    for sample in (task.payload.sample, task.payload.sample[::-1]):
        some = read_examples(replace(task.payload, sample=sample), annotator)
        assert_frame_equal(some.sort("doc_id"), half)


def test_annotations_shows_classifiers_and_renews_them(
    tmp_path: Path, build: Build, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU)
    monkeypatch.setenv("TOKENMILL_CONFIG", str(corpus.config))
    build(corpus, *STAGES)

    [row] = cli.json("annotations")["classifiers"]
    assert row["annotator"] == "edu" and row["auc"] == 1.0 and row["warnings"] == ""
    assert row["held_out_good"] + row["held_out_bad"] < 30
    assert cli.json("annotations", "--annotator", "likes")["classifiers"] == []
    write_corpus(tmp_path, annotations=[LIKES])
    assert "no annotator with `kind: topics` or `classify`" in cli.err(2, "annotations", "--renew")


def held(*groups: tuple[str, str | None, list[float], list[float]]) -> pl.DataFrame:
    """Examples by source and language: scores of good ones, and of bad ones."""
    rows = [
        {"score": score, "is_good": is_good, "source": source, "lang": lang}
        for source, lang, good, bad in groups
        for is_good, of_side in ((True, good), (False, bad))
        for score in of_side
    ]
    schema = {"score": pl.Float64, "is_good": pl.Boolean, "source": pl.String, "lang": pl.String}
    return pl.DataFrame(rows, schema)


def test_a_report_has_the_right_side_by_language() -> None:
    english = ("web", "en", [0.9] * 9 + [0.5], [0.2] * 8 + [0.6] * 2)
    few = ("web", "de", [0.9] * 10, [0.1] * 9)

    report = report_on(held(english, few, ("web", None, [0.4], [0.7] * 30)))

    assert report.right == {"en": 0.9}
    # Of 21 x 49 pairs: 19 of 0.9 above all, 0.5 above 17, 0.4 above 17.
    assert report.measures.auc == pytest.approx((19 * 49 + 17 + 17) / (21 * 49))
    assert report.warnings == ()
    assert "**AUC 0.9378**" in report_markdown(report)
    assert "On the right side of 0.5: en: 90.0 %." in report_markdown(report)


@pytest.mark.parametrize(
    ("groups", "warnings"),
    [
        ([("web", "en", [0.5, 0.53] * 10, [0.49, 0.52] * 10)], ["nearly the same everywhere"]),
        ([("web", "en", [0.2, 0.8] * 10, [0.1, 0.9] * 10)], ["says nothing: AUC 0.50"]),
        ([("web", "en", [0.9] * 9, [])], ["nothing is measured"]),
        (
            [("web", "en", [0.1] * 10, [0.1] * 90), ("books", "en", [0.9] * 90, [0.9] * 10)],
            ["only tell sources apart: AUC 0.90 over all examples, and AUC 0.50 within them"],
        ),
        (
            [("web", "en", [], [0.1] * 90), ("books", "en", [0.9] * 90, [])],
            ["only tell sources apart: AUC 1.00 .* none has both"],
        ),
        ([("web", "en", [0.9] * 10, [0.1] * 10), ("books", "en", [0.8] * 9, [0.1])], []),
        ([("web", "en", [0.1], [0.1] * 9), ("books", "en", [0.9] * 9, [0.9])], []),
        ([("books", "en", [0.9] * 9, [0.1] * 9)], []),
    ],
)
def test_a_classifier_that_tells_little_warns(groups: Any, warnings: list[str]) -> None:
    found = report_on(held(*groups))

    matching = [
        pl.Series([w]).str.contains(m)[0] for w, m in zip(found.warnings, warnings, strict=False)
    ]
    assert len(found.warnings) == len(warnings) and all(matching), found.warnings
    assert report_markdown(found).count("**Warning:**") == len(warnings)


def test_labels_that_are_the_source_warn(tmp_path: Path, build: Build) -> None:
    corpus = labelled_corpus(tmp_path, LIKES, EDU | {"held_out": 0.3})
    write_jsonl(
        tmp_path / "likes/a.jsonl", [{"n": str(n), "score": 5 * (n % 3 == 0)} for n in range(200)]
    )
    for source, rest in (("prose", [0]), ("notes", [1, 2])):
        words = {"prose": "valley", "notes": "meadow"}[source]
        records = [
            {"text": f"{words} {text(n)}".replace("river", words), "n": n}
            for n in range(200)
            if n % 3 in rest
        ]
        write_jsonl(tmp_path / f"input/{source}/a.jsonl", records)
    build(corpus, *STAGES)

    [warning] = report_of(corpus).warnings
    assert "may only tell sources apart" in warning
