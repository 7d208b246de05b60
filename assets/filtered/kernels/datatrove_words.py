"""Cut a text into words by a plain rule, and count them as datatrove 0.10 does.

datatrove cuts with spaCy's tokenizer. The rule here follows its main cases in all languages: marks
around a run between white space are words of one mark, a run of dots is one word; inside, hyphens,
commas and `:<>=/` between letters are words, and a quote between letters begins one ("it|'s").
Abbreviations ("Mr.", "etc.") are not known, except single letters; addresses are cut, too.
Sentences are those of spaCy's sentencizer: one begins at a line, and at the first word after an end
mark that is no punctuation.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache

import numpy as np
import polars as pl
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.line_scan import skip
from assets.text.kernels.character_classes import LETTERS_END, TERMINAL_MARKS, add_marks, classes_by
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import find_byte
from assets.text.kernels.utf8 import count_continuations, decode, last_start

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Classes = NDArray[np.uint16]
Words = tuple[Hashes, Integers]  # of a text: hash, and characters up to the end of each

SPACE, LETTER, ALPHANUMERIC, UPPER, SENTENCE_END, MARK, PUNCTUATION, OPENER, CLOSER, ICON = (
    1 << bit for bit in range(10)
)
AFTER_DIGIT, HYPHEN, JOINT = 1 << 10, 1 << 11, 1 << 12
# A word of datatrove's marks, controls and ends of sentences alone is no word for Gopher's counts.
MARKS = "!/—”:％１〈&(、━\\【#%「」，】；+^]~“《„';’{|∶´[=-`*．（–？！：$～«〉,><》)?）。…@_.\"}►»"
CONTROLS = "".join(map(chr, (*range(9), 11, 12, *range(13, 32), *range(127, 160))))
QUOTES = "'\"”“`‘´’‚„»«「」『』（）〔〕【】《》〈〉⟦⟧"
AROUND = "…,:;!?¿؟¡()[]{}<>_#*&。？！，、；：～·।،۔؛٪—–" + QUOTES
HYPHENATED = ("de", "es", "fr")
LINE_FEED, DOT, COMMA = 0x0A, 0x2E, 0x2C
QUOTE, APOSTROPHE = 0x27, 0x2019
ONE = uint64(1)


class TokenCount(IntEnum):
    """Counts of words, in the order of the columns; numba takes the members as integers."""

    TOKENS = 0
    WORDS = auto()  # those that are not punctuation alone
    WORD_CHARACTERS = auto()
    ALPHABETIC_TOKENS = auto()
    STOP_WORDS = auto()  # different ones, as they are written
    SENTENCES = auto()  # of each line that is not blank


@cache
def token_classes() -> Classes:
    """Return the class bits of every code point, uint16 [2, 0x110000]. Made once per process.

    The second row keeps words with hyphens together, as spaCy does in `HYPHENATED`.
    """
    tests = {SPACE: str.isspace, LETTER: str.isalpha, ALPHANUMERIC: str.isalnum, UPPER: str.isupper}
    classes = classes_by(tests)
    codes = np.r_[0:0xD800, 0xE000:LETTERS_END]
    texts = pl.Series([chr(code) for code in codes])
    for pattern, bit in ((r"\pP", PUNCTUATION), (r"\p{So}", ICON)):
        classes[codes[texts.str.contains(pattern).to_numpy()]] |= np.uint16(bit)
    for marks, bits in (
        (TERMINAL_MARKS, SENTENCE_END | MARK),
        (MARKS + CONTROLS, MARK),
        (AROUND, OPENER | CLOSER),
        ("§%=+$£€¥₹₽", OPENER),
        ("%+$£€¥₹₽", AFTER_DIGIT),
        ("-–—~", HYPHEN),
        ("…", ICON),
        (":<>=/.,", JOINT),
    ):
        add_marks(classes, marks, bits)
    kept = classes.copy()
    kept[ord("-")] &= ~np.uint16(HYPHEN)
    return np.array([classes, kept])


@njit(**ARRAY_KERNEL)
def count_tokens(
    data: Bytes,
    span: tuple[int, int],
    tables: tuple[Classes, Hashes],
    words: Words,
    counts: Integers,
) -> int:
    """Fill `counts`, int64 [TokenCount], and `words`, of room for a word a byte; count the words.

    `tables`: a row of `token_classes`, and the hashes of different stop words, sorted, uint64.
    """
    (at, stop), (classes, stop_words), (hashes, ends) = span, tables, words
    found = np.zeros(len(stop_words), np.uint8)
    total, characters, after_end = 0, 0, False
    chunk = (at, at, at)
    while True:
        begins_line = False
        if at == chunk[2]:
            before = at
            at, _ = skip(data, at, stop, classes, SPACE)
            if at >= stop:
                break
            begins_line = total == 0 or find_byte(data, (before, at), LINE_FEED) < at
            chunk = _chunk_at(data, at, stop, classes)
        end = _token_end(data, at, chunk, classes)
        size = np.int64(end - at) - np.int64(count_continuations(data, at, end))
        all_bits, any_bits = _bits_of(data, at, end, classes)
        is_word = not all_bits & MARK
        characters += size
        hashes[total], ends[total] = hash_bytes(data, at, end), characters
        counts[TokenCount.WORDS] += is_word
        counts[TokenCount.WORD_CHARACTERS] += is_word * size
        counts[TokenCount.ALPHABETIC_TOKENS] += (any_bits & LETTER) != 0
        place = np.searchsorted(stop_words, hashes[total])
        if place < len(stop_words) and stop_words[place] == hashes[total]:
            found[place] = 1
        # A word of several characters is no end mark: spaCy compares whole words.
        bits = all_bits if size == 1 else all_bits & PUNCTUATION
        begins, after_end = _sentence_begins(begins_line, bits, after_end)
        counts[TokenCount.SENTENCES] += begins
        total, at = total + 1, end
    counts[TokenCount.TOKENS] = total
    counts[TokenCount.STOP_WORDS] = found.sum()
    return total


@njit(**ARRAY_INLINED)
def _bits_of(data: Bytes, at: int, stop: int, classes: Classes) -> tuple[int, int]:
    """Return the class bits that all characters have, and those that any has."""
    all_bits, any_bits = uint64(0xFFFF), uint64(0)
    while at < stop:
        code, width = decode(data, at)
        all_bits &= uint64(classes[code])
        any_bits |= uint64(classes[code])
        at += width
    return np.int64(all_bits), np.int64(any_bits)


@njit(**ARRAY_INLINED)
def _kind_before(data: Bytes, at: int, first: int, classes: Classes) -> int:
    """Return the class bits of the character before byte `at`; 0 at the first byte."""
    return np.int64(classes[decode(data, last_start(data, at))[0]]) if at > first else 0


@njit(**ARRAY_KERNEL)
def _chunk_at(data: Bytes, at: int, stop: int, classes: Classes) -> tuple[int, int, int]:
    """Return where the inside of the run between white space begins and ends, and the run."""
    end = at
    while end < stop and not classes[decode(data, end)[0]] & SPACE:
        end += decode(data, end)[1]
    first = at
    # Marks before the inside of the run: each is a word.
    while first < end:
        code, width = decode(data, first)
        has_next = first + ONE < end
        is_dots = code == DOT and has_next and data[first + ONE] == DOT
        is_sign = code == ord("+") and has_next and 48 <= data[first + ONE] < 58
        if is_sign or not (classes[code] & (OPENER | ICON) or is_dots):
            break
        first += width
        while is_dots and first < end and data[first] == DOT:
            first += ONE
    last = end
    # And marks behind it, from the end on.
    while last > first:
        start = last_start(data, last)
        code = decode(data, start)[0]
        before = _kind_before(data, start, first, classes)
        if code == DOT:
            is_end = _ends_word(data, start, first, classes)
        else:
            is_digit = before & ALPHANUMERIC and not before & LETTER
            is_end = classes[code] & (CLOSER | ICON) or (is_digit and classes[code] & AFTER_DIGIT)
        if not is_end:
            break
        last = start
    return first, last, end


@njit(**ARRAY_INLINED)
def _ends_word(data: Bytes, dot: int, first: int, classes: Classes) -> bool:
    """Check that the dot at the end is a word: it belongs to a single letter, "U.S." and "e.g."."""
    if dot == first:
        return False
    before = last_start(data, dot)
    if not classes[decode(data, before)[0]] & LETTER:
        return True
    return before > first and data[before - ONE] != DOT


@njit(**ARRAY_KERNEL)
def _token_end(data: Bytes, at: int, chunk: tuple[int, int, int], classes: Classes) -> int:
    """Return the end of the word at byte `at` of a run of `_chunk_at`."""
    first, last, end = chunk
    if at < first or at >= last:
        return _mark_end(data, at, first if at < first else end, classes)
    if _is_mark(data, at, (first, last), classes):
        return _mark_end(data, at, last, classes)
    at += decode(data, at)[1]
    while at < last and not _is_mark(data, at, (first, last), classes):
        code, width = decode(data, at)
        if code in (QUOTE, APOSTROPHE) and at + width < last:
            after = classes[decode(data, at + width)[0]]
            if after & LETTER and _kind_before(data, at, first, classes) & LETTER:
                break
        at += width
    return at


@njit(**ARRAY_INLINED)
def _is_mark(data: Bytes, at: int, span: tuple[int, int], classes: Classes) -> bool:
    """Check that a mark inside a run is a word, with the equal ones of `_mark_end`."""
    code, _ = decode(data, at)
    bits = np.int64(classes[code])
    if not bits & (ICON | HYPHEN | JOINT):
        return False
    first, last = span
    before = _kind_before(data, at, first, classes)
    is_digit = before & ALPHANUMERIC and not before & LETTER
    if bits & ICON:
        return True
    if code != DOT and (not before & ALPHANUMERIC or (code == COMMA and is_digit)):
        return False  # before a look at the end: a long run of hyphens is read once
    end = _mark_end(data, at, last, classes)
    after = np.int64(classes[decode(data, end)[0]]) if end < last else 0
    if code == DOT:
        is_new = before & LETTER and not before & UPPER and after & UPPER
        return end > at + ONE or is_new != 0
    return after & LETTER or (is_digit and bits & HYPHEN)


@njit(**ARRAY_INLINED)
def _mark_end(data: Bytes, at: int, last: int, classes: Classes) -> int:
    """Return the end of a mark, or of a run of dots or of equal hyphens."""
    code, width = decode(data, at)
    end = at + width
    if code == DOT or classes[code] & HYPHEN:
        while end < last and decode(data, end)[0] == code:
            end += width
    return end


@njit(**ARRAY_INLINED)
def _sentence_begins(begins_line: bool, bits: int, after_end: bool) -> tuple[int, bool]:
    """Return the sentences that begin with a word of class `bits`; does the next one begin one?"""
    after_end &= not begins_line
    if bits & SENTENCE_END:
        return np.int64(begins_line), True
    if after_end and not bits & PUNCTUATION:
        return 1, False
    return np.int64(begins_line), after_end
