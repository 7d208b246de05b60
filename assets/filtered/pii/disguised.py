"""Find personal data with something in it that a reader does not see, or sees as something else.

`jane&#64;example.org`, a key with soft hyphens, a number in full width: the form of the text
(assets/text/text_form.py) has the value, and a trace leads back to the span. What a reader sees of
a text as it is was found before: only spans with an edit in them count here.
"""

import re
from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import text_buffers
from assets.text.text_form import HIDDEN, INLINE, WIDE_SIGNS, Places, traced_form_of

WIDE = rf"{WIDE_SIGNS}\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"  # punctuation is in all of Chinese
CHARACTERS = f"[{HIDDEN}{WIDE}]"  # others that NFKC changes are in no value
SIGNS = f"@.-_+{WIDE_SIGNS}"
PART = rf"0-9A-Za-z{re.escape(SIGNS)}{WIDE}"  # of values: few have letters of other scripts
NEXT = rf"[{PART}{HIDDEN}&<\\]"
ESCAPES = rf"&(?:amp;)*#|(?:\\u[0-9a-fA-F]{{4}}|</?(?:{INLINE})>){NEXT}"
HIDDEN_IN = re.compile(rf"[{WIDE}]|[{HIDDEN}](?={NEXT})")
IS_PART = re.compile(f"[{PART}]")
REACH = 400  # characters around an edit in which a value with it is
MOST = 1 << 18  # characters that are traced at once, 16 bytes each


def find_disguised(texts: pl.Series, find: Callable[[pl.Series], Places]) -> Places:
    """Return the spans that `find` has in the forms of texts (String, no nulls), and with an edit.

    Spans are int64 [n, 4], as of `find_once`: row, first character, end, kind.
    """
    from assets.filtered.kernels.character_scan import character_bits, find_lines

    data, offsets = text_buffers(texts.rechunk())
    found = list[tuple[int, int]]()  # row and character
    for row, first, stop, _ in find_lines(data, offsets, character_bits((CHARACTERS,))).tolist():
        before = int(np.count_nonzero((data[offsets[row] : first] & 0xC0) != 0x80))
        line = data[first:stop].tobytes().decode()
        starts = (match.start() for match in HIDDEN_IN.finditer(line))
        found += [(row, before + at) for at in starts if IS_PART.match(line[at - 1 : at])]
    rows = texts.str.contains(ESCAPES).arg_true()
    escapes = texts.gather(rows).str.extract_all(ESCAPES)
    for row, text, of_text in zip(rows, texts.gather(rows), escapes, strict=True):
        stop = 0
        for escape in of_text:
            at = text.index(escape, stop)
            stop = at + len(escape)
            found += [(row, at)] if IS_PART.match(text[at - 1 : at]) else []
    forms, origins = list[str](), list[tuple[int, Places, NDArray[np.bool_]]]()
    # A Python loop: one text in 100 of real documents has such a place.
    for row, start, stop in _windows(sorted(found)):
        text = texts[row][start:stop]
        form, places = traced_form_of(text)
        is_edit = _edits(text, form, places)
        if is_edit.any():
            forms.append(form)
            origins.append((row, places + start, is_edit))
    spans = [[0, 0, 0, 0]][:0]
    for number, start, stop, kind in find(pl.Series(forms, dtype=pl.String)).tolist():
        row, places, is_edit = origins[number]
        if is_edit[start:stop].any():
            spans.append([row, places[start, 0], places[stop - 1, 1], kind])
    return np.array(spans, np.int64).reshape(-1, 4)


def _windows(found: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Return row, start and stop of what is around places, in order; near ones share a window."""
    windows = list[tuple[int, int, int]]()
    for row, place in found:
        start = max(0, place - REACH)
        if windows and windows[-1][0] == row and start < windows[-1][2] < windows[-1][1] + MOST:
            start = windows.pop()[1]
        windows.append((row, start, place + REACH))
    return windows


def _edits(text: str, form: str, places: Places) -> NDArray[np.bool_]:
    """Check which characters of a form were made of others, or follow one with something between.

    Only letters, digits and the signs of addresses count.
    """
    before, after = (np.frombuffer(each.encode("utf-32-le"), "<U1") for each in (text, form))
    is_part = np.strings.isalnum(after) | np.isin(after, [*SIGNS])
    is_made = (places[:, 1] - places[:, 0] > 1) | (before[places[:, 0]] != after)
    is_beside = np.append(False, (places[1:, 0] > places[:-1, 1]) & is_part[:-1])
    return np.asarray((is_made | is_beside) & is_part)
