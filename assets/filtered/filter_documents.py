"""Normalise, judge and split documents: the kept on one side, a decision about each on the other.

    documents -> normalize_text -> detect_language -> judge: scores, broken rules -> decisions
    documents -> normalize_text -> line corrections -> PII -> texts of the kept

Rules judge the normalised text; FineWeb's see it after the line corrections, as in its recipe. A
decision holds all scores and all broken rules, not only the first, so that another threshold can
be replayed over the decisions alone, at some 100 bytes a document.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from assets.filtered.language.detect_language import detect_language
from assets.filtered.normalize import normalize_text
from assets.filtered.rules.custom import custom_scores
from assets.filtered.rules.rules import Rule, rules_for
from assets.filtered.score_counts import (
    BASE,
    PROVIDERS,
    FilterData,
    has_line_edits,
    provide,
    tags_of,
    texts_left,
    texts_of,
)
from assets.filtered.scores import NAMES, counts_behind, scores_of
from assets.text.buffers import shared_buffers
from resources.settings.filtering.filters import FilterConfig

NO_FILES = FilterData()
FIXED = ("detected_lang", "lang_score")  # in the decisions of every config
EDIT_COUNTS = (
    *("unfinished_lines", "few_word_lines", "long_word_lines", "javascript_lines"),
    *("policy_lines", "citations", "refinedweb_lines", "copyright_notices", "gutenberg_lines"),
)


@shared_buffers()
def filter_documents(
    documents: pl.DataFrame, config: FilterConfig, data: FilterData = NO_FILES
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (kept, decisions) of documents with doc_id, text (no nulls), lang and other columns.

    kept: documents that break no rule, same columns and order, text normalised and corrected, lang
    the declared or else the detected one. decisions: one row per document, in order: doc_id, kept,
    reasons (List(String)), detected_lang, lang_score (Float64), num_bytes (UInt32, UTF-8 of the
    text as it is kept, or would be), then one column per score, Float64 (names: String).
    """
    texts = normalize_text(documents["text"], config.normalize)
    detected = detect_language(texts, config.language)
    lang = documents["lang"].cast(pl.String)
    if lang.has_nulls():
        lang = lang.zip_with(lang.is_not_null(), detected["lang"])
    judged = judge(_to_judge(documents, texts, lang, detected), config, data)
    edited = judged["final_text"]
    decisions = pl.DataFrame(
        [
            documents["doc_id"],
            judged["kept"],
            judged["reasons"],
            detected["lang"].alias("detected_lang"),
            detected["lang_score"].cast(pl.Float64),
            edited.str.len_bytes().alias("num_bytes"),
            *(_as_score(judged[name]) for name in _decided(judged, config, data)),
        ]
    )
    kept = documents.with_columns(edited.alias("text"), lang.alias("lang"))
    if "meta" in kept.columns:
        kept = kept.with_columns(_tagged(kept["meta"], decisions))
    return kept.filter(decisions["kept"]), decisions


