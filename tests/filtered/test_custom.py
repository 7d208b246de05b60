"""Rules of a user's own: columns, thresholds and examples."""

from prelude import pl, pytest
from tables import cases

from assets.filtered.filter_documents import count_reasons, filter_documents
from assets.filtered.report import summarize_decisions
from assets.filtered.rules.custom import CustomRule, check_custom_rules, custom_scores
from assets.filtered.rules.rules import rules_for
from assets.filtered.score_counts import FilterData
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import RulesConfig

CAPITALS = pl.col("text").str.count_matches(r"\p{Lu}") / pl.col("text").str.len_chars()
SHOUTING = CustomRule("shouting", CAPITALS, maximum=0.3, keeps=["Hello."], rejects=["BUY NOW"])


def test_a_custom_rule_counts_and_scores_like_a_built_in_one() -> None:
    columns = {"doc_id": ["a", "b"], "text": ["Quiet words", "LOUD"], "lang": ["en"] * 2}
    texts = pl.DataFrame(columns)
    config = FilterConfig.model_validate({"language": {"backend": "none"}})

    kept, decisions = filter_documents(texts, config, FilterData(custom=(SHOUTING,)))

    assert kept["doc_id"].to_list() == ["a"]
    assert decisions["custom_shouting"].to_list() == [1 / 11, 1.0]
    assert count_reasons(decisions) == {"custom.shouting": 1}


def test_a_score_that_is_no_number_is_null_and_breaks_nothing() -> None:
    texts = pl.DataFrame({"doc_id": ["a"], "text": [""], "lang": ["en"]})
    given = {"language": {"backend": "none"}, "rules": {"length": None}}
    config = FilterConfig.model_validate(given)
    rules = (SHOUTING, CustomRule("infinite", 1 / pl.col("text").str.len_chars(), maximum=1))

    _, decisions = filter_documents(texts, config, FilterData(custom=rules))

    assert decisions["kept"].to_list() == [True]
    assert decisions.select("custom_shouting", "custom_infinite").row(0) == (None, None)
    assert summarize_decisions(decisions, rules_for(config.rules, rules))["broken"]


def test_a_config_moves_or_switches_off_a_custom_threshold() -> None:
    moved = rules_for(RulesConfig(length=None, custom={"shouting": 0.9}), [SHOUTING])
    assert [(rule.name, rule.threshold) for rule in moved] == [("custom.shouting", 0.9)]
    assert rules_for(RulesConfig(length=None, custom={"shouting": None}), [SHOUTING]) == []


def test_custom_scores_may_look_at_what_came_with_the_text() -> None:
    rule = CustomRule("known", pl.col("license").is_not_null().cast(pl.Int8), minimum=1)
    columns = {"text": "t", "lang": None, "url": None, "meta": None}
    frame = pl.DataFrame([columns | {"license": "MIT"}, columns | {"license": None}])
    frame = frame.cast(dict.fromkeys(frame.columns, pl.String))

    assert custom_scores(frame, [rule])["custom_known"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (None, "RULES must be a list"),
        ([1], "RULES must be a list"),
        ([SHOUTING, SHOUTING], "'shouting' is defined twice"),
        ([CustomRule("a", CAPITALS, maximum=0.3, keeps=["LOUD"])], "does not keep its example"),
        ([CustomRule("a", CAPITALS, maximum=0.3, rejects=["low"])], "does not reject its example"),
        ([CustomRule("a", pl.col("txt"), maximum=1, keeps=["x"])], "cannot be computed"),
        ([CustomRule("a", pl.col("text").str.len_chars().max(), maximum=1)], "on other texts"),
        ([CustomRule("a", CAPITALS / CAPITALS.max(), maximum=1)], "on other texts"),
    ],
)
def test_wrong_rules_are_refused_with_the_reason(rules: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_custom_rules(rules)


@cases("""
    name     | limits                           | message
    Bad Name | {"maximum": 1.0}                 | must match
    a        | {}                               | either
    a        | {"minimum": 0.0, "maximum": 1.0} | either
""")
def test_a_rule_has_a_plain_name_and_one_threshold(
    name: str, limits: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        CustomRule(name, CAPITALS, **limits)
