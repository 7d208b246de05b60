"""One form of a text, in which texts are compared: takedowns, evaluation items, personal data.

A copy of a text is seldom its bytes. In this form are gone: what nobody sees (soft hyphens,
characters without width, direction and variation marks, control characters), entities of HTML,
escapes of JSON, tags within a line, hyphens by which a line ends within a word, and the difference
between composed and decomposed, wide and plain letters (NFKC, of letters and digits only: the words
of a text have no other characters). What an edit makes is looked at again, so that `&amp;shy;` is
gone, too, and the form of a form is the form itself.

Two texts are equal if their forms have the same words. URLs and ids have forms of their own.
"""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from unicodedata import category, is_normalized, normalize

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.table_rows import change_where
from resources.numbers_between import numbers_between

TEXT_FORM = 2  # 1 is the text as it is
MOST_ROUNDS = 16  # of edits of what edits made: a bound for texts that are made to have no end
HIDDEN = (
    r"\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
HYPHENS = r"\-\xad\u2010\u2011"
BEYOND = r"\U00010000-\U0010ffff"  # as one range: a class with more of them is slow in `re`
WIDE_SIGNS = "＠．－＿＋"  # of addresses; other signs are in no word
INLINE = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|"
    "strike|strong|sub|sup|tt|u|var|wbr"
)
BLOCKS = "br|p|div|li|ul|ol|tr|td|h[1-6]"
TAG = rf"/?(?:(?:{INLINE})|(?P<block>{BLOCKS}))(?:\s[^<>]{{0,1000}})?/?>"
ENTITY = r"(?:amp;)*(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
CODE_UNITS = r"u[0-9a-fA-F]{4}(?:\\+u[0-9a-fA-F]{4})*"
WHITE = {"n": "\n", "r": "\r", "t": "\t"}
Places = NDArray[np.int64]


def text_form(texts: pl.Series) -> pl.Series:
    """Return the form of texts (String, no nulls); those that are in it already are not copied."""

    def changed(rows: pl.Series) -> pl.Series:
        # A Python loop: 15 to 40 ms per MB of the texts that have something to look at.
        return pl.Series(rows.name, [form_of(text) for text in rows], pl.String)

    return change_where(texts, has_other_form(texts), changed)


def has_other_form(texts: pl.Series) -> pl.Series:
    """Check which texts may differ from their form, Boolean."""
    return texts.str.contains(_look())


def form_of(text: str) -> str:
    """Return the form of a text."""
    for _ in range(MOST_ROUNDS):
        before = text
        for pattern in _patterns(text):
            text = pattern.sub(_edit, text)
        if text == before:
            break
    return text


def traced_form_of(text: str) -> tuple[str, Places]:
    """Return the form of a text, and where each of its characters is from.

    Places are int64 [characters of the form, 2]: first character in the text, and the one after.
    """
    places = np.arange(len(text))[:, None] + np.array([0, 1])
    for _ in range(MOST_ROUNDS):
        before = text
        for pattern in _patterns(text):
            edits = [(m.start(), m.end(), _edit(m)) for m in pattern.finditer(text)]
            edits = [each for each in edits if text[each[0] : each[1]] != each[2]]
            text, places = pattern.sub(_edit, text), _moved(places, edits)
        if text == before:
            break
    return text, places


def _moved(places: Places, edits: list[tuple[int, int, str]]) -> Places:
    """Return the places after some edits: first character, end, and what is there instead."""
    if not edits:
        return places
    starts, ends = np.array([each[:2] for each in edits]).T
    sizes = np.array([len(new) for _, _, new in edits])
    is_kept = np.ones(len(places) + 1, np.bool_)
    is_kept[numbers_between(starts, ends)] = False
    before: Places = (np.cumsum(is_kept) - is_kept)[starts]
    new = np.column_stack([places[starts, 0], places[ends - 1, 1]])
    return np.insert(
        places[is_kept[:-1]], np.repeat(before, sizes), np.repeat(new, sizes, axis=0), axis=0
    )


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    edits, clusters = _compiled()
    return (edits,) if is_normalized("NFC", text) else (clusters, edits)


def _edit(match: re.Match[str]) -> str:
    found = match[0]
    if match.lastgroup == "folded":
        return normalize("NFKC", found)
    if match.lastgroup == "entity":
        name = found.split(";")[-2].lstrip("&")
        return unescape(f"&{name};")
    if match.lastgroup == "units":
        return bytes.fromhex(re.sub(r"\\+u", "", found)).decode("utf-16-be", "replace")
    if match.lastgroup == "white":
        return WHITE[found[-1]]
    return "\n" if match.lastgroup == "block" else ""


@cache
def _compiled() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the pattern of all edits, each by its first character, and that of letters and marks.

    Python's `re` is fast if a match begins with one class of characters.
    """
    folded, joining = _classes()
    edits = (
        rf"(?<=&)(?P<entity>{ENTITY})",
        rf"(?<=\\)(?<!\\\\)\\*(?:(?P<units>{CODE_UNITS})|(?P<white>[nrt]))",
        rf"(?<=<){TAG}",
        rf"(?<=[^\W\d_][{HYPHENS}])[ \t]*\r?\n[ \t]*(?=[^\W\d_A-Z])",
        rf"(?<=[{HIDDEN}])[{HIDDEN}]*",
        rf"(?<=[{folded}])(?P<folded>)",
    )
    first = rf"[&\\<{HYPHENS}{HIDDEN}{folded}]"
    clusters = rf"[^{joining}](?P<folded>[{joining}]+)"
    return re.compile(f"{first}(?:{'|'.join(edits)})"), re.compile(clusters)


@cache
def _look() -> str:
    """Return a pattern, for Polars, that every text has which differs from its form."""
    ascii_edits = rf"&[A-Za-z#]|\\[nrtu]|</?(?:{INLINE}|{BLOCKS})[\s/>]|[{HYPHENS}][ \t]*\r?\n"
    return rf"[{HIDDEN}{''.join(_classes())}]|{ascii_edits}"


@cache
def _classes() -> tuple[str, str]:
    """Return the characters that NFKC changes, and those that join one before, as classes."""
    hidden = re.compile(f"[{HIDDEN}]")
    folded, joining = list[str](), list[str]()
    for character in map(chr, [*range(0x80, 0xD800), *range(0xE000, 0x10000)]):
        if category(character)[0] == "M" or "\u1161" <= character <= "\u11c2":
            joining.append(character)
        elif not is_normalized("NFKC", character) and not hidden.match(character):
            plain = normalize("NFKC", character)
            if any(map(str.isalnum, plain)) or character in WIDE_SIGNS:
                folded.append(character)
    return _class(folded), _class(joining)


def _class(characters: list[str]) -> str:
    """Return characters in ascending order, and all beyond U+FFFF, as ranges of a class."""
    codes = np.array([ord(character) for character in characters])
    breaks = np.flatnonzero(np.diff(codes) > 1)
    firsts, lasts = codes[np.append(0, breaks + 1)], codes[np.append(breaks, -1)]
    ranges = (rf"\u{a:04x}-\u{b:04x}" for a, b in zip(firsts, lasts, strict=True))
    return "".join([*ranges, BEYOND])
