"""Counts as DCLM and dolma define them, held to plain Python."""

import re
from collections import Counter
from statistics import median

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.filtered.counting.kernels.recipe_counts import count_dclm, count_dolma
from assets.filtered.counting.kernels.split_words import Words, cut_segments, word_classes

STOP_WORDS = ("the", "of", "be")
PARTS = [
    "the",
    "The",
    "of",
    "a",
    "é",
    "日本",
    "#",
    "x…",
    "…",
    "...",
    ". . .",
    "-",
    "* ",
    "•",
    "1.5",
]
PARTS += [" ", " ", " ", "\n", "\n", "\n\n", "\u00a0", "\t", "can't", "a_1", "a:b", "1;2", "(b)"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=60).map("".join)
SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 10)
# A letter and a mark before a letter, a digit and a mark before a digit, an underscore.
SEGMENT = re.compile(
    r"[日本]|(?:[^\W\d_日本](?:[.':](?=[^\W\d_日本]))?|\d(?:[.,;'](?=\d))?|_)+", re.UNICODE
)


def ngrams(words: list[str], size: int) -> list[tuple[str, ...]]:
    return list(zip(*(words[i:] for i in range(size)), strict=False))


def characters(words: tuple[str, ...] | list[str]) -> int:
    return sum(map(len, words))


def repeated(items: list[str]) -> list[str]:
    times = Counter(items)
    return [item for item in items if times[item] > 1]


def dolma_reference(text: str) -> dict[str, int]:
    words, lines = text.split(), text.split("\n")
    counts = {
        "words": len(words),
        "word_characters": characters(words),
        "alphabetic_words": sum(any(map(str.isalpha, word)) for word in words),
        "symbol_words": sum("#" in word or "…" in word for word in words),
        "stop_words": sum(word in STOP_WORDS for word in words),
        "twice_median_length": int(2 * median(map(len, words))) if words else 0,
        "lines": len(lines),
        "bullet_lines": sum(line.startswith(("*", "-")) for line in lines),
        "ellipsis_lines": sum(line.endswith("…") for line in lines),
        "repeated_lines": len(repeated(lines)),
        "repeated_line_characters": characters(repeated(lines)),
    }
    for size in SIZES:
        times = Counter(ngrams(words, size))
        if size < 5:
            top, number = times.most_common(1)[0] if times else ((), 0)
            counts[f"top_{size}_gram_characters"] = number * characters(top)
            continue
        own = {ngram: number * characters(ngram) for ngram, number in times.items()}
        twice = sum(own[ngram] for ngram, number in times.items() if number > 1)
        counts[f"duplicate_{size}_gram_characters"] = twice
        counts[f"all_{size}_gram_characters"] = sum(own.values())
    return counts


def dclm_reference(text: str) -> dict[str, int]:
    words = text.split()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    paragraphs = [part.strip() for part in text.split("\n\n") if part.strip()]
    segments = [word for word in SEGMENT.findall(text) if word[0].isalnum()]
    counts = {
        "words": len(words),
        "word_characters": characters(words),
        "alphabetic_words": sum(any(map(str.isalpha, word)) for word in words),
        "counted_words": sum(word[0].isalnum() for word in re.findall(r"[^ \n\r\t\v\f\0]+", text)),
        "stop_words": sum(word.lower() in STOP_WORDS for word in words),
        "lines": len(lines),
        "line_characters": characters(lines),
        "bullet_lines": sum(line.startswith(("●", "•", "*", "-")) for line in lines),
        "ellipsis_lines": sum(line.endswith(("...", ". . .", "…")) for line in lines),
        "repeated_lines": len(repeated(lines)),
        "repeated_line_characters": characters(repeated(lines)),
        "paragraphs": len(paragraphs),
        "paragraph_characters": characters(paragraphs),
        "repeated_paragraphs": len(repeated(paragraphs)),
        "repeated_paragraph_characters": characters(repeated(paragraphs)),
        "ngram_word_characters": characters(segments),
    }
    for size in SIZES:
        times = Counter(ngrams(segments, size))
        most = max(times.values(), default=0)
        tops = [characters(ngram) for ngram, number in times.items() if number == most > 1]
        if size < 5:
            top = most * max(tops, default=0)
            counts[f"top_{size}_gram_characters"] = min(top, characters(segments))
            continue
        places = [i for i, ngram in enumerate(ngrams(segments, size)) if times[ngram] > 1]
        covered = {place + k for place in places for k in range(size)}
        counts[f"duplicate_{size}_gram_characters"] = sum(len(segments[i]) for i in covered)
    return counts


@settings(max_examples=100)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_of_dolma_equal_the_reference(texts: list[str]) -> None:
    rows = count_dolma(pl.Series(texts, dtype=pl.String), STOP_WORDS).to_dicts()
    for text, row in zip(texts, rows, strict=True):
        expected = dolma_reference(text)
        assert {name: row[name] for name in expected} == expected


@settings(max_examples=100)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_counts_of_dclm_equal_the_reference(texts: list[str]) -> None:
    rows = count_dclm(pl.Series(texts, dtype=pl.String), STOP_WORDS).to_dicts()
    for text, row in zip(texts, rows, strict=True):
        expected = dclm_reference(text)
        assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("can't 3,000.5 a.b foo_bar", [5, 7, 3, 7]),
        ("'tis (well) _x end.", [3, 4, 3]),  # a segment must begin with a letter or digit
        ("日本語 カタカナ ひら", [1, 1, 1, 4, 1, 1]),
        ('א"ב א\' a"b', [3, 2, 1, 1]),  # quotes join in Hebrew only
        ("e\u0301t\u00e9 a\u200db", [4, 3]),  # marks belong to the character before
        ("a²a²", [1, 1, 1, 1]),
        ("ภาษา", [1, 1, 1, 1]),
    ],
)
def test_words_end_where_unicode_says(text: str, sizes: list[int]) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    words = Words(np.empty(99, np.uint64), np.empty(99, np.uint32))
    count = cut_segments(data, (np.uint64(0), np.uint64(len(data))), word_classes(), words)
    assert np.diff(words.ends[:count], prepend=0).tolist() == sizes


def test_of_equally_frequent_ngrams_dolma_takes_the_first_and_dclm_the_longest() -> None:
    text = pl.Series(["a b - longer words - a b - longer words"])
    assert count_dolma(text, ())["top_2_gram_characters"].item() == 2 * len("ab")
    assert count_dclm(text, ())["top_2_gram_characters"].item() == 2 * len("longerwords")


def test_an_ngram_that_occurs_once_counts_for_dolma_only() -> None:
    text = pl.Series(["one two three"])
    assert count_dolma(text, ())["top_2_gram_characters"].item() == len("onetwo")
    assert count_dclm(text, ())["top_2_gram_characters"].item() == 0


def test_without_ngrams_nothing_of_them_is_counted() -> None:
    text = pl.Series(["one two one two one two one two"])
    for count in (count_dclm, count_dolma):
        counts = count(text, (), ngrams=False)
        assert counts["top_2_gram_characters"].item() == 0
        assert counts["words"].item() == 8
