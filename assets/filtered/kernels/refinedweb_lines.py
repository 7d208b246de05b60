"""Line rules of RefinedWeb, applied in one pass over the Arrow buffers.

Lines of capitals, digits, counters or one word are dropped; phrases of buttons are cut out.
Source: Penedo et al. 2023 (arXiv 2306.01116), appendix G.2, as DCLM reads it.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit

from assets.filtered.kernels.line_scan import (
    DECIMAL,
    DIGIT,
    FIRST_COUNTED,
    ITEMS_IN_CART,
    LINE_FEED,
    NUM_PHRASES,
    PHRASE_STARTS,
    READ_MORE,
    READ_MORE_CHARACTER,
    SIGN_IN,
    SPACE,
    UPPER,
    Bytes,
    Classes,
    Integers,
    Line,
    LineCount,
    begins,
    copy,
    is_word,
    scan_line,
    skip,
    trim,
)
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.utf8 import decode, last_start


class RefinedWebSettings(NamedTuple):
    """Fields of `RefinedWebLines` for the kernel."""

    max_uppercase: float
    max_numeric: float
    counters: bool
    min_words: int
    short_line_words: int


COMMA, DOT = ord(","), ord(".")
THOUSANDS = (ord("k"), ord("m"), ord("b"))


@njit(**ARRAY_KERNEL)
def _is_counter(text: Bytes, start: int, stop: int, classes: Classes) -> bool:
    """Check for a line of a number, with or without k, m or b, and a noun that pages count."""
    i = start
    while i < stop and not is_word(text, i, classes):
        i += decode(text, i)[1]
    after, _ = skip(text, i, stop, classes, DECIMAL)
    if after == i:
        return False
    while after < stop and (text[after] == COMMA or text[after] == DOT):
        after, _ = skip(text, after + 1, stop, classes, DECIMAL)
    if after < stop and (text[after] | 0x20) in THOUSANDS:
        after += 1
    i, _ = skip(text, after, stop, classes, SPACE)
    end = 0
    for phrase in range(FIRST_COUNTED, NUM_PHRASES):
        end = max(end, begins(text, i, stop, phrase, True))
    while 0 < end < stop and not is_word(text, end, classes):
        end += decode(text, end)[1]
    return i > after and end == stop


@njit(**ARRAY_KERNEL)
def _is_boilerplate(
    text: Bytes, line: Line, settings: RefinedWebSettings, classes: Classes
) -> bool:
    """Check for a line to drop; it must have at least one word. Its indentation counts (DCLM)."""
    characters, upper, digits, i = 0, 0, 0, line.start
    while i < line.stop:
        code, width = decode(text, i)
        bits = classes[code]
        characters += 1
        upper += (bits & UPPER) != 0
        digits += (bits & DIGIT) != 0
        i += width
    if upper / characters > settings.max_uppercase or digits / characters > settings.max_numeric:
        return True
    if settings.counters and digits and _is_counter(text, line.start, line.stop, classes):
        return True
    return line.words < settings.min_words


@njit(**ARRAY_KERNEL)
def _is_separate(text: Bytes, start: int, stop: int, line: Line, classes: Classes) -> bool:
    """Check that no word continues before or after text[start:stop], a part of the line."""
    if start > line.start and is_word(text, last_start(text, start), classes):
        return False
    return stop == line.stop or not is_word(text, stop, classes)


@njit(**ARRAY_KERNEL)
def _copy_without_phrases(text: Bytes, line: Line, out: Bytes, begin: int, classes: Classes) -> int:
    """Write the line without the phrases that mark a button; return its end in `out`."""
    i, size = line.start, begin
    while i < line.stop:
        end = begins(text, i, line.stop, ITEMS_IN_CART, True)
        if end and _is_separate(text, i, end, line, classes):
            size = trim(out, begin, size, classes)[1]
            i = end
        else:
            out[size] = text[i]
            size += 1
            i += 1
    first, last = trim(out, begin, size, classes)
    rest = Line(first, last, 0)
    for phrase in (READ_MORE, READ_MORE_CHARACTER):
        at = last - (PHRASE_STARTS[phrase + 1] - PHRASE_STARTS[phrase])
        is_there = at >= first and begins(out, at, last, phrase, True) > 0
        if is_there and _is_separate(out, at, last, rest, classes):
            first, last = trim(out, first, at, classes)
            break
    end = begins(out, first, last, SIGN_IN, True)
    if end and _is_separate(out, first, end, Line(first, last, 0), classes):
        first, last = trim(out, end, last, classes)
    return copy(out, first, last, out, begin)


@njit(**ARRAY_KERNEL)
def _write_refinedweb_line(
    text: Bytes,
    raw: Line,
    is_flagged: bool,
    settings: RefinedWebSettings,
    classes: Classes,
    out: Bytes,
) -> tuple[int, int]:
    """Write the rest of a line to the start of `out`; return its bytes and its words."""
    if _is_boilerplate(text, raw, settings, classes):
        return 0, 0
    first, last = trim(text, raw.start, raw.stop, classes)
    line = Line(first, last, raw.words)
    if is_flagged and raw.words <= settings.short_line_words:
        size = _copy_without_phrases(text, line, out, 0, classes)
        if size < last - first:
            return size, scan_line(out, 0, size, classes)[1]
    return copy(text, raw.start, raw.stop, out, 0), raw.words


@njit(**ARRAY_KERNEL)
def _edit_refinedweb_text(
    text: Bytes,
    flag: int,
    settings: RefinedWebSettings,
    classes: Classes,
    counts: Integers,
    out: Bytes,
) -> int:
    """Write the lines that stay to `out`, runs of blank ones as one; return the bytes."""
    size, start, is_after_blank = 0, 0, False
    while start < len(text):
        stop, words, _ = scan_line(text, start, len(text), classes)
        raw, start = Line(start, stop, words), stop + 1
        if not words:
            is_after_blank = True
            continue
        # Line feeds are written with the line after them: none first, two for blank lines.
        begin = size + 1 + is_after_blank if size else 0
        added, kept = _write_refinedweb_line(text, raw, flag != 0, settings, classes, out[begin:])
        counts[LineCount.REFINEDWEB_WORDS] += words - kept
        counts[LineCount.REFINEDWEB_LINES] += added == 0
        if added:
            out[size:begin] = LINE_FEED
            size, is_after_blank = begin + added, False
    return size


@njit(**ARRAY_KERNEL)
def edit_refinedweb(
    data: Bytes,
    starts: Integers,
    flags: Integers,
    settings: RefinedWebSettings,
    classes: Classes,
    counts: Integers,
) -> tuple[Bytes, Integers]:
    """Apply RefinedWeb's line rules to n texts; arguments and result are those of `edit_c4`."""
    out, size = np.empty(starts[-1] - starts[0] + 1, np.uint8), 0
    ends = np.full(len(flags), -1, np.int64)
    for row in range(len(flags)):
        text = data[starts[row] : starts[row + 1]]
        kept = _edit_refinedweb_text(text, flags[row], settings, classes, counts[row], out[size:])
        if kept < len(text):
            size += kept
            ends[row] = size
    return out[:size], ends
