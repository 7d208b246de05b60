"""The kernels of words, n-grams and listed terms against slow references."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.filtered.kernels import text_words
from assets.filtered.kernels.listed_words import BASE, BUFFER_WORDS, count_words, word_hashes
from assets.filtered.kernels.ngrams import DUPLICATE_SIZES, NGRAM_COUNTS, TOP_SIZES, count_ngrams
from assets.filtered.kernels.term_table import (
    APOSTROPHE,
    FILTER_BITS,
    PREFIX,
    PRIME,
    SPREAD,
    Tables,
    chained,
    enter,
    find,
    is_plain_word,
)
from assets.filtered.kernels.text_lines import count_ellipses, count_lines
from assets.filtered.kernels.text_words import SHORT_LINE_CHARS, Count
from assets.text.buffers import code_point_entries, text_buffers
from assets.text.kernels.character_classes import BULLETS, SINGLES, TERMINAL_MARKS
from assets.text.kernels.words import BLANK, SINGLE, WORD

MASK = (1 << 64) - 1
TEXTS = st.text(st.sampled_from("aB1é漢か😀 \n\t\u3000…..-*#!?\u0301\u00a0"), max_size=60)
CLASSES = text_words.character_classes()
ENTRIES = code_point_entries() & np.uint32(0x7FFFFFF)
ENTRIES[ord("_")] = BLANK
ENTRIES[[ord("'"), ord("’")]] = BLANK | APOSTROPHE


def as_bytes(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(text.encode(), np.uint8)


def uint64s(*numbers: int) -> tuple[np.uint64, ...]:
    return tuple(np.uint64(number) for number in numbers)


def words_slowly(text: str) -> list[str]:
    singles = "".join(f"{chr(first)}-{chr(last)}" for first, last in SINGLES)
    return re.sub(f"([{singles}])", r" \1 ", text).split()


def test_character_classes_are_those_of_str() -> None:
    tests: dict[int, Callable[[str], bool]] = {
        text_words.SPACE: str.isspace,
        text_words.LETTER: str.isalpha,
        text_words.ALPHANUMERIC: str.isalnum,
        text_words.DIGIT: str.isdigit,
        text_words.UPPERCASE: str.isupper,
        text_words.TERMINAL: set(TERMINAL_MARKS).__contains__,
        text_words.BULLET: set(BULLETS).__contains__,
        text_words.SINGLE: lambda c: any(first <= ord(c) <= last for first, last in SINGLES),
    }
    for bit, test in tests.items():
        expected = [code for code in range(0x110000) if test(chr(code))]
        assert np.flatnonzero(CLASSES & bit).tolist() == expected


@given(
    TEXTS | st.sampled_from(["a" * 999 + " é", "漢" * 400, "é " * 600, "ab" * 600 + "漢"]),
    st.sampled_from([1, 128]),
)
def test_count_words_of_a_text(text: str, after: int) -> None:
    data, counts = as_bytes(f"x{text}{'x' * after}"), np.zeros(len(Count), np.int64)
    span = uint64s(1, 1 + len(text.encode()))
    words = words_slowly(text)
    hashes, ends = np.zeros(len(text) + 1, np.uint64), np.zeros(len(text) + 1, np.uint32)

    text_words.count_words(data, span, CLASSES, (hashes, ends), counts)

    expected = {
        Count.CHARACTERS: len(text),
        Count.WORD_CHARACTERS: sum(map(len, words)),
        Count.ALPHANUMERIC_CHARACTERS: sum(map(str.isalnum, text)),
        Count.ALPHABETIC_CHARACTERS: sum(map(str.isalpha, text)),
        Count.DIGIT_CHARACTERS: sum(map(str.isdigit, text)),
        Count.UPPERCASE_CHARACTERS: sum(map(str.isupper, text)),
        Count.WORDS: len(words),
        Count.ALPHABETIC_WORDS: sum(any(map(str.isalpha, word)) for word in words),
        Count.LONGEST_WORD: max(map(len, words), default=0),
        Count.HASHES: text.count("#"),
    }
    assert {count: counts[count] for count in Count if counts[count]} == {
        count: number for count, number in expected.items() if number
    }
    assert ends[: len(words)].tolist() == np.cumsum([len(word) for word in words]).tolist()
    assert len({*zip(words, hashes.tolist(), strict=False)}) == len({*words})
    assert len({*hashes[: len(words)].tolist()}) == len({*words})


@given(st.text(st.sampled_from("..….a \n"), max_size=80), st.booleans())
def test_count_ellipses_from_left_to_right(text: str, is_wide: bool) -> None:
    expected = text.count("...") + is_wide * text.count("…")
    assert count_ellipses(as_bytes(text), is_wide) == expected


@given(
    TEXTS | st.lists(st.sampled_from(["a", "bé", " ", "", "- c.", "d…", "e" * 31])).map("\n".join)
)
def test_count_lines_of_a_text(text: str) -> None:
    data, counts = as_bytes(f"a\n{text}\na"), np.zeros(len(Count), np.int64)
    counts[Count.CHARACTERS] = len(text)

    count_lines(data, uint64s(2, 2 + len(text.encode())), CLASSES, counts)

    raw = text.removesuffix("\n").split("\n") if text else []
    lines = [line.strip() for line in raw if line.strip()]
    blocks = re.split(r"\n(?:\n)+", "\n".join(line.strip() for line in raw).strip("\n"))
    paragraphs = [block for block in blocks if block]
    expected = {
        Count.CHARACTERS: len(text),
        Count.NEWLINES: text.count("\n"),
        Count.RAW_LINES: len(raw),
        Count.LONGEST_RAW_LINE: max(map(len, raw), default=0),
        Count.LINES: len(lines),
        Count.BULLET_LINES: sum(line[0] in BULLETS for line in lines),
        Count.ELLIPSIS_LINES: sum(line.endswith(("...", "…")) for line in lines),
        Count.TERMINAL_LINES: sum(line[-1] in TERMINAL_MARKS for line in lines),
        Count.SHORT_LINES: sum(len(line) <= SHORT_LINE_CHARS for line in lines),
        Count.PARAGRAPHS: len(paragraphs),
        **copies_slowly(lines, Count.DUPLICATE_LINES),
        **copies_slowly(paragraphs, Count.DUPLICATE_PARAGRAPHS),
    }
    assert {count: counts[count] for count in Count if counts[count]} == {
        Count(count): number for count, number in expected.items() if number
    }


def copies_slowly(items: list[str], first: int) -> dict[int, int]:
    times = Counter(items)
    later = [item for row, item in enumerate(items) if item in items[:row]]
    repeated = [item for item in items if times[item] > 1]
    sizes = [sum(len(copy.replace("\n", "")) for copy in copies) for copies in (later, repeated)]
    return dict(enumerate((len(later), sizes[0], len(repeated), sizes[1]), start=first))


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd"]), max_size=40), max_size=3))
def test_count_ngrams_of_texts(texts: list[list[str]]) -> None:
    rng = np.random.default_rng(0)
    key_of = dict(zip(["a", "bb", "ccc", "dddd"], rng.integers(0, 1 << 63, 4), strict=True))
    keys = np.array([key_of[word] for words in texts for word in words], np.uint64)
    ends = np.array([e for words in texts for e in np.cumsum([*map(len, words)])], np.uint32)
    offsets = np.cumsum([0, *map(len, texts)])
    counts = np.zeros((len(texts), len(NGRAM_COUNTS)), np.int64)

    count_ngrams(keys, ends, offsets, counts)

    assert counts.tolist() == [
        [top_slowly(words, n) for n in TOP_SIZES]
        + [covered_slowly(words, n) for n in DUPLICATE_SIZES]
        for words in texts
    ]


def ngrams_slowly(words: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def top_slowly(words: list[str], size: int) -> int:
    times = Counter(ngrams_slowly(words, size))
    top, length = max(((n, len("".join(gram))) for gram, n in times.items()), default=(0, 0))
    return min(top * length, len("".join(words))) if top > 1 else 0


def covered_slowly(words: list[str], size: int) -> int:
    grams = ngrams_slowly(words, size)
    starts = [i for i, gram in enumerate(grams) if grams.count(gram) > 1]
    return sum(len(words[i]) for i in {i + k for i in starts for k in range(size)})


def listed_slowly(text: str) -> list[str]:
    """Lower-cased words: an apostrophe between two letters joins them, ideographs are alone."""
    return re.findall(r"漢|(?:[aé1]|(?<=[aé1])'(?=[aé1]))+", text.lower().replace("’", "'"))


def hash_slowly(word: str) -> int:
    key = BLANK
    for code in map(ord, word):
        spread = code * int(PRIME) & MASK
        key = (key * int(BASE) + (code if code < 0x80 else spread ^ spread >> 32)) & MASK
    return key


LISTED = st.text(st.sampled_from("aAéÉ1漢'’_ -"), max_size=30)


@given(st.lists(LISTED, max_size=4))
def test_word_hashes_of_terms(texts: list[str]) -> None:
    texts = [*texts, "aa1 " * 40]  # the words before the end of the buffer are read in runs
    hashes, offsets = word_hashes(*text_buffers(pl.Series(texts, dtype=pl.String)), ENTRIES)

    words = [listed_slowly(text) for text in texts]
    assert offsets.tolist() == [0, *np.cumsum([len(own) for own in words])]
    assert hashes.tolist() == [hash_slowly(word) for own in words for word in own]


@pytest.mark.parametrize("bits", [0, WORD, SINGLE, APOSTROPHE, WORD | APOSTROPHE])
def test_is_plain_word_holds_for_letters_that_join(bits: int) -> None:
    assert is_plain_word(np.uint64(bits | 97)) == (bits & SINGLE == WORD)


@given(st.integers(0, MASK), st.integers(0, MASK))
def test_chained_is_the_hash_of_a_longer_term(key: int, word: int) -> None:
    expected = ((key ^ (word * int(SPREAD) & MASK)) * int(PRIME) + 1) & MASK
    assert int(chained(*uint64s(key, word))) == expected


def empty_tables(size: int, num_stop_words: int = 0, max_words: int = 1) -> Tables:
    return Tables(
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint8),
        np.full(size, -1, np.int64),
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint64),
        np.zeros((1 << FILTER_BITS) // 8, np.uint8),
        num_stop_words,
        max_words,
    )


@given(st.lists(st.tuples(st.integers(1, MASK), st.booleans()), max_size=15), st.integers(1, MASK))
def test_enter_and_find_are_a_dict(entered: list[tuple[int, bool]], other: int) -> None:
    tables = empty_tables(16)
    slots = [enter(np.uint64(key), tables.keys, tables.bits, first) for key, first in entered]

    assert [find(np.uint64(key), tables) for key, _ in entered] == slots
    assert len({*slots}) == len({key for key, _ in entered})
    assert (find(np.uint64(other), tables) >= 0) == (other in [key for key, _ in entered])
    bits = {(key * int(SPREAD) & MASK) >> 64 - FILTER_BITS for key, first in entered if first}
    assert {*np.flatnonzero(np.unpackbits(tables.bits, bitorder="little")).tolist()} == bits


TERMS = {  # stop word number or -1, bits of profanity, bits of categories
    ("a",): (0, 0, 0),
    ("aa",): (1, 0, 1),
    ("é",): (-1, 1, 0),
    ("é", "1"): (-1, 2, 0),
    ("漢", "漢"): (-1, 0, 2),
    ("1", "é", "a"): (-1, 0, 4),
}


def term_tables() -> Tables:
    tables = empty_tables(64, 2, 3)
    for words, (stop_id, profane, category) in TERMS.items():
        key = np.uint64(hash_slowly(words[0]))
        slot = enter(key, tables.keys, tables.bits, True)
        for word in words[1:]:
            tables.kinds[slot] |= PREFIX
            key = np.uint64(chained(key, np.uint64(hash_slowly(word))))
            slot = enter(key, tables.keys, tables.bits, False)
        tables.stop_ids[slot] = stop_id
        tables.profane[slot] |= np.uint64(profane)
        tables.vocabulary[slot] |= np.uint64(category)
    return tables


def hits_slowly(words: list[str], column: int, wanted: int) -> list[tuple[str, ...]]:
    """Return the longest terms with any of the bits, left to right, without overlap."""
    hits, at = [], 0
    while at < len(words):
        sizes = [
            len(term)
            for term, bits in TERMS.items()
            if tuple(words[at : at + len(term)]) == term and bits[column] & wanted
        ]
        hits += [tuple(words[at : at + max(sizes)])] if sizes else []
        at += max(sizes, default=1)
    return hits


SPACED = st.lists(st.sampled_from([*"aé1漢", "aa", "b"]), max_size=12).map(" ".join)


@given(st.lists(SPACED, max_size=3), st.integers(0, 3), st.sampled_from([0, BUFFER_WORDS - 3]))
def test_count_words_of_the_lists(texts: list[str], language: int, padding: int) -> None:
    texts = ["b " * padding + text for text in texts]
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    languages = np.full(len(texts), language, np.uint64)

    tables = (empty_tables(1, 0, 5), term_tables())
    counts = count_words(data, offsets, ENTRIES, tables, languages)
    others = count_words(data, offsets, ENTRIES, tables[::-1], languages)

    assert (others[:, ::-1, :6] == counts[..., :6]).all()
    assert not counts[:, 0, 1:6].any()
    for text, row in zip(texts, counts[:, 1, :6].tolist(), strict=True):
        words = text.split()
        stops = [word for word in words if word in ("a", "aa")]
        vocabulary = hits_slowly(words, 2, 7)
        categories = {TERMS[term][2] for term in vocabulary}
        profane = len(hits_slowly(words, 1, language))
        expected = [len(words), len({*stops}), len(stops), profane]
        assert row == [*expected, sum(map(len, vocabulary)), sum(categories)]
