"""Scores of pages: what they count, kinds of junk, and limits by domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.filtered.filter_documents import filter_documents
from assets.filtered.kernels.page_form import (
    WINDOW,
    Form,
    count_form,
    form_classes,
    pair_table,
)
from assets.filtered.pages.page_files import KINDS, load_models
from assets.filtered.pages.page_scores import FEATURES, PAGE_SCORES, page_terms, score_pages
from assets.filtered.rules.rules import rules_for
from assets.text.buffers import text_buffers
from resources.settings.filtering.balanced import BALANCED
from resources.settings.pipeline import Settings

PROSE = (
    "The river rose twice in the spring, and the people of the valley moved their cattle up to "
    "the old meadow. When the water fell again they found that the bridge had been carried away, "
    "so for the rest of the year they had to cross by the ford below the mill.\n"
)
JUNK = {
    "boilerplate": "We use cookies to improve your experience.\nPrivacy Policy\nTerms of Use\n"
    "© 2020 Acme. All rights reserved.\nLog in\nSubscribe to our newsletter",
    "navigation": "Home\nAbout us\nProducts\nGarden Tools\nKitchen\nBooks and Maps\nCareers\nPress",
    "keyword_spam": "cheap shoes, cheap shoes online, best shoes cheap, shoes discount, buy shoes, "
    "shoes sale, running shoes cheap, shoes price, order shoes",
    "link_lists": "http://a.example.com/x\nhttp://b.example.org/y\nwww.c.example.net/z.html",
    "machine_noise": "8f3a 9c77 1b00 ffe2 00 4d5a\n0x7ffe 0x003c aGVsbG8gd29y bGQgZm9vYmF6\n" * 3,
    "truncated_pages": "The river rose twice in the spring, and the people of the valley ...\n"
    "Read more",
}


def counts_of(*texts: str) -> dict[str, list[int]]:
    """Counts of some texts by name."""
    data, starts = text_buffers(pl.Series(texts, dtype=pl.String))
    counts = np.zeros((len(texts), len(Form)), np.int64)
    tables = (form_classes(), pair_table(load_models().letter_pairs))
    count_form(data, starts, tables, counts)
    return {count.name: counts[:, count].tolist() for count in Form}


SIGNS = "aaabBW1é漢 \n\t'-’,.:;)\"_/wA" + "ÉжЖ٣カ・、；…â\ufffd\xa0\u3000\u2003😀𠀋"


@settings(deadline=None, max_examples=500)
@given(st.text(st.sampled_from(SIGNS) | st.sampled_from("aB é漢"), max_size=200))
def test_words_count_the_same_one_by_one_and_in_runs(text: str) -> None:
    lines = f"{text}\nhttp://a.b www.a.bc (don't) e-Book x--1, a,'\nééé//a wé.xy"
    alone = [counts_of(line) for line in lines.split("\n")]  # the buffer's end: one by one
    in_runs = counts_of(*lines.split("\n"), "." * 128)

    for name, counts in in_runs.items():
        assert counts[:-1] == [one[name][0] for one in alone]


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from(SIGNS) | st.sampled_from("aB é漢\n"), max_size=400))
def test_lines_and_windows_are_the_same_one_by_one_and_in_runs(text: str) -> None:
    padded = f"{text}{' ' * 128}"  # white space counts nothing
    assert counts_of(text + " ") == counts_of(padded)


def domain_settings(domain: str, filters: dict[str, Any] | None = None) -> Settings:
    """Settings of one source with the preset balanced."""
    source = {"name": "one", "where": "*", "domain": domain, "filters": filters or {}}
    return Settings.model_validate(
        {
            "store": "store",
            "sources": [source],
            "filters": {"presets": ["balanced"]},
            "phases": [{"name": "all", "weights": {"one": 1}}],
        }
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two, three.", {"WORDS": 3, "CLAUSE_WORDS": 1, "LAST_FINISHED": 1, "CASED_WORDS": 1}),
        ("水は 流れる。", {"WORDS": 6, "SINGLES": 5, "LAST_FINISHED": 1, "LETTER_WORDS": 0}),
        ("http://a.bc/d x1 don't", {"URL_CHARACTERS": 13, "ODD_CHARACTERS": 2}),
        ("Home\nAbout\nand so on.", {"LABEL_LINES": 1, "LABEL_CHARACTERS": 5, "LINES": 3}),
        ("It goes on (…)", {"LAST_DOTS": 1, "LAST_FINISHED": 0}),
        ('He said "no."\n\n', {"LAST_FINISHED": 1, "LAST_DOTS": 0}),
        ("It was cut here and th", {"LAST_LOWER": 1, "LAST_CHARACTERS": 23}),
        ("Ã¤ b - 12", {"DAMAGES": 2, "ONE_LETTER_WORDS": 1, "MARK_WORDS": 1, "NUMBERS": 1}),
    ],
)
def test_the_form_of_a_text_is_counted(text: str, expected: dict[str, int]) -> None:
    counts = counts_of(text)
    assert {name: counts[name][0] for name in expected} == expected


@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_a_text_is_counted_the_same_alone_and_among_others(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    together = counts_of(*texts)
    for row, text in enumerate(texts):
        assert {name: [own[row]] for name, own in together.items()} == counts_of(text)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_white_space_at_the_ends_changes_no_score(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode().strip()
    scores = score_pages(pl.Series([text, f"\n {text} \n\n"], dtype=pl.String))
    assert scores[0].equals(scores[1])


def test_every_score_is_a_share() -> None:
    texts = pl.Series(["", " \n", "!", "a" * 5000, "\x00\ufffd", PROSE * 200, *JUNK.values()])
    scores = score_pages(texts)
    assert scores.columns == list(PAGE_SCORES)
    assert all(scores[name].is_between(0, 1).all() for name in PAGE_SCORES)


def test_repetition_does_not_grow_with_the_length_of_a_text() -> None:
    words = [f"word{i}" for i in range(3 * WINDOW)]
    short = " ".join(words)
    scores = score_pages(pl.Series([short, " ".join(words * 50)]))["window_repeated_share"]
    assert scores.to_list() == [0, 0]  # the copies are 384 words apart


def test_a_repetition_within_windows_is_counted_without_its_first_copy() -> None:
    phrase = "a b c d e f g h "  # 8 words, 16 times in a window of 128
    score = score_pages(pl.Series([phrase * 16]))["window_repeated_share"][0]
    assert score == (128 - 3 - 8) / 128
    assert score_pages(pl.Series([phrase * 16]))["window_distinct_share"][0] == 8 / 128


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(["a", "b", "the", "mill", "漢"]), max_size=3 * WINDOW))
def test_copies_in_windows_are_those_that_a_set_finds(words: list[str]) -> None:
    windows = [words[i : i + WINDOW] for i in range(0, len(words), WINDOW)]
    full = [window for window in windows if 2 * len(window) >= WINDOW] or windows
    runs = [list(zip(*(w[i:] for i in range(4)), strict=False)) for w in full]

    counts = counts_of(" ".join(words))

    assert counts["WINDOW_DISTINCT"] == [sum(len(set(window)) for window in full)]
    assert counts["WINDOW_REPEATED"] == [sum(len(own) - len(set(own)) for own in runs)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_junk_has_a_score_above_that_of_prose(kind: str) -> None:
    scores = score_pages(pl.Series([JUNK[kind], PROSE]))[f"{kind}_score"]
    assert scores[0] > 0.5 > scores[1]


def test_balanced_rejects_junk_of_the_web_and_keeps_prose() -> None:
    texts = [*JUNK.values(), PROSE]
    documents = pl.DataFrame({"doc_id": [str(i) for i in range(len(texts))], "text": texts})
    documents = documents.with_columns(lang=pl.lit(None, pl.String))
    for domain in ("web", "general"):
        kept = filter_documents(documents, domain_settings(domain).filters_for("one"))[1]["kept"]
        assert kept.to_list() == [False] * len(JUNK) + [True]


@pytest.mark.parametrize("domain", BALANCED)
def test_balanced_is_that_of_the_domain(domain: str) -> None:
    rules = rules_for(domain_settings(domain).filters_for("one").rules)
    alone = {rule.name.split(".")[0] for rule in rules} - {"length", "medical"}
    assert alone == {group for group, own in BALANCED[domain]["rules"].items() if own}


def test_a_number_of_the_user_replaces_the_limits_by_language() -> None:
    own = {"rules": {"page": {"max_repeated": 0.2}}}
    rules = rules_for(domain_settings("web", own).filters_for("one").rules)
    limits = {rule.field: rule.threshold for rule in rules}
    assert limits["max_repeated"] == 0.2
    assert limits["min_distinct"] == BALANCED["web"]["rules"]["page"]["min_distinct"]


GOLDEN_TEXTS = {
    "prose": PROSE,
    "german": "Der Fluss stieg im Frühjahr zweimal über die Ufer, und die Leute im Tal trieben ihr "
    "Vieh auf die alte Wiese. Die Brücke wurde erst im nächsten Jahr wieder aufgebaut.",
    "japanese": "川は春に二度あふれ、谷の人々は牛を古い牧草地に移した。橋は流されてしまった。",
    "greek": "Το ποτάμι φούσκωσε δύο φορές την άνοιξη.\nΟι άνθρωποι της κοιλάδας έφυγαν.",
    "menu": JUNK["navigation"],
    "banner": JUNK["boilerplate"],
    "noise": JUNK["machine_noise"],
    "teaser": JUNK["truncated_pages"],
}
GOLDEN_SCORES = {
    "prose": (
        *(4.1975731e-05, 5.04442e-07, 0.014354509101),
        *(4.31697e-07, 6.376141e-06, 0.009496141713),
        *(0.75, 0.0),
    ),
    "german": (
        *(0.000415565334, 3.266038e-06, 0.005559982046),
        *(1.26174e-07, 1.522335e-06, 0.004095152497),
        *(0.866666666667, 0.0),
    ),
    "japanese": (
        *(2.607932e-06, 5.60174e-06, 1.568945e-06),
        *(9.6252e-08, 0.003367979014, 0.009988314041),
        *(0.815789473684, 0.0),
    ),
    "greek": (
        *(0.050429746936, 1.120056e-05, 5.6220536e-05),
        *(1.2409962e-05, 8.3712839e-05, 0.00862555787),
        *(1.0, 0.0),
    ),
    "menu": (
        *(0.999999789561, 0.999851613677, 8.3856636e-05),
        *(4.706039e-06, 7.9543e-06, 0.999999618988),
        *(1.0, 0.0),
    ),
    "banner": (
        *(0.999999992362, 0.074797136658, 5.449782e-06),
        *(8.18916e-05, 4.3374e-08, 0.999998780828),
        *(0.958333333333, 0.0),
    ),
    "noise": (
        *(1.4834565e-05, 0.042301653079, 3.03e-10),
        *(2.736e-09, 0.999032845991, 2.9888e-08),
        *(0.333333333333, 0.566666666667),
    ),
    "teaser": (
        *(0.416944438632, 1.15544e-07, 2.0046007e-05),
        *(4.747134e-06, 1.8793e-08, 0.985869819361),
        *(0.875, 0.0),
    ),
}


@pytest.mark.parametrize("name", GOLDEN_TEXTS)
def test_the_scores_of_a_text_are_the_golden_ones(name: str) -> None:
    scores = score_pages(pl.Series([GOLDEN_TEXTS[name]])).row(0)
    assert scores == pytest.approx(GOLDEN_SCORES[name], rel=0, abs=1e-9)


def test_every_term_of_the_models_is_made_of_features() -> None:
    models = load_models()
    assert {name for term in models.terms for name in term} == set(FEATURES)
    assert len(set(models.terms)) == len(models.terms) == len(models.weights) - 1


def test_the_bias_has_a_term_of_one() -> None:
    terms = page_terms(pl.Series([PROSE, *JUNK.values()]))
    assert terms.shape == (1 + len(JUNK), len(load_models().weights))
    assert set(terms[:, 0]) == {1.0}


@settings(deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_scores_are_shares_that_do_not_depend_on_other_texts(texts: list[str]) -> None:
    texts = ["", *(text.encode("utf-8", "ignore").decode() for text in texts)]
    scores = score_pages(pl.Series(texts, dtype=pl.String))
    backwards = score_pages(pl.Series(texts[::-1], dtype=pl.String)).reverse()
    assert scores.equals(backwards)
    assert all(scores[name].is_between(0, 1).all() for name in PAGE_SCORES)
    assert set(scores.row(0)) == {0.0}
