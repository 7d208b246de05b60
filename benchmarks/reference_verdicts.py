"""Judge texts with the programs that recipes are named after; run by recipe_agreement.py.

    PYTHON benchmarks/reference_verdicts.py dolma < texts > verdicts
    PYTHON benchmarks/reference_verdicts.py dclm CHECKOUT < texts > verdicts
    PYTHON benchmarks/reference_verdicts.py starcoder CHECKOUT < texts > verdicts

Reads {"text": ..., "lang": ...} per line, writes {"rejected_by": [rules], "text": the text left}.
PYTHON is an interpreter with the packages of the program: for dolma `pip install dolma`; for DCLM a
checkout of github.com/mlfoundations/dclm and `pip install fasttext-wheel uniseg nltk unidecode
retrie justext lxml_html_clean beautifulsoup4 transformers`; for StarCoder a checkout of
github.com/bigcode-project/bigcode-dataset and `pip install pygments beautifulsoup4`. This file
imports nothing of Tokenmill.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Verdict = dict[str, Any]
Judge = Callable[[str, str | None], Verdict]

# dolma, configs/dolma-v1_6/mixing/cc-head.yaml: rule, attribute of gopher_v1, comparison, limit.
DOLMA_LIMITS = (
    ("gopher_quality.too_few_words", "word_count", "<", 50),
    ("gopher_quality.too_many_words", "word_count", ">", 100_000),
    ("gopher_quality.words_too_short", "median_word_length", "<", 3),
    ("gopher_quality.words_too_long", "median_word_length", ">", 10),
    ("gopher_quality.too_many_hashes", "symbol_to_word_ratio", ">", 0.1),
    (
        "gopher_quality.too_few_alphabetic_words",
        "fraction_of_words_with_alpha_character",
        "<",
        0.8,
    ),
    ("gopher_quality.too_few_stop_words", "required_word_count", "<", 2),
    (
        "gopher_quality.too_many_bullet_lines",
        "fraction_of_lines_starting_with_bullet_point",
        ">",
        0.9,
    ),
    (
        "gopher_quality.too_many_ellipsis_lines",
        "fraction_of_lines_ending_with_ellipsis",
        ">",
        0.3,
    ),
    ("gopher_repetition.repeated_lines", "fraction_of_duplicate_lines", ">", 0.3),
    (
        "gopher_repetition.repeated_line_text",
        "fraction_of_characters_in_duplicate_lines",
        ">",
        0.3,
    ),
    # The mixing files write "2gram", gopher_v1 "2grams": as published these three never reject.
    *(
        (
            f"gopher_repetition.top_{n}_gram",
            f"fraction_of_characters_in_most_common_{n}grams",
            ">",
            limit,
        )
        for n, limit in ((2, 0.2), (3, 0.18), (4, 0.16))
    ),
    *(
        (
            f"gopher_repetition.duplicate_{n}_gram",
            f"fraction_of_characters_in_duplicate_{n}grams",
            ">",
            limit,
        )
        for n, limit in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)
    ),
    ("pii.too_many_spans", "doc_count", ">", 5),
)
DCLM_REPETITION = (
    ("repeated_lines", "line", 0.3, False),
    ("repeated_paragraphs", "paragraph", 0.3, False),
    ("repeated_line_text", "line", 0.2, True),
    ("repeated_paragraph_text", "paragraph", 0.2, True),
    *(
        (f"top_{n}_gram", n, limit, True)
        for n, limit in zip((2, 3, 4), (0.2, 0.18, 0.16), strict=True)
    ),
    *(
        (f"duplicate_{n}_gram", n, limit, True)
        for n, limit in zip(range(5, 11), (0.15, 0.14, 0.13, 0.12, 0.11, 0.10), strict=True)
    ),
)


def main() -> None:
    """Judge each line of the standard input."""
    checkout = Path(sys.argv[-1])
    judges = {"dolma": dolma_judge, "dclm": dclm_judge, "starcoder": starcoder_judge}
    judge = judges[sys.argv[1]](checkout)
    for line in sys.stdin:
        record = json.loads(line)
        print(json.dumps(judge(record["text"], record["lang"])), flush=True)


def dolma_judge(_: Path) -> Judge:
    """dolma's taggers gopher_v1 and pii_regex_with_counts_fast_v2 under its Common Crawl mix."""
    from dolma.core.data_types import Document
    from dolma.core.registry import TaggerRegistry

    importlib.import_module("dolma.taggers")
    names = ("gopher_v1", "pii_regex_with_counts_fast_v2")
    taggers = [TaggerRegistry.get(name)() for name in names]

    def judge(text: str, _: str | None) -> Verdict:
        document = Document(id="", text=text, source="")
        spans = [span for tagger in taggers for span in tagger.predict(document).spans]
        values = {span.type: span.score for span in spans}
        broken = [
            rule
            for rule, attribute, sign, limit in DOLMA_LIMITS
            if attribute in values
            and (values[attribute] < limit if sign == "<" else values[attribute] > limit)
        ]
        return {"rejected_by": broken, "text": text}

    return judge


