"""Passes over the texts that provide the counts behind scores.

A provider adds the counts of one pass (a kernel, or a few expressions), and is run only if a rule
in force looks at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from assets.filtered import datatrove_scores
from assets.filtered.classifier.classifier import (
    Classifier,
    QualityScale,
    percentiles,
    score_fasttext,
    score_quality,
)
from assets.filtered.code_score import count_code, score_code
from assets.filtered.language.detect_language import is_other_language, paragraph_language_share
from assets.filtered.line_edits import edit_lines
from assets.filtered.metadata import count_metadata
from assets.filtered.opt_out import OptOut, find_opted_out, find_stated_opt_outs
from assets.filtered.page_scores import PAGE_SCORES, page_lists, pair_scores, score_pages
from assets.filtered.pii.find_pii import find_pii, find_pii_in_chats
from assets.filtered.rules.custom import CustomRule
from assets.filtered.scores import SCORES, counts_behind
from assets.filtered.word_lists import WordLists, count_listed
from assets.text.table_rows import order_of
from resources.settings.filtering.filter_steps import LinesConfig, PiiConfig
from resources.settings.filtering.filters import FilterConfig
from resources.settings.filtering.rules import MetadataRules


@dataclass(frozen=True)
class FilterData:
    """Content of the files that a config names, the trained classifier, and the source's scale.

    `list_faults`: entries of the lists of domains that can match nothing, in words.
    `is_chat`: the texts are conversations, whose messages are corrected one by one.
    """

    profanity: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    vocabulary: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocked_domains: frozenset[str] = frozenset()
    allowed_domains: frozenset[str] = frozenset()
    list_faults: tuple[str, ...] = ()
    custom: tuple[CustomRule, ...] = ()
    classifier: Classifier | None = None
    fasttext_path: str | None = None
    scale: QualityScale | None = None
    opt_out: OptOut = field(default_factory=OptOut)
    is_chat: bool = False


Provide = Callable[[pl.DataFrame, FilterConfig, FilterData], pl.DataFrame]


def provide(
    documents: pl.DataFrame, wanted: Iterable[str], config: FilterConfig, data: FilterData
) -> pl.DataFrame:
    """Add the wanted columns that `documents` lacks, and those of the same passes.

    `documents` has the String columns of `BASE`; providers run in the order of `PROVIDERS`, since a
    later one looks at the text that an earlier one leaves.
    """
    wanted = set(wanted)
    if wanted & _EDITED:  # what no correction changed is not counted twice
        wanted |= set(EDITED)
    after_lines = _EDITED | _PII | _DATATROVE_EDITED | _LENGTH
    if wanted & after_lines and has_line_edits(config.lines):
        wanted |= {"line_text"}
    known = set(documents.columns)
    for columns, function in PROVIDERS:
        if (columns & wanted) - known:
            documents = documents.hstack(function(documents, config, data))
            known = set(documents.columns)
    return documents


def _metadata(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    rules = config.rules.metadata or MetadataRules()
    return count_metadata(documents, rules, data.blocked_domains, data.allowed_domains)


def _opted_out(documents: pl.DataFrame, _: FilterConfig, data: FilterData) -> pl.DataFrame:
    by_site = find_opted_out(documents["url"], data.opt_out)
    is_stated = find_stated_opt_outs(documents["meta"])
    return by_site.to_frame().with_columns(
        pl.when(is_stated).then(1).otherwise(by_site).alias(by_site.name)
    )


def _paragraphs(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    share = paragraph_language_share(documents["text"], documents["lang"], config.language)
    return share.alias("paragraph_lang_share").to_frame()


def _other_language(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    detected = documents.select(lang="detected_lang", lang_score="lang_score")
    is_other = is_other_language(documents["text"], detected, config.language)
    return is_other.cast(pl.Int64).alias("other_language").to_frame()


def _text_counts(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    from assets.filtered.kernels.text_scores import count_text

    group = config.rules.gopher_repetition
    has_ngrams = group is not None and any(
        getattr(group, field) is not None for field in type(group).model_fields if "gram" in field
    )
    pairs = {"pair_scores": pair_scores()} if config.rules.page else {}
    return count_text(documents["text"], ngrams=has_ngrams, **pairs)


def _lines(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    edited, counts = edit_lines(documents["text"], config.lines)
    is_removed = config.lines.remove_copyright
    left = pl.lit(0, pl.Int64) if is_removed else pl.col("copyright_notices")
    return counts.with_columns(edited.alias("line_text"), copyright_notices_left=left)


def _length(documents: pl.DataFrame, _: FilterConfig, __: FilterData) -> pl.DataFrame:
    characters = line_text(documents).str.len_chars().cast(pl.Int64)
    return characters.alias("characters_left").to_frame()


def _edited_counts(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    """Count the text that the line corrections leave; only changed texts are read again."""
    from assets.filtered.kernels.text_scores import count_text

    counts = documents.select(EDITED)
    if "line_text" in documents.columns:
        is_edited = (documents["line_text"] != documents["text"]).arg_true()
        again = count_text(documents["line_text"].gather(is_edited), ngrams=False).select(EDITED)
        counts = pl.concat([counts, again])[order_of(counts.height, is_edited)]
    return counts.rename({name: f"edited_{name}" for name in EDITED})


def _datatrove_counts(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    return datatrove_scores.count_as_datatrove(documents["text"], documents["lang"], config.rules)


def _datatrove_edited(documents: pl.DataFrame, config: FilterConfig, _: FilterData) -> pl.DataFrame:
    texts, langs = line_text(documents), documents["lang"]
    return datatrove_scores.count_as_datatrove(texts, langs, config.rules, edited=True)


def _lists(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    rules = config.rules
    lists = WordLists(
        stop_words=rules.gopher_quality.stop_words if rules.gopher_quality else (),
        profanity=data.profanity if config.uses_profanity else {},
        vocabulary=data.vocabulary if rules.medical else {},
    )
    others = page_lists() if rules.page else None
    return count_listed(documents["text"], documents["lang"], lists, others)


def _code(documents: pl.DataFrame, _: FilterConfig, __: FilterData) -> pl.DataFrame:
    paths = [pl.col("meta").str.json_path_match(path) for path in CODE_PATHS]
    names = documents.select(pl.coalesce(*paths, "lang")).to_series()
    return count_code(documents["text"], names)


def _pages(documents: pl.DataFrame, _: FilterConfig, __: FilterData) -> pl.DataFrame:
    return score_pages(documents["text"], documents)


def _code_content(documents: pl.DataFrame, _: FilterConfig, __: FilterData) -> pl.DataFrame:
    return score_code(documents["text"])


def _pii(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    text = documents[texts_of(documents)[0]]
    pii = config.pii or PiiConfig(action="tag")
    clean, counts = find_pii_in_chats(text, pii) if data.is_chat else find_pii(text, pii)
    return counts.with_columns(clean.alias("clean_text"))


def _quality(documents: pl.DataFrame, _: FilterConfig, data: FilterData) -> pl.DataFrame:
    if data.classifier is None:
        raise ValueError(
            "rules.quality.min_score needs a classifier: set `classifier` in the config"
        )
    return score_quality(documents["text"], data.classifier).alias("quality_score").to_frame()


def _fasttext(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    if config.fasttext is None or data.fasttext_path is None:
        raise ValueError("rules.quality.min_fasttext_score needs a model: set `filters.fasttext`")
    scores = score_fasttext(documents["text"], data.fasttext_path, config.fasttext.label)
    return scores.alias("fasttext_score").to_frame()


def _percentile(documents: pl.DataFrame, config: FilterConfig, data: FilterData) -> pl.DataFrame:
    if data.scale is None:
        raise ValueError("rules.quality.min_percentile needs the source's scale: `quality_scale`")
    score = "fasttext_score" if config.ranks_fasttext else "quality_score"
    provider: Provide = _fasttext if config.ranks_fasttext else _quality
    has_score = score in documents.columns
    scores = (documents if has_score else provider(documents, config, data))[score]
    return percentiles(scores, documents["detected_lang"], data.scale).to_frame()


def tags_of(config: FilterConfig) -> set[str]:
    """Name the columns that tag documents, whatever the rules in force."""
    has_language = config.language.expected and config.language.backend != "none"
    return {"other_language"} if has_language else set()


def line_text(documents: pl.DataFrame) -> pl.Series:
    """Return the texts that the line corrections leave."""
    return documents["line_text" if "line_text" in documents.columns else "text"]


def texts_of(documents: pl.DataFrame) -> list[str]:
    """Name the columns with the text, the last correction first."""
    return [c for c in ("clean_text", "line_text", "text") if c in documents.columns]


def texts_left(config: FilterConfig) -> set[str]:
    """Name the columns with the texts that the config's corrections leave."""
    lines = {"line_text"} if has_line_edits(config.lines) else set()
    return lines | ({"clean_text"} if config.pii else set())


