"""Count the form of a text: its words, lines, windows of words, and end, in one pass.

The counts behind the scores of `page_form`, which tell prose from menus, lists of links, keywords,
noise and pages that were cut. Words are runs between white space, and each Han or kana character;
lines are non-blank. Repetition is counted in windows of WINDOW words, so that it does not grow with
the length of the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache

import numpy as np
from numba import njit, uint8, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import (
    NUM_CODES,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.hashing import hash_bytes, join
from assets.text.kernels.utf8 import ONE, decode

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Tables = tuple[Classes, Bytes, Bytes]

WINDOW = 128  # words
SLOTS = 512  # of a window's table: a quarter full at most
LABEL_CHARACTERS = 80  # of a line that may be a label; hard-wrapped prose goes on in lower case
LONG_WORD = 30  # characters; longer ones are no words of spaced scripts
GRAM = 4  # words
SPACE, LETTER, UPPER, DIGIT, TERMINAL, CLAUSE, CLOSING, SINGLE, JOINT, DAMAGE = (
    1 << i for i in range(10)
)
NO_LETTER = 31
CLAUSES = ",;:،؛、，；："
CLOSINGS = "\"'”’»)]}*_`」』）】›"
JOINTS = "'’-‐‑"
# Signs that wrong charsets and lost characters leave, seldom used in any language.
DAMAGED = "ÃÂâ¢£¤¥¦¨ª¬¯±²³´µ¶¸¹¼½¾ð\ufffd□█▓▒░" + "".join(map(chr, range(0x80, 0xA0)))


class Form(IntEnum):
    """Counts, in the order of the columns."""

    WORDS = 0
    CHARACTERS = auto()  # not white space
    LETTERS = auto()
    UPPERS = auto()
    DIGITS = auto()
    DAMAGES = auto()
    SINGLES = auto()  # Han and kana
    CASED_WORDS = auto()  # that begin with a letter of a script with case, by its capitals
    LETTER_WORDS = auto()  # not SINGLE, with a letter
    ONE_LETTER_WORDS = auto()
    MARK_WORDS = auto()  # without letters and digits
    NUMBERS = auto()  # with digits and no letter
    CLAUSE_WORDS = auto()  # before a comma, colon or semicolon
    ODD_CHARACTERS = auto()  # of words that mix letters with digits, marks or capitals
    URL_CHARACTERS = auto()
    PAIRS = auto()  # of ASCII letters within words
    PAIR_SCORES = auto()
    LINES = auto()
    LINE_CHARACTERS = auto()
    FINISHED_CHARACTERS = auto()  # of lines that end a sentence
    LABEL_LINES = auto()
    LABEL_CHARACTERS = auto()
    WINDOW_WORDS = auto()
    WINDOW_DISTINCT = auto()
    WINDOW_REPEATED = auto()
    LAST_CHARACTERS = auto()  # of the last line
    LAST_FINISHED = auto()  # the text ends a sentence
    LAST_DOTS = auto()  # or breaks off with an ellipsis
    LAST_LOWER = auto()  # or with a word that is not capitalised


_options = {"cache": True, "nogil": True}
_inlined = {**_options, "forceinline": True}


@cache
def form_classes() -> Classes:
    """Return the class bits of every code point, uint16 [0x110000]."""
    tests = {SPACE: str.isspace, LETTER: str.isalpha, UPPER: str.isupper, DIGIT: str.isdigit}
    classes = classes_by(tests)
    for marks, bit in (
        (TERMINAL_MARKS + "…", TERMINAL),
        (CLAUSES, CLAUSE),
        (CLOSINGS, CLOSING),
        (JOINTS, JOINT),
        (DAMAGED, DAMAGE),
    ):
        add_marks(classes, marks, bit)
    for first, last in SINGLES:
        classes[first : last + 1] |= SINGLE
    assert len(classes) == NUM_CODES
    return classes


@cache
def letter_numbers() -> Bytes:
    """Return the number of each letter of ASCII, in any case, and NO_LETTER, uint8 [128]."""
    numbers = np.full(128, NO_LETTER, np.uint8)
    for first in (ord("a"), ord("A")):
        numbers[first : first + 26] = np.arange(26)
    return numbers


def pair_table(scores: Bytes) -> Bytes:
    """Return the likelihood of each pair of letters, uint8 [26 * 26], as [32 * 32]; others have 0.

    The number of a letter is in five bits, and NO_LETTER for all that is none.
    """
    table = np.zeros((32, 32), np.uint8)
    table[:26, :26] = scores.reshape(26, 26)
    return table.ravel()


@njit(**_options)
def count_form(data: Bytes, starts: Integers, tables: Tables, counts: Integers) -> None:
    """Fill `counts`, int64 [n, len(Form)], for n texts.

    data: UTF-8; starts: int64 [n + 1]; tables: of `form_classes`, `letter_numbers`, `pair_table`.
    """
    seen = (np.zeros(SLOTS, np.uint64), np.zeros(SLOTS, np.uint64))
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        _count_text(data, span, tables, seen, counts[row])
        _look_at_end(data, span, tables[0], counts[row])


@njit(**_options)
def _count_text(
    data: Bytes,
    span: tuple[int, int],
    tables: Tables,
    seen: tuple[Hashes, Hashes],
    counts: Integers,
) -> None:
    classes = tables[0]
    at, stop = span
    line = (0, 0, 0)  # characters, first bits, last bits
    word_bits = np.uint16(0)  # of the first sign of the last word
    label = 0  # characters of the line before, if it may be a label
    words, distinct, repeated = 0, 0, 0  # of the window
    one, two, three = uint64(0), uint64(0), uint64(0)  # hashes of the last words
    while at < stop:
        code, width = decode(data, at)
        if classes[code] & SPACE:
            if code == 10 and line[0]:
                label = _end_line(line, label, word_bits, counts)
                line = (0, 0, 0)
            at += width
            continue
        if words == WINDOW:
            _end_window(words, distinct, repeated, counts)
            seen[0][:] = 0
            seen[1][:] = 0
            words, distinct, repeated = 0, 0, 0
        end, characters, last = _read_word(data, (at, stop), tables, counts)
        key = hash_bytes(data, at, end)
        distinct += _enter(seen[0], key)
        words += 1
        if words >= GRAM:
            repeated += 1 - _enter(seen[1], join(join(join(one, two), three), key))
        one, two, three = two, three, key
        word_bits = classes[code]
        first = word_bits if not line[0] else line[1]
        line = (line[0] + characters + 1, np.int64(first), np.int64(last))
        at = end
    if line[0]:
        label = _end_line(line, label, word_bits, counts)
    _add_label(label, counts)
    if 2 * words >= WINDOW or counts[Form.WINDOW_WORDS] == 0:
        _end_window(words, distinct, repeated, counts)
    seen[0][:] = 0
    seen[1][:] = 0


@njit(**_inlined)
def _end_window(words: int, distinct: int, repeated: int, counts: Integers) -> None:
    counts[Form.WINDOW_WORDS] += words
    counts[Form.WINDOW_DISTINCT] += distinct
    counts[Form.WINDOW_REPEATED] += repeated


@njit(**_inlined)
def _enter(seen: Hashes, key: int) -> int:
    """Enter a key into a window's table; return 1 if it is new."""
    key = max(key, uint64(1))  # 0 marks a free slot
    slot = key & uint64(SLOTS - 1)
    while seen[slot] != 0:
        if seen[slot] == key:
            return 0
        slot = (slot + uint64(1)) & uint64(SLOTS - 1)
    seen[slot] = key
    return 1


