"""Scores as DCLM's refinedweb.yaml counts them, and the passes that provide their counts."""

from __future__ import annotations

import polars as pl

from resources.settings.filtering.rules import GopherQualityRules, RulesConfig

SYMBOLS = ("#", "...", ". . .", "…")


def _count(name: str) -> pl.Expr:
    return pl.col(f"dclm_{name}")


def _per(count: str, total: str) -> pl.Expr:
    """Divide; nothing of nothing is 0."""
    return _count(count) / _count(total).clip(lower_bound=1)


# Words are those of `str.split`; for the length of a text and what its line corrections remove,
# fastText's that begin with a letter or digit; for n-grams Unicode's. Of copies all count.
SCORES: dict[str, pl.Expr] = {
    "word_count": _count("counted_words"),
    "mean_word_length": _per("word_characters", "words"),
    "hash_ratio": _per("symbols", "words"),
    "alphabetic_word_share": _per("alphabetic_words", "words"),
    "stop_word_count": _count("stop_words"),  # occurrences, in any case
    "bullet_line_share": _per("bullet_lines", "lines"),
    "ellipsis_line_share": _per("ellipsis_lines", "lines"),
    "duplicate_line_share": _per("repeated_lines", "lines"),
    "duplicate_line_char_share": _per("repeated_line_characters", "line_characters"),
    "duplicate_paragraph_share": _per("repeated_paragraphs", "paragraphs"),
    "duplicate_paragraph_char_share": _per("repeated_paragraph_characters", "paragraph_characters"),
    **{
        f"{name}_gram_char_share": _per(f"{name}_gram_characters", "ngram_word_characters")
        for name in (*(f"top_{n}" for n in (2, 3, 4)), *(f"duplicate_{n}" for n in range(5, 11)))
    },
    "removed_word_share": (_count("counted_words") - _count("edited_counted_words"))
    / _count("counted_words").clip(lower_bound=1),
}
_ROOTS = {root for score in SCORES.values() for root in score.meta.root_names()}
EDITED_COUNTS = {"dclm_edited_counted_words"}
COUNTS = _ROOTS - EDITED_COUNTS


def count_as_dclm(texts: pl.Series, rules: RulesConfig) -> pl.DataFrame:
    """Return the Int64 columns of COUNTS, one row per text."""
    from assets.filtered.counting.kernels.recipe_counts import count_dclm

    quality = rules.gopher_quality or GopherQualityRules()
    repetition = rules.gopher_repetition
    ngrams = repetition is not None and repetition.counting == "dclm"
    counts = count_dclm(texts, quality.stop_words, ngrams=ngrams)
    symbols = [texts.str.count_matches(symbol, literal=True).cast(pl.Int64) for symbol in SYMBOLS]
    counts = counts.with_columns(symbols=sum(symbols[1:], symbols[0]))
    return counts.rename(lambda name: f"dclm_{name}").select(sorted(COUNTS))


def count_edited_as_dclm(texts: pl.Series) -> pl.DataFrame:
    """Return the Int64 column of EDITED_COUNTS: words of the texts that the corrections leave."""
    from assets.filtered.counting.kernels.recipe_counts import count_dclm

    words = count_dclm(texts, (), ngrams=False)["counted_words"]
    return words.alias("dclm_edited_counted_words").to_frame()
