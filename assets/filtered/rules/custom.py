"""A user's own rule: a few lines of Polars with a name, a threshold and examples.

A file named by `filters.custom` in pipeline.yaml sets `RULES`:

    import polars as pl
    from assets.filtered.rules import CustomRule

    capitals = pl.col("text").str.count_matches(r"\\p{Lu}") / pl.col("text").str.len_chars()
    RULES = [
        CustomRule("shouting", capitals, maximum=0.3, keeps=["Hello."], rejects=["BUY NOW"]),
    ]

The rule is then `custom.shouting`, its score the column `custom_shouting` of the decisions; it is
counted, plotted and replayed like the built-in ones. The examples are tried whenever the file is
loaded.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

# Columns for a custom score: the normalised text and its metadata.
CUSTOM_COLUMNS = {name: pl.String for name in ("text", "lang", "license", "url", "meta")}
NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class CustomRule:
    """Reject documents whose score is below `minimum` or above `maximum` (exactly one is given).

    `score` is an expression over the String columns text, lang, license, url and meta, row by row;
    a score that is null or not finite breaks nothing. `keeps` and `rejects` are example texts.
    """

    name: str
    score: pl.Expr
    minimum: float | None = None
    maximum: float | None = None
    keeps: Sequence[str] = ()
    rejects: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check the name and that there is exactly one threshold; ValueError otherwise."""
        if not NAME.fullmatch(self.name):
            raise ValueError(f"custom rule {self.name!r}: the name must match {NAME.pattern}")
        if (self.minimum is None) == (self.maximum is None):
            raise ValueError(f"custom rule {self.name!r}: give either `minimum` or `maximum`")

    @property
    def column(self) -> str:
        """The score's column in the decisions."""
        return f"custom_{self.name}"

    @property
    def threshold(self) -> float:
        """The minimum or the maximum."""
        limit = self.maximum if self.minimum is None else self.minimum
        assert limit is not None
        return float(limit)

    @property
    def direction(self) -> Literal["below", "above"]:
        """Side of the threshold on which a document is rejected."""
        return "above" if self.minimum is None else "below"


def custom_scores(documents: pl.DataFrame, rules: Sequence[CustomRule]) -> pl.DataFrame:
    """Return one Float64 column per rule; `documents` has the columns of CUSTOM_COLUMNS."""
    scores = {rule.column: _finite(rule.score.cast(pl.Float64)) for rule in rules}
    return documents.select(list(CUSTOM_COLUMNS)).select(**scores)


def _finite(score: pl.Expr) -> pl.Expr:
    """Turn 0 / 0 and x / 0 into null, which breaks no rule."""
    return pl.when(score.is_finite()).then(score)


def check_custom_rules(rules: Any) -> tuple[CustomRule, ...]:
    """Return the rules of a file; ValueError says which rule or example is wrong, and how."""
    if not isinstance(rules, list | tuple) or not all(isinstance(r, CustomRule) for r in rules):
        raise ValueError("RULES must be a list of CustomRule")
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"custom rule {name!r} is defined twice; rename one")
    for rule in rules:
        _check_rows(rule)
        for examples, is_kept in ((rule.keeps, True), (rule.rejects, False)):
            _check_examples(rule, examples, is_kept)
    return tuple(rules)


def _check_rows(rule: CustomRule) -> None:
    """Refuse a score of one text that depends on other texts, such as `x / x.max()`."""
    texts = [*rule.keeps, *rule.rejects, "", "One.", "Two words, THREE 4!\n", "é漢" * 9]
    together = _example_scores(rule, texts)
    if together != [score for text in texts for score in _example_scores(rule, [text])]:
        raise ValueError(
            f"custom rule {rule.name!r}: the score of a text depends on other texts. Use "
            "expressions that work row by row: no max, mean, over, shift or len."
        )


def _example_scores(rule: CustomRule, examples: Sequence[str]) -> list[float | None]:
    texts = pl.DataFrame({"text": list(examples)}, schema={"text": pl.String})
    frame = texts.with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in CUSTOM_COLUMNS.items() if name != "text"
    )
    try:
        return custom_scores(frame, [rule])[rule.column].to_list()
    except (pl.exceptions.PolarsError, TypeError) as error:
        raise ValueError(
            f"custom rule {rule.name!r}: the score cannot be computed: {error}"
        ) from error


def _check_examples(rule: CustomRule, examples: Sequence[str], is_kept: bool) -> None:
    scores = _example_scores(rule, examples)
    for text, score in zip(examples, scores, strict=True):
        is_beyond = score is not None and (
            score > rule.threshold if rule.direction == "above" else score < rule.threshold
        )
        if is_beyond == is_kept:
            promise = "keep" if is_kept else "reject"
            raise ValueError(
                f"custom rule {rule.name!r} does not {promise} its example {text!r}: the score is "
                f"{score}, the threshold {rule.threshold}. Correct the rule or the example."
            )
