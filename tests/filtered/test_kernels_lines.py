"""The kernels of lines and phrases against slow references."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.filtered.kernels import line_scan as phrases
from assets.filtered.kernels import line_scan as scan
from assets.filtered.kernels.c4_lines import C4Settings, edit_c4
from assets.filtered.kernels.line_scan import (
    FLAGGED,
    NUM_PHRASES,
    PHRASES,
    LineCount,
    begins,
    character_classes,
    copy,
    is_word,
    phrases_in,
    scan_line,
    skip,
    trim,
)
from assets.filtered.kernels.refinedweb_lines import RefinedWebSettings, edit_refinedweb
from assets.text.buffers import text_buffers

MARKS = (".", "?", "。")
CLASSES = character_classes(MARKS)
TEXTS = st.text(
    st.sampled_from("aB1_é\u0301漢😀 \t\n\u3000\u2028\xa0\x85\x1c.?…。\"'[{²"), max_size=30
)
PIECES = [
    *PHRASES.split("/"),
    *("JavaScript", "Lorem Ipsum", "[edit]", "[citation needed]", "[12]", "[", "SIGN-IN", "lorem"),
    *(
        "12 likes",
        "3.4k views",
        "LIKES",
        "A word or two.",
        "one two three four five.",
        "...",
        "é。",
    ),
    *"\n\n\n   \u3000.?{]aB1",
]
PAGES = st.lists(st.sampled_from(PIECES) | TEXTS, max_size=15).map("".join)
SETTINGS = [
    C4Settings(True, True, 5, 1000, False, True, True, True),
    C4Settings(True, False, 0, 3, False, False, False, False),
    C4Settings(True, True, 2, 0, True, False, True, True),
    C4Settings(False, False, 0, 0, False, False, False, False),
]


def as_bytes(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(text.encode(), np.uint8)


def lower(text: str) -> str:
    return re.sub("[A-Z]+", lambda match: match[0].lower(), text)


@given(TEXTS)
def test_skip_passes_the_leading_characters_of_a_class(text: str) -> None:
    data, size = as_bytes(f"a{text} a"), len(text.encode())
    run = text[: len(text) - len(text.lstrip())]

    end, kinds = skip(data, 1, 1 + size, CLASSES, scan.SPACE)

    assert end == 1 + len(run.encode())
    assert kinds == np.bitwise_or.reduce(CLASSES[[ord(c) for c in run]], initial=np.uint16(0))


@given(TEXTS)
def test_trim_is_strip(text: str) -> None:
    data, size = as_bytes(f" {text} "), len(text.encode())
    start, stop = trim(data, 1, 1 + size, CLASSES)
    assert bytes(data[start:stop]).decode() == text.strip()


@given(TEXTS)
def test_scan_line_ends_at_the_newline_and_counts_words(text: str) -> None:
    line = text.split("\n")[0]
    end, words, kinds = scan_line(as_bytes(f"\n{text}[{{"), 1, 1 + len(text.encode()), CLASSES)

    assert (end, words) == (1 + len(line.encode()), len(line.split()))
    assert (bool(kinds & scan.BRACKET), bool(kinds & scan.BRACE)) == ("[" in line, "{" in line)


@given(st.characters(exclude_categories=["Cs"]))
def test_is_word_holds_for_letters_digits_and_the_underscore(character: str) -> None:
    expected = character == "_" or character.isalnum()
    assert is_word(as_bytes(f" {character}"), 1, CLASSES) == expected


@given(st.binary(max_size=20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 5))
def test_copy_writes_a_slice(source: bytes, start: int, stop: int, size: int) -> None:
    data, out = np.frombuffer(source, np.uint8), np.zeros(40, np.uint8)
    stop = min(stop, len(data))

    end = copy(data, start, stop, out, size)

    assert end == size + len(source[start:stop])
    assert bytes(out) == (bytes(size) + source[start:stop]).ljust(40, b"\0")


def test_character_classes_are_those_of_str() -> None:
    codes = [code for code in range(0x40000) if not 0xD800 <= code < 0xE000]
    tests = {
        scan.SPACE: str.isspace,
        scan.WORD: str.isalnum,
        scan.UPPER: str.isupper,
        scan.DIGIT: str.isdigit,
        scan.DECIMAL: str.isdecimal,
        scan.END_MARK: MARKS.__contains__,
    }
    for bit, test in tests.items():
        expected = [code for code in codes if test(chr(code))]
        assert np.flatnonzero(CLASSES & bit).tolist() == expected


@pytest.mark.parametrize(
    ("characters", "bit"),
    [
        (".?!…‼⁇⁈⁉‽․﹒．", scan.SOFT_END),
        ("。！？｡؟۔।॥։።፧", scan.HARD_END),
        ("\"')]}’”»›」』）«“", scan.CLOSER),
        ("[", scan.BRACKET),
        ("{", scan.BRACE),
        ("\n", scan.NEWLINE),
        ("a,;:-(#", 0),
    ],
)
def test_character_classes_know_the_marks(characters: str, bit: int) -> None:
    ends = scan.SOFT_END | scan.HARD_END | scan.CLOSER
    ends |= scan.BRACKET | scan.BRACE | scan.NEWLINE
    assert {int(CLASSES[ord(character)]) & ends for character in characters} == {bit}


@given(st.sampled_from(PIECES), st.integers(0, NUM_PHRASES - 1), st.booleans(), st.integers(0, 3))
def test_begins_compares_a_phrase(piece: str, phrase: int, fold: bool, cut: int) -> None:
    wanted = PHRASES.split("/")[phrase]
    for text in (piece, piece + wanted, wanted.swapcase(), wanted[cut:]):
        data, stop = as_bytes(f"é{text} a"), 2 + len(text.encode())
        is_there = (lower(text) if fold else text).startswith(wanted)
        assert begins(data, 2, stop, phrase, fold) == is_there * (2 + len(wanted.encode()))


@given(PAGES)
def test_phrases_in_finds_them_in_any_case(text: str) -> None:
    names = PHRASES.split("/")
    bits = {phrases.LOREM: names[:1], phrases.JAVASCRIPT: names[1:2]}
    bits[phrases.FIRST_POLICY] = names[2 : phrases.EDIT]
    expected = sum(1 << k for k, group in bits.items() if any(p in lower(text) for p in group))
    assert phrases_in(as_bytes(f"u{text}se"), 1, 1 + len(text.encode())) == expected


Edit = Callable[..., tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]


def run_edit(
    edit: Edit, texts: list[str], rules: C4Settings | RefinedWebSettings
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Run a kernel over texts that are all flagged; return the texts afterwards, and the counts."""
    data, offsets = text_buffers(pl.Series(texts, dtype=pl.String))
    counts = np.zeros((len(texts), len(LineCount)), np.int64)
    out, ends = edit(data, offsets, np.full(len(texts), FLAGGED), rules, CLASSES, counts)
    edited, start = list(texts), 0
    for row in np.flatnonzero(ends >= 0):
        edited[row], start = bytes(out[start : ends[row]]).decode(), ends[row]
    return edited, counts


