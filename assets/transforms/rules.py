"""Quality rules with a name: which score, which threshold, which fault; and their scores.

Rules come in groups, one per paper; a rule compares one score with one threshold. Scores are stored
with the decision, so that other thresholds can be replayed without the text. Words are split at
white space: rules on words say little about Chinese, Japanese or Thai, and stop words are English.
All scores together run at 67 MB/s on one core, most of it in `kernels.text_scores`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

Threshold = float | tuple[str, ...]
STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
POLICY = "terms of use|privacy policy|cookie policy|uses cookies|use of cookies|use cookies"


def _words(name: str) -> pl.Expr:
    return pl.col("text").str.contains(rf"(?i-u:\b{name}\b)")


def _matches(pattern: str) -> pl.Expr:
    return pl.col("text").str.count_matches(pattern).cast(pl.Int64)


def _per(count: str | pl.Expr, total: str) -> pl.Expr:
    """Divide; nothing of nothing is 0."""
    part = pl.col(count) if isinstance(count, str) else count
    return (part / pl.col(total).clip(lower_bound=1)).cast(pl.Float32)


# Over `text`, `lang`, `lang_score` and the counts of kernels.text_scores, which define words, lines
# and paragraphs. Counts are Int64, shares and ratios Float32; everything is 0 for the empty text.
SCORES: dict[str, pl.Expr] = {
    "char_count": pl.col("text").str.len_chars().cast(pl.Int64),  # code points
    # Gopher, A1.
    "word_count": pl.col("words"),
    "mean_word_length": _per("word_characters", "words"),  # mean, where dolma takes the median
    "hash_ratio": _per(_matches("#"), "words"),  # hashes and ellipses apart, as datatrove
    "ellipsis_ratio": _per(_matches(r"\.\.\.|…"), "words"),
    "bullet_line_share": _per("bullet_lines", "lines"),  # first character of "●•*-" (DCLM)
    "ellipsis_line_share": _per("ellipsis_lines", "lines"),  # ends in "..." or "…"
    "alphabetic_word_share": _per("alphabetic_words", "words"),  # at least one letter
    # Distinct ones, in any case (datatrove: lower case only), between ASCII word boundaries.
    "stop_word_count": pl.sum_horizontal(_words(word) for word in STOP_WORDS).cast(pl.Int64),
    # Gopher, table A1: copies after the first (datatrove, NeMo; DCLM and dolma count all).
    "duplicate_line_share": _per("duplicate_lines", "lines"),
    "duplicate_paragraph_share": _per("duplicate_paragraphs", "paragraphs"),
    "duplicate_line_char_share": _per("duplicate_line_characters", "characters"),  # of the text
    "duplicate_paragraph_char_share": _per("duplicate_paragraph_characters", "characters"),
    # C4, section 2.2: occurrences, in any (ASCII) case.
    "lorem_ipsum_count": _matches("(?i-u:lorem ipsum)"),
    "curly_bracket_count": _matches(r"\{"),
    "javascript_count": _matches("(?i-u:javascript)"),
    "policy_phrase_count": _matches(f"(?i-u:{POLICY})"),
    # FineWeb, section 3.6; the marks are kernels.text_scores.TERMINAL_MARKS.
    "terminal_line_share": _per("terminal_lines", "lines"),
    "short_line_share": _per("short_lines", "lines"),  # up to 30 characters
    "list_ratio": _per(_matches("\n"), "words"),  # newlines per word, datatrove only
    # StarCoder, 3.1: lines split at "\n", blank ones and white space included.
    "longest_line": pl.col("longest_raw_line"),
    "mean_line_length": _per(pl.col("characters") - _matches("\n"), "raw_lines"),
    "alphanumeric_share": _per("alphanumeric_characters", "characters"),
    "lang_score": pl.col("lang_score").cast(pl.Float32),
    "lang": pl.col("lang").cast(pl.String),
}


def _limit(default: Any, fault: str, score: str, **bounds: Any) -> Any:
    """Return the field of one rule: its threshold, the fault it finds and the score it looks at."""
    names = {"fault": fault, "score": score}
    description = f"limit of {score}; beyond it the document is rejected for {fault}"
    return Field(default, description=description, json_schema_extra={**names}, **bounds)


def _amount(default: float | None, fault: str, score: str) -> Any:
    return _limit(default, fault, score, ge=0)


def _share(default: float | None, fault: str, score: str) -> Any:
    return _limit(default, fault, score, ge=0, le=1)


class RuleGroup(BaseModel):
    """Thresholds in rule order; null (for a flag: false) switches a rule off.

    The prefix is the direction: beyond is below a `min_`, above a `max_`, outside `allowed`, and
    above 0 for a flag. A document at the threshold is kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class LengthRules(RuleGroup):
    """Bounds on the length in characters; the defaults drop empty texts only."""

    min_chars: int | None = _amount(1, "too_short", "char_count")
    max_chars: int | None = _amount(None, "too_long", "char_count")


class GopherQualityRules(RuleGroup):
    """Rae et al. 2021 (arXiv 2112.11446), appendix A1: for English."""

    min_words: int | None = _amount(50, "too_few_words", "word_count")
    max_words: int | None = _amount(100_000, "too_many_words", "word_count")
    min_mean_word_length: float | None = _amount(3.0, "words_too_short", "mean_word_length")
    max_mean_word_length: float | None = _amount(10.0, "words_too_long", "mean_word_length")
    max_hash_ratio: float | None = _amount(0.1, "too_many_hashes", "hash_ratio")
    max_ellipsis_ratio: float | None = _amount(0.1, "too_many_ellipses", "ellipsis_ratio")
    max_bullet_lines: float | None = _share(0.9, "too_many_bullet_lines", "bullet_line_share")
    max_ellipsis_lines: float | None = _share(0.3, "too_many_ellipsis_lines", "ellipsis_line_share")
    min_alphabetic_words: float | None = _share(
        0.8, "too_few_alphabetic_words", "alphabetic_word_share"
    )
    min_stop_words: int | None = _amount(2, "too_few_stop_words", "stop_word_count")


