"""rules.language of the whole file, and sources whose language detection is off."""

import yaml
from builders import Build, open_corpus, write_corpus
from prelude import Any, Path, pl, pytest

from assets.filtered.filter_documents import filter_documents
from resources.settings.pipeline import SettingsError

ENGLISH = {"allowed": ["en"], "allowed_detected": ["en"], "min_score": 0.1}
RULES = {"length": None, "language": ENGLISH}
TEXTS = ["def f(x):\n    return x", "The river and the town are old.", "Der Fluss ist alt."]
DOCUMENTS = pl.DataFrame({"doc_id": ["1", "2", "3"], "text": TEXTS}).with_columns(
    lang=pl.lit(None, pl.String)
)


def with_notes(tmp_path: Path, general: Any, **keys: Any) -> Any:
    """The small corpus under filters, with more keys of the source `notes`."""
    config = write_corpus(tmp_path, filters=general)
    content = yaml.safe_load(config.read_text())
    content["sources"][1] |= keys
    config.write_text(yaml.safe_dump(content))
    return open_corpus(config)


def kept(corpus: Any, source: str, documents: pl.DataFrame = DOCUMENTS) -> list[str]:
    return filter_documents(documents, corpus.settings.filters_for(source))[0]["doc_id"].to_list()


def test_a_rule_of_the_file_judges_only_sources_with_detection(tmp_path: Path) -> None:
    corpus = with_notes(tmp_path, {"rules": RULES}, domain="code")

    assert kept(corpus, "notes") == ["1", "2", "3"]
    assert kept(corpus, "prose") == ["2"]
    assert corpus.settings.skipped_rules("prose") == []
    assert corpus.settings.skipped_rules("notes") == ["min_score", "allowed_detected", "allowed"]
    filters = {"language": {"backend": "fasttext"}}  # which the source turns on
    judged = with_notes(tmp_path, {"rules": RULES}, domain="code", filters=filters)
    assert kept(judged, "notes") == ["2"]


@pytest.mark.parametrize("preset", ["fineweb-recipe", "fineweb2:de", "c4-language"])
def test_a_preset_of_the_file_does_not_reject_every_document(tmp_path: Path, preset: str) -> None:
    filters = {"language": {"backend": "none"}}
    corpus = with_notes(tmp_path, {"presets": [preset]}, filters=filters)

    assert corpus.settings.filters_for("notes").rules.language is None
    assert corpus.settings.filters_for("prose").rules.language is not None


def test_declared_languages_are_judged_where_the_source_or_the_file_says_so(tmp_path: Path) -> None:
    declared = DOCUMENTS.with_columns(lang=pl.Series(["python", "en", "de"]))
    own = {"rules": {"language": {"allowed": ["de"]}}}
    of_source = with_notes(tmp_path / "a", {"rules": RULES}, domain="code", filters=own)
    of_file = with_notes(tmp_path / "b", {"rules": RULES, "language": {"backend": "none"}})

    assert kept(of_source, "notes", declared) == ["3"]
    assert kept(of_file, "notes", declared) == ["2"]
    assert of_file.settings.skipped_rules("notes") == ["min_score", "allowed_detected"]


@pytest.mark.parametrize("rule", [{"allowed_detected": ["en"]}, {"min_score": 0.5}])
def test_a_rule_at_the_source_that_nothing_can_judge_is_refused(
    tmp_path: Path, rule: dict[str, Any]
) -> None:
    own = {"rules": {"language": rule}}
    name = next(iter(rule))

    with pytest.raises(SettingsError) as refused:
        with_notes(tmp_path, {}, domain="code", filters=own)

    message = str(refused.value)
    assert f"sources[1].filters.rules.language.{name}: language detection is off" in message
    advice = "Set `language.backend` of this source, or null for this rule (in source 'notes')"
    assert advice in message


def test_what_is_skipped_is_said(
    tmp_path: Path, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus = with_notes(tmp_path, {"rules": RULES}, domain="code")

    result = dagster_build(corpus, "raw", "classifier", "filtered")

    events = result.get_asset_materialization_events()
    names = ("min_score", "allowed_detected", "allowed")
    said = f"notes: {', '.join(f'rules.language.{name}' for name in names)}"
    shown = [e.materialization.metadata for e in events if e.partition == "notes"][-1]
    assert said in shown["skipped_rules"].value
    assert said in capfd.readouterr().err
    assert corpus.store.newest("filtered", "notes").stats.rows_kept == 41
