"""Count the form of a text: its words, lines, windows of words, and end, in one pass.

The counts behind the scores of `page_form`, which tell prose from menus, lists of links, keywords,
noise and pages that were cut. Words are runs between white space, and each Han or kana character;
lines are non-blank. Repetition is counted in windows of WINDOW words, so that it does not grow with
the length of the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache
from itertools import product

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.character_classes import (
    NUM_CODES,
    SINGLES,
    TERMINAL_MARKS,
    add_marks,
    classes_by,
)
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.many_bytes import (
    ONE,
    RUN,
    count_ones,
    first_one,
    held,
    mark_bytes,
    ones_below,
    read_2,
    run_on,
    size_of,
)
from assets.text.kernels.plain_words import (
    capitals,
    digit_bytes,
    mark_byte,
    plain_words,
    small_letters,
)
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Tables = tuple[Classes, Bytes]
Line = tuple[int, int, int]  # characters, class of the first sign, of the last one to count
Window = tuple[int, int, int, int]  # words, distinct, repeated, words since the last new one
# Of a window: the table of its words, the place of each's last copy; words in order, place of the
# copy before each, -1 for none.
Seen = tuple[Hashes, Integers, Hashes, Integers]

WINDOW = 128  # words
SLOTS = 512  # of a window's table: a quarter full at most
LABEL_CHARACTERS = 80  # of a line that may be a label; hard-wrapped prose goes on in lower case
LONG_WORD = 30  # characters; longer ones are no words of spaced scripts
GRAM = 4  # words
SPACE, LETTER, UPPER, DIGIT, TERMINAL, CLAUSE, CLOSING, SINGLE, JOINT, DAMAGE = (
    1 << i for i in range(10)
)
LINE_FEED = 10
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


def pair_table(scores: Bytes) -> Bytes:
    """Return the likelihood of each pair of ASCII letters, uint8 [26 * 26], by their bytes.

    That of `first` before `second`, in any case, is at first + 256 * second, uint8 [65536].
    """
    table = np.zeros((256, 256), np.uint8)
    for first, second in product((ord("a"), ord("A")), repeat=2):
        table[second : second + 26, first : first + 26] = scores.reshape(26, 26).T
    return table.ravel()


@njit(cache=True, nogil=True)
def count_form(data: Bytes, starts: Integers, tables: Tables, counts: Integers) -> None:
    """Fill `counts`, int64 [n, len(Form)], for n texts.

    data: UTF-8; starts: int64 [n + 1]; tables: of `form_classes` and `pair_table`.
    """
    table = (np.zeros(SLOTS, np.uint64), np.zeros(SLOTS, np.int64))
    seen = (*table, np.zeros(WINDOW, np.uint64), np.zeros(WINDOW, np.int64))
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        _count_text(data, span, tables[0], seen, counts[row])
        _look_at_end(data, span, tables[0], counts[row])
        _weigh_pairs(data, span, tables[1], counts[row])


@njit(**KERNEL)
def _count_text(
    data: Bytes, span: tuple[int, int], classes: Classes, seen: Seen,
    counts: Integers,
) -> None:  # fmt: skip
    at, stop = span
    line = (0, 0, 0)  # characters, first bits, last bits
    word_bits = np.uint16(0)  # of the first sign of the last word
    label = 0  # characters of the line before, if it may be a label
    window = (0, 0, 0, 0)
    while at < stop:
        words, size = plain_words(data, (at, stop))
        size = min(size, first_one(mark_byte(data, at, LINE_FEED))) if size else size
        if size:
            words &= ones_below(size)
            if words:
                window = _enter_plain_words(data, at, words, (window, seen), counts)
                line, word_bits = _add_plain_words(data, at, words, classes, (line, counts))
            at += size
            continue
        code, width = decode(data, at)
        if classes[code] & SPACE:
            if code == LINE_FEED and line[0]:
                label = _end_line(line, label, word_bits, counts)
                line = (0, 0, 0)
            at += width
            continue
        end, characters, last = _read_word(data, (at, stop), classes, counts)
        window = _enter_word(seen, hash_bytes(data, at, end), window, counts)
        word_bits = classes[code]
        first = np.int64(word_bits) if not line[0] else line[1]
        line = (line[0] + characters + 1, first, np.int64(last))
        at = end
    if line[0]:
        label = _end_line(line, label, word_bits, counts)
    _add_label(label, counts)
    if 2 * window[0] >= WINDOW or counts[Form.WINDOW_WORDS] == 0:
        _end_window(window[0], window[1], window[2], counts)
    seen[0][:] = 0


@njit(**INLINED)
def _enter_plain_words(
    data: Bytes, at: int, words: int, state: tuple[Window, Seen], counts: Integers
) -> Window:
    """Enter the words of a mask, and count the characters of odd ones and addresses."""
    window, seen = state
    is_odd, is_url = _odd_words(data, at, words)
    starts, ends = words & ~(words << ONE), ~words & (words << ONE)
    odd = url = uint64(0)
    while starts:
        first, last = first_one(starts), first_one(ends)
        starts &= starts - ONE
        ends &= ends - ONE
        characters, url_word = last - first, is_url >> last & ONE
        odd_word = is_odd >> last & ONE | uint64(characters > uint64(LONG_WORD))
        url += characters * url_word
        odd += characters * (odd_word & (url_word ^ ONE))
        window = _enter_word(seen, hash_bytes(data, at + first, at + last), window, counts)
    counts[Form.URL_CHARACTERS] += np.int64(url)
    counts[Form.ODD_CHARACTERS] += np.int64(odd)
    return window


@njit(**INLINED)
def _odd_words(data: Bytes, at: int, words: int) -> tuple[int, int]:
    """Mark the ends of words that mix letters with digits, marks or capitals, and of addresses."""
    lower, upper = small_letters(data, at) & words, capitals(data, at) & words
    letters, digits = lower | upper, digit_bytes(data, at) & words
    joints = (mark_byte(data, at, 39) | mark_byte(data, at, 45)) & words
    after_lower = run_on(joints, joints & lower << ONE)
    after_letters = letters | after_lower | run_on(joints, joints & upper << ONE)
    switches = upper & (lower | after_lower) << ONE
    gaps = words & ~after_letters
    later_runs = (gaps + (gaps & after_letters << ONE)) & ~gaps & letters
    odd = held(words, switches | later_runs) | held(words, letters) & held(words, digits)
    slashes, starts = mark_byte(data, at, 47) & words, words & ~(words << ONE)
    heads = starts | starts << ONE
    heads |= heads << uint64(2)
    url = slashes & slashes << ONE & ~heads
    dots, w = mark_byte(data, at, 46), mark_byte(data, at, 87) | mark_byte(data, at, 119)
    url |= starts & w & dots >> uint64(3) & words >> uint64(4) & words >> ONE & words >> uint64(2)
    return odd, held(words, url)


@njit(**INLINED)
def _add_plain_words(
    data: Bytes, at: int, words: int, classes: Classes, state: tuple[Line, Integers]
) -> tuple[Line, int]:
    """Count the words of a mask; return the line with them, and the class of the last's start."""
    line, counts = state
    upper, digits = capitals(data, at) & words, digit_bytes(data, at) & words
    lower = small_letters(data, at) & words
    letters = lower | upper
    joints = (mark_byte(data, at, 39) | mark_byte(data, at, 45)) & words
    switches = upper & (lower | run_on(joints, joints & lower << ONE)) << ONE
    starts, ends = words & ~(words << ONE), ~words & (words << ONE)
    clauses = (mark_byte(data, at, 44) | mark_bytes(data, at, uint64(58), uint64(2))) & words
    closings = _closings(data, at) & words
    ending = clauses << ONE
    clause_ends = (ending | closings + (closings & ending)) & ends
    with_letter, with_digit = held(words, letters), held(words, digits)
    characters, num_words = np.int64(count_ones(words)), np.int64(count_ones(starts))
    counts[Form.WORDS] += num_words
    counts[Form.CHARACTERS] += characters
    counts[Form.LETTERS] += np.int64(count_ones(letters))
    counts[Form.UPPERS] += np.int64(count_ones(upper))
    counts[Form.DIGITS] += np.int64(count_ones(digits))
    counts[Form.LETTER_WORDS] += np.int64(count_ones(with_letter))
    counts[Form.CASED_WORDS] += np.int64(count_ones(held(words, upper) & ~held(words, switches)))
    counts[Form.ONE_LETTER_WORDS] += np.int64(count_ones(starts & letters & ~(words >> ONE)))
    counts[Form.MARK_WORDS] += np.int64(count_ones(ends & ~with_letter & ~with_digit))
    counts[Form.NUMBERS] += np.int64(count_ones(with_digit & ~with_letter))
    counts[Form.CLAUSE_WORDS] += np.int64(count_ones(clause_ends))
    last_start = size_of(starts) - ONE
    counted = words & ~closings & ~ones_below(last_start)
    last = np.int64(classes[data[at + size_of(counted) - ONE]]) if counted else 0
    first = line[1] if line[0] else np.int64(classes[data[at + first_one(words)]])
    line = (line[0] + characters + num_words, first, last)
    return line, classes[data[at + last_start]]


