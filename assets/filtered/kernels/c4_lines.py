"""Line rules of C4, applied in one pass over the Arrow buffers.

The pass drops lines and counts them by reason, removes citations, and counts the sentences of the
lines that stay.
Source: Raffel et al. 2020 (arXiv 1910.10683), section 2.2, and its reference code.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.line_scan import (
    ANY_END,
    BLANK,
    BRACE,
    BRACKET,
    CITATION_NEEDED,
    CLOSER,
    DECIMAL,
    EDIT,
    END_MARK,
    FIRST_POLICY,
    FLAGGED,
    HARD_END,
    JAVASCRIPT,
    LINE_FEED,
    LOREM,
    SPACE,
    WORD,
    Bytes,
    Classes,
    Integers,
    Line,
    LineCount,
    begins,
    copy,
    phrases_in,
    scan_line,
    skip,
    trim,
)
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.utf8 import decode, last_start


class C4Settings(NamedTuple):
    """Fields of `C4Lines` for the kernel; with `is_on` False it counts and edits nothing."""

    is_on: bool
    has_end_marks: bool  # the marks are in the table of classes
    min_words: int
    max_word_length: int
    count_citations: bool
    javascript: bool
    policy: bool
    citations: bool


OPENING, CLOSING, DOT = ord("["), ord("]"), ord(".")


@njit(**ARRAY_INLINED)
def _end_of_marks(text: Bytes, i: int, stop: int, classes: Classes) -> tuple[int, bool]:
    """Return the end of the marks and quotes at byte `i`; True if they end a sentence."""
    i, marks = skip(text, i, stop, classes, ANY_END)
    i, _ = skip(text, i, stop, classes, CLOSER)
    if i == stop or marks & HARD_END:
        return i, True
    return i, (classes[decode(text, i)[0]] & SPACE) != 0


@njit(**ARRAY_INLINED)
def _count_sentences(text: Bytes, start: int, stop: int, classes: Classes) -> int:
    sentences, seen, i, end = uint64(0), uint64(0), uint64(start), uint64(stop)
    while i < end:
        code, width = decode(text, i)
        bits = uint64(classes[code])
        seen |= bits
        i += uint64(width)
        if bits & uint64(ANY_END):
            is_end = i == end or text[i] == BLANK
            if not is_end:
                after, is_end = _end_of_marks(text, np.int64(i) - width, stop, classes)
                i = uint64(after)
            if is_end and seen & uint64(WORD):
                sentences += uint64(1)
                seen = uint64(0)
    return np.int64(sentences) + ((seen & uint64(WORD)) != uint64(0))


@njit(**ARRAY_KERNEL)
def _has_long_word(text: Bytes, start: int, stop: int, limit: int, classes: Classes) -> bool:
    length, i = 0, start
    while i < stop:
        code, width = decode(text, i)
        length = 0 if classes[code] & SPACE else length + 1
        if length > limit:
            return True
        i += width
    return False


@njit(**ARRAY_KERNEL)
def _citation_end(text: Bytes, i: int, stop: int, classes: Classes) -> int:
    """Return the end of the citation whose bracket is at byte `i`, 0 if there is none."""
    end, _ = skip(text, i + 1, stop, classes, DECIMAL)
    if end < stop and text[end] == CLOSING:
        return end + 1
    edit = begins(text, i + 1, stop, EDIT, False)
    return edit or begins(text, i + 1, stop, CITATION_NEEDED, False)


@njit(**ARRAY_KERNEL)
def _copy_without_citations(
    text: Bytes, line: Line, out: Bytes, size: int, classes: Classes
) -> tuple[Line, int]:
    """Copy a line to `out`; return its place there, and the number of citations removed."""
    begin, citations, i = size, 0, line.start
    while i < line.stop:
        end = 0
        if text[i] == OPENING:
            end = _citation_end(text, i, line.stop, classes)
        if end:
            citations += 1
            i = end
        else:
            out[size] = text[i]
            size += 1
            i += 1
    _, words, _ = scan_line(out, begin, size, classes)
    return Line(begin, size, words), citations


@njit(**ARRAY_INLINED)
def _is_finished(out: Bytes, line: Line, classes: Classes) -> bool:
    start, stop, _ = line
    if start == stop or not classes[decode(out, last_start(out, stop))[0]] & END_MARK:
        return False
    is_dots = out[stop - 1] == DOT and stop - start >= len("...")
    return not (is_dots and out[stop - 2] == DOT and out[stop - 3] == DOT)


@njit(**ARRAY_INLINED)
def _keeps_c4(
    out: Bytes, line: Line, kinds: int, settings: C4Settings, classes: Classes, counts: Integers
) -> bool:
    """Apply the rules to a line in the order of the reference code, and fill the counts."""
    start, stop, words = line
    if settings.has_end_marks and not _is_finished(out, line, classes):
        counts[LineCount.UNFINISHED_LINES] += words > 0
        return False
    if words < settings.min_words:
        counts[LineCount.FEW_WORD_LINES] += words > 0
        return False
    phrases = phrases_in(out, start, stop) if kinds & FLAGGED else 0
    counts[LineCount.LOREM_IPSUM_LINES] += phrases >> LOREM & 1
    counts[LineCount.JAVASCRIPT_LINES] += phrases >> JAVASCRIPT & 1
    if settings.javascript and phrases >> JAVASCRIPT & 1:
        return False
    counts[LineCount.CURLY_BRACKET_LINES] += (kinds & BRACE) != 0
    counts[LineCount.POLICY_LINES] += phrases >> FIRST_POLICY
    if settings.policy and phrases >> FIRST_POLICY:
        return False
    counts[LineCount.SENTENCES] += _count_sentences(out, start, stop, classes)
    return True


@njit(**ARRAY_KERNEL)
def _edit_c4_text(
    text: Bytes, flag: int, settings: C4Settings, classes: Classes, counts: Integers, out: Bytes
) -> int:
    """Write the lines that stay to `out`; return their bytes."""
    limit, size, start = settings.max_word_length, 0, 0
    while start < len(text):
        stop, words, kinds = scan_line(text, start, len(text), classes)
        counts[LineCount.LINE_WORDS] += words
        first, last = trim(text, start, stop, classes)
        start = stop + 1
        if limit and last - first > limit and _has_long_word(text, first, last, limit, classes):
            counts[LineCount.LONG_WORD_LINES] += 1
            continue
        begin = size + (size > 0)
        line = Line(first, last, words)
        if settings.citations and kinds & BRACKET:
            line, citations = _copy_without_citations(text, line, out, begin, classes)
            counts[LineCount.CITATIONS] += citations
            if settings.count_citations:
                line = Line(line.start, line.stop, words)
            keeps = _keeps_c4(out, line, kinds | flag, settings, classes, counts)
            end = line.stop
        else:
            keeps = _keeps_c4(text, line, kinds | flag, settings, classes, counts)
            end = begin
            if keeps and settings.is_on:
                end = copy(text, first, last, out, begin)
        if keeps and settings.is_on:
            if size:
                out[size] = LINE_FEED
            size = end
    first, last = trim(out, 0, size, classes)
    return copy(out, first, last, out, 0) if first else last


@njit(**ARRAY_KERNEL)
def edit_c4(
    data: Bytes,
    starts: Integers,
    flags: Integers,
    settings: C4Settings,
    classes: Classes,
    counts: Integers,
) -> tuple[Bytes, Integers]:
    """Apply C4's line rules to n texts, and add to `counts`, int64 [n, len(LineCount)].

    `starts` is int64 [n + 1], `flags` uint8 [n], FLAGGED or 0. Returns the bytes of the changed
    texts, one after the other, uint8, and the end of each in them, int64 [n]; -1 for an unchanged
    text.
    """
    out, size = np.empty(starts[-1] - starts[0] + 1, np.uint8), 0
    ends = np.full(len(flags), -1, np.int64)
    for row in range(len(flags)):
        text = data[starts[row] : starts[row + 1]]
        kept = _edit_c4_text(text, flags[row], settings, classes, counts[row], out[size:])
        if settings.is_on and kept < len(text):
            size += kept
            ends[row] = size
    return out[:size], ends
