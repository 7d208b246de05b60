"""`balanced`: our own preset, by domain of the source.

Limits were set where at most 5 % of clean text is rejected in every source, language and length
class of 30,000 documents, and planted junk is found (`benchmarks/balanced_quality.py`; tables in
docs/quality.md). A Han or kana character is a word here, so that short runs repeat more often: only
there do limits differ by language.
"""

from typing import Any

Layer = dict[str, Any]

# Clean text is at 0.29 of repeated words or less in 99.5 % of every cell; Japanese at 0.36 (n-grams
# of four characters are often one word). Spam that repeats offers has a median of 0.14 to 0.33.
_WINDOWS: Layer = {
    "max_repeated": {"ja": 0.4, "zh": 0.35, "*": 0.33},
    "min_distinct": {"zh": 0.28, "*": 0.33},
}
# Where about 0.8 % of the worst cells of clean text is above it, 2 % for pages that were cut, by
# models of other documents (`benchmarks/page_kinds.py --fold`), rounded by hand: a short Greek page
# looks like boilerplate, Japanese manuals have many short lines and few spaces.
_GENERAL: Layer = {
    **_WINDOWS,
    "max_boilerplate": 0.28,
    "max_navigation": {"ja": 0.85, "*": 0.6},
    "max_keyword_spam": 0.2,
    "max_link_lists": 0.2,
    "max_machine_noise": {"ja": 0.7, "*": 0.5},
    "max_truncated": 0.8,
}
# The same over the pages of the web alone, which hold less code and fewer tables.
_WEB: Layer = {
    **_GENERAL,
    "max_boilerplate": 0.2,
    "max_navigation": {"ja": 0.85, "*": 0.5},
    "max_keyword_spam": 0.16,
    "max_link_lists": 0.1,
    "max_machine_noise": {"ja": 0.7, "*": 0.15},
    "max_truncated": 0.78,
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
    "books": {"rules": {"page": _CURATED}},
    "medical": {"rules": {"page": _CURATED}},
    "code": {"rules": {"page": None, "code": _CODE}},
}