def c4_slowly(text: str, rules: C4Settings) -> tuple[str, Counter[LineCount]]:
    kept, counts = [], Counter({LineCount.LINE_WORDS: len(text.split())})
    for raw in text.split("\n"):
        line, reason = raw.strip(), None
        words = line.split()
        if rules.max_word_length and any(len(w) > rules.max_word_length for w in line.split()):
            counts[LineCount.LONG_WORD_LINES] += 1
            continue
        if rules.citations:
            line, removed = re.subn(r"\[\d*\]|\[edit\]|\[citation needed\]", "", line)
            counts[LineCount.CITATIONS] += removed
            words = words if rules.count_citations else line.split()
        low = lower(line)
        has_policy = any(policy in low for policy in PHRASES.split("/")[2 : phrases.EDIT])
        if rules.has_end_marks and (not line.endswith(MARKS) or line.endswith("...")):
            reason = LineCount.UNFINISHED_LINES
        elif len(words) < rules.min_words:
            reason = LineCount.FEW_WORD_LINES
        if reason is not None:
            counts[reason] += bool(words)
            continue
        counts[LineCount.LOREM_IPSUM_LINES] += "lorem ipsum" in low
        counts[LineCount.JAVASCRIPT_LINES] += "javascript" in low
        if rules.javascript and "javascript" in low:
            continue
        counts[LineCount.CURLY_BRACKET_LINES] += "{" in line
        counts[LineCount.POLICY_LINES] += has_policy
        kept += [] if rules.policy and has_policy else [line]
    return "\n".join(kept).strip() if rules.is_on else text, +counts