def dclm_judge(checkout: Path) -> Judge:
    """DCLM's functions in the order of dclm_baseline_refinedweb.yaml, without URL and language."""
    filters, modifiers = dclm_modules(checkout)
    steps = list(dclm_filters(filters))
    shorten_breaks = modifiers.newline_removal_modifier(max_consecutive=2)
    remove_urls = modifiers.url_removal_modifier(str(checkout / "baselines/mappers/iana_tlds.txt"))

    def judge(text: str, _: str | None) -> Verdict:
        page: dict[str, Any] = {"text": text}
        if not remove_urls(page):
            return {"rejected_by": ["length.too_short"], "text": ""}
        shorten_breaks(page)
        page["cache"] = {}  # of lines and words, which uniseg takes long to find
        broken = [rule for rule, keeps in steps if not keeps(page)]
        left, is_kept = dclm_lines(modifiers, filters, page["text"])
        if not is_kept:
            broken.append("refinedweb.mostly_boilerplate")
        return {"rejected_by": broken, "text": left}

    return judge


def dclm_modules(checkout: Path) -> tuple[Any, Any]:
    """DCLM's filters and modifiers, without what their packages import besides."""
    folders = {"core": "core", "baselines": "", "baselines.core": "core"}
    folders |= {"baselines.mappers": "mappers", "baselines.mappers.filters": "mappers/filters"}
    for name, folder in folders.items():
        package = types.ModuleType(name)
        package.__path__ = [str(checkout / "baselines" / folder)]
        sys.modules[name] = package
    words = importlib.import_module("baselines.mappers.core_utils")
    # The wheel lacks `tokenize`: fastText's readWord splits at these bytes.
    words.fasttext.FastText.tokenize = lambda text: re.findall(r"[^ \n\r\t\v\f\0]+", text)
    return (
        importlib.import_module("baselines.mappers.filters.content_filters"),
        importlib.import_module("baselines.mappers.modifiers"),
    )


def dclm_filters(f: Any) -> Iterator[tuple[str, Callable[[dict[str, str]], Any]]]:
    """Each filter of the file under the name of our rule."""

    def words(**limits: int) -> Callable[[dict[str, str]], Any]:
        return lambda p: f.page_length_filter(
            p, length_type="word", ignore_punctuation=True, **limits
        )

    quality: dict[str, Callable[[dict[str, str]], Any]] = {
        "too_few_words": words(min_length=50),
        "too_many_words": words(max_length=100_000),
        "words_too_short": lambda p: f.word_length_filter(p, min_length=3),
        "words_too_long": lambda p: f.word_length_filter(p, max_length=10),
        "too_many_hashes": lambda p: f.symbol_ratio_filter(p, max_symbol_to_word_ratio=0.1),
        "too_many_bullet_lines": lambda p: f.bullet_count_filter(p, max_bullet_start_ratio=0.9),
        "too_many_ellipsis_lines": lambda p: f.ellipsis_count_filter(p, max_ellipsis_end_ratio=0.3),
        "too_few_alphabetic_words": lambda p: f.alphabetic_word_ratio_filter(p, max_ratio=0.2),
        "too_few_stop_words": lambda p: f.stop_word_filter(p, count_unique=False, min_stop_word=2),
    }
    for name, keeps in quality.items():
        yield f"gopher_quality.{name}", keeps
    for name, unit, limit, is_characters in DCLM_REPETITION:
        yield (
            f"gopher_repetition.{name}",
            lambda p, u=unit, m=limit, c=is_characters: f.repetition_filter(
                p, u, m, count_characters=c, cache=p["cache"]
            ),
        )


def dclm_lines(m: Any, f: Any, text: str) -> tuple[str, bool]:
    """The text that the line modifiers leave, and whether enough of it is left."""
    page = {"text": text, "before": len(f.split_words(text, ignore_punctuation=True))}
    cut = {"max_length": 10, "remove_substring_only": True}
    steps: tuple[Callable[[dict[str, Any]], Any], ...] = (
        lambda p: m.uppercase_ratio_line_modifier(p, max_ratio=0.5),
        lambda p: m.numeric_ratio_line_modifier(p, max_ratio=0.999999),
        m.counter_line_modifier(),
        lambda p: m.line_length_modifier(p, min_length=2),
        m.substring_line_modifier(banlist="items in cart", **cut),
        m.substring_line_modifier(banlist="Read more...", location="suffix", **cut),
        m.substring_line_modifier(banlist="Sign-in", location="prefix", **cut),
    )
    if not all(step(page) for step in steps):
        return "", False
    is_kept = f.word_removal_ratio_filter(
        page, prev_word_count_key="before", max_removed_ratio=0.05
    )
    return page["text"], bool(is_kept)


def starcoder_judge(checkout: Path) -> Judge:
    """preprocessing/filtering.py for source files: `basic`, the alphabetic share, and `xml`.

    `basic_filters` takes columns of the dataset: line lengths and letters as CodeParrot counts them
    (`str.splitlines`, `str.isalnum`). The filter of comments is SantaCoder's.
    """
    sys.path.append(str(checkout / "preprocessing"))
    from utils.text_extraction import get_nl_ratio

    def judge(text: str, lang: str | None) -> Verdict:
        lines = [len(line) for line in text.splitlines()] or [0]
        size = len(text)
        broken = {
            "line_too_long": max(lines) > 1000,
            "mean_line_too_long": sum(lines) / len(lines) > 100,
            "too_few_alphanumerics": sum(map(str.isalnum, text)) / size < 0.25,
            "too_few_letters": sum(map(str.isalpha, text)) < 0.25 * size,
            "xml": "<?xml version=" in text[:100],
        }
        if lang is not None:
            ratio = get_nl_ratio(text, lang)
            broken |= {"too_few_comments": ratio < 0.01, "too_many_comments": ratio > 0.8}
        return {"rejected_by": [f"code.{name}" for name in broken if broken[name]], "text": text}

    return judge


if __name__ == "__main__":
    main()
