"""Count lines, words, comments and encoded data of source code over the Arrow buffers of a column.

A word is a run of ASCII letters, digits, underscores and non-ASCII bytes. Visible text of HTML is
outside tags, comments, script and style. A small state machine finds comments: it skips strings and
parses no grammar. Each document has a syntax, which fits most files of a language. A string ends
with its line unless the syntax allows more, so that a stray apostrophe affects one line and not the
rest of the file.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL, KERNEL
from assets.text.kernels.hashing import MULTIPLIER
from assets.text.kernels.many_bytes import find_byte
from assets.text.kernels.utf8 import count_continuations

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


class Count(IntEnum):
    """Counts of a document, in the order of the columns."""

    CODE_LINES = 0
    COMMENT_LINES = auto()
    COMMENT_CHARACTERS = auto()
    INDENTED_LINES = auto()
    PUNCTUATION_CHARACTERS = auto()
    KEYWORD_WORDS = auto()
    CODE_WORDS = auto()
    VISIBLE_TEXT_CHARACTERS = auto()
    LONG_HEX_OR_BASE64_CHARACTERS = auto()


class Trait(IntEnum):
    """Traits of a syntax beyond its comment marks, as bits."""

    TRIPLE = 1  # three quotes delimit a string of many lines
    DOCSTRING = 2  # such a string at the start of a line is a comment
    CHARACTER = 4  # ' encloses one character; elsewhere it is code (a lifetime, a prime)
    TRANSPOSE = 8  # ' after a word or a bracket is an operator
    MULTILINE = 16  # strings in " may run over lines, as those in ` always may
    RAW = 32  # a backslash escapes nothing
    AFTER_BLANK = 64  # a line mark counts only after a blank or at the start of its line
    LINE_START = 128  # block marks, and line marks but the first, count only in the first column
    HTML = 256  # text outside tags is visible


BLANK, CODE, NEWLINE, MARK, QUOTE, ESCAPE = (
    0,
    1,
    2,
    3,
    4,
    5,
)  # the action of a byte: the token that it may begin
OPEN, CLOSE, MARKS = 3, 4, 5  # places of the marks of a syntax; 0 to 2 are line marks
MARK_BYTES = 8
LF, SPACE, TAB = 10, 32, 9


@njit(**ARRAY_KERNEL)
def is_blank(byte: int) -> bool:
    """Check for ASCII white space other than the newline."""
    return byte == SPACE or (TAB <= byte <= 13 and byte != LF)


HTML_COMMENT, HTML_COMMENT_END, TAG_END, SCRIPT, SCRIPT_END, STYLE, STYLE_END = (
    np.frombuffer(mark, np.uint8)
    for mark in (b"<!--", b"-->", b">", b"<script", b"</script", b"<style", b"</style")
)


@njit(**ARRAY_KERNEL)
def count_visible(text: Bytes) -> int:
    """Count characters outside tags, comments, script and style; a run of blanks counts as one."""
    visible, at, was_blank = 0, 0, True
    while at < len(text):
        byte = text[at]
        if byte == 60 and at + 1 < len(text) and _may_be_tag(text[at + 1]):
            at = _tag_end(text, at)
            continue
        blank = byte == LF or is_blank(byte)
        visible += (byte & 0xC0) != 0x80 and not (blank and was_blank)
        was_blank = blank
        at += 1
    return visible


@njit(**ARRAY_KERNEL)
def _may_be_tag(byte: int) -> bool:
    return 97 <= (byte | 32) <= 122 or byte == 47 or byte == 33 or byte == 63  # letter / ! ?


@njit(**ARRAY_KERNEL)
def _tag_end(text: Bytes, at: int) -> int:
    """Return the end of the tag, comment, script or style element that begins at `at`."""
    if _is_at(text, at, HTML_COMMENT):
        return _find_after(text, at + len(HTML_COMMENT), HTML_COMMENT_END)
    end = _find_after(text, at, TAG_END)
    if _is_at(text, at, SCRIPT):
        return _find_after(text, _find_after(text, end, SCRIPT_END), TAG_END)
    if _is_at(text, at, STYLE):
        return _find_after(text, _find_after(text, end, STYLE_END), TAG_END)
    return end


@njit(**ARRAY_KERNEL)
def _is_at(text: Bytes, at: int, pattern: Bytes) -> bool:
    """Compare with a lower-case pattern, ignoring the case of ASCII letters."""
    if at + len(pattern) > len(text):
        return False
    for k in range(len(pattern)):
        byte = text[at + k]
        if byte != pattern[k] and (byte | 32 != pattern[k] or not 65 <= byte <= 90):
            return False
    return True


@njit(**ARRAY_KERNEL)
def _find_after(text: Bytes, at: int, pattern: Bytes) -> int:
    while at < len(text):
        if _is_at(text, at, pattern):
            return at + len(pattern)
        at += 1
    return len(text)


@njit(**ARRAY_KERNEL)
def find_newline(text: Bytes, at: int) -> np.int64:
    """Return the position of the next newline from byte `at` on, or the text's length."""
    return np.int64(find_byte(text, (uint64(at), uint64(len(text))), LF))


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


Hashes = NDArray[np.uint64]

WORD, START, PUNCTUATION, ENCODED, DIGIT = 1, 2, 4, 8, 16
KEYWORD_BYTES = 8  # a keyword is compared as one 64-bit number
KEYWORD_SLOTS_LOG2 = 10
ENCODED_RUN = 64  # bytes; the lines of PEM files (RFC 7468) have as many


