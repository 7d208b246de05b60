"""Scores that tell text worth reading from what surrounds it on the web.

Purpose: six kinds of junk (boilerplate, menus, keywords, lists of links, noise, pages that were
cut), each with a score from 0 to 1, and the repetition within windows of fixed size.
Method: shares of the counts of `kernels.text_scores` and of two lists of words; each kind is a
logistic model over these shares, their squares and some products, with the weights in
data/page_kinds.json (`benchmarks/page_kinds.py` makes them). No weight is a word's: models see the
form of a page, and hold for languages and subjects that they were not trained on.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.page_files import KINDS, load_models, load_words
from assets.filtered.word_lists import NO_LISTS, WordLists, count_listed
from assets.text.buffers import spans_in, text_buffers
from resources.made_once import made_once

LISTED = [  # of `count_listed`
    *("list_words", "other_stop_words", "other_vocabulary_words", "other_vocabulary_categories")
]
CELLS = r"[|\t]|[,;]\S|\S {2,}"  # what separates the cells of tables
QUOTES = '["«»“”„「」]'  # a text about notices quotes them; few notices quote
NOTICE = 2  # the bit of the second category of `page_lists`
TAIL = 60  # characters of the end in which a link to the rest is looked for
TYPICAL_PAIR, PAIR_WEIGHT = 6.2, 20  # mean score of letter pairs in prose, and its weight in pairs
SHORT = 600  # characters
CUT_SHORT = 500
LONG_LINE = 40
PAGE_SCORES = (
    *(f"{kind}_score" for kind in KINDS),
    *("window_distinct_share", "window_repeated_share"),
)


def score_pages(texts: pl.Series, known: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return PAGE_SCORES of each text (String, no nulls), Float64 from 0 to 1.

    A text without words has 0 of every kind. `known` may have the counts of `count_text` with
    `pair_scores`, and LISTED of `page_lists`: these are not counted again.
    """
    counts = _count(texts, known)
    features = counts.select(_features())
    models = load_models()
    logits = np.tile(models.weights[0][:, None], len(texts))
    for term, weights in zip(_terms(features), models.weights[1:], strict=True):
        logits += term * weights[:, None]  # not a matrix product: its rounding is by batch
    scores = 1 / (1 + np.exp(-logits.clip(-30, 30)))
    scores[:, counts["words"].to_numpy() == 0] = 0
    named = {f"{kind}_score": scores[place] for place, kind in enumerate(KINDS)}
    named["window_distinct_share"] = features["distinct"].to_numpy()
    named["window_repeated_share"] = features["repeated"].to_numpy()
    return pl.DataFrame(named)


def page_terms(texts: pl.Series) -> NDArray[np.float64]:
    """Return what the models weigh of each text, [texts, terms + 1]; the first is 1, for the bias.

    For training (`benchmarks/page_kinds.py`).
    """
    terms = _terms(_count(texts).select(_features()))
    return np.column_stack([np.ones(len(texts)), *terms])


def _terms(features: pl.DataFrame) -> Iterator[NDArray[np.float64]]:
    columns = {name: features[name].to_numpy() for name in features.columns}
    for names in load_models().terms:
        term = columns[names[0]]
        for other in names[1:]:
            term = term * columns[other]
        yield term


def _count(texts: pl.Series, known: pl.DataFrame | None = None) -> pl.DataFrame:
    from assets.filtered.kernels.text_scores import count_form

    counts = texts.to_frame("text") if known is None else known
    if "pair_scores" not in counts.columns:
        counts = counts.hstack(count_form(texts, pair_scores()))
    if not set(LISTED) <= set(counts.columns):
        languages = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
        counts = counts.hstack(count_listed(texts, languages, NO_LISTS, page_lists())[LISTED])
    text = pl.col("text").str
    stripped = _stripped(*text_buffers(texts.rechunk())).select(
        has_more=text.slice(-TAIL).str.contains(_more_pattern()).cast(pl.Float64),
        commands=text.count_matches("\\", literal=True),
        cells=text.count_matches(CELLS),
        quotes=text.count_matches(QUOTES),
    )
    return counts.hstack(stripped)


def _stripped(data: NDArray[np.uint8], starts: NDArray[np.int64]) -> pl.DataFrame:
    """Return the column `text`, stripped, without a copy of the bytes, which Polars would make."""
    from assets.filtered.kernels.span_edit import find_edges

    edges = find_edges(data, starts)
    texts = spans_in(data, edges) if len(edges) else pl.Series(dtype=pl.String)
    return texts.to_frame("text")


