"""Scores as expressions over the columns and counts of a document.

All scores are Float64 (names of languages and licences: String). Nothing of nothing is 0, so that
the empty text has every score; null means that the score is not defined for this document, and
breaks no rule. `score_counts` provides the counts.
"""

from collections.abc import Iterable, Mapping

import polars as pl

from assets.filtered import datatrove_scores
from assets.filtered.page_scores import PAGE_SCORES
from assets.filtered.rules.rules import rules_for
from resources.settings.filtering.rules import CountedRules, RulesConfig


def _per(count: str | pl.Expr, total: str | pl.Expr) -> pl.Expr:
    """Divide; nothing of nothing is 0."""
    part = pl.col(count) if isinstance(count, str) else count
    whole = pl.col(total) if isinstance(total, str) else total
    return part / whole.clip(lower_bound=1)


# Words, lines and paragraphs are those of kernels.text_scores; "edited_" counts the text that the
# line corrections leave.
SCORES: dict[str, pl.Expr] = {
    "char_count": pl.col("characters_left"),  # code points
    "edited_word_count": pl.col("edited_words"),
    "word_count": pl.col("words"),
    "license": pl.col("license").str.strip_chars().str.to_lowercase(),
    "missing_fields": pl.col("missing_fields"),
    "blocked_domain": pl.col("blocked_domain"),
    "foreign_domain": pl.col("foreign_domain"),
    "opted_out": pl.col("opted_out"),
    "url_hits": pl.col("url_hits"),
    "url_soft_hits": pl.col("url_soft_hits"),
    "lang_score": pl.col("lang_score"),
    "lang": pl.col("lang").str.strip_chars().str.to_lowercase().str.extract(r"^([^-_]+)"),
    "detected_lang": pl.col("detected_lang"),
    "paragraph_lang_share": pl.col("paragraph_lang_share"),
    "other_language": pl.col("other_language"),  # 1: surely none of the source's languages
    # Gopher, A1.
    "mean_word_length": _per("word_characters", "words"),  # mean, where dolma takes the median
    "hash_ratio": _per("hashes", "words"),  # hashes and ellipses apart, as datatrove
    "ellipsis_ratio": _per("ellipses", "words"),
    "bullet_line_share": _per("bullet_lines", "lines"),  # first character of "●•*-" (DCLM)
    "ellipsis_line_share": _per("ellipsis_lines", "lines"),  # ends in "..." or "…"
    "alphabetic_word_share": _per("alphabetic_words", "words"),  # at least one letter
    "stop_word_count": pl.col("distinct_stop_words"),  # in any case; datatrove: as written
    # Gopher, table A1. Duplicate: copies after the first; repeated: all copies.
    "duplicate_line_share": _per("duplicate_lines", "lines"),
    "duplicate_paragraph_share": _per("duplicate_paragraphs", "paragraphs"),
    "duplicate_line_char_share": _per("duplicate_line_characters", "characters"),
    "duplicate_paragraph_char_share": _per("duplicate_paragraph_characters", "characters"),
    "repeated_line_share": _per("repeated_lines", "lines"),
    "repeated_paragraph_share": _per("repeated_paragraphs", "paragraphs"),
    "repeated_line_char_share": _per("repeated_line_characters", "characters"),
    "repeated_paragraph_char_share": _per("repeated_paragraph_characters", "characters"),
    **{
        f"top_{n}_gram_char_share": _per(f"top_{n}_gram_characters", "word_characters")
        for n in (2, 3, 4)
    },
    **{
        f"duplicate_{n}_gram_char_share": _per(f"duplicate_{n}_gram_characters", "word_characters")
        for n in range(5, 11)
    },
    # C4, section 2.2: lines with the fault. Of lorem ipsum, brackets and sentences those that
    # `lines.c4` keeps count; of "javascript" and policy, also those that it removes.
    "lorem_ipsum_lines": pl.col("lorem_ipsum_lines"),
    "curly_bracket_lines": pl.col("curly_bracket_lines"),
    "javascript_lines": pl.col("javascript_lines"),
    "policy_lines": pl.col("policy_lines"),
    "sentence_count": pl.col("sentences"),
    # FineWeb, section 3.6.
    "terminal_line_share": _per("edited_terminal_lines", "edited_lines"),
    "short_line_share": _per("edited_short_lines", "edited_lines"),  # up to 30 characters
    "duplicate_char_share": _per(
        "edited_duplicate_line_characters", pl.col("edited_characters") - pl.col("edited_newlines")
    ),
    "list_ratio": _per("edited_newlines", "edited_words"),  # newlines per word, datatrove only
    "removed_word_share": _per("refinedweb_words", "line_words"),
    **{name: pl.col(name) for name in PAGE_SCORES},
    # StarCoder, 3.1: lines split at "\n", blank ones and white space included.
    "longest_line": pl.col("longest_raw_line"),
    "mean_line_length": _per(pl.col("characters") - pl.col("newlines"), "raw_lines"),
    "alphanumeric_share": _per("alphanumeric_characters", "characters"),
    "alphabetic_share": _per("alphabetic_characters", "characters"),
    # RedPajama counts a tokenizer's tokens; identifiers and punctuation marks need none.
    "letters_per_token": _per(
        "alphabetic_characters", pl.col("code_words") + pl.col("punctuation_characters")
    ),
    "comment_share": _per("comment_characters", "characters"),
    "code_lines": pl.col("code_lines"),
    "indented_line_share": _per("indented_lines", "code_lines"),
    "keyword_share": _per("keyword_words", "code_words"),
    "punctuation_share": _per("punctuation_characters", "characters"),
    "is_generated": pl.col("is_generated"),
    "is_xml_head": pl.col("is_xml_head"),
    "visible_html_share": _per("visible_text_characters", "characters"),
    "visible_html_chars": pl.col("visible_text_characters"),
    "data_file_chars": pl.when(pl.col("is_data_file") == 1).then(pl.col("characters")),
    "encoded_share": _per("long_hex_or_base64_characters", "characters"),
    # Of any text, without a name.
    "code_score": pl.col("code_score"),
    # Words of lists, as word_lists defines them.
    "vocabulary_density": _per("vocabulary_words", "list_words"),
    "vocabulary_categories": pl.col("vocabulary_categories"),
    "profanity_density": _per("profane_words", "list_words"),
    "profane_words": pl.col("profane_words"),
    "copyright_notices_left": pl.col("copyright_notices_left"),
    "pii_density": _per("pii_total", "edited_words"),
    "pii_total": pl.col("pii_total"),
    "quality_score": pl.col("quality_score"),
    "fasttext_score": pl.col("fasttext_score"),
    "quality_percentile": pl.col("quality_percentile"),
}
# Scores that a program counts differently, by the `counting` of a group of rules.
COUNTINGS: dict[str, dict[str, pl.Expr]] = {"datatrove": datatrove_scores.SCORES}
NAMES = ("license", "lang", "detected_lang")  # scores that are names, not numbers


def scores_of(rules: RulesConfig) -> dict[str, pl.Expr]:
    """Return the expression of every score, each as its group of rules counts it."""
    scores = dict(SCORES)
    for rule in rules_for(rules):
        group = getattr(rules, rule.group)
        counting = group.counting if isinstance(group, CountedRules) else "own"
        scores[rule.score] = COUNTINGS.get(counting, {}).get(rule.score, SCORES[rule.score])
    return scores


def counts_behind(wanted: Iterable[str], scores: Mapping[str, pl.Expr] = SCORES) -> set[str]:
    """Return the columns that the expressions of some scores look at."""
    return {root for score in wanted if score in scores for root in scores[score].meta.root_names()}
