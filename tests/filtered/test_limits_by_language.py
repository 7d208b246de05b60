"""A threshold may be a mapping by language: judged, replayed, shown and refused by language."""

from base64 import b64decode

from prelude import ValidationError, pl, pytest
from tables import cases

from assets.filtered.filter_documents import filter_documents, mark_broken_rules
from assets.filtered.report import report_markdown, summarize_decisions
from assets.filtered.rules.rules import rules_for
from assets.filtered.rules.threshold_replay import (
    changed_rules,
    count_masks,
    overlay_of,
    parse_change,
    tally,
)
from resources.drawn_charts import with_pictures
from resources.errors import UsageError
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.presets import lay_over
from resources.settings.filtering.rules import RulesConfig
from resources.settings.limits import limit_text

BY_LANGUAGE = {"length": {"min_chars": {"zh": 3, "ja": None, "*": 10}}}
OFF = {"language": {"backend": "none"}}


def judged(*texts: tuple[str, str | None]) -> pl.DataFrame:
    """Decisions of texts with a declared language."""
    documents = pl.DataFrame(
        {
            "doc_id": [str(i) for i in range(len(texts))],
            "text": [text for text, _ in texts],
            "lang": pl.Series([lang for _, lang in texts], dtype=pl.String),
        }
    )
    config = FilterConfig.model_validate({"rules": BY_LANGUAGE, **OFF})
    return filter_documents(documents, config)[1]


def test_each_language_has_its_own_limit_and_the_others_the_common_one() -> None:
    decisions = judged(("四个汉字", "zh"), ("四个", "zh-TW"), ("三", "ja"), ("too short", "en"))
    assert decisions["kept"].to_list() == [True, False, True, False]
    assert judged(("too short", None), ("long enough", None))["kept"].to_list() == [False, True]
    # Without a common limit other languages have none.
    rules = rules_for(RulesConfig.model_validate({"length": {"min_chars": {"zh": 3}}}))
    scores = pl.DataFrame({"char_count": [1.0, 1.0], "lang": ["zh", "en"]})
    assert mark_broken_rules(scores, rules)["kept"].to_list() == [False, True]


def test_decisions_hold_the_language_so_that_limits_can_be_replayed() -> None:
    decisions = judged(("四个汉字", "zh"), ("四个", "zh"), ("too short", "en"))
    assert decisions["lang"].to_list() == ["zh", "zh", "en"]
    rules = RulesConfig.model_validate(BY_LANGUAGE)
    overlay = overlay_of(rules, [parse_change("length.min_chars=zh:5,*:2")])
    then = rules_for(changed_rules(rules, overlay))
    both = [*rules_for(rules), *then]
    masks = count_masks(decisions.lazy(), both).collect()
    assert (tally(masks, both, both[:1]).kept, tally(masks, both, then).kept) == (1, 1)
    assert limit_text(then[0].threshold) == "zh:5,ja:off,*:2"


def test_a_plain_number_replaces_the_mapping_and_another_mapping_lies_over_it() -> None:
    laid = lay_over(BY_LANGUAGE, {"length": {"min_chars": 7}})
    assert RulesConfig.model_validate(laid).length.min_chars == 7  # type: ignore[union-attr]
    laid = lay_over(BY_LANGUAGE, {"length": {"min_chars": {"zh": 5}}})
    assert laid["length"]["min_chars"] == {"zh": 5, "ja": None, "*": 10}


def test_the_histogram_has_a_line_for_each_limit() -> None:
    decisions = judged(("四个汉字", "zh"), ("too short", "en"))
    rules = rules_for(RulesConfig.model_validate(BY_LANGUAGE))
    plot = report_markdown(summarize_decisions(decisions, rules), rules)["score_histograms"]
    picture = b64decode(with_pictures(plot).split("base64,")[1].rstrip(")")).decode()
    assert "char_count" in picture


@cases("""
    limits         | message
    {"zh-TW": 3}   | should match pattern
    {"zh": -3}     | greater than or equal to 0
    {"zh": "many"} | valid integer
""")
def test_a_wrong_mapping_is_refused(limits: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as refused:
        RulesConfig.model_validate({"length": {"min_chars": limits}})
    assert refused.value.error_count() == 1


def test_a_wrong_mapping_of_a_change_is_named_by_its_key() -> None:
    change = parse_change("length.min_chars=zh:-1")
    with pytest.raises(UsageError, match=r"^length\.min_chars\.zh: .*greater than or equal to 0"):
        changed_rules(RulesConfig(), overlay_of(RulesConfig(), [change]))