def judge(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    """Add kept (Boolean), reasons (List(String)), every score and count, and final_text."""
    rules = rules_for(config.rules, data.custom, pii=config.pii is not None)
    scored = _score(provide(documents, tags_of(config), config, data), rules, config, data)
    judged = mark_broken_rules(provide(scored, texts_left(config), config, data), rules)
    return judged.with_columns(final_text=pl.coalesce(texts_of(judged)))


def mark_broken_rules(scores: pl.DataFrame, rules: Sequence[Rule]) -> pl.DataFrame:
    """Add after the other columns: reasons (List(String): all broken, in rule order), kept."""
    if not rules:
        return scores.with_columns(reasons=pl.lit([], pl.List(pl.String)), kept=True)
    is_broken = scores.select(rule.broken for rule in rules).to_numpy()
    lengths = is_broken.sum(axis=1)
    # Built from Arrow's parts: concat_list over 45 rules costs five times as much. pa.array would
    # import pandas, if it is installed, which takes 0.4 s.
    names = pl.Series([rule.name for rule in rules]).gather(is_broken.nonzero()[1]).to_arrow()
    buffers = [None, pa.py_buffer(np.concatenate([[0], lengths.cumsum()]))]
    kind = pa.large_list(pa.large_string())
    lists: Any = pa.Array.from_buffers(kind, len(lengths), buffers, children=[names])
    reasons = pl.Series("reasons", lists, dtype=pl.List(pl.String))
    return scores.with_columns(reasons, pl.Series("kept", lengths == 0))


def count_first_reasons(decisions: pl.DataFrame) -> dict[str, int]:
    """Count each rejected document under its first broken rule: the counts sum to the rejected."""
    return _count(decisions["reasons"].list.first())


def count_reasons(decisions: pl.DataFrame) -> dict[str, int]:
    """Count the documents that break each rule; one that breaks two rules is counted in both."""
    return _count(decisions["reasons"].explode(empty_as_null=False))


def count_other_languages(decisions: pl.DataFrame) -> dict[str, int]:
    """Count the documents that are surely in none of their source's languages, by language."""
    if "other_language" not in decisions.columns:
        return {}
    return _count(decisions.filter(pl.col("other_language") == 1)["detected_lang"])


def _tagged(meta: pl.Series, decisions: pl.DataFrame) -> pl.Series:
    """Return `meta` with the last key `detected_language` where it is not one of the source's."""
    if "other_language" not in decisions.columns:
        return meta
    name = pl.lit('"detected_language":"') + decisions["detected_lang"] + '"}'
    before = pl.when(meta == "{}").then(pl.lit("{")).otherwise(meta.str.strip_suffix("}") + ",")
    is_other = decisions["other_language"] == 1
    return pl.select(
        pl.when(is_other).then(before + name).otherwise(meta).alias("meta")
    ).to_series()


def _to_judge(
    documents: pl.DataFrame, texts: pl.Series, lang: pl.Series, detected: pl.DataFrame
) -> pl.DataFrame:
    """Return the columns that providers look at: String, lang_score Float64; null if missing."""
    columns = {name: documents[name] for name in BASE if name in documents.columns}
    columns |= {"text": texts, "lang": lang, "detected_lang": detected["lang"]}
    columns |= {"lang_score": detected["lang_score"].cast(pl.Float64)}
    missing = pl.Series([None], dtype=pl.String).new_from_index(0, documents.height)
    return pl.DataFrame([columns.get(name, missing).alias(name) for name in BASE])


def _score(
    documents: pl.DataFrame, rules: Sequence[Rule], config: FilterConfig, data: FilterData
) -> pl.DataFrame:
    """Add the scores that some rules look at."""
    names = {name: None for rule in rules for name in rule.scores}  # in rule order, each once
    counted = scores_of(config.rules)
    documents = provide(documents, counts_behind(names, counted), config, data)
    scores = {
        name: counted[name].cast(pl.String if name in NAMES else pl.Float64)
        for name in names
        if name in counted
    }
    custom = [rule for rule in data.custom if rule.column in names]
    own = custom_scores(documents, custom).to_dict() if custom else {}
    return documents.with_columns(**scores, **own)


def _as_score(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64) if column.dtype == pl.Int64 else column


def _decided(judged: pl.DataFrame, config: FilterConfig, data: FilterData) -> list[str]:
    """Name the columns of the decisions after the fixed ones: scores, counts of edits, PII."""
    scores = [name for rule in rules_for(config.rules, data.custom) for name in rule.scores]
    edits = EDIT_COUNTS if has_line_edits(config.lines) else ()
    pii = [name for name in judged.columns if name.startswith("pii_")] if config.pii else []
    tags = sorted(tags_of(config))
    return [name for name in dict.fromkeys([*tags, *scores, *edits, *pii]) if name not in FIXED]


def _count(names: pl.Series) -> dict[str, int]:
    """Count names, the most frequent first, equally frequent ones by name; nulls do not count."""
    counts = dict(names.alias("rule").value_counts().iter_rows())
    counts.pop(None, None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


TEXT = (
    "The river rose\u00a0– twice.\nIt fell again (1999), then rose: ask me@example.org, not "
    "me@example.png, or 93.184.216.34.\n"
)


def filter_warm_ups(config: FilterConfig, data: FilterData) -> Iterator[Callable[[], object]]:
    """Yield one call per pass over the texts that the config asks for."""
    documents = pl.DataFrame({name: [TEXT] for name in BASE}).with_columns(
        lang=pl.lit("en"), detected_lang=pl.lit("en"), lang_score=pl.lit(1.0)
    )
    scores = (rule.score for rule in rules_for(config.rules, data.custom))
    wanted = counts_behind(scores, scores_of(config.rules))
    wanted |= texts_left(config)
    if data.classifier is None:  # not trained yet
        wanted.discard("quality_score")
    if data.scale is None:
        wanted.discard("quality_percentile")
    yield partial(detect_language, documents["text"], config.language)
    yield partial(normalize_text, documents["text"], config.normalize)
    for columns, _ in PROVIDERS:
        if needed := columns & wanted:
            yield partial(provide, documents, needed, config, data)
