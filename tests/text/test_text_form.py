"""Tests of the form in which texts are compared."""

import html
import unicodedata

from prelude import Callable, given, json, pl, pytest, st, time

from assets.filtered.normalize import normalize_text
from assets.text.marks import text_marks
from assets.text.text_form import form_of, has_other_form, text_form, traced_form_of
from resources.settings.filtering.filter_steps import NormalizeConfig

TEXT = "Žofie's café served crème brûlée to ﬁfty-one guests,\nwho praised 한국어 and हिन्दी songs."
WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
PIECES = (
    *("a", "É", "ﬁ", "２", "한", "각", "é", "ं", "क", " ", "\n", "-", "\xad", "\u200b", "\ufe0f"),
    *("\u202e", "\u0301", "\u1112\u1161", "\u11ab", "-\n", "\r\n", "\x1c"),
    *("&", "amp;", "&lt;", "&gt;", "&shy;", "&#8203;", "&#x41;", "&nope;", "<b>", "</b>", "<", ">"),
    *("br/>", "<i class='x'>", "\\", "u00e9", "\\ud83d\\ude00", "\\n", "\\\\u", "😀", "𝐀"),
    *("\x01", "n"),
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


def hyphenated(text: str) -> str:
    return text.replace("served", "ser-\n  ved").replace("praised", "prai\xad\nsed")


VARIATIONS: dict[str, Callable[[str], str]] = {
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "soft hyphens": lambda text: text.replace("e", "e\xad"),
    "without width": lambda text: text.replace("r", "r\u200b").replace("s", "\ufeffs\u2060"),
    "directions": lambda text: "\u202b" + text.replace("guests", "gue\u200ests") + "\u202c",
    "named soft hyphens": lambda text: text.replace("e", "e&shy;"),
    "numbered entities": lambda text: text.encode("ascii", "xmlcharrefreplace").decode(),
    "escaped twice": lambda text: html.escape(VARIATIONS["numbered entities"](text)),
    "JSON": lambda text: json.dumps(text),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "tags": lambda text: text.replace("f", "<b>f</b>").replace(" to ", "<br/>to <a href='x'>"),
    "full width": lambda text: text.translate(WIDE),
    "hyphenated lines": hyphenated,
    "white space and case": lambda text: "\r\n\t".join(text.upper().split()),
}


@pytest.mark.parametrize("variation", VARIATIONS)
def test_a_variation_has_the_words_of_the_text(variation: str) -> None:
    changed = VARIATIONS[variation](TEXT)
    assert changed != TEXT
    mark, expected = text_marks(text_form(pl.Series([changed, TEXT])))
    assert mark == expected


@given(texts)
def test_the_form_of_a_form_is_itself(text: str) -> None:
    form = form_of(text)
    assert form_of(form) == form
    assert text_form(pl.Series([text]))[0] == form  # the look passes over no text that differs


@given(texts)
def test_normalisation_changes_no_word_of_the_form(text: str) -> None:
    both = pl.Series([text, normalize_text(pl.Series([text]), NormalizeConfig())[0]])
    mark, expected = text_marks(text_form(both))
    assert mark == expected


@given(texts)
def test_a_trace_leads_to_what_each_character_was_made_of(text: str) -> None:
    form, places = traced_form_of(text)
    assert form == form_of(text)
    assert places.shape == (len(form), 2)
    for character, (start, stop) in zip(form, places.tolist(), strict=True):
        assert start < stop <= len(text)
        assert character == text[start:stop] or character in form_of(text[start:stop])
    assert (places[1:] >= places[:-1]).all()


@pytest.mark.parametrize(
    "text", ["x < y & z > 1", "a - b", "vector<int> &x;", "C:\\dir", "Anglo-\nSaxon", "50 %", ""]
)
def test_plain_text_is_its_own_form(text: str) -> None:
    assert form_of(text) == text


@pytest.mark.parametrize("bait", ["&amp;", "amp;", "\\", "<", "-\n", "<b", "\xad", "\\u005c", "é"])
def test_a_text_made_to_be_slow_takes_no_longer_than_its_size(bait: str) -> None:
    text = bait * (400_000 // len(bait))
    began = time.process_time()
    form_of(text)
    assert time.process_time() - began < 5


def test_only_texts_with_something_to_change_are_read() -> None:
    rows = pl.Series(["plain words, and more: naïve.", "so\xadft", "a&amp;b"])
    assert has_other_form(rows).to_list() == [False, True, True]