def has_line_edits(lines: LinesConfig) -> bool:
    """Check that a correction that removes lines is switched on."""
    removes = lines.remove_copyright or lines.remove_gutenberg
    return removes or lines.c4 is not None or lines.refinedweb is not None


BASE = ("text", "lang", "detected_lang", "lang_score", "license", "url", "id", "meta")
# Where a record of source code has its file name; else its `lang` may say "python".
CODE_PATHS = ("$.path", "$.file_path", "$.filename", "$.language", "$.meta.path")
EDITED = (
    *("lines", "terminal_lines", "short_lines", "duplicate_line_characters"),
    *("characters", "newlines", "words"),
)
_METADATA = {"missing_fields", "url_hits", "url_soft_hits", "blocked_domain", "foreign_domain"}
_LINES = {"sentences", "lorem_ipsum_lines", "curly_bracket_lines", "javascript_lines"}
_LINES |= {"policy_lines", "refinedweb_words", "line_words", "copyright_notices_left", "line_text"}
_EDITED = {f"edited_{name}" for name in EDITED}
_LENGTH = {"characters_left"}
_DATATROVE, _DATATROVE_EDITED = datatrove_scores.COUNTS, datatrove_scores.EDITED_COUNTS
_LISTS = {"list_words", "distinct_stop_words", "profane_words"}
_LISTS |= {"vocabulary_words", "vocabulary_categories"}
_CODE = {"code_lines", "code_words", "comment_characters", "indented_lines", "is_data_file"}
_CODE |= {"punctuation_characters", "keyword_words", "is_generated", "is_xml_head"}
_CODE |= {"visible_text_characters", "long_hex_or_base64_characters"}
_PII = {"pii_total", "clean_text"}
_PAGES = set(PAGE_SCORES)
_CODE_CONTENT = {"code_score"}
_OTHERS = _METADATA | _LINES | _LENGTH | _EDITED | _LISTS | _PAGES | _CODE | _CODE_CONTENT | _PII
_OTHERS |= {"paragraph_lang_share", "other_language", "opted_out"}
_OTHERS |= {"quality_score", "fasttext_score", "quality_percentile"}
_TEXT_COUNTS = counts_behind(SCORES) | set(EDITED)
_TEXT_COUNTS -= _OTHERS | set(BASE)

PROVIDERS: tuple[tuple[set[str], Provide], ...] = (
    (_METADATA, _metadata),
    ({"opted_out"}, _opted_out),
    ({"paragraph_lang_share"}, _paragraphs),
    ({"other_language"}, _other_language),
    (_TEXT_COUNTS, _text_counts),
    (_LINES, _lines),
    (_LENGTH, _length),
    (_EDITED, _edited_counts),
    (_DATATROVE, _datatrove_counts),
    (_DATATROVE_EDITED, _datatrove_edited),
    (_LISTS, _lists),
    (_PAGES, _pages),
    (_CODE, _code),
    (_CODE_CONTENT, _code_content),
    (_PII, _pii),
    ({"quality_score"}, _quality),
    ({"fasttext_score"}, _fasttext),
    ({"quality_percentile"}, _percentile),
)
