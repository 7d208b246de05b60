"""Presets are layers of config: thresholds of their papers, under what the user writes."""

from prelude import Any, ValidationError, pl, pytest

from assets.filtered.filter_documents import filter_documents
from assets.filtered.rules.rules import rules_for
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.presets import DOMAINS, PRESETS, lay_over

LANGUAGES = ("en", "fr", "de", "es", "zh", "ja", "ru")
NAMES = ["gopher-quality", "gopher-repetition", "c4", "c4-datatrove", "fineweb", "fineweb-paper"]
NAMES += ["refinedweb", "starcoder", "redpajama-code", *(f"fineweb2:{code}" for code in LANGUAGES)]
NO_NGRAMS = {f"max_top_{n}_gram": None for n in (2, 3, 4)}
NO_NGRAMS |= {f"max_duplicate_{n}_gram": None for n in range(5, 11)}


def thresholds(**given: Any) -> dict[str, Any]:
    config = FilterConfig.model_validate(given)
    return {rule.name: rule.threshold for rule in rules_for(config.rules)}


@pytest.mark.parametrize("name", [*NAMES, *(name for name in PRESETS if name not in NAMES)])
def test_every_preset_is_a_valid_config_with_rules(name: str) -> None:
    assert len(thresholds(presets=[name])) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_judges_every_kind_of_text(name: str) -> None:
    texts = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["", "Plain words.", "日本語。"]})
    rules = {"quality": None} if name == "dclm" else {}  # a model of the user's own
    config = FilterConfig.model_validate({"presets": [name], "rules": rules})
    _, decisions = filter_documents(texts.with_columns(lang=pl.lit(None, pl.String)), config)
    assert decisions.height == 3


def test_the_gopher_presets_have_the_papers_thresholds() -> None:
    assert thresholds(presets=["gopher-quality", "gopher-repetition"]) == {
        "length.too_short": 1,
        "gopher_quality.too_few_words": 50,
        "gopher_quality.too_many_words": 100_000,
        "gopher_quality.words_too_short": 3,
        "gopher_quality.words_too_long": 10,
        "gopher_quality.too_many_hashes": 0.1,
        "gopher_quality.too_many_ellipses": 0.1,
        "gopher_quality.too_many_bullet_lines": 0.9,
        "gopher_quality.too_many_ellipsis_lines": 0.3,
        "gopher_quality.too_few_alphabetic_words": 0.8,
        "gopher_quality.too_few_stop_words": 2,
        "gopher_repetition.duplicate_lines": 0.3,
        "gopher_repetition.duplicate_paragraphs": 0.3,
        "gopher_repetition.duplicate_line_text": 0.2,
        "gopher_repetition.duplicate_paragraph_text": 0.2,
        "gopher_repetition.top_2_gram": 0.2,
        "gopher_repetition.top_3_gram": 0.18,
        "gopher_repetition.top_4_gram": 0.16,
        "gopher_repetition.duplicate_5_gram": 0.15,
        "gopher_repetition.duplicate_6_gram": 0.14,
        "gopher_repetition.duplicate_7_gram": 0.13,
        "gopher_repetition.duplicate_8_gram": 0.12,
        "gopher_repetition.duplicate_9_gram": 0.11,
        "gopher_repetition.duplicate_10_gram": 0.10,
    }


def test_the_two_c4_presets_differ_where_the_sources_do() -> None:
    paper = FilterConfig.model_validate({"presets": ["c4"]})
    datatrove = FilterConfig.model_validate({"presets": ["c4-datatrove"]})

    assert paper.lines.c4 is not None and datatrove.lines.c4 is not None
    assert (paper.lines.c4.min_words, datatrove.lines.c4.min_words) == (5, 3)
    assert paper.lines.c4.end_marks == (".", "?", "!", '"')
    assert datatrove.lines.c4.end_marks == (".", "?", "!", '"', "'")
    assert thresholds(presets=["c4"])["c4.too_few_sentences"] == 3
    assert thresholds(presets=["c4-datatrove"])["c4.too_few_sentences"] == 5
    assert "c4.bad_words" not in thresholds(presets=["c4-datatrove"])


