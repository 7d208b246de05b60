"""The kernels of source code and of kinds of characters against slow references."""

import re
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.filtered.kernels import code_counts as code
from assets.filtered.kernels import code_counts as syntax
from assets.filtered.kernels.character_scan import dominant_groups, matching_codes
from assets.filtered.kernels.code_counts import (
    Count,
    byte_classes,
    count_comments,
    count_documents,
    count_visible,
    find_newline,
    hash_words,
    is_blank,
)
from assets.text.buffers import text_buffers

BLANKS = b" \t\v\f\r"
PUNCTUATION = "{}()=+"
KEYWORDS = ["if", "return", "continue", "_"]
TOKENS = [
    *(
        "//",
        "/*",
        "*/",
        "/",
        "*",
        '"',
        "\\",
        "\n",
        " ",
        "\t",
        "\r",
        "é",
        "漢",
        "x1",
        "9",
        "if",
        "{",
    ),
    *("return", "continue", "continued", "_", "=", "+", "A1+/" * 16, "b" * 64, "0" * 63, "/+" * 40),
]
FILES = st.lists(st.sampled_from(TOKENS), max_size=25).map("".join)
PAGES = st.lists(
    st.sampled_from(
        [
            *(
                "<p>",
                "</p>",
                "<!-- ",
                "-->",
                "<script>",
                "</Script",
                "<STYLE>",
                "</style>",
                "<",
                ">",
            ),
            *(
                "a",
                "é",
                "漢",
                " ",
                "\n",
                "\t",
                "<3",
                "</",
                "<?",
                "-",
                *("<!", "<z", "<Z", "<A", "<@", "<[", "<`", "<{"),
            ),
        ]
    ),
    max_size=20,
).map("".join)


