"""Normalising evens out bytes, never words, numbers, links, indentation or paragraphs."""

import unicodedata

from many_examples import many_examples
from prelude import given, pl, pytest, re, settings, st, sys
from tables import cases

from assets.filtered.normalize import (
    BIDI_CONTROLS,
    CONTROL_CHARACTERS,
    LINE_ENDS,
    MOJIBAKE,
    NFC_CANDIDATES,
    SOFT_HYPHEN,
    WORD_BREAK,
    normalize_text,
)
from resources.settings.filtering.filter_steps import NORMALIZE_FOR, NormalizeConfig

TEXTS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\r\n\t \u200beก\u0301\ufeff")
)


def normalize(*texts: str | None, **switches: object) -> list[str | None]:
    series = pl.Series("text", texts, dtype=pl.String)
    return normalize_text(series, NormalizeConfig.model_validate(switches)).to_list()


GOOD_TEXTS = [
    "Pi is 3.14, see http://a.io/x?y=1.",
    "a@b.co, 1,000.50 €, -2e-5, 10:30, http://a.io/x?y=1&z=%C3%A9#é",
    "def f(x):\n    return x[0]",
    "    indented = first\n\tline",
    "One.\n\nTwo  with  two  spaces.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "",
    "می\u200cخواهم",
    "👩\u200d🔬",
    "日本語、中文。",
    "IRMÃ E IRMÃO: «NÃO», MAÇÃ… “LÃ”; LIBERTÉ»",
    "Ã",
    "\u0301",
]
SWITCHES: list[dict[str, object]] = [
    {},
    {"mojibake": True},
    {"bidi_controls": False},
    {"bidi_marks": True},
    {"trailing_spaces": True},
    {"max_blank_lines": 1},
    *NORMALIZE_FOR.values(),
    {"mojibake": True, "bidi_marks": True, "trailing_spaces": True, "max_blank_lines": 2},
]


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@pytest.mark.parametrize("text", GOOD_TEXTS)
def test_good_text_stays_as_it_is(text: str, switches: dict[str, object]) -> None:
    assert normalize(text, **switches) == [text]


def test_small_columns() -> None:
    assert normalize("One.  \n\n\nTwo.") == ["One.  \n\n\nTwo."]  # by default
    assert normalize("a", "b\r", None, "c\x00", "d") == ["a", "b", None, "c", "d"]
    assert normalize() == []
    long = "é" * 500_000
    assert normalize(long + "\r\n") == [long]


@cases(r"""
    text | expected
    été | été
    "e\u200b\u0301" | é
    Å 한 한 | Å 한 한
    "a\r\nb\rc\n" | "a\nb\nc"
    "a\x00b\x07\x7f\x84\ufeff\u2060c" | abc
    "zero\u200bwidth\u200b" | zerowidth
    "Silben\xadtren\xad\u0301nung\xad \xad" | Silbentreńnung
    "one\x0ctwo\x0bthree\x85four" | "one\ntwo\nthree\nfour"
    "\n \t\n    x = 1\n\n" | "    x = 1"
    "end \u3000\n " | end
    " \n\t " | ""
""")
def test_noise_goes(text: str, expected: str) -> None:
    assert normalize("before", text, "after") == ["before", expected, "after"]


@cases(r"""
    switch             | text
    nfc                | é
    line_ends          | "a\r\nb\rc"
    control_characters | "a\x00b"
    soft_hyphens       | "a\xadb"
    strip              | "\na "
""")
def test_a_switch_off_leaves_its_noise(switch: str, text: str) -> None:
    assert normalize(text, **{switch: False}) == [text]
    assert normalize(text) != [text]


@cases(r"""
    text                                 | expected
    "ภาษา\u200bไทย\u200b2\u200bก\u200bข" | None
    "ភាសា\u200bខ្មែរ"                    | None
    "မြန်မာ\u200bစာ ພາສາ\u200bລາວ"       | None
    "ไทย\x00\u200b\u200babc\u200bde"     | ไทยabcde
    "ไทย\u200b\u200b\u200babc"           | "ไทย\u200babc"
""")
def test_zero_width_spaces_stay_beside_scripts_without_blanks(
    text: str, expected: str | None
) -> None:
    assert normalize(text) == [expected or text]


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=4))
def test_twice_is_once(texts: list[str]) -> None:
    once = normalize(*texts)
    assert normalize(*once) == once


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=4))
def test_words_survive_in_order(texts: list[str]) -> None:
    noise = re.compile(
        r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u200b\u2060\ufeff\u202a-\u202e"
        r"\u2066-\u2069]"
    )
    words = [unicodedata.normalize("NFC", noise.sub("", text)).split() for text in texts]
    normalized = [text.replace("\u200b", "") for text in normalize(*texts) if text is not None]
    assert [text.split() for text in normalized] == words


def test_every_character_that_nfc_could_change_is_a_candidate() -> None:
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    maybe = set(map(chr, (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))))
    maybe.update(_second_of_pair(character) for character in characters)
    others = [c for c in characters if not unicodedata.is_normalized("NFC", c)]
    changeable = [c for c in characters if c in maybe or unicodedata.combining(c)] + others

    assert len(changeable) > 2_000
    assert pl.Series(changeable).str.contains(NFC_CANDIDATES).all()


