"""Bring text to one form, so that equal documents are equal bytes; the wording never changes.

Unicode form (NFC), line ends, control characters, overrides of the direction of text and the blank
edges of a document are evened out.
Numbers, URLs, indentation, inner spaces and paragraphs stay as they are. Off by default, because
they are a matter of taste: repair of mojibake, the blanks at line ends, runs of blank lines,
direction marks. NFC is slow, so one scan of the bytes finds the rows that hold a character of a
class, and only those are touched; of these rows most changes touch only the lines that hold one
(for NFC 8 % of the bytes are in such rows, 1 % in such lines).
"""

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.table_rows import change_where
from resources.settings.filtering.filter_steps import NormalizeConfig

# Line ends have a switch of their own. U+200C and U+200D stay: Persian and emoji need them.
CONTROL_CHARACTERS = r"[\x00-\x08\x0E-\x1F\x7F-\x84\x86-\x9F\u{200B}\u{2060}\u{FEFF}]"
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
LEADING_BLANK_LINES = r"\A\s*\n"
NEWLINE = ord("\n")
BLANK = r"[\t\p{Zs}]"  # white space that ends no line
_CONTROL, _LINE_END, _NFC, _BIDI, _MARK = 1, 2, 4, 8, 16  # bits of the classes, in this order
_CLASSES = (CONTROL_CHARACTERS, LINE_ENDS, NFC_CANDIDATES, BIDI_CONTROLS, BIDI_MARKS)

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


def normalize_text(texts: pl.Series, config: NormalizeConfig) -> pl.Series:
    """Return `texts` (String) normalised, in order. Nulls stay. Lines end at LF.

    A second pass changes nothing, unless `mojibake` is on and a control character was inside it.
    The order: mojibake before controls, because C1 controls are half of its characters; controls
    before line ends and NFC, which look at the next character only; blanks at line ends before
    blank lines. ModuleNotFoundError: `mojibake` is on and ftfy is not installed.
    """
    from assets.filtered.kernels.character_scan import kinds_of, tell_kinds
    from assets.text.buffers import text_buffers

    if config.mojibake:
        texts = _repair_mojibake(texts)
    classes = kinds_of(*text_buffers(texts), tell_kinds(_CLASSES))
    if config.control_characters:
        texts = _change_lines(texts, classes, _CONTROL, _removal(CONTROL_CHARACTERS))
    if config.bidi_controls:
        texts = _change_lines(texts, classes, _BIDI, _removal(BIDI_CONTROLS))
    if config.bidi_marks:
        texts = _change_lines(texts, classes, _MARK, _removal(BIDI_MARKS))
    if config.line_ends:
        ends = LINE_ENDS if config.form_feeds else CARRIAGE_RETURNS
        texts = _replace_where(texts, pl.Series(classes & _LINE_END != 0), ends, "\n")
    if config.nfc:
        texts = _change_lines(texts, classes, _NFC, lambda lines: lines.str.normalize("NFC"))
    return _even_out_blanks(texts, config)


def _change_lines(
    texts: pl.Series,
    classes: NDArray[np.uint8],
    kind: int,
    change: Callable[[pl.Series], pl.Series],
) -> pl.Series:
    """Apply `change` to the lines that hold a character of a class; `classes`: those of each text.

    A text is then what its lines are, each with its newline: no character is removed, or composed,
    because of what is on the other side of a newline.
    """
    from assets.filtered.kernels.character_scan import kinds_of, tell_kinds
    from assets.text.buffers import text_buffers, texts_in

    def change_rows(rows: pl.Series) -> pl.Series:
        data, offsets = text_buffers(rows.rechunk())
        is_end = data[: offsets[-1]] == NEWLINE
        is_end[offsets[1:] - 1] = True
        borders = np.r_[0, np.flatnonzero(is_end) + 1]
        has_kind = kinds_of(data, borders, tell_kinds(_CLASSES)) & kind != 0
        lines = change_where(texts_in(data, borders), pl.Series(has_kind), change)
        changed, ends = text_buffers(lines.rechunk())
        return texts_in(changed, ends[np.searchsorted(borders, offsets)])

    return change_where(texts, pl.Series(classes & kind != 0), change_rows)


def _removal(pattern: str) -> Callable[[pl.Series], pl.Series]:
    return lambda lines: lines.str.replace_all(pattern, "")


def _even_out_blanks(texts: pl.Series, config: NormalizeConfig) -> pl.Series:
    if config.trailing_spaces:
        texts = _replace_all(texts, rf"(?mR){BLANK}+$", "")
    if config.max_blank_lines is not None:
        most = config.max_blank_lines
        run = rf"(?:{BLANK}*\n){{{most + 1},}}"
        texts = _replace_all(texts, rf"\n{run}", "\n" * (most + 1))
        texts = _replace_all(texts, rf"\A{run}", "\n" * most)
    if config.strip:
        # The pattern ends at a newline, so the indentation of the first line with text survives.
        text = pl.col("text").str.strip_chars_end()
        stripped, is_led = texts.to_frame("text").select(
            text, led=text.str.contains(LEADING_BLANK_LINES)
        )
        texts = _replace_where(stripped.alias(texts.name), is_led, LEADING_BLANK_LINES, "")
    return texts


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
    return _replace_where(texts, texts.str.contains(pattern), pattern, replacement)


def _replace_where(texts: pl.Series, mask: pl.Series, pattern: str, replacement: str) -> pl.Series:
    return change_where(texts, mask, lambda rows: rows.str.replace_all(pattern, replacement))