@njit(**INLINED)
def _closings(data: Bytes, at: int) -> int:
    """Mark the signs of CLOSINGS that are ASCII."""
    quotes = mark_byte(data, at, 34) | mark_byte(data, at, 39)
    brackets = mark_bytes(data, at, uint64(41), uint64(2)) | mark_byte(data, at, 93)
    return (
        quotes | brackets | mark_bytes(data, at, uint64(95), uint64(2)) | mark_byte(data, at, 125)
    )


@njit(**INLINED)
def _enter_word(seen: Seen, key: int, window: Window, counts: Integers) -> Window:
    """Enter the hash of a word; return the window with it, a new one if it was full."""
    table, places, keys, before = seen
    words, distinct, repeated, known = window
    if words == WINDOW:
        _end_window(words, distinct, repeated, counts)
        table[:] = 0
        words, distinct, repeated, known = 0, 0, 0, 0
    slot, is_new = _enter(table, key)
    keys[uint64(words)] = key
    before[uint64(words)] = places[slot] * (1 - is_new) - is_new
    places[slot] = words
    distinct, known = distinct + is_new, (known + 1) * (1 - is_new)
    if known >= GRAM:  # if the words were there before, so was each of them
        repeated += _is_repeated(keys, before, words)
    return words + 1, distinct, repeated, known


