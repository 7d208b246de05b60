"""Named sets of rules, each with its source: layers of config below the user's keys.

A preset sets thresholds, comparisons and the rules in force; docs/quality.md has the definitions of
the scores, and the share of documents that a preset and its source judge alike. Comments name the
rules that a preset leaves out.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from resources.settings.filtering.filter_steps import NORMALIZE_FOR, C4Lines, RefinedWebLines
from resources.settings.filtering.fineweb2 import FINEWEB2, FineWeb2Language
from resources.settings.filtering.rules import (
    FinewebRules,
    GopherQualityRules,
    GopherRepetitionRules,
)

Layer = dict[str, Any]

# `balanced`, our own preset, by domain of the source. Limits were set where at most 5 % of clean
# text is rejected in every source, language and length class of 30,000 documents, and planted junk
# is found (`benchmarks/balanced_quality.py`; more in docs/quality.md). A Han or kana character is
# a word here, so that short runs repeat more often: only there do limits differ by language.
#
# Clean text is at 0.29 of repeated words or less in 99.5 % of every cell; Japanese at 0.36 (n-grams
# of four characters are often one word). Spam that repeats offers has a median of 0.14 to 0.33.
_WINDOWS: Layer = {
    "max_repeated": {"ja": 0.4, "zh": 0.35, "*": 0.33},
    "min_distinct": {"zh": 0.28, "*": 0.33},
}
# Where 98 to 99 % of tables, logs of changes, formulas, dialogues, code, verse and lists stays
# (`benchmarks/text_kinds.py`), and about 0.8 % of the worst cells of clean text is above it, 2 %
# for pages that were cut, by models of other documents (`benchmarks/page_kinds.py --fold`), rounded
# by hand: Japanese manuals have many short lines and few spaces.
_GENERAL: Layer = {
    **_WINDOWS,
    "max_boilerplate": 0.15,
    "max_navigation": {"ja": 0.7, "*": 0.6},
    "max_keyword_spam": 0.25,
    "max_link_lists": 0.2,
    "max_machine_noise": 0.6,
    "max_truncated": 0.75,
}
# The same over the pages of the web alone, which hold less code and fewer tables.
_WEB: Layer = {
    **_GENERAL,
    "max_boilerplate": 0.1,
    "max_navigation": {"ja": 0.6, "zh": 0.4, "*": 0.25},
    "max_keyword_spam": 0.16,
    "max_link_lists": 0.1,
    "max_machine_noise": {"ja": 0.6, "*": 0.12},
    "max_truncated": 0.58,
}
# An entry may end in code or without a mark, and be a list of names.
_CURATED: Layer = {
    **_GENERAL,
    "max_boilerplate": 0.5,
    "max_navigation": 0.9,
    "max_keyword_spam": 0.5,
    "max_link_lists": 0.9,
    "max_machine_noise": 0.95,
    "max_truncated": None,
}
# 98 % of each of the eight programming languages with 80 files or more. Comments are a licence and
# documentation in TypeScript's declarations (0.93), tests of JavaScript have none; generated files
# are 5 % of Go, and no worse to learn from.
_CODE: Layer = {
    "max_line_length": 1000,
    "max_mean_line_length": 150,
    "min_alphanumeric": 0.25,
    "min_alphabetic": 0.15,
    "max_comments": {"javascript": 0.9, "typescript": 0.97, "*": 0.98},
    "max_encoded": 0.5,
    "max_data_chars": 20_000,
}
_PLACEHOLDERS = {"lorem_ipsum": True, "curly_bracket": False}

# By domain. Each has the group `page`, so that none is left of a domain below.
BALANCED: dict[str, Layer] = {
    "general": {"rules": {"page": _GENERAL}},
    "web": {"rules": {"page": _WEB, "c4": _PLACEHOLDERS}},
    "reference": {"rules": {"page": _CURATED}},
    "science": {"rules": {"page": _CURATED}},
    "books": {"rules": {"page": _CURATED}, "lines": {"remove_gutenberg": True}},
    "medical": {"rules": {"page": _CURATED}},
    "code": {"rules": {"page": None, "code": _CODE}},
}


# Config of each `domain` of a source, the lowest layer.
DOMAINS: dict[str, Layer] = {
    "general": {"normalize": NORMALIZE_FOR["general"]},
    "code": {"normalize": NORMALIZE_FOR["code"], "language": {"backend": "none"}},
    "medical": {"normalize": NORMALIZE_FOR["medical"], "rules": {"medical": {}}},
    **{domain: {} for domain in ("web", "reference", "science", "books")},
}


def _with_defaults(model: type[BaseModel], **changes: Any) -> Layer:
    """Dump every key of a model, so that a later preset replaces all keys of an earlier one."""
    return model(**changes).model_dump(mode="json")


def lay_over(base: Any, layer: Any) -> Any:
    """Lay `layer` over `base`: mappings key by key, any other value replaces."""
    if not (isinstance(base, dict) and isinstance(layer, dict)):
        return layer
    return base | {key: lay_over(base.get(key), value) for key, value in layer.items()}


_C4_PAGE = {
    "counting": "own",
    "inclusive": False,
    "lorem_ipsum": True,
    "curly_bracket": True,
    "javascript": False,
    "policy": False,
}
_DATATROVE = {"counting": "datatrove"}
_DATATROVE_LINES = {"min_words": 3, "count_citations": True}
_GOPHER_QUALITY: Layer = {
    "rules": {"gopher_quality": _with_defaults(GopherQualityRules, **_DATATROVE)}
}
_GOPHER_REPETITION: Layer = {
    "rules": {"gopher_repetition": _with_defaults(GopherRepetitionRules, **_DATATROVE)}
}
_FINEWEB: Layer = {"rules": {"fineweb": _with_defaults(FinewebRules, **_DATATROVE)}}
# The papers' detectors name a language for source code, too.
_CODE_TOO: Layer = {"max_code_score": None}
_ENGLISH = {"min_score": 0.65, "allowed_detected": ["en"]}
# DCLM and dolma count all copies of a line or paragraph, not those after the first.
_REPEATED = {
    **dict.fromkeys(("max_duplicate_lines", "max_duplicate_line_chars")),
    **dict.fromkeys(("max_duplicate_paragraphs", "max_duplicate_paragraph_chars")),
    **dict.fromkeys(("max_repeated_lines", "max_repeated_paragraphs"), 0.3),
    **dict.fromkeys(("max_repeated_line_chars", "max_repeated_paragraph_chars"), 0.2),
}
_REFINEDWEB: Layer = {
    "language": _CODE_TOO,
    "lines": {"refinedweb": _with_defaults(RefinedWebLines)},
    "rules": {
        "language": _ENGLISH,
        "gopher_quality": _with_defaults(GopherQualityRules),
        "gopher_repetition": _with_defaults(GopherRepetitionRules, **_REPEATED),
        "refinedweb": {"max_removed_words": 0.05},
    },
}

PRESETS: dict[str, Layer] = {
    # Our own default; the domain of a source chooses among the limits of `balanced`.
    "balanced": BALANCED["general"],
    # Rae et al. 2021 (arXiv 2112.11446), A1, and table A1.
    "gopher-quality": _GOPHER_QUALITY,
    "gopher-repetition": _GOPHER_REPETITION,
    # Raffel et al. 2020, final wording, and the reference code (tensorflow_datasets c4_utils). Not
    # here: its language test (preset c4-language) and the removal of repeated 3-sentence spans
    # (deduped). Its list of bad words is LDNOOBW, ours is our own.
    "c4": {
        "lines": {"c4": _with_defaults(C4Lines)},
        "rules": {"c4": {**_C4_PAGE, "min_sentences": 3, "bad_words": True}},
    },
    "c4-language": {
        "language": {"backend": "langdetect", **_CODE_TOO},
        "rules": {"language": {"min_score": 0.99, "allowed_detected": ["en"]}},
    },
    # datatrove's C4QualityFilter as shipped: the paper's older wording.
    "c4-datatrove": {
        "lines": {"c4": _with_defaults(C4Lines, end_marks=tuple(".?!\"'"), **_DATATROVE_LINES)},
        "rules": {"c4": {**_C4_PAGE, **_DATATROVE, "min_sentences": 5, "bad_words": False}},
    },
    # Penedo et al. 2024 (arXiv 2406.17557), 3.6: as in datatrove, and as in the paper's text.
    "fineweb": _FINEWEB,
    "fineweb-paper": {
        "rules": {
            "fineweb": {
                "inclusive": True,
                "counting": "datatrove",
                "min_terminal_punctuation_lines": 0.12,
                "max_duplicate_chars": 0.1,
                "max_short_lines": 0.67,
                "max_list_ratio": None,
            }
        }
    },
    # The whole of datatrove's examples/fineweb.py except URL lists and deduplication.
    "fineweb-recipe": {
        "language": {"backend": "fasttext", "reads": "all", **_CODE_TOO},
        "lines": {"c4": _with_defaults(C4Lines, **_DATATROVE_LINES, end_marks=None)},
        "pii": {"kinds": ["email", "ip"]},
        "rules": {
            "language": _ENGLISH,
            **_GOPHER_REPETITION["rules"],
            **_GOPHER_QUALITY["rules"],
            "c4": {**_C4_PAGE, **_DATATROVE, "min_sentences": 5, "bad_words": False},
            **_FINEWEB["rules"],
        },
    },
    # Penedo et al. 2023 (arXiv 2306.01116), G, as in DCLM's refinedweb.yaml. Not here: URL lists
    # (give yours in rules.metadata), and URLs and IP addresses cut out of the text.
    "refinedweb": _REFINEDWEB,
    # Li et al. 2024 (arXiv 2406.11794): dclm_baseline_refinedweb.yaml, which differs from the other
    # file in URL lists only, then the score of its fastText model (set filters.fasttext).
    "dclm": lay_over(
        _REFINEDWEB, {"rules": {"quality": {"min_score": None, "min_fasttext_score": 0.018112}}}
    ),
    # Soldaini et al. 2024 (arXiv 2402.00159): configs/dolma-v1_6/mixing/cc-*.yaml, tagger gopher_v1
    # (v1.5 has the same rules, v1.7 publishes no such file); English from 0.5 by section 5. Not
    # here: removed lines without an end mark (before these rules), models of toxic and adult text,
    # repeated tokens, copies. Personal data is what we find.
    "dolma": {
        "language": _CODE_TOO,
        "pii": {"kinds": ["email", "phone", "ip"]},
        "rules": {
            "language": {"min_score": 0.5, "allowed_detected": ["en"]},
            "gopher_quality": _with_defaults(GopherQualityRules),
            "gopher_repetition": _with_defaults(
                GopherRepetitionRules,
                **_REPEATED
                | {"max_repeated_line_chars": 0.3}
                | dict.fromkeys(("max_repeated_paragraphs", "max_repeated_paragraph_chars")),
            ),
            "pii": {"max_density": None, "max_spans": 5},
        },
    },
    # Li et al. 2023 (arXiv 2305.06161), section 3, and bigcode-dataset, whose rule on comments is
    # SantaCoder's. Not here: GitHub stars; limits by file extension.
    "starcoder": {
        "language": {"backend": "none"},
        "rules": {
            "code": {
                "max_line_length": 1000,
                "max_mean_line_length": 100,
                "min_alphanumeric": 0.25,
                "min_alphabetic": 0.25,
                "xml": True,
                "min_visible_html": 0.2,
                "min_visible_html_chars": 100,
                "min_data_chars": 100,
                "max_data_chars": 5000,
            }
        },
    },
    # RedPajama v1, data_prep/github: letters per token is per identifier and mark here.
    "redpajama-code": {
        "language": {"backend": "none"},
        "rules": {
            "code": {
                "max_line_length": 1000,
                "max_mean_line_length": 100,
                "min_alphanumeric": 0.25,
                "min_letters_per_token": 1.5,
            }
        },
    },
}


class Unspaced(NamedTuple):
    """Limits for words of one character, and for n-grams of which all copies count."""

    min_words: int
    duplicate_ngrams: tuple[float, ...]


# Where our words and copies reject as often as jieba's words and datatrove's copies do (zh), or as
# datatrove's copies of our words (ja): measured on 150 manuals per language, so only a start.
UNSPACED = {
    "zh": Unspaced(75, (0.34, 0.27, 0.24, 0.23, 0.20, 0.15)),
    "ja": Unspaced(80, (0.49, 0.47, 0.44, 0.41, 0.39, 0.35)),
}


def _fineweb2(code: str, limits: FineWeb2Language) -> Layer:
    """Make the preset of FineWeb2 (arXiv 2506.20920) for one language.

    Its language scores are GlotLID's; here the score is FineWeb's 0.65 for lid.176. Its words come
    from one splitter per language, here from one rule for all; in Chinese and Japanese a Han or
    kana character is a word, which gives 1.4 times as many: limits that depend on that come from
    `UNSPACED`.
    """
    unspaced = UNSPACED.get(code)
    counting = {"counting": "own"} if unspaced else _DATATROVE
    min_words = unspaced.min_words if unspaced else limits.words[0]
    duplicates = unspaced.duplicate_ngrams if unspaced else limits.duplicate_ngrams
    shortest, longest = limits.mean_word_length
    return {
        "language": _CODE_TOO,
        "rules": {
            "language": {"min_score": 0.65, "allowed_detected": [code]},
            "gopher_quality": {
                **counting,
                "min_words": min_words,
                "max_words": limits.words[1],
                "min_mean_word_length": shortest or None,
                "max_mean_word_length": longest,
                "min_alphabetic_words": limits.alphabetic_words,
                "min_stop_words": limits.min_stop_words,
                "stop_words": [
                    word for word in limits.stop_words if not unspaced or re.search(r"\w", word)
                ],
            },
            "gopher_repetition": {**counting, **_fineweb2_repetition(limits, duplicates)},
            "fineweb": {
                **counting,
                "inclusive": False,
                "min_terminal_punctuation_lines": limits.terminal_lines or None,
                "max_short_lines": limits.short_lines,
                "max_duplicate_chars": limits.duplicate_line_characters,
                "max_list_ratio": limits.newlines_per_word,
            },
        },
    }


def _fineweb2_repetition(limits: FineWeb2Language, duplicates: tuple[float, ...]) -> Layer:
    return {
        "max_duplicate_lines": limits.duplicate_lines or None,
        "max_duplicate_paragraphs": limits.duplicate_paragraphs,
        "max_duplicate_line_chars": limits.gopher_duplicate_line_characters,
        "max_duplicate_paragraph_chars": limits.duplicate_paragraph_characters,
        **{f"max_top_{n}_gram": top for n, top in enumerate(limits.top_ngrams, 2)},
        **{f"max_duplicate_{n}_gram": share for n, share in enumerate(duplicates, 5)},
    }


PRESETS |= {f"fineweb2:{code}": _fineweb2(code, limits) for code, limits in FINEWEB2.items()}


def expand_presets(given: Mapping[str, Any], domain: str = "general") -> Layer:
    """Return the presets that `given` names, in their order, with its own keys on top.

    `balanced` is that of the source's domain. Raises ValueError for a name that is no preset.
    """
    names = given.get("presets") or ()
    laid: Layer = {}
    for name in names if isinstance(names, list | tuple) else ():
        if name not in PRESETS:
            close = difflib.get_close_matches(str(name), PRESETS, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"unknown preset {name!r}{hint}; there are {', '.join(PRESETS)}")
        laid = lay_over(laid, BALANCED[domain] if name == "balanced" else PRESETS[name])
    merged: Layer = lay_over(laid, dict(given))
    return merged