def as_bytes(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(text.encode(), np.uint8)


def test_is_blank_holds_for_ascii_blanks_within_a_line() -> None:
    assert [byte for byte in range(256) if is_blank(byte)] == sorted(BLANKS)


@given(st.binary(max_size=40), st.integers(0, 40))
def test_find_newline_is_find_or_the_end(data: bytes, at: int) -> None:
    at = min(at, len(data))
    assert find_newline(np.frombuffer(data, np.uint8), at) == at + len(data[at:].split(b"\n")[0])


@given(PAGES)
def test_count_visible_leaves_tags_out(text: str) -> None:
    tags = r"<!--.*?(?:-->|\Z)"
    for name in ("script", "style"):
        tags += rf"|<{name}.*?(?:>|\Z).*?(?:</{name}|\Z).*?(?:>|\Z)"
    visible = re.sub(rf"(?is){tags}|<[a-z/!?].*?(?:>|\Z)", "", text)
    expected = len(re.sub(r"[ \t\n]+", " ", visible).lstrip(" "))
    assert count_visible(as_bytes(text)) == expected


def test_byte_classes() -> None:
    classes = byte_classes(PUNCTUATION)
    tests = {
        code.WORD: rb"[A-Za-z0-9_\x80-\xff]",
        code.START: rb"[A-Za-z_]",
        code.DIGIT: rb"[0-9]",
        code.ENCODED: rb"[A-Za-z0-9+/]",
        code.PUNCTUATION: rb"[{}()=+]",
    }
    for bit, pattern in tests.items():
        expected = [byte for byte in range(256) if re.match(pattern, bytes([byte]))]
        assert np.flatnonzero(classes & bit).tolist() == expected


@given(st.sets(st.text("abz_", min_size=1, max_size=code.KEYWORD_BYTES), max_size=500))
def test_hash_words_holds_each_word_once(words: set[str]) -> None:
    table = hash_words(sorted(words))
    keys = {int.from_bytes(word.encode(), "big") for word in words}
    assert len(table) == 1 << code.KEYWORD_SLOTS_LOG2
    assert sorted(table[table != 0].tolist()) == sorted(keys)


def c_syntax(traits: int = 0) -> tuple[Any, Any, int]:
    """Comments of C: actions, uint8 [256], marks, uint8 [MARKS, MARK_BYTES], traits."""
    actions = np.full(256, syntax.CODE, np.uint8)
    actions[list(BLANKS)], actions[ord("\n")] = syntax.BLANK, syntax.NEWLINE
    actions[ord("\\")], actions[ord('"')] = syntax.ESCAPE, syntax.QUOTE
    actions[ord("/")] = syntax.MARK
    marks = np.zeros((syntax.MARKS, syntax.MARK_BYTES), np.uint8)
    for place, mark in ((0, b"//"), (syntax.OPEN, b"/*"), (syntax.CLOSE, b"*/")):
        marks[place, :2] = list(mark)
    return actions, marks, traits


def comments_slowly(text: str) -> tuple[int, int]:
    """Return the lines that hold nothing but comment, and the characters of comments."""
    tokens = r'(?s)(/\*.*?(?:\*/|\Z)|//[^\n]*)|\\[^\n]|"(?:\\.|[^"\n\\])*(?:"|(?=\n)|\\?\Z)|.'
    kinds = [("c" if hit[1] else "x") * len(hit[0]) for hit in re.finditer(tokens, text)]
    marked = "".join(kinds)
    lines = at = 0
    for line in text.split("\n"):
        own = {marked[at + i] for i, sign in enumerate(line) if sign not in BLANKS.decode()}
        lines += own == {"c"}
        at += len(line) + 1
    return lines, marked.count("c")


@settings(max_examples=200)
@given(FILES)
def test_count_comments_of_c(text: str) -> None:
    counts = np.zeros(len(Count), np.int64)
    count_comments(as_bytes(text), *c_syntax(), counts)
    found = counts[[Count.COMMENT_LINES, Count.COMMENT_CHARACTERS]]
    assert tuple(found.tolist()) == comments_slowly(text)
    assert counts.sum() == found.sum()


def counts_slowly(text: str, has_syntax: bool) -> dict[Count, int]:
    data = text.encode()
    lines = [line for line in data.split(b"\n") if line.strip(BLANKS)]
    words = re.findall(rb"[A-Za-z0-9_\x80-\xff]+", data)
    runs = [
        run
        for run in re.findall(rb"[A-Za-z0-9+/]{64,}", data)
        if re.search(rb"\d", run) and 8 * len(re.findall(rb"[^+/]", run)) >= 7 * len(run)
    ]
    comments = comments_slowly(text) if has_syntax else (0, 0)
    return {
        Count.CODE_LINES: len(lines),
        Count.COMMENT_LINES: comments[0],
        Count.COMMENT_CHARACTERS: comments[1],
        Count.INDENTED_LINES: sum(
            re.match(rb"\t| [ \t\v\f\r]", line) is not None for line in lines
        ),
        Count.PUNCTUATION_CHARACTERS: sum(sign in PUNCTUATION for sign in text),
        Count.KEYWORD_WORDS: sum(word.decode() in KEYWORDS for word in words),
        Count.CODE_WORDS: sum(re.match(rb"[A-Za-z_]", word) is not None for word in words),
        Count.VISIBLE_TEXT_CHARACTERS: 0,
        Count.LONG_HEX_OR_BASE64_CHARACTERS: sum(map(len, runs)),
    }


@settings(max_examples=200)
@given(st.lists(st.tuples(FILES, st.sampled_from([-1, 0])), min_size=1, max_size=4))
def test_count_documents(files: list[tuple[str, int]]) -> None:
    data, starts = text_buffers(pl.Series([text for text, _ in files], dtype=pl.String))
    actions, marks, traits = c_syntax()
    chosen = np.array([place for _, place in files], np.int64)
    syntaxes = (chosen, actions[None], marks[None], np.array([traits]))
    counts = np.zeros((len(Count), len(files)), np.int64)

    count_documents(
        starts, data, syntaxes, (byte_classes(PUNCTUATION), hash_words(KEYWORDS)), counts
    )

    assert [dict(zip(Count, column, strict=True)) for column in counts.T.tolist()] == [
        counts_slowly(text, place >= 0) for text, place in files
    ]


ODD = st.text(st.sampled_from("aZ 1\n\t\x00\x7fяЯé漢字\u0301😀\U0010ffff"), max_size=12)
LONG = st.tuples(st.integers(0, 130), ODD, st.integers(0, 130)).map(
    lambda parts: "x" * parts[0] + parts[1] + "y" * parts[2]
)


@pytest.mark.parametrize(
    "pattern", ["[a-cé\u4e2d]", "[\U0010fff0-\U0010ffff]", "[\\x00\\x3f\\x40]"]
)
def test_matching_codes_are_those_that_match_alone(pattern: str) -> None:
    every = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    expected = [code for code in every if re.match(pattern, chr(code))]
    assert matching_codes(pattern).tolist() == expected
    some = np.array([*range(60, 70), 97, 0xE9, 0x10FFFF])
    assert matching_codes(pattern, some).tolist() == [c for c in some.tolist() if c in expected]


@given(st.lists(LONG | ODD, max_size=4))
def test_dominant_groups_weigh_letters_by_their_bytes(texts: list[str]) -> None:
    members = {1: "яЯ", 2: "aZxy", 3: "é", 5: "漢字", 7: "😀"}
    groups = np.zeros(0x110000, np.uint8)
    for group, letters in members.items():
        groups[[ord(letter) for letter in letters]] = group
    for first in "az", "AZ":
        groups[ord(first[0]) : ord(first[1]) + 1] = 2

    found = dominant_groups(*text_buffers(pl.Series(texts, dtype=pl.String)), groups)

    for text, group in zip(texts, found.tolist(), strict=True):
        weights = {
            group: sum(len(sign.encode()) for sign in text if sign in letters)
            for group, letters in members.items()
        }
        best = max(weights, key=lambda group: weights[group])
        assert group == (best if weights[best] else 0)