@njit(**_inlined)
def _end_line(line: tuple[int, int, int], label: int, word_bits: int, counts: Integers) -> int:
    """Count a line and the label before it; return its characters if it may be a label.

    `word_bits`: class of the first sign of its last word.
    """
    characters, first, last = line
    counts[Form.LAST_CHARACTERS] = characters
    counts[Form.LAST_LOWER] = word_bits & LETTER and last & LETTER and not word_bits & UPPER
    counts[Form.LINES] += 1
    counts[Form.LINE_CHARACTERS] += characters
    is_continued = first & LETTER and not first & (UPPER | SINGLE)
    if label and not is_continued:
        _add_label(label, counts)
    if last & TERMINAL:
        counts[Form.FINISHED_CHARACTERS] += characters
    may_be_label = not last & (TERMINAL | CLAUSE) and characters <= LABEL_CHARACTERS
    return characters if may_be_label else 0


@njit(**_inlined)
def _add_label(characters: int, counts: Integers) -> None:
    counts[Form.LABEL_LINES] += characters > 0
    counts[Form.LABEL_CHARACTERS] += characters


@njit(**_inlined)
def _has(bits: int, bit: int) -> int:
    """Return 1 if a bit is set, else 0, without a branch."""
    return np.int64((bits & bit) != 0)


@njit(**_inlined)
def _read_small_letters(
    data: Bytes, span: tuple[int, int], scores_of: Bytes, previous: int
) -> tuple[int, int, int, int]:
    """Read on to the next byte that is no small letter of ASCII: most of most texts.

    Returns its place, the number of letters, the scores of their pairs, and the last letter.
    """
    at, stop = span
    first, scores = at, np.int64(0)
    while at < stop and data[at] - uint8(97) < uint8(26):
        letter = uint64(data[at] - uint8(97))
        scores += scores_of[(previous << uint64(5)) | letter]
        previous = letter
        at += ONE
    return at, np.int64(at - first), scores, previous


