"""Summaries add up over parts; plots show counts and never a raw text."""

import xml.etree.ElementTree as ElementTree
from base64 import b64decode

import polars as pl

from assets.filtered.filter_documents import filter_documents
from assets.filtered.report import funnel_rows, report_markdown, summarize_decisions
from assets.filtered.rules.rules import rules_for
from assets.report.histograms import add_summaries
from assets.report.plots import bar_chart, histogram, pie_chart
from resources.settings.filters import FilterConfig

CONFIG = FilterConfig.model_validate(
    {
        "language": {"backend": "none"},
        "rules": {"length": {"min_chars": 3, "min_words": 2}, "c4": {}},
    }
)
RULES = rules_for(CONFIG.rules)


def decisions(*texts: str) -> pl.DataFrame:
    frame = pl.DataFrame(
        {"doc_id": list(map(str, range(len(texts)))), "text": list(texts)},
        schema={"doc_id": pl.String, "text": pl.String},
    ).with_columns(lang=pl.lit(None, pl.String))
    return filter_documents(frame, CONFIG)[1]


def test_a_summary_says_what_each_rule_alone_and_each_pair_removes() -> None:
    found = summarize_decisions(decisions("", "abc", "a { b", "{", "a b c"), RULES)

    assert found["first"] == {
        "": 1,
        "c4.curly_bracket": 1,
        "length.too_few_words": 1,
        "length.too_short": 2,
    }
    assert found["first_bytes"] == {
        "": 5,
        "c4.curly_bracket": 5,
        "length.too_few_words": 3,
        "length.too_short": 1,
    }
    assert found["broken"]["length.too_few_words"] == 3
    assert found["alone"]["length.too_few_words"] == 1
    assert found["pairs"] == {
        "length.too_short + length.too_few_words": 2,
        "length.too_short + c4.curly_bracket": 1,
        "length.too_few_words + c4.curly_bracket": 1,
    }
    assert found["languages"] == {"unknown": 5}
    assert sum(found["histogram/char_count"].values()) == 5


def test_summaries_of_parts_add_up_to_that_of_the_whole() -> None:
    texts = ["", "abc", "a { b", "{", "a b c"]
    parts = [summarize_decisions(decisions(*part), RULES) for part in (texts[:2], texts[2:], [])]
    assert add_summaries(parts) == summarize_decisions(decisions(*texts), RULES)


def test_the_funnel_ends_at_what_is_kept() -> None:
    rows = funnel_rows(summarize_decisions(decisions("", "abc", "a b c"), RULES), RULES)
    assert rows[0] == ("all documents", 3, 8)
    assert rows[-1][1:] == (1, 5)


def test_the_report_holds_plots_that_are_valid_images() -> None:
    report = report_markdown(summarize_decisions(decisions("", "a b c"), RULES), RULES)

    assert "| length.too_short | 1 | 0 | 1 |" in report["top_reasons"]
    images = [part.split(")")[0] for text in report.values() for part in text.split("base64,")[1:]]
    assert len(images) == 2 + len({rule.score for rule in RULES})
    assert all(ElementTree.fromstring(b64decode(image)) is not None for image in images)


def test_plots_escape_their_texts() -> None:
    evil = "<script>&"
    plots = [bar_chart(evil, [(evil, (1.0,), evil)]), pie_chart(evil, {evil: 1.0})]
    plots.append(histogram(evil, [(evil, 1.0)], [(0.5, evil)]))
    for plot in plots:
        assert evil not in plot
        ElementTree.fromstring(plot)