@settings(max_examples=100)
@given(st.lists(PAGES, max_size=4), st.sampled_from(SETTINGS))
def test_edit_c4_keeps_the_lines_of_the_reference(texts: list[str], rules: C4Settings) -> None:
    edited, counts = run_edit(edit_c4, texts, rules)
    counts[:, LineCount.SENTENCES] = 0  # held by the twin in test_line_edits.py

    expected = [c4_slowly(text, rules) for text in texts]
    assert edited == [text for text, _ in expected]
    assert [Counter(dict(zip(LineCount, row, strict=True))) for row in counts.tolist()] == [
        count for _, count in expected
    ]


def refinedweb_slowly(text: str, rules: RefinedWebSettings) -> str:
    """Drop lines of capitals, digits or few words; blank lines between others become one."""
    kept: list[str] = []
    for line in text.split("\n"):
        plain = line.strip()
        upper, digits = sum(map(str.isupper, line)), sum(map(str.isdigit, line))
        if not plain:
            kept.append("")
        elif (
            upper <= rules.max_uppercase * len(line)
            and digits <= rules.max_numeric * len(line)
            and len(plain.split()) >= rules.min_words
        ):
            kept.append(line)
    return re.sub("\n{3,}", "\n\n", "\n".join(kept).strip("\n"))


@settings(max_examples=100)
@given(st.lists(PAGES, max_size=4), st.sampled_from([(0.5, 0.5, 1), (1.0, 0.25, 3)]))
def test_edit_refinedweb_drops_the_lines_of_the_reference(
    texts: list[str], limits: tuple[float, float, int]
) -> None:
    rules = RefinedWebSettings(limits[0], limits[1], False, limits[2], 0)
    edited, _ = run_edit(edit_refinedweb, texts, rules)
    assert edited == [refinedweb_slowly(text, rules) for text in texts]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("BREAKING News", ""),
        ("      BREAKING News", "      BREAKING News"),  # indentation counts, as in DCLM
        ("BREAKINGnews here", "BREAKINGnews here"),
        ("123 456", "123 456"),
        ("1234", ""),
        ("one", ""),
        (" two words ", " two words "),
        ("3,400.5k views!", ""),
        ("- 12 shares", ""),
        ("12shares of it", "12shares of it"),
        ("12 cats", "12 cats"),
        ("0 items in cart now", "0 now"),
        ("Sign-in to read on", "to read on"),
        ("Sign-ins to read on", "Sign-ins to read on"),
        ("It fell. Read more…", "It fell."),
        ("It fell. READ MORE...", "It fell."),
        ("a b c d e f g h i read more...", "a b c d e f g h i read more..."),
        ("a b c d e f g h read more...", "a b c d e f g h"),
    ],
)
def test_edit_refinedweb_decides_on_a_line(line: str, kept: str) -> None:
    rules = RefinedWebSettings(0.5, 0.999, True, 2, 10)
    edited, counts = run_edit(edit_refinedweb, [f"a b\n{line}\n\n \nc d", line], rules)

    assert edited == [f"a b\n{kept}\n\nc d" if kept else "a b\n\nc d", kept]
    lost = len(line.split()) - len(kept.split())
    assert counts[:, LineCount.REFINEDWEB_LINES].tolist() == [not kept] * 2
    assert counts[:, LineCount.REFINEDWEB_WORDS].tolist() == [lost] * 2
