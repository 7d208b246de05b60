"""Scores that tell text worth reading from what surrounds it on the web.

Purpose: six kinds of junk (boilerplate, menus, keywords, lists of links, noise, pages that were
cut), each with a score from 0 to 1, and the repetition within windows of fixed size.
Method: shares of the counts of `kernels.page_form` and of two lists of words; each kind is a
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
from assets.text.table_rows import table_of
from resources.made_once import made_once

LISTED = ["list_words", "other_stop_words", "other_vocabulary_words"]  # of `count_listed`
TAIL = 60  # characters of the end in which a link to the rest is looked for
TYPICAL_PAIR, PAIR_WEIGHT = 6.2, 20  # mean score of letter pairs in prose, and its weight in pairs
SHORT = 600  # characters
CUT_SHORT = 500
LONG_LINE = 40
PAGE_SCORES = (
    *(f"{kind}_score" for kind in KINDS),
    *("window_distinct_share", "window_repeated_share"),
)


def score_pages(texts: pl.Series, listed: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return PAGE_SCORES of each text (String, no nulls), Float64 from 0 to 1.

    A text without words has 0 of every kind. `listed` has LISTED of `page_lists`, if counted.
    """
    counts = _count(texts, listed)
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


def _count(texts: pl.Series, listed: pl.DataFrame | None = None) -> pl.DataFrame:
    from assets.filtered.kernels.page_form import count_form
    from assets.filtered.kernels.sign_masks import Form

    data, starts = text_buffers(texts.rechunk())
    counts = np.zeros((len(texts), len(Form)), np.int64)
    count_form(data, starts, _form_tables(), counts)
    if listed is None:
        languages = pl.repeat(None, len(texts), dtype=pl.String, eager=True)
        listed = count_listed(texts, languages, NO_LISTS, page_lists())
    has_more = pl.col("text").str.slice(-TAIL).str.contains(_more_pattern()).cast(pl.Float64)
    frame = table_of(counts, [count.name.lower() for count in Form])
    return frame.hstack(listed[LISTED]).hstack(_stripped(data, starts).select(has_more=has_more))


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
def _form_tables() -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    from assets.filtered.kernels.page_form import pair_table
    from assets.filtered.kernels.sign_masks import form_classes

    return form_classes(), pair_table(load_models().letter_pairs)


@cache
def page_lists() -> WordLists:
    """Return the function words, and the phrases around the text of a page as a vocabulary."""
    words = [word for line in load_words().function_words.values() for word in line.split()]
    phrases = [phrase for own in load_words().frame_phrases.values() for phrase in own]
    return WordLists(
        stop_words=tuple(dict.fromkeys(words)), vocabulary={"frame": tuple(dict.fromkeys(phrases))}
    )


@cache
def _more_pattern() -> str:
    return f"(?i)({'|'.join(load_words().more_patterns)})"


def _share(part: str, whole: str) -> pl.Expr:
    return pl.col(part) / pl.col(whole).clip(lower_bound=1)


def _is(condition: pl.Expr) -> pl.Expr:
    return condition.cast(pl.Float64)


_unfinished = 1 - pl.col("last_finished").cast(pl.Float64)
_lower = pl.col("last_lower") * _unfinished
_cut_short = _unfinished * (-pl.col("characters") / 400).exp()
_is_cut_short = _is(pl.col("characters") < CUT_SHORT)
_ends_in_long_line = _is(pl.col("last_characters") >= LONG_LINE)

# Logarithms are divided by 5, so that all features are of the order of 1.
FEATURES: dict[str, pl.Expr] = {
    "function": _share("other_stop_words", "list_words"),
    "frame": _share("other_vocabulary_words", "list_words").sqrt(),
    "more": pl.col("has_more"),
    "log_words": (pl.col("words") + 1).log() / 5,
    "word_length": _share("characters", "words").clip(1, 60).log(),
    "finished": _share("finished_characters", "line_characters"),
    "label": _share("label_characters", "line_characters"),
    "label_lines": _share("label_lines", "lines"),
    "line_length": (_share("line_characters", "lines") + 1).log() / 5,
    "caps": _share("cased_words", "letter_words"),
    "uppers": _share("uppers", "letters"),
    "digits": _share("digits", "characters"),
    "letters": _share("letters", "characters"),
    "one_letter": _share("one_letter_words", "words"),
    "marks": _share("mark_words", "words"),
    "numbers": _share("numbers", "words"),
    "clause": _share("clause_words", "words").clip(0, 0.3) * 3,
    "odd": _share("odd_characters", "characters"),
    "url": _share("url_characters", "characters"),
    "damage": _share("damages", "characters").sqrt(),
    "singles": _share("singles", "words"),
    "latin": _share("pairs", "letters"),
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
    "short": (1 - pl.col("characters") / SHORT).clip(0, 1),
    "cut_long_line": _unfinished * _ends_in_long_line,
}
