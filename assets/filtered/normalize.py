"""Bring text to one form, so that equal documents are equal bytes; the wording never changes.

Unicode form (NFC), line ends, control characters, soft hyphens, overrides of the direction of text
and the blank edges of a document are evened out.
Numbers, URLs, indentation, inner spaces and paragraphs stay as they are. Off by default, because
they are a matter of taste: repair of mojibake, the blanks at line ends, runs of blank lines,
direction marks. NFC is slow, so one scan finds the lines that hold a character to change, and only
those are touched: 1 % of the bytes, in rows with 8 % of them.
"""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import spans_in, text_buffers, texts_in
from assets.text.table_rows import change_where, replace_rows
from resources.settings.filtering.filter_steps import NormalizeConfig

# Line ends have a switch of their own. U+200C and U+200D stay: Persian and emoji need them.
CONTROL_CHARACTERS = r"[\x00-\x08\x0E-\x1F\x7F-\x84\x86-\x9F\u{200B}\u{2060}\u{FEFF}]"
SOFT_HYPHEN = r"\x{AD}"
# U+200B stays beside a character of these: they write no blanks between words (UAX 14, classes SA,
# ID and AS).
SPACELESS = (
    r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Ahom}\p{Javanese}\p{Hiragana}\p{Katakana}\p{Han}"
    r"\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}]"
)
WORD_BREAK = rf"({SPACELESS}\u{{200B}}|\u{{200B}}{SPACELESS})"
# Vertical tab, form feed and NEL end a line too (UAX 14): without them two words would be glued.
LINE_ENDS = r"\r\n|[\r\x0B\x0C\x85]"
CARRIAGE_RETURNS = r"\r\n|\r"

# A text without any of these is in NFC (UAX 15: quick check yes, combining class 0): marks, Hangul
# jamo, letters and symbols with a canonical twin, and some neighbours that make the ranges fewer.
NFC_CANDIDATES = (
    r"[\p{M}\u{374}\u{37E}\u{387}\u{958}-\u{95F}\u{9DC}-\u{9DF}\u{A33}-\u{A5E}"
    r"\u{B5C}\u{B5D}\u{F43}-\u{F69}\u{1100}-\u{11FF}\u{1F71}-\u{1FFD}\u{2000}\u{2001}\u{2126}-\u{212B}\u{2329}\u{232A}\u{2ADC}"
    r"\u{F900}-\u{FAFF}\u{FB1D}-\u{FB4E}\u{16D63}-\u{16D6A}\u{1D15E}-\u{1D1C0}\u{2F800}-\u{2FA1D}]"
)

# Embeddings, overrides and isolates of UAX 9: they can show source code in another order than it is
# stored (CVE-2021-42574), and plain text without a renderer has no use for them. The marks (LRM,
# RLM, ALM) cannot move a letter, and sentences in Arabic and Hebrew hold them beside punctuation.
BIDI_CONTROLS = r"[\u{202A}-\u{202E}\u{2066}-\u{2069}]"
BIDI_MARKS = r"[\u{61C}\u{200E}\u{200F}]"
BLANK = r"[\t\p{Zs}]"  # white space that ends no line

# A byte of UTF-8 inside a character, read as Latin-1 or as Windows-1252, or lost; then sequences
# that look like a character in two to four bytes, or a C1 control (except NEL, a line end).
_INSIDE = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\ufffd"
MOJIBAKE = (
    f"[\xc2-\xdf][{_INSIDE}]|[\xe0-\xef][{_INSIDE}]{{2}}|[\xf0-\xf4][{_INSIDE}]{{3}}"
    "|[\x80-\x84\x86-\x9f]"
)
# ftfy gets single words: in lines it also takes the blank of "IRMÃ E" for half of an "à". Words in
# capitals that end in Ã, as Portuguese ones do, may come before a quote or an ellipsis. Text
# without blanks is cut, to keep ftfy's work in bounds.
_WORD = r"[^ \t\n]{1,4000}"
_CAPITALS = "(?<=[A-Z\xc0-\xde])[ÃÂ][”’…»]+(?!\\w)"


Change = Callable[[pl.Series], pl.Series]


def normalize_text(texts: pl.Series, config: NormalizeConfig) -> pl.Series:
    """Return `texts` (String) normalised, in order. Nulls stay. Lines end at LF.

    A second pass changes nothing, unless `mojibake` is on and a control character was inside it.
    The order: mojibake before controls, because C1 controls are half of its characters; controls
    before line ends and NFC, which look at the next character only; blanks at line ends before
    blank lines. ModuleNotFoundError: `mojibake` is on and ftfy is not installed.
    """
    from assets.filtered.kernels.character_scan import character_bits, find_lines

    if config.mojibake:
        texts = _repair_mojibake(texts)
    changes = _changes(config)
    bits = character_bits(tuple(pattern for pattern, _ in changes))
    rows = np.unique(find_lines(*text_buffers(texts), bits)[:, 0])
    evened = _even_out_blanks(texts, config)  # of all texts: these are in buffers already
    if not len(rows):
        return evened
    places = pl.Series(rows, dtype=pl.get_index_type())
    changed = _change_lines(texts.gather(places), bits, [change for _, change in changes])
    return replace_rows(evened, places, _even_out_blanks(changed, config))


