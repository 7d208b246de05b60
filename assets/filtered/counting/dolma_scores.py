"""Scores as dolma's tagger gopher_v1 counts them, and the pass that provides their counts."""

from __future__ import annotations

import polars as pl

from resources.settings.filtering.rules import GopherQualityRules, RulesConfig


def _count(name: str) -> pl.Expr:
    return pl.col(f"dolma_{name}")


def _per(count: str, total: str) -> pl.Expr:
    """Divide; nothing of nothing is 0."""
    return _count(count) / _count(total).clip(lower_bound=1)


# Words are those of `str.split`, lines those of `str.split("\n")`, of copies all count.
SCORES: dict[str, pl.Expr] = {
    "word_count": _count("words"),
    "mean_word_length": _count("twice_median_length") / 2,  # of an even number the middle two's
    "hash_ratio": _per("symbol_words", "words"),  # words with "#" or "…"
    "alphabetic_word_share": _per("alphabetic_words", "words"),
    "stop_word_count": _count("stop_words"),  # occurrences, as written
    "bullet_line_share": _per("bullet_lines", "lines"),  # "*" and "-" as the first character
    "ellipsis_line_share": _per("ellipsis_lines", "lines"),  # "…" as the last
    "duplicate_line_share": _per("repeated_lines", "lines"),
    "duplicate_line_char_share": _per("repeated_line_characters", "word_characters"),
    **{
        f"top_{n}_gram_char_share": _per(f"top_{n}_gram_characters", "word_characters")
        for n in (2, 3, 4)
    },
    **{
        f"duplicate_{n}_gram_char_share": _per(
            f"duplicate_{n}_gram_characters", f"all_{n}_gram_characters"
        )
        for n in range(5, 11)
    },
}
COUNTS = {root for score in SCORES.values() for root in score.meta.root_names()}


def count_as_dolma(texts: pl.Series, rules: RulesConfig) -> pl.DataFrame:
    """Return the Int64 columns of COUNTS, one row per text."""
    from assets.filtered.counting.kernels.recipe_counts import count_dolma

    quality = rules.gopher_quality or GopherQualityRules()
    repetition = rules.gopher_repetition
    ngrams = repetition is not None and repetition.counting == "dolma"
    counts = count_dolma(texts, quality.stop_words, ngrams=ngrams)
    return counts.rename(lambda name: f"dolma_{name}").select(sorted(COUNTS))
