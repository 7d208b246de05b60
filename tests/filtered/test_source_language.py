"""Languages of a source: what is surely in another is tagged, and rejected if that is required."""

import yaml
from builders import Build, open_corpus, write_corpus, write_jsonl
from prelude import Any, Path, json, pl, pytest
from tables import cases

from assets.filtered.filter_documents import count_other_languages, filter_documents
from assets.filtered.language.detect_language import (
    correct_serbian,
    detect_language,
    family_of,
    is_other_language,
)
from resources.settings.filtering.filter_steps import LanguageConfig
from resources.settings.pipeline import SettingsError

ENGLISH = "The river rose twice that year, and the people of the lower town left their houses. "
GERMAN = "Der Fluss stieg in jenem Jahr zweimal, und die Leute verließen ihre Häuser am Ufer. "
CODE = "def f(x):\n    return [g(y) for y in x if y.is_open()]\n\nprint(f(read_all()))\n"
TEXTS = [ENGLISH * 3, GERMAN * 3, "Hallo Welt", CODE * 3, "1 2 3 " * 40]


def with_notes(tmp_path: Path, **keys: Any) -> Any:
    """The small corpus, with more keys of the source `notes`."""
    config = write_corpus(tmp_path, filters={"rules": {"length": None}})
    content = yaml.safe_load(config.read_text())
    content["sources"][1] |= keys
    config.write_text(yaml.safe_dump(content))
    return open_corpus(config)


def decide(corpus: Any, texts: list[str], meta: str = "{}") -> tuple[pl.DataFrame, pl.DataFrame]:
    documents = pl.DataFrame(
        {
            "doc_id": [str(number) for number in range(len(texts))],
            "text": texts,
            "lang": pl.Series([None] * len(texts), dtype=pl.String),
            "meta": [meta] * len(texts),
        }
    )
    return filter_documents(documents, corpus.settings.filters_for("notes"))


def test_only_sure_texts_of_other_languages_are_tagged(tmp_path: Path) -> None:
    kept, decisions = decide(with_notes(tmp_path, language="en"), TEXTS, '{"a":1}')

    assert decisions["other_language"].to_list() == [0, 1, 0, 0, 0]
    assert decisions["kept"].all()
    tags = [json.loads(meta).get("detected_language") for meta in kept["meta"]]
    assert tags == [None, "de", None, None, None]
    assert count_other_languages(decisions) == {"de": 1}


def test_a_required_language_rejects_what_is_tagged(tmp_path: Path) -> None:
    corpus = with_notes(tmp_path, language="en-US", require_language=True)
    _, decisions = decide(corpus, TEXTS)

    reasons = [[], ["expected_language.other_language"], [], [], []]
    assert decisions["reasons"].to_list() == reasons


def test_a_source_may_have_several_languages(tmp_path: Path) -> None:
    corpus = with_notes(tmp_path, language=["en", "de"], require_language=True)
    kept, decisions = decide(corpus, TEXTS[:2])

    assert decisions["other_language"].to_list() == [0, 0]
    assert kept["lang"].to_list() == ["en", "de"]
    assert corpus.settings.source("notes").declared_language is None


def test_without_language_or_detection_nothing_is_tagged(tmp_path: Path) -> None:
    assert "other_language" not in decide(with_notes(tmp_path), TEXTS)[1].columns
    corpus = with_notes(tmp_path, language="en", domain="code")
    assert "other_language" not in decide(corpus, TEXTS)[1].columns


@cases("""
    keys                                 | message
    {}                                   | `language` is None. Set it to ISO 639 codes
    {"language": "python"}               | `language` is 'python'. Set it
    {"language": "en", "domain": "code"} | language detection is off here
""")
def test_a_language_that_cannot_be_required_is_refused(
    tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        with_notes(tmp_path, require_language=True, **keys)
    assert f"sources[1].require_language: true, but {message}" in str(refused.value)


@cases("""
    expected | found | chars | score | is_other
    # Close languages are one family.
    sr       | hr    | 100   | 1.0   | False
    no       | da    | 100   | 1.0   | False
    nb       | nn    | 100   | 1.0   | False
    id       | ms    | 100   | 1.0   | False
    zh       | yue   | 100   | 1.0   | False
    hr       | sl    | 100   | 1.0   | True
    no       | sv    | 100   | 1.0   | True
    en       | sco   | 100   | 1.0   | False
    mk       | bg    | 100   | 1.0   | True
    # Certainty and length have limits, and an unknown language is no other.
    en       | de    | 100   | 0.65  | True
    en       | de    | 99    | 1.0   | False
    en       | de    | 100   | 0.64  | False
    en       | None  | 500   | 1.0   | False
""")
def test_another_language_is_of_another_family_and_sure(
    expected: str, found: str | None, chars: int, score: float, is_other: bool
) -> None:
    detected = pl.DataFrame({"lang": pl.Series([found], dtype=pl.String), "lang_score": [score]})
    config = LanguageConfig(expected=(expected,))
    assert is_other_language(pl.Series(["x" * chars]), detected, config).to_list() == [is_other]
    assert family_of(pl.Series(["sh", "xx", None])).to_list() == ["sr", "xx", None]


def test_serbian_is_told_by_its_script_and_letters() -> None:
    texts = ["Ћирилица и латиница", "Река је порасла", "Rijeka je narasla", "Река ќе порасне",
             "Градът е голям", "Reka je porasla", "ѓ ђ"]  # fmt: skip
    langs = ["mk", "sh", "sh", "sr", "bg", "sr", "mk"]
    expected = ["sr", "sr", "hr", "mk", "bg", "sr", "mk"]
    assert correct_serbian(pl.Series(texts), pl.Series(langs)).to_list() == expected


def test_serbian_in_both_scripts_is_serbian() -> None:
    cyrillic = "Сва људска бића рађају се слободна и једнака у достојанству и "
    cyrillic += "правима. Она су обдарена разумом."
    latin = "Korisnici treba da izaberu dugme koje je pored menija, "
    latin += "zatim da sačekaju dok se program pokrene."
    found = detect_language(pl.Series([cyrillic, latin]), LanguageConfig())
    assert found["lang"].to_list() == ["sr", "sr"]


def test_other_languages_are_said(
    tmp_path: Path, dagster_build: Build, capfd: pytest.CaptureFixture[str]
) -> None:
    corpus = with_notes(tmp_path, language="en")
    write_jsonl(tmp_path / "input/notes/german.jsonl", [{"text": GERMAN * 3}])

    result = dagster_build(corpus, "raw", "classifier", "filtered")

    events = result.get_asset_materialization_events()
    shown = [e.materialization.metadata for e in events if e.partition == "notes"][-1]
    said = "documents are in other languages than its `language` (de 1"
    assert said in str(shown["other_languages"].value)
    assert "`require_language: true` of the source rejects them" in capfd.readouterr().err