@njit(**INLINED)
def _is_repeated(keys: Hashes, before: Integers, last: int) -> int:
    """Return 1 if the GRAM words that end at `last` are in the window before, too, else 0."""
    at = before[uint64(last)]
    while at >= GRAM - 1:
        is_equal = True
        for i in range(1, GRAM):
            is_equal &= keys[uint64(at - i)] == keys[uint64(last - i)]
        if is_equal:
            return 1
        at = before[uint64(at)]
    return 0


@njit(**KERNEL)
def _weigh_pairs(data: Bytes, span: tuple[int, int], scores: Bytes, counts: Integers) -> None:
    """Count the pairs of ASCII letters, and add up their scores."""
    at, stop = span
    total = uint64(0)
    for place in range(at + ONE, stop):
        total += uint64(scores[read_2(data, place - ONE)])
    counts[Form.PAIR_SCORES] = np.int64(total)
    pairs = uint64(0)
    while at + RUN < min(stop, uint64(len(data))):
        letters = small_letters(data, at) | capitals(data, at)
        following = small_letters(data, at + ONE) | capitals(data, at + ONE)
        pairs += count_ones(letters & following)
        at += RUN
    for place in range(at + ONE, stop):
        pairs += uint64(_is_letter(data[place - ONE]) & _is_letter(data[place]))
    counts[Form.PAIRS] = np.int64(pairs)


@njit(**INLINED)
def _is_letter(byte: int) -> bool:
    return 97 <= byte | 0x20 <= 122


@njit(**INLINED)
def _end_window(words: int, distinct: int, repeated: int, counts: Integers) -> None:
    counts[Form.WINDOW_WORDS] += words
    counts[Form.WINDOW_DISTINCT] += distinct
    counts[Form.WINDOW_REPEATED] += repeated


@njit(**INLINED)
def _enter(seen: Hashes, key: int) -> tuple[int, int]:
    """Enter a key into a window's table; return its slot, and 1 if it is new."""
    key = max(key, uint64(1))  # 0 marks a free slot
    slot = key & uint64(SLOTS - 1)
    held_key = seen[slot]
    while held_key != 0 and held_key != key:
        slot = (slot + ONE) & uint64(SLOTS - 1)
        held_key = seen[slot]
    seen[slot] = key
    return slot, np.int64(held_key == 0)  # no branch: as many words are new as not


@njit(**INLINED)
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


@njit(**INLINED)
def _add_label(characters: int, counts: Integers) -> None:
    counts[Form.LABEL_LINES] += characters > 0
    counts[Form.LABEL_CHARACTERS] += characters


@njit(**INLINED)
def _has(bits: int, bit: int) -> int:
    """Return 1 if a bit is set, else 0, without a branch."""
    return np.int64((bits & bit) != 0)


@njit(**KERNEL)
def _read_word(
    data: Bytes, span: tuple[int, int], classes: Classes, counts: Integers
) -> tuple[int, int, int]:
    """Count a word; return its end, its characters, and the class of its last sign to count."""
    (at, stop), start = span, span[0]
    characters = letters = digits = uppers = damages = runs = switches = np.int64(0)
    before = end_bits = last = slashes = np.int64(0)
    while at < stop:
        wide, width = decode(data, at)
        code, bits = np.int64(wide), np.int64(classes[wide])
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
        slashes |= np.int64(code == 47) & np.int64(last == 47) & np.int64(characters > 4)
        before, last = before if bits & JOINT else bits, code
        end_bits = end_bits if bits & CLOSING else bits
        if bits & SINGLE:
            break
    is_url = slashes != 0 or (
        characters > 4 and data[start] | 0x20 == 119 and data[start + uint64(3)] == 46
    )
    sizes, parts = (characters, letters, digits, uppers, damages), (runs, switches)
    _add_word(sizes, parts, is_url, (end_bits, before), counts)
    return at, characters, end_bits


@njit(**INLINED)
def _add_word(
    sizes: tuple[int, int, int, int, int],
    parts: tuple[int, int],
    is_url: bool,
    ends: tuple[int, int],
    counts: Integers,
) -> None:
    characters, letters, digits, uppers, damages = sizes
    runs, switches = parts
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
    is_odd = runs > 1 or switches > 0 or (letters > 0 and digits > 0) or characters > LONG_WORD
    if is_url:
        counts[Form.URL_CHARACTERS] += characters
    elif is_odd:
        counts[Form.ODD_CHARACTERS] += characters


@njit(**KERNEL)
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
