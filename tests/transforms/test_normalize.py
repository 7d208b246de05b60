"""Normalising evens out bytes, never words, numbers, links, indentation or paragraphs."""

import re
import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assets.transforms.normalize import NFC_CANDIDATES, NormalizeConfig, normalize_text

TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\r\n\t \u200be\u0301\ufeff")
)


def normalize(*texts: str | None, **switches: bool) -> list[str | None]:
    series = pl.Series("text", texts, dtype=pl.String)
    return normalize_text(series, NormalizeConfig(**switches)).to_list()


@pytest.mark.parametrize(
    "text",
    [
        "Pi is 3.14, see http://a.io/x?y=1.",
        "def f(x):\n    return x[0]",
        "    indented = first\n\tline",
        "One.\n\n\nTwo  with  two  spaces.",
        "",
        "می\u200cخواهم",
        "👩\u200d🔬",
        "日本語、中文。",
        "\u0301",
    ],
)
def test_good_text_stays_as_it_is(text: str) -> None:
    assert normalize(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("e\u0301te\u0301", "été"),
        ("e\u200b\u0301", "é"),
        ("\u212b 한 \u1112\u1161\u11ab", "Å 한 한"),
        ("a\r\nb\rc\n", "a\nb\nc"),
        ("a\x00b\x07\x7f\x84\ufeff\u2060c", "abc"),
        ("one\x0ctwo\x0bthree\x85four", "one\ntwo\nthree\nfour"),
        ("\n \t\n    x = 1\n\n", "    x = 1"),
        ("end \u3000\n ", "end"),
        (" \n\t ", ""),
    ],
)
def test_noise_goes(text: str, expected: str) -> None:
    assert normalize("before", text, "after") == ["before", expected, "after"]


@pytest.mark.parametrize(
    ("switch", "text"),
    [
        ("nfc", "e\u0301"),
        ("line_ends", "a\r\nb\rc"),
        ("control_characters", "a\x00b"),
        ("strip", "\na "),
    ],
)
def test_a_switch_off_leaves_its_noise(switch: str, text: str) -> None:
    assert normalize(text, **{switch: False}) == [text]
    assert normalize(text) != [text]


def test_only_the_rows_with_noise_change() -> None:
    assert normalize("a", "b\r", None, "c\x00", "d") == ["a", "b", None, "c", "d"]


def test_empty_series_stays_empty() -> None:
    assert normalize() == []


def test_one_megabyte_line_survives() -> None:
    text = "é" * 500_000
    assert normalize(text + "\r\n") == [text]


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS, max_size=4))
def test_twice_is_once(texts: list[str]) -> None:
    once = normalize(*texts)
    assert normalize(*once) == once


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS, max_size=4))
def test_words_survive_in_order(texts: list[str]) -> None:
    noise = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200b\u2060\ufeff]")
    words = [unicodedata.normalize("NFC", noise.sub("", text)).split() for text in texts]
    assert [text.split() for text in normalize(*texts) if text is not None] == words


def test_every_character_that_nfc_could_change_is_a_candidate() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    maybe = set(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))
    maybe.update(_second_of_pair(character) for character in characters)
    changeable = [
        character
        for character in characters
        if character in maybe
        or unicodedata.combining(character)
        or not unicodedata.is_normalized("NFC", character)
    ]

    assert len(changeable) > 2_000
    assert pl.Series(changeable).str.contains(NFC_CANDIDATES).all()


def _second_of_pair(character: str) -> str:
    parts = unicodedata.decomposition(character).split()
    return chr(int(parts[1], 16)) if len(parts) == 2 and parts[0][0] != "<" else "\u0301"