class GopherRepetitionRules(RuleGroup):
    """Rae et al. 2021, table A1, without its n-gram rules."""

    max_duplicate_lines: float | None = _share(0.3, "duplicate_lines", "duplicate_line_share")
    max_duplicate_paragraphs: float | None = _share(
        0.3, "duplicate_paragraphs", "duplicate_paragraph_share"
    )
    max_duplicate_line_chars: float | None = _share(
        0.2, "duplicate_line_text", "duplicate_line_char_share"
    )
    max_duplicate_paragraph_chars: float | None = _share(
        0.2, "duplicate_paragraph_text", "duplicate_paragraph_char_share"
    )


class C4Rules(RuleGroup):
    """Raffel et al. 2020 (arXiv 1910.10683), section 2.2, as flags on the whole document.

    For "javascript" and policy phrases C4 drops the line only; to lose the document is far
    stricter, so these two are off by default.
    """

    lorem_ipsum: bool = _limit(True, "lorem_ipsum", "lorem_ipsum_count")
    curly_bracket: bool = _limit(True, "curly_bracket", "curly_bracket_count")
    javascript: bool = _limit(False, "javascript", "javascript_count")
    policy: bool = _limit(False, "policy", "policy_phrase_count")


class FinewebRules(RuleGroup):
    """Penedo et al. 2024 (arXiv 2406.17557), section 3.6, compared as in datatrove."""

    min_terminal_punctuation_lines: float | None = _share(
        0.12, "too_few_finished_lines", "terminal_line_share"
    )
    max_short_lines: float | None = _share(0.67, "too_many_short_lines", "short_line_share")
    max_list_ratio: float | None = _amount(0.3, "list_like", "list_ratio")


class CodeRules(RuleGroup):
    """Li et al. 2023 (StarCoder, arXiv 2305.06161), section 3.1."""

    max_line_length: int | None = _amount(1000, "line_too_long", "longest_line")
    max_mean_line_length: float | None = _amount(100.0, "mean_line_too_long", "mean_line_length")
    min_alphanumeric: float | None = _share(0.25, "too_few_alphanumerics", "alphanumeric_share")


class LanguageRules(RuleGroup):
    """The detector's certainty (FineWeb: 0.65), and the declared, or else detected, language."""

    min_score: float | None = _share(0.65, "uncertain", "lang_score")
    allowed: tuple[str, ...] | None = _limit(None, "not_allowed", "lang")


class RulesConfig(BaseModel):
    """The groups of rules in force; null switches a group off."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length: LengthRules | None = Field(default=LengthRules(), description="length in characters")
    gopher_quality: GopherQualityRules | None = Field(
        default=None, description="is it English prose?"
    )
    gopher_repetition: GopherRepetitionRules | None = Field(
        default=None, description="does it repeat?"
    )
    c4: C4Rules | None = Field(default=None, description="boilerplate of web pages")
    fineweb: FinewebRules | None = Field(default=None, description="lists and unfinished lines")
    code: CodeRules | None = Field(default=None, description="minified and generated source files")
    language: LanguageRules | None = Field(
        default=None, description="certainty and choice of languages"
    )


@dataclass(frozen=True)
class Rule:
    """A comparison of one score with a threshold; the name is the group's and the fault's."""

    name: str
    score: str
    threshold: Threshold
    direction: Literal["below", "above", "outside"]

    @property
    def broken(self) -> pl.Expr:
        """Boolean over the score columns, never null: a null breaks no rule, but is in no list."""
        score = pl.col(self.score)
        if isinstance(self.threshold, tuple):
            return ~score.is_in(list(self.threshold)).fill_null(False)
        # Float32 0.1 is above Float64 0.1: a share at the threshold would be beyond it.
        is_share = isinstance(self.threshold, float)
        limit = pl.lit(self.threshold, dtype=pl.Float32 if is_share else pl.Int64)
        return (score < limit if self.direction == "below" else score > limit).fill_null(False)


def rules_for(config: RulesConfig) -> list[Rule]:
    """Return the rules in force, in the order of groups and fields."""
    groups: list[tuple[str, RuleGroup]] = [(name, group) for name, group in config if group]
    return [
        _to_rule(name, group, field)
        for name, group in groups
        for field, threshold in group
        if threshold is not None and threshold is not False
    ]


def _to_rule(group_name: str, group: RuleGroup, field: str) -> Rule:
    names: Any = type(group).model_fields[field].json_schema_extra
    threshold = getattr(group, field)
    direction: Literal["below", "above", "outside"] = "above"
    if field == "allowed":
        direction = "outside"
    elif field.startswith("min_"):
        direction = "below"
    elif threshold is True:
        threshold = 0
    return Rule(f"{group_name}.{names['fault']}", names["score"], threshold, direction)


def score_documents(documents: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Return the scores the rules look at, one column each, in rule order; one row per document.

    `documents` has text (String, no nulls), lang (String) and lang_score (Float32).
    """
    scores = {rule.score: SCORES[rule.score] for rule in rules}
    frame = documents.select("text", "lang", "lang_score")
    roots = {root for score in scores.values() for root in score.meta.root_names()}
    if not roots <= set(frame.columns):
        from assets.transforms.kernels.text_scores import count_text

        frame = frame.hstack(count_text(frame["text"]))
    return frame.select(**scores)
