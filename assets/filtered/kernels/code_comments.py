"""Count comments with a small state machine that skips strings and parses no grammar.

Each document has a syntax, which fits most files of a language. A string ends with its line unless
the syntax allows more, so that a stray apostrophe affects one line and not the rest of the file.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.code_syntax import (
    CLOSE,
    CODE,
    ESCAPE,
    LF,
    NEWLINE,
    OPEN,
    QUOTE,
    SPACE,
    Bytes,
    Count,
    Integers,
    Trait,
    find_newline,
    is_blank,
)
from assets.text.kernels.compiling import ARRAY_KERNEL
from assets.text.kernels.utf8 import count_continuations

DOUBLE, SINGLE, BACKTICK, BACKSLASH = 34, 39, 96, 92


@njit(**ARRAY_KERNEL)
def count_comments(
    text: Bytes, actions: Bytes, marks: Bytes, traits: int, counts: Integers
) -> None:
    """Add the lines and characters of comments to `counts`, int64 [Count].

    `actions`, uint8 [256], `marks`, uint8 [MARKS, MARK_BYTES], and `traits` are those of one syntax
    in `code_counts.count_documents`.
    """
    is_code = is_comment = False  # what the line has held so far
    at = 0
    while at < len(text):
        action = actions[text[at]]
        if action <= CODE:
            is_code |= action == CODE
            at += 1
        elif action == NEWLINE:
            counts[Count.COMMENT_LINES] += is_comment and not is_code
            is_code = is_comment = False
            at += 1
        else:
            stop, is_span = _token_end(text, at, action, marks, traits)
            if is_span:
                span = text[at:stop]
                counts[Count.COMMENT_CHARACTERS] += len(span) - np.int64(
                    count_continuations(span, uint64(0), uint64(len(span)))
                )
                is_code, is_comment = _cover_lines(span, is_code, is_comment, counts)
            else:
                is_code = True
            at = stop
    counts[Count.COMMENT_LINES] += is_comment and not is_code


@njit(**ARRAY_KERNEL)
def _cover_lines(
    span: Bytes, is_code: bool, is_comment: bool, counts: Integers
) -> tuple[bool, bool]:
    for byte in span:
        if byte == LF:
            counts[Count.COMMENT_LINES] += is_comment and not is_code
            is_code = is_comment = False
        else:
            is_comment |= not is_blank(byte)
    return is_code, is_comment


@njit(**ARRAY_KERNEL)
def _token_end(text: Bytes, at: int, action: int, marks: Bytes, traits: int) -> tuple[int, bool]:
    """Return the end of the string, comment or escape at `at`; True if it is a comment."""
    if action == ESCAPE:
        is_escape = at + 1 < len(text) and text[at + 1] != LF and not traits & Trait.RAW
        return at + (2 if is_escape else 1), False
    if action == QUOTE:
        is_triple = traits & Trait.TRIPLE and _is_triple(text, at)
        is_comment = is_triple and traits & Trait.DOCSTRING and _begins_line(text, at)
        return _string_end(text, at, traits, is_triple), bool(is_comment)
    stop = _comment_end(text, at, marks, traits)
    return (stop, True) if stop > at else (at + 1, False)


@njit(**ARRAY_KERNEL)
def _match(text: Bytes, at: int, mark: Bytes) -> int:
    """Return the length of `mark` (padded with zeros) if the text has it at `at`, else 0."""
    for k in range(len(mark)):
        if mark[k] == 0:
            return k
        if at + k >= len(text) or text[at + k] != mark[k]:
            return 0
    return len(mark)


@njit(**ARRAY_KERNEL)
def _comment_end(text: Bytes, at: int, marks: Bytes, traits: int) -> int:
    """Return the end of the comment that begins at `at`, or `at` if none does."""
    is_first = at == 0 or text[at - 1] == LF
    may_open = is_first or not traits & Trait.LINE_START
    size = _match(text, at, marks[OPEN])
    if size and may_open:
        at += size
        while at < len(text) and not _match(text, at, marks[CLOSE]):
            at += 1
        return at + _match(text, at, marks[CLOSE])
    may_start = is_first or not traits & Trait.AFTER_BLANK or text[at - 1] <= SPACE
    for k in range(OPEN):
        if _match(text, at, marks[k]) and (may_start if k == 0 else may_open):
            return find_newline(text, at)
    return at


@njit(**ARRAY_KERNEL)
def _is_triple(text: Bytes, at: int) -> bool:
    return at + 2 < len(text) and text[at + 1] == text[at] and text[at + 2] == text[at]


@njit(**ARRAY_KERNEL)
def _begins_line(text: Bytes, at: int) -> bool:
    """Check that only blanks, and the prefix of a raw docstring, precede `at` on its line."""
    if at > 0 and (text[at - 1] | 32 == 114 or text[at - 1] | 32 == 117):  # r, u
        at -= 1
    while at > 0 and is_blank(text[at - 1]):
        at -= 1
    return at == 0 or text[at - 1] == LF


@njit(**ARRAY_KERNEL)
def _string_end(text: Bytes, at: int, traits: int, is_triple: bool) -> int:
    quote = text[at]
    if quote == SINGLE and traits & Trait.CHARACTER:
        return _character_end(text, at)
    if quote == SINGLE and traits & Trait.TRANSPOSE and at > 0 and _ends_operand(text[at - 1]):
        return at + 1
    is_long = is_triple or quote == BACKTICK or (quote == DOUBLE and traits & Trait.MULTILINE)
    i = at + (3 if is_triple else 1)
    while i < len(text):
        if text[i] == BACKSLASH and not traits & Trait.RAW:
            i += 2
        elif text[i] == quote and (not is_triple or _is_triple(text, i)):
            return i + (3 if is_triple else 1)
        elif text[i] == LF and not is_long:
            return i
        else:
            i += 1
    return len(text)


@njit(**ARRAY_KERNEL)
def _character_end(text: Bytes, at: int) -> int:
    """Return the end of a character literal such as 'x', '\\n' or '\\u{1F600}', else at + 1."""
    i = at + 2
    if at + 1 < len(text) and text[at + 1] == BACKSLASH:
        i = at + 3
        while i < len(text) and i < at + 12 and text[i] != SINGLE and text[i] != LF:
            i += 1
    else:
        while i < len(text) and text[i] & 0xC0 == 0x80:  # the later bytes of a character
            i += 1
    return i + 1 if i < len(text) and text[i] == SINGLE else at + 1


@njit(**ARRAY_KERNEL)
def _ends_operand(byte: int) -> bool:
    is_word = 48 <= byte <= 57 or 65 <= (byte & 0xDF) <= 90 or byte == 95
    return is_word or byte == 41 or byte == 93 or byte == 125 or byte == SINGLE or byte == 46