@cache
def _features() -> list[pl.Expr]:
    return [feature.alias(name) for name, feature in FEATURES.items()]


@made_once
def pair_scores() -> NDArray[np.uint8]:
    """Return the likelihood of each pair of letters, for `count_text`."""
    from assets.filtered.kernels.page_form import pair_table

    return pair_table(load_models().letter_pairs)


@cache
def page_lists() -> WordLists:
    """Return the function words, and the phrases of a frame and of notices as a vocabulary."""
    lists = load_words()
    words = [word for line in lists.function_words.values() for word in line.split()]
    phrases = {
        name: tuple(dict.fromkeys(phrase for own in by_language.values() for phrase in own))
        for name, by_language in (("frame", lists.frame_phrases), ("notice", lists.notice_phrases))
    }
    return WordLists(stop_words=tuple(dict.fromkeys(words)), vocabulary=phrases)


@cache
def _more_pattern() -> str:
    return f"(?i)({'|'.join(load_words().more_patterns)})"


def _share(part: str, whole: str) -> pl.Expr:
    return pl.col(part) / pl.col(whole).clip(lower_bound=1)


def _is(condition: pl.Expr) -> pl.Expr:
    return condition.cast(pl.Float64)


_unfinished = 1 - pl.col("last_finished").cast(pl.Float64)
_lower = pl.col("last_lower") * _unfinished
_cut_short = _unfinished * (-pl.col("word_characters") / 400).exp()
_is_cut_short = _is(pl.col("word_characters") < CUT_SHORT)
_ends_in_long_line = _is(pl.col("last_characters") >= LONG_LINE)

# Logarithms are divided by 5, so that all features are of the order of 1.
FEATURES: dict[str, pl.Expr] = {
    "function": _share("other_stop_words", "list_words"),
    "frame": _share("other_vocabulary_words", "list_words").sqrt(),
    "notice": _is(pl.col("other_vocabulary_categories") & NOTICE > 0),
    "commands": _share("commands", "words").clip(0, 1).sqrt(),
    "cells": _share("cells", "words").clip(0, 1).sqrt(),
    "quotes": _share("quotes", "words").clip(0, 1).sqrt(),
    "more": pl.col("has_more"),
    "log_words": (pl.col("words") + 1).log() / 5,
    "word_length": _share("word_characters", "words").clip(1, 60).log(),
    "finished": _share("finished_characters", "line_characters"),
    "label": _share("label_characters", "line_characters"),
    "label_lines": _share("label_lines", "form_lines"),
    "line_length": (_share("line_characters", "form_lines") + 1).log() / 5,
    "caps": _share("cased_words", "letter_words"),
    "uppers": _share("uppercase_characters", "alphabetic_characters"),
    "digits": _share("digit_characters", "word_characters"),
    "letters": _share("alphabetic_characters", "word_characters"),
    "one_letter": _share("one_letter_words", "words"),
    "marks": _share("mark_words", "words"),
    "numbers": _share("numbers", "words"),
    "clause": _share("clause_words", "words").clip(0, 0.3) * 3,
    "odd": _share("odd_characters", "word_characters"),
    "url": _share("url_characters", "word_characters"),
    "damage": _share("damages", "word_characters").sqrt(),
    "singles": _share("singles", "words"),
    "latin": _share("pairs", "alphabetic_characters"),
    "pairs": (pl.col("pair_scores") + TYPICAL_PAIR * PAIR_WEIGHT) / (pl.col("pairs") + PAIR_WEIGHT)
    - TYPICAL_PAIR,
    "distinct": _share("window_distinct", "window_words"),
    "repeated": _share("window_repeated", "window_words"),
    "cut": _unfinished,
    "dots": pl.col("last_dots").cast(pl.Float64),
    "last_length": (pl.col("last_characters") + 1).log() / 5,
    "cut_short": _cut_short,
    "cut_short_long_line": _cut_short * _ends_in_long_line,
    "lower": _lower,
    "lower_short": _lower * _is_cut_short,
    "lower_short_long_line": _lower * _is_cut_short * _ends_in_long_line,
    "short": (1 - pl.col("word_characters") / SHORT).clip(0, 1),
    "cut_long_line": _unfinished * _ends_in_long_line,
}
