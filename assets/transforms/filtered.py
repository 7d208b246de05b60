"""Normalise, judge and split documents: the kept on one side, a decision about each on the other.

    documents -> normalize_text -> detect_language -> score_documents -> broken rules -> decisions

A decision holds all scores and all broken rules, not only the first: what another threshold would
keep can be told from the decisions alone, at some 100 bytes a document.
Price with every rule on: 18 MB/s on one core, half of it for fastText.
"""

from collections.abc import Sequence

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from assets.transforms.language import LanguageConfig, detect_language
from assets.transforms.normalize import NormalizeConfig, normalize_text
from assets.transforms.rules import Rule, RulesConfig, rules_for, score_documents


class FilterConfig(BaseModel):
    """How documents are normalised, their language told, and their quality judged."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    normalize: NormalizeConfig = Field(
        default=NormalizeConfig(), description="one form for equal texts"
    )
    language: LanguageConfig = Field(
        default=LanguageConfig(), description="detection of the language"
    )
    rules: RulesConfig = Field(
        default=RulesConfig(), description="groups of rules and their thresholds"
    )


def filter_documents(
    documents: pl.DataFrame, config: FilterConfig
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (kept, decisions) of documents with doc_id, text (no nulls), lang and other columns.

    kept: documents that break no rule, same columns and order, text normalised, lang the declared
    or else the detected one. decisions: one row per document, in order: doc_id, kept, reasons
    (List(String)), detected_lang, lang_score, num_bytes (UInt32, normalised UTF-8), the scores.
    """
    texts = normalize_text(documents["text"], config.normalize)
    detected = detect_language(texts, config.language)
    lang = documents["lang"].cast(pl.String)
    documents = documents.with_columns(
        texts.alias("text"), lang.zip_with(lang.is_not_null(), detected["lang"]).alias("lang")
    )
    rules = rules_for(config.rules)
    scores = score_documents(documents.select("text", "lang", detected["lang_score"]), rules)
    decisions = documents.select(
        "doc_id",
        detected["lang"].alias("detected_lang"),
        detected["lang_score"],
        texts.str.len_bytes().alias("num_bytes"),
        *scores.drop("lang_score", strict=False),
    )
    decisions = mark_broken_rules(decisions, rules)
    return documents.filter(decisions["kept"]), decisions


def mark_broken_rules(scores: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Add after doc_id: kept (Boolean), reasons (List(String): all broken, in rule order)."""
    marks = [pl.when(rule.broken).then(pl.lit(rule.name)) for rule in rules]
    reasons = pl.concat_list(marks or pl.lit(None, pl.String)).list.drop_nulls()
    marked = scores.with_columns(reasons=reasons).with_columns(
        kept=pl.col("reasons").list.len() == 0
    )
    return marked.select("doc_id", "kept", "reasons", pl.exclude("doc_id", "kept", "reasons"))


def count_first_reasons(decisions: pl.DataFrame) -> dict[str, int]:
    """Count each rejected document under its first broken rule: the counts sum to the rejected."""
    return _count(decisions.filter(~pl.col("kept"))["reasons"].list.first())


def count_reasons(decisions: pl.DataFrame) -> dict[str, int]:
    """Count the documents that break each rule; one that breaks two rules is counted in both."""
    return _count(decisions["reasons"].explode(empty_as_null=False))


def _count(names: pl.Series) -> dict[str, int]:
    """Return the most frequent first, equally frequent ones by name."""
    counts = names.alias("rule").value_counts().sort("count", "rule", descending=[True, False])
    return dict(counts.iter_rows())