@njit(**_inlined)
def _read_word(
    data: Bytes, span: tuple[int, int], tables: Tables, counts: Integers
) -> tuple[int, int, int]:
    """Count a word; return its end, its characters, and the class of its last sign to count."""
    classes, numbers, scores_of = tables
    (at, stop), start = span, span[0]
    characters = letters = digits = uppers = damages = runs = switches = np.int64(0)
    before = end_bits = last = slashes = pairs = scores = np.int64(0)
    previous = uint64(NO_LETTER)
    while at < stop:
        wide, width = decode(data, at)
        code, bits, letter = np.int64(wide), np.int64(classes[wide]), uint64(NO_LETTER)
        if code < 0x80:
            letter = uint64(numbers[wide])
        if bits & (SPACE | SINGLE) and (bits & SPACE or at > start):
            break
        at += width
        characters += 1
        letters += _has(bits, LETTER)
        digits += _has(bits, DIGIT)
        uppers += _has(bits, UPPER)
        damages += _has(bits, DAMAGE)
        runs += _has(bits, LETTER) & (_has(before, LETTER) ^ 1)
        switches += _has(bits, UPPER) & _has(before, LETTER) & (_has(before, UPPER) ^ 1)
        scores += scores_of[(previous << uint64(5)) | letter]
        pairs += np.int64(previous < 26) & np.int64(letter < 26)
        previous = letter
        slashes |= np.int64(code == 47) & np.int64(last == 47) & np.int64(characters > 4)
        before, last = before if bits & JOINT else bits, code
        end_bits = end_bits if bits & CLOSING else bits
        if bits & SINGLE:
            break
        if letter < 26:
            at, more, score, previous = _read_small_letters(data, (at, stop), scores_of, letter)
            scores += score
            if more:
                characters, letters, pairs = characters + more, letters + more, pairs + more
                before, last, end_bits = np.int64(LETTER), np.int64(97), np.int64(LETTER)
    is_url = slashes != 0 or (
        characters > 4 and data[start] | 0x20 == 119 and data[start + uint64(3)] == 46
    )
    sizes, parts = (characters, letters, digits, uppers, damages), (runs, switches, pairs, scores)
    _add_word(sizes, parts, is_url, (end_bits, before), counts)
    return at, characters, end_bits


@njit(**_inlined)
def _add_word(
    sizes: tuple[int, int, int, int, int],
    parts: tuple[int, int, int, int],
    is_url: bool,
    ends: tuple[int, int],
    counts: Integers,
) -> None:
    characters, letters, digits, uppers, damages = sizes
    runs, switches, pairs, scores = parts
    end_bits, last_bits = ends
    is_single = (last_bits & SINGLE) != 0 and characters == 1
    counts[Form.WORDS] += 1
    counts[Form.CHARACTERS] += characters
    counts[Form.LETTERS] += letters
    counts[Form.UPPERS] += uppers
    counts[Form.DIGITS] += digits
    counts[Form.DAMAGES] += damages
    counts[Form.SINGLES] += is_single
    counts[Form.LETTER_WORDS] += letters > 0 and not is_single
    counts[Form.CASED_WORDS] += uppers > 0 and switches == 0
    counts[Form.ONE_LETTER_WORDS] += letters == 1 and characters == 1 and not is_single
    counts[Form.MARK_WORDS] += letters + digits == 0
    counts[Form.NUMBERS] += digits > 0 and letters == 0
    counts[Form.CLAUSE_WORDS] += (end_bits & CLAUSE) != 0
    counts[Form.PAIRS] += pairs
    counts[Form.PAIR_SCORES] += scores
    is_odd = runs > 1 or switches > 0 or (letters > 0 and digits > 0) or characters > LONG_WORD
    if is_url:
        counts[Form.URL_CHARACTERS] += characters
    elif is_odd:
        counts[Form.ODD_CHARACTERS] += characters


@njit(**_options)
def _look_at_end(data: Bytes, span: tuple[int, int], classes: Classes, counts: Integers) -> None:
    """Tell a text that ends a sentence from one that breaks off with an ellipsis."""
    start, at = span
    dots = 0
    while at > start:
        at -= uint64(1)
        while data[at] & 0xC0 == 0x80:
            at -= uint64(1)
        code, _ = decode(data, at)
        if code == 46:
            dots += 1
            continue
        if dots == 0 and classes[code] & (SPACE | CLOSING):
            continue
        if dots > 2 or (dots == 0 and code == 0x2026):
            counts[Form.LAST_DOTS] = 1
        elif dots > 0 or classes[code] & TERMINAL:
            counts[Form.LAST_FINISHED] = 1
        return