def _second_of_pair(character: str) -> str:
    parts = unicodedata.decomposition(character).split()
    return chr(int(parts[1], 16)) if len(parts) == 2 and parts[0][0] != "<" else "\u0301"


@cases(r"""
    text | expected
    sÃ³ | só
    "â€œquotedâ€\x9d" | “quoted”
    "itâ€™s\r\nfine, cafÃ© 3.14" | "it’s\nfine, café 3.14"
    "\x93hi\x94" | “hi”
    "bad ð\x9f\x98\x80\ngood é ÃO http://a.io/x?y=1" | "bad 😀\ngood é ÃO http://a.io/x?y=1"
    "one\x85two" | "one\ntwo"
""")
def test_mojibake_is_repaired_before_its_controls_are_removed(text: str, expected: str) -> None:
    assert normalize("before", text, None, mojibake=True) == ["before", expected, None]
    assert re.search(MOJIBAKE, text) or "\x85" in text


def test_a_huge_line_with_mojibake_is_repaired_in_pieces() -> None:
    text = "cafÃ© au lait, " * 30_000 + "x" * 10_000
    assert normalize(text, mojibake=True) == [text.replace("Ã©", "é")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a \t\nb\u3000\n c", "a\nb\n c"), ("a \r\nb\t", "a\nb"), ("  \n  x", "  x")],
)
def test_blanks_at_line_ends_go_if_wanted(text: str, expected: str) -> None:
    assert normalize(text, trailing_spaces=True) == [expected]


def test_blanks_before_other_line_ends_go_too() -> None:
    assert normalize("a \r\nb ", trailing_spaces=True, line_ends=False, strip=False) == ["a\r\nb"]


@cases(r"""
    text              | most | expected
    "a\n\n\n\nb\n\nc" | 1    | "a\n\nb\n\nc"
    "a\n \n\t\n  b"   | 1    | "a\n\n  b"
    "a\n\n\n\nb"      | 3    | "a\n\n\n\nb"
    "a\n\n\n\n\nb"    | 3    | "a\n\n\n\nb"
    "\n\n\na\n\n\n"   | 1    | "\na\n\n"
""")
def test_runs_of_blank_lines_are_cut_to_so_many(text: str, most: int, expected: str) -> None:
    assert normalize(text, max_blank_lines=most, strip=False) == [expected]


def test_overrides_of_direction_go_and_marks_go_if_wanted() -> None:
    text = "a\u200e\u061c\u202a\u202b\u202c\u202d\u202e(b\u2066\u2067\u2068c\u2069)\u200f"
    assert normalize(text) == ["a\u200e\u061c(bc)\u200f"]
    assert normalize(text, bidi_controls=False) == [text]
    assert normalize(text, bidi_marks=True) == ["a(bc)"]


def test_code_keeps_form_feeds_and_decomposed_literals() -> None:
    code = 'x = "e\u0301"\n\x0c\ndef f():\r\n\treturn 1'
    assert normalize(code, **NORMALIZE_FOR["code"]) == [code.replace("\r", "")]


@settings(max_examples=50)
@given(st.lists(TEXTS, max_size=4), st.sampled_from(SWITCHES))
def test_twice_is_once_with_every_switch(texts: list[str], switches: dict[str, object]) -> None:
    switches = {**switches, "mojibake": False}
    once = normalize(*texts, **switches)
    assert normalize(*once, **switches) == once


@settings(max_examples=200)
@given(st.lists(TEXTS | TEXTS.map(lambda text: text.join(["x" * 127] * 3)), max_size=4))
def test_rows_are_changed_as_by_the_regexes_alone(texts: list[str]) -> None:
    rows = pl.Series("text", texts, dtype=pl.String)

    plain = rows.str.replace_all(f"{WORD_BREAK}|{CONTROL_CHARACTERS}", "$1")
    plain = plain.str.replace_all(SOFT_HYPHEN, "")
    plain = plain.str.replace_all(LINE_ENDS, "\n")
    plain = plain.str.normalize("NFC").str.strip_chars_end().str.replace(r"\A\s*\n", "")

    assert normalize(*texts) == plain.to_list()


@pytest.mark.slow
@many_examples(300)
@given(st.lists(st.text("ae<\u0301\u0344\u0338\u1100\u1161\u0958\u200b\u202a\r\n"), max_size=4))
def test_marks_at_the_edges_of_lines_are_composed_as_in_the_whole_text(texts: list[str]) -> None:
    rows = pl.Series("text", texts, dtype=pl.String)

    plain = rows.str.replace_all(CONTROL_CHARACTERS, "").str.replace_all(BIDI_CONTROLS, "")
    plain = plain.str.replace_all(LINE_ENDS, "\n").str.normalize("NFC")

    assert normalize(*texts, strip=False) == plain.to_list()


def test_mojibake_needs_ftfy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(ModuleNotFoundError):
        normalize("a", mojibake=True)


@given(st.lists(st.none() | st.text(" \n\t\x0b\x85\xa0\u2003\u3000aé漢", max_size=12), max_size=5))
def test_edges_lose_what_is_blank_and_nulls_stay(texts: list[str | None]) -> None:
    off = dict.fromkeys(("nfc", "line_ends", "control_characters", "bidi_controls"), False)

    expected = [text if text is None else re.sub(r"\A\s*\n", "", text.rstrip()) for text in texts]

    assert normalize(*texts, **off) == expected