def byte_classes(punctuation: str) -> Bytes:
    """Return the class bits of each byte, uint8 [256]; all of `punctuation` must be ASCII."""
    classes = np.zeros(256, np.uint8)
    classes[0x80:] = WORD
    for byte in range(128):
        if chr(byte).isalnum() or byte == 0x5F:
            is_digit = chr(byte).isdigit()
            classes[byte] = WORD | (DIGIT if is_digit else START) | ENCODED
    classes[0x5F] = WORD | START
    classes[list(b"+/")] |= ENCODED
    classes[list(punctuation.encode())] |= PUNCTUATION
    return classes


def hash_words(words: list[str]) -> Hashes:
    """Return an open-addressing table, uint64 [2 ** KEYWORD_SLOTS_LOG2]; 0 marks a free slot.

    A word is its bytes as one big-endian number; it has 1 to KEYWORD_BYTES bytes.
    """
    table = np.zeros(1 << KEYWORD_SLOTS_LOG2, np.uint64)
    for word in words:
        key = np.uint64(int.from_bytes(word.encode(), "big"))
        table[slot_of(table, key)] = key
    return table


@njit(**ARRAY_KERNEL)
def count_documents(
    starts: Integers,
    data: Bytes,
    syntaxes: tuple[Integers, Bytes, Bytes, Integers],
    lexicon: tuple[Bytes, Hashes],
    counts: Integers,
) -> None:
    """Fill `counts`, int64 [Count, n], for n texts with offsets `starts`, int64 [n + 1].

    `syntaxes` is (syntax of each text, int64 [n], -1 for none; actions, uint8 [syntaxes, 256];
    marks, uint8 [syntaxes, MARKS, MARK_BYTES]; traits, int64 [syntaxes]); `lexicon` is (class of
    each byte, uint8 [256]; keywords by hash, uint64 [2 ** KEYWORD_SLOTS_LOG2]).
    """
    chosen, actions, marks, traits = syntaxes
    classes, keywords = lexicon
    for row in range(counts.shape[1]):
        text = data[starts[row] : starts[row + 1]]
        _count_lines(text, counts[:, row])
        _count_words(text, classes, keywords, counts[:, row])
        _count_encoded(text, classes, counts[:, row])
        syntax = chosen[row]
        if syntax >= 0:
            count_comments(text, actions[syntax], marks[syntax], traits[syntax], counts[:, row])
            if traits[syntax] & Trait.HTML:
                counts[Count.VISIBLE_TEXT_CHARACTERS, row] = count_visible(text)


@njit(**ARRAY_KERNEL)
def _count_lines(text: Bytes, counts: Integers) -> None:
    at = 0
    while at < len(text):
        first = at
        while at < len(text) and is_blank(text[at]):
            at += 1
        if at < len(text) and text[at] != LF:
            counts[Count.CODE_LINES] += 1
            is_two = text[first] == SPACE and at > first + 1  # all before `at` are blanks
            counts[Count.INDENTED_LINES] += at > first and (text[first] == TAB or is_two)
        at = find_newline(text, at) + 1


@njit(**ARRAY_KERNEL)
def _count_words(text: Bytes, classes: Bytes, keywords: Hashes, counts: Integers) -> None:
    punctuation = words = num_keywords = length = 0
    key, previous = np.uint64(0), np.uint8(0)
    for byte in text:
        bits = classes[byte]
        punctuation += (bits & PUNCTUATION) >> 2
        if bits & WORD:
            words += (bits & START) > (previous & WORD) << 1
            key = key << np.uint64(8) | np.uint64(byte)
            length += 1
        elif length:
            num_keywords += length <= KEYWORD_BYTES and keywords[slot_of(keywords, key)] == key
            key, length = np.uint64(0), 0
        previous = bits
    num_keywords += 0 < length <= KEYWORD_BYTES and keywords[slot_of(keywords, key)] == key
    counts[Count.PUNCTUATION_CHARACTERS] = punctuation
    counts[Count.CODE_WORDS] = words
    counts[Count.KEYWORD_WORDS] = num_keywords


@njit(**KERNEL)
def slot_of(keywords: Hashes, key: np.uint64) -> np.uint64:
    """Return the slot of `key` in the open-addressing table, or the free slot for it."""
    slot = (key * MULTIPLIER) >> np.uint64(64 - KEYWORD_SLOTS_LOG2)
    while keywords[slot] != 0 and keywords[slot] != key:
        slot = (slot + np.uint64(1)) & np.uint64(len(keywords) - 1)
    return slot


@njit(**ARRAY_KERNEL)
def _count_encoded(text: Bytes, classes: Bytes, counts: Integers) -> None:
    """Count the bytes of encoded runs; every run of 64 has a byte at one of the probes."""
    done, probe = 0, ENCODED_RUN - 1
    while probe < len(text):
        if not classes[text[probe]] & ENCODED:
            probe += ENCODED_RUN
            continue
        start = stop = probe
        while start > done and classes[text[start - 1]] & ENCODED:
            start -= 1
        while stop < len(text) and classes[text[stop]] & ENCODED:
            stop += 1
        if stop - start >= ENCODED_RUN and _is_encoded(text[start:stop], classes):
            counts[Count.LONG_HEX_OR_BASE64_CHARACTERS] += stop - start
        done, probe = stop, stop + ENCODED_RUN - 1


@njit(**ARRAY_KERNEL)
def _is_encoded(run: Bytes, classes: Bytes) -> bool:
    """Tell data from rulers, paths and long names, which have no digit or too many signs."""
    digits = alphanumerics = 0
    for byte in run:
        digits += (classes[byte] & DIGIT) != 0
        alphanumerics += (classes[byte] & WORD) != 0
    return bool(digits > 0 and 8 * alphanumerics >= 7 * len(run))
