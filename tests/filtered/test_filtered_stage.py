"""filtered through Dagster: what it reports, and what a changed file or config recomputes."""

import dagster as dg
import yaml
from builders import Build, open_corpus, sentence, write_corpus, write_jsonl
from prelude import Any, Path, pl, pytest

from resources.run_reports import read_report

CUSTOM = """
import polars as pl
from assets.filtered.rules import CustomRule
RULES = [CustomRule("long", pl.col("text").str.len_chars(), maximum=LIMIT, keeps=["a"])]
"""
MAIL = "Write to ann@example.org and the answer will come with the bridge of the town to have. "


def with_filters(tmp_path: Path, **filters: Any) -> Any:
    """Open the small corpus under other filters."""
    return open_corpus(write_corpus(tmp_path, filters=filters))


def table(corpus: Any, kind: str, source: str = "prose") -> pl.DataFrame:
    manifest = corpus.store.newest("filtered", source)
    files = [part.file(kind) for part in manifest.parts]
    return pl.concat([pl.read_parquet(corpus.store.path_of(manifest, f)) for f in files if f])


def parts_computed(corpus: Any) -> int:
    reports = [read_report(corpus.store.root, "filtered", name) for name in ("prose", "notes")]
    return sum(report.parts_computed for report in reports)


def test_the_materialization_shows_plots_and_counts_of_every_rule(
    corpus: Any, dagster_build: Build
) -> None:
    write_jsonl(corpus.config.parent / "input/notes/short.jsonl", [{"text": "x"}])
    result = dagster_build(corpus, "raw", "classifier", "filtered")

    events = result.get_asset_materialization_events()
    metadata = [e.materialization.metadata for e in events if e.partition == "notes"][-1]
    for name in ("funnel", "languages", "score_histograms"):
        assert metadata[name].value.startswith("![")
    rules = [record.data for record in metadata["rejected"].records]
    assert list(rules[0]) == ["rule", "breaks it", "only it", "it first"]
    broken = {str(rule["rule"]): rule["breaks it"] for rule in rules}
    assert set(broken) >= {"length.too_short", "gopher_quality.too_few_words"}
    decisions = table(corpus, "decisions", "notes")
    assert sum(broken.values()) == decisions["reasons"].list.len().sum()


def test_decisions_hold_a_float_for_every_rule_of_every_document(
    tmp_path: Path, build: Build
) -> None:
    corpus = with_filters(tmp_path, presets=["gopher-quality", "gopher-repetition", "fineweb"])

    build(corpus, "raw", "classifier", "filtered")

    decisions = table(corpus, "decisions")
    assert decisions.height == corpus.store.newest("raw", "prose").stats.rows_kept
    scores = decisions.select(pl.exclude("doc_id", "kept", "reasons", "detected_lang", "num_bytes"))
    assert set(scores.dtypes) == {pl.Float64}
    assert scores.null_count().sum_horizontal().item() == 0


def test_a_changed_rules_file_recomputes_and_an_unchanged_one_does_not(
    tmp_path: Path, build: Build
) -> None:
    (tmp_path / "rules.py").write_text(CUSTOM.replace("LIMIT", "300"))
    corpus = with_filters(tmp_path, custom="rules.py")
    build(corpus, "raw", "classifier", "filtered")
    first = corpus.store.newest("filtered", "prose").stats.rejected
    assert parts_computed(corpus) > 0

    build(corpus, "raw", "classifier", "filtered")
    assert parts_computed(corpus) == 0

    (tmp_path / "rules.py").write_text(CUSTOM.replace("LIMIT", "200"))
    build(corpus, "raw", "classifier", "filtered")
    second = corpus.store.newest("filtered", "prose").stats.rejected
    assert parts_computed(corpus) > 0
    assert 0 < first["custom.long"] < second["custom.long"]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (
            {"custom": "rules.py", "rules": {"custom": {"longer": 1}}},
            r"rules\.custom\.longer: no such rule in filters\.custom or filters\.plug_ins "
            r"\(did you mean 'long'\?\); "
            "there is long",
        ),
        (
            {"rules": {"custom": {"long": 1}}},
            "no such rule in filters.custom or filters.plug_ins; there is none",
        ),
        ({"custom": "wrong.py"}, "does not reject its example"),
    ],
)
def test_a_wrong_custom_rule_stops_filtered_with_its_place(
    tmp_path: Path, build: Build, filters: dict[str, Any], message: str
) -> None:
    (tmp_path / "rules.py").write_text(CUSTOM.replace("LIMIT", "300"))
    (tmp_path / "wrong.py").write_text(CUSTOM.replace("LIMIT", "9, rejects=['b']"))
    corpus = with_filters(tmp_path, **filters)
    build(corpus, "raw")

    with pytest.raises(dg.Failure, match=f"pipeline.yaml: source 'prose': .*{message}"):
        build(corpus, "filtered")


def test_pii_is_redacted_in_what_later_stages_read(tmp_path: Path, build: Build) -> None:
    config = write_corpus(tmp_path, filters={"pii": {}})
    write_jsonl(tmp_path / "input/prose/mail.jsonl", [{"text": MAIL + sentence(77)}])
    corpus = open_corpus(config)

    build(corpus, "raw", "classifier", "filtered")

    (text,) = table(corpus, "documents").filter(pl.col("text").str.contains("Write to"))["text"]
    assert text.startswith("Write to <EMAIL> and the answer")
    assert table(corpus, "decisions")["pii_email"].sum() == 1


def test_rejected_documents_count_once_by_their_first_reason(tmp_path: Path, build: Build) -> None:
    strict = {"length": {"min_chars": 300}, "gopher_quality": {"min_words": 80}}
    corpus = with_filters(tmp_path, rules=strict)

    build(corpus, "raw", "classifier", "filtered")

    stats = corpus.store.newest("filtered", "prose").stats
    assert stats.rejected == {"gopher_quality.too_few_words": 6, "length.too_short": 14}


def test_a_medical_source_is_judged_by_its_vocabulary(tmp_path: Path, build: Build) -> None:
    config = write_corpus(tmp_path)
    content = yaml.safe_load(config.read_text())
    content["sources"][0]["domain"] = "medical"
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    corpus = open_corpus(config)

    build(corpus, "raw", "classifier", "filtered")

    assert "medical.too_few_terms" in corpus.store.newest("filtered", "prose").stats.rejected
