"""Bring text to one form, so that equal documents are equal bytes; what it says never changes.

Unicode form (NFC), line ends, control characters and the blank edges of a document are evened out.
Numbers, URLs, indentation, inner spaces and paragraphs stay as they are.
The price: NFC itself runs at 46 MB/s, so only rows with a character that it could change go
through it. Finding those, and control characters, runs at 500 MB/s each; the whole at 170 MB/s
(one core; web pages, code, books and 40 languages mixed).
"""

from collections.abc import Callable

import polars as pl
from pydantic import BaseModel, ConfigDict, Field

# Line ends have a switch of their own. U+200C and U+200D stay: Persian and emoji need them.
CONTROL_CHARACTERS = r"[\x00-\x08\x0E-\x1F\x7F-\x84\x86-\x9F\u{200B}\u{2060}\u{FEFF}]"
# Vertical tab, form feed and NEL end a line too (UAX 14): without them two words would be glued.
LINE_ENDS = r"\r\n|[\r\x0B\x0C\x85]"

# A text without any of these is in NFC (UAX 15: quick check yes, combining class 0): marks, Hangul
# jamo, letters and symbols with a canonical twin, and some neighbours that make the ranges fewer.
NFC_CANDIDATES = (
    r"[\p{M}\u{374}\u{37E}\u{387}\u{958}-\u{95F}\u{9DC}-\u{9DF}\u{A33}-\u{A5E}"
    r"\u{B5C}\u{B5D}\u{F43}-\u{F69}\u{1100}-\u{11FF}\u{1F71}-\u{1FFD}\u{2000}\u{2001}\u{2126}-\u{212B}\u{2329}\u{232A}\u{2ADC}"
    r"\u{F900}-\u{FAFF}\u{FB1D}-\u{FB4E}\u{16D63}-\u{16D6A}\u{1D15E}-\u{1D1C0}\u{2F800}-\u{2FA1D}]"
)


class NormalizeConfig(BaseModel):
    """What `normalize_text` evens out; every switch is on by default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nfc: bool = Field(default=True, description="compose characters to Unicode form NFC (UAX 15)")
    line_ends: bool = Field(default=True, description="turn CRLF, CR, VT, FF and NEL into LF")
    control_characters: bool = Field(
        default=True,
        description="remove C0 and C1 controls but tabs and line ends, and U+FEFF, U+200B, U+2060",
    )
    strip: bool = Field(
        default=True,
        description="remove blank lines at the start and white space at the end of the text",
    )


def normalize_text(texts: pl.Series, config: NormalizeConfig) -> pl.Series:
    """Return `texts` (String) normalised, in order; doing it twice is doing it once. Nulls stay.

    Controls go first: NFC could not join a letter and an accent with a zero-width space between.
    """
    if config.control_characters:
        texts = _change_where(
            texts,
            texts.str.contains(CONTROL_CHARACTERS),
            lambda rows: rows.str.replace_all(CONTROL_CHARACTERS, ""),
        )
    if config.line_ends:
        texts = _change_where(
            texts, texts.str.contains(LINE_ENDS), lambda rows: rows.str.replace_all(LINE_ENDS, "\n")
        )
    if config.nfc:
        texts = _change_where(
            texts, texts.str.contains(NFC_CANDIDATES), lambda rows: rows.str.normalize("NFC")
        )
    return _strip_blank_edges(texts) if config.strip else texts


def _strip_blank_edges(texts: pl.Series) -> pl.Series:
    # The pattern ends at a newline, so the indentation of the first line with text survives.
    return _change_where(
        texts.str.strip_chars_end(),
        texts.str.contains(r"\A\s*\n"),
        lambda rows: rows.str.replace(r"\A\s*\n", ""),
    )


def _change_where(
    texts: pl.Series, mask: pl.Series, change: Callable[[pl.Series], pl.Series]
) -> pl.Series:
    """Apply `change` to the rows of `texts` where `mask` holds; the other rows are not copied."""
    rows = mask.fill_null(False).arg_true()
    if rows.is_empty():
        return texts
    sources = pl.int_range(len(texts), dtype=pl.get_index_type(), eager=True)
    sources = sources.scatter(rows, pl.int_range(len(texts), len(texts) + len(rows), eager=True))
    return pl.concat([texts, change(texts.gather(rows))]).gather(sources)