def _changes(config: NormalizeConfig) -> list[tuple[str, Change]]:
    """Return regexes of the characters to change, and changes of lines with one, in order."""
    ends = LINE_ENDS if config.form_feeds else CARRIAGE_RETURNS
    controls = _replacement(f"{WORD_BREAK}|{CONTROL_CHARACTERS}", "$1")
    changes: list[tuple[bool, str, Change]] = [
        (config.control_characters, CONTROL_CHARACTERS, controls),
        (config.soft_hyphens, SOFT_HYPHEN, _replacement(SOFT_HYPHEN, "")),
        (config.bidi_controls, BIDI_CONTROLS, _replacement(BIDI_CONTROLS, "")),
        (config.bidi_marks, BIDI_MARKS, _replacement(BIDI_MARKS, "")),
        (config.line_ends, ends, _replacement(ends, "\n")),
        (config.nfc, NFC_CANDIDATES, lambda lines: lines.str.normalize("NFC")),
    ]
    return [(pattern, change) for is_on, pattern, change in changes if is_on]


def _change_lines(texts: pl.Series, bits: NDArray[np.uint8], changes: list[Change]) -> pl.Series:
    """Apply change i to the lines that hold a character with bit i.

    A text is then what its lines are, each with its newline: no character is removed, or composed,
    because of what is on the other side of a newline.
    """
    from assets.filtered.kernels.character_scan import find_lines
    from assets.filtered.kernels.span_edit import replace_spans

    data, offsets = text_buffers(texts.rechunk())
    spans = find_lines(data, offsets, bits)
    lines = spans_in(data, spans[:, 1:3])
    for i, change in enumerate(changes):
        lines = change_where(lines, pl.Series(spans[:, 3] & (1 << i) != 0), change)
    words, ends = text_buffers(lines.rechunk())
    spans[:, 3] = np.arange(len(spans))
    return texts_in(*replace_spans(data, offsets, spans, words, ends[1:]))


def _replacement(pattern: str, text: str) -> Change:
    return lambda lines: lines.str.replace_all(pattern, text)


def _even_out_blanks(texts: pl.Series, config: NormalizeConfig) -> pl.Series:
    if config.trailing_spaces:
        texts = _replace_all(texts, rf"(?mR){BLANK}+$", "")
    if config.max_blank_lines is not None:
        most = config.max_blank_lines
        run = rf"(?:{BLANK}*\n){{{most + 1},}}"
        texts = _replace_all(texts, rf"\n{run}", "\n" * (most + 1))
        texts = _replace_all(texts, rf"\A{run}", "\n" * most)
    if config.strip:
        texts = _strip(texts)
    return texts


def _strip(texts: pl.Series) -> pl.Series:
    """Drop the white space at the end of each text, and the blank lines that it begins with.

    The indentation of the first line with text survives.
    """
    from assets.filtered.kernels.span_edit import find_edges

    if texts.is_empty():
        return texts
    data, offsets = text_buffers(texts.rechunk())
    stripped = spans_in(data, find_edges(data, offsets)).alias(texts.name)
    return stripped.set(texts.is_null(), None) if texts.has_nulls() else stripped


def _repair_mojibake(texts: pl.Series) -> pl.Series:
    from ftfy import fix_encoding

    fix = lru_cache(10_000)(fix_encoding)  # slow, and words recur
    is_mojibake, capitals = re.compile(MOJIBAKE).search, re.compile(_CAPITALS)

    def repair(match: re.Match[str]) -> str:
        word = match[0]
        if word.isascii() or not is_mojibake(capitals.sub("", word)):
            return word
        repaired: str = fix(word)
        return repaired

    # Called for one text in 800 (web pages, code, books, 40 languages).
    def repair_rows(rows: pl.Series) -> pl.Series:
        repaired = [re.sub(_WORD, repair, text) for text in rows]
        return pl.Series(rows.name, repaired, dtype=pl.String)

    return change_where(texts, texts.str.contains(MOJIBAKE), repair_rows)


def _replace_all(texts: pl.Series, pattern: str, replacement: str) -> pl.Series:
    return change_where(texts, texts.str.contains(pattern), _replacement(pattern, replacement))