def test_the_two_fineweb_presets_differ_where_paper_and_code_do() -> None:
    code, paper = (
        rules_for(FilterConfig.model_validate({"presets": [name]}).rules)
        for name in ("fineweb", "fineweb-paper")
    )
    assert {r.field: (r.threshold, r.is_inclusive) for r in code[1:]} == {
        "min_terminal_punctuation_lines": (0.12, False),
        "max_short_lines": (0.67, False),
        "max_duplicate_chars": (0.01, False),
        "max_list_ratio": (0.3, False),
    }
    assert {r.field: (r.threshold, r.is_inclusive) for r in paper[1:]} == {
        "min_terminal_punctuation_lines": (0.12, True),
        "max_short_lines": (0.67, True),
        "max_duplicate_chars": (0.1, True),
    }


def test_dclm_is_refinedweb_and_the_score_of_a_model() -> None:
    added = {"quality.low_fasttext_score": 0.018112}
    assert thresholds(presets=["dclm"]) == thresholds(presets=["refinedweb"]) | added


def test_dolma_has_the_limits_of_its_mixing_files() -> None:
    found, gopher = thresholds(presets=["dolma"]), thresholds(presets=["gopher-repetition"])
    assert found["gopher_repetition.repeated_line_text"] == 0.3  # Gopher: 0.2
    assert {name for name in gopher if name not in found} == {
        "gopher_repetition.duplicate_lines",
        "gopher_repetition.duplicate_line_text",
        "gopher_repetition.duplicate_paragraphs",
        "gopher_repetition.duplicate_paragraph_text",
    }
    assert found["pii.too_many_spans"] == 5


@pytest.mark.parametrize("preset", ["dolma", "refinedweb", "gopher-repetition"])
def test_presets_say_whose_definitions_hold(preset: str) -> None:
    # Two of six lines are copies of each other, one of them comes after the first.
    text = "one\ntwo\nthe same words\nthree\nfour\nthe same words"
    rules = {"gopher_quality": None, "gopher_repetition": NO_NGRAMS, "language": None}
    config = FilterConfig.model_validate(
        {"presets": [preset], "language": {"backend": "none"}, "rules": rules}
    )
    documents = pl.DataFrame({"doc_id": ["a"], "text": [text], "lang": ["en"]})
    decisions = filter_documents(documents, config)[1]
    copies = {"dolma": ["repeated_lines"], "refinedweb": ["repeated_lines"]}
    found = [reason.split(".")[1] for reason in decisions["reasons"].item()]
    assert [each for each in found if each.endswith("_lines")] == copies.get(preset, [])


def test_fineweb2_has_the_limits_of_its_language() -> None:
    french = thresholds(presets=["fineweb2:fr"])
    assert french["language.not_detected"] == ("fr",)
    assert french["gopher_repetition.duplicate_lines"] == 0.264
    assert french["gopher_repetition.top_2_gram"] == 0.161
    assert french["gopher_quality.words_too_long"] == 11
    assert french["fineweb.list_like"] == 0.185
    assert "fineweb.too_many_short_lines" not in french
    assert thresholds(presets=["fineweb2:zh"])["gopher_quality.words_too_long"] == 5


def test_what_the_user_writes_lies_over_the_presets_and_a_later_one_over_an_earlier() -> None:
    quality = {"min_words": 10, "min_stop_words": None}
    rules = {"gopher_quality": quality, "fineweb": None}
    found = thresholds(presets=["gopher-quality", "fineweb"], rules=rules)
    assert found["gopher_quality.too_few_words"] == 10
    assert "gopher_quality.too_few_stop_words" not in found
    assert not any(name.startswith("fineweb") for name in found)
    assert thresholds(presets=["fineweb", "fineweb-paper"])["fineweb.duplicate_text"] == 0.1
    assert thresholds(presets=["fineweb-paper", "fineweb"]) == thresholds(presets=["fineweb"])
    assert thresholds(presets=["fineweb-paper", "fineweb2:de"])["fineweb.list_like"] > 0


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(ValidationError, match=r"unknown preset 'gopher-qualty' .did you mean"):
        FilterConfig.model_validate({"presets": ["gopher-qualty"]})


def test_code_is_not_asked_for_its_language() -> None:
    config = FilterConfig.model_validate(DOMAINS["code"])
    assert config.language.backend == "none"


def test_layers_merge_mappings_and_replace_the_rest() -> None:
    base = {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}
    assert lay_over(base, {"a": {"c": [2]}, "d": None}) == {"a": {"b": 1, "c": [2]}, "d": None}
