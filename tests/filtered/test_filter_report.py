"""Summaries add up over parts; plots show counts and never a raw text."""

import subprocess

from prelude import pl, pytest, sys

from assets.filtered.filter_documents import filter_documents
from assets.filtered.report import (
    MOST_SCORES,
    bin_start,
    funnel_bars,
    funnel_rows,
    place_of,
    report_markdown,
    rule_rows,
    score_panel,
    score_panels,
    summarize_decisions,
)
from assets.filtered.rules.rules import Rule, rules_for
from assets.report.histograms import add_summaries, bin_of
from resources.settings.filtering.filters import FilterConfig

CONFIG = FilterConfig.model_validate(
    {
        "language": {"backend": "none"},
        "rules": {"length": {"min_chars": 3, "min_words": 2}, "c4": {}},
    }
)
RULES = rules_for(CONFIG.rules)


def decisions(*texts: str) -> pl.DataFrame:
    ids = [str(number) for number in range(len(texts))]
    columns = {"doc_id": ids, "text": list(texts), "lang": [None] * len(texts)}
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    return filter_documents(frame, CONFIG)[1]


def test_a_summary_says_what_each_rule_alone_and_each_pair_removes() -> None:
    found = summarize_decisions(decisions("", "abc", "a { b", "{", "a b c"), RULES)

    names = ("", "c4.curly_bracket", "length.too_few_words", "length.too_short")
    assert found["first"] == dict(zip(names, (1, 1, 1, 2), strict=True))
    assert found["first_bytes"] == dict(zip(names, (5, 5, 3, 1), strict=True))
    assert found["broken"]["length.too_few_words"] == 3
    assert found["alone"]["length.too_few_words"] == 1
    assert found["pairs"] == {
        "length.too_short + length.too_few_words": 2,
        "length.too_short + c4.curly_bracket": 1,
        "length.too_few_words + c4.curly_bracket": 1,
    }
    assert found["languages"] == {"unknown": 5}
    assert sum(found["histogram/char_count"].values()) == 5


def test_filtering_and_its_summary_import_no_pandas() -> None:
    code = """
import sys
import polars as pl
from assets.filtered.filter_documents import filter_documents
from assets.filtered.report import summarize_decisions
from assets.filtered.rules.rules import rules_for
from resources.settings.filtering.filters import FilterConfig
config = FilterConfig.model_validate({"language": {"backend": "none"}, "rules": {"c4": {}}})
texts = pl.DataFrame({"doc_id": ["0"], "text": ["a { b"], "lang": ["en"]})
found = summarize_decisions(filter_documents(texts, config)[1], rules_for(config.rules))
print(found["first"], "pandas" in sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "{'c4.curly_bracket': 1} False"


def test_summaries_of_parts_add_up_to_that_of_the_whole() -> None:
    texts = ["", "abc", "a { b", "{", "a b c"]
    parts = [summarize_decisions(decisions(*part), RULES) for part in (texts[:2], texts[2:], [])]
    assert add_summaries(parts) == summarize_decisions(decisions(*texts), RULES)


def test_the_funnel_ends_at_what_is_kept() -> None:
    rows = funnel_rows(summarize_decisions(decisions("", "abc", "a b c"), RULES), RULES)
    assert rows[0] == ("all documents", 3, 8)
    assert rows[-1][1:] == (1, 5)


def test_rules_that_are_broken_are_counted_and_no_others() -> None:
    rows = rule_rows(summarize_decisions(decisions("", "a b c"), RULES))

    assert ("length.too_short", 1, 0, 1) in rows
    assert 0 < len(rows) < len(RULES) and all(broken for _, broken, _, _ in rows)


def test_the_report_is_of_charts_with_a_panel_per_score() -> None:
    report = report_markdown(summarize_decisions(decisions("", "a b c"), RULES), RULES)
    panels = score_panels(summarize_decisions(decisions("", "a b c"), RULES), RULES).panels

    assert all("](chart:" in report[name] for name in ("funnel", "languages", "score_histograms"))
    assert len(panels) == min(MOST_SCORES, len({rule.score for rule in RULES}))


def test_the_funnel_is_of_what_each_rule_removed() -> None:
    chart = funnel_bars(summarize_decisions(decisions("", "a b c"), RULES), RULES)

    assert "of 2 documents" in chart.title and 0 < len(chart.bars) <= 2
    assert all(value > 0 for _, value, _ in chart.bars)


def test_a_histogram_is_labelled_with_its_limits() -> None:
    rules = [Rule("length.too_short", "char_count", 3, "below")]
    panel = score_panel("char_count", summarize_decisions(decisions("", "a b c"), RULES), rules)

    # Five characters are in bin 5 of 6, from 2**2.5 - 1 to 2**3 - 1; three are at the start of 4.
    assert len(panel.heights) == 6 and panel.heights[5] == 1
    assert panel.limits == ((4.0, "3"),) and panel.title == "char_count (log scale)"


def test_limits_of_other_languages_are_left_out() -> None:
    limits = {"*": 0.1, "en": 0.2, "ja": 0.3}
    rules = [Rule("a.b", "a_share", limits, "above")]
    summary = {"histogram/a_share": {"0": 1}, "languages": {"en": 1}}

    expected = ["0.1 *", "0.2 en"]
    assert [text for _, text in score_panel("a_share", summary, rules).limits] == expected


@pytest.mark.parametrize("score", ["char_count", "duplicate_line_share"])
def test_a_bin_starts_at_its_lowest_value(score: str) -> None:
    for number in range(1, 39):
        start = float(bin_start(score, number).replace(",", ""))

        assert place_of(score, start) == pytest.approx(number, abs=0.05)
        bins = bin_of(score, pl.Series([start * 0.98, start * 1.01]))
        assert bins.to_list() == [number - 1, number]


def test_a_threshold_beyond_the_shares_is_drawn_at_the_edge() -> None:
    assert [place_of("a_share", limit) for limit in (-1, 0.5, 2)] == [0, 20, 40]
    assert place_of("char_count", -1) == 0
