"""Count the form of a text: its words, lines, windows of words, and end.

The counts behind the scores of `page_form`, which tell prose from menus, lists of links, keywords,
noise and pages that were cut. Words are runs between white space, and each Han or kana character;
lines are non-blank. Repetition is counted in windows of WINDOW words, so that it does not grow with
the length of the text.

Method: up to 63 bytes of whole words become a bit each per class, ASCII's by vector instructions,
other characters' by a table; words and lines are then counted by additions and shifts. Only words
of more bytes, and of characters of four, are read one character after another.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from functools import cache
from itertools import product
from typing import NamedTuple

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
from assets.text.kernels.hashing import INCREMENT, absorb
from assets.text.kernels.many_bytes import (
    EIGHT,
    ONE,
    RUN,
    count_ones,
    first_one,
    held,
    mark_bits,
    mark_bytes,
    ones_below,
    read_2,
    read_8,
    read_some,
    run_on,
    size_of,
)
from assets.text.kernels.plain_words import (
    capitals,
    digit_bytes,
    mark_byte,
    small_letters,
)
from assets.text.kernels.utf8 import decode, last_start

Bytes = NDArray[np.uint8]
Classes = NDArray[np.uint16]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Tables = tuple[Classes, Bytes]
# Characters; classes of the first sign, of the last one to count, of the last word's first one.
Line = tuple[int, int, int, int]
# Of a window: a table of the number, from 1, of the last copy of each word so far, by hash; the
# number of the copy before each word, 0 for none.
Seen = tuple[Bytes, Bytes]
Work = tuple[Classes, Hashes, Seen]  # classes of 64 bytes, hashes of words, of a window

WINDOW = 128  # words
SLOT_BITS = 10
SLOTS = 1 << SLOT_BITS  # of a window's table: an eighth full at most
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


class Signs(NamedTuple):
    """Classes of up to 63 bytes as bits: of all bytes of a character, but `heads` and `damages`.

    These have one bit a character. Of Han and kana only the second byte is among the words, so that
    there is a gap between two of them.
    """

    words: int
    heads: int
    letters: int
    uppers: int
    digits: int
    joints: int
    clauses: int
    closings: int
    singles: int
    damages: int


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
    kinds, keys = np.zeros(64 + 4, np.uint16), np.zeros(1 + WINDOW + 64, np.uint64)
    seen = (np.zeros(SLOTS, np.uint8), np.zeros(WINDOW + 1, np.uint8))
    for row in range(len(counts)):
        span = (uint64(starts[row]), uint64(starts[row + 1]))
        _count_text(data, span, tables[0], (kinds, keys, seen), counts[row])
        _look_at_end(data, span, tables[0], counts[row])
        _weigh_pairs(data, span, tables[1], counts[row])


@njit(**KERNEL)
def _count_text(
    data: Bytes, span: tuple[int, int], classes: Classes, work: Work, counts: Integers
) -> None:
    (at, stop), (kinds, keys, seen) = span, work
    line = (0, 0, 0, 0)
    label = 0  # characters of the line before, if it may be a label
    num_keys = uint64(0)
    while at < stop:
        signs, feeds, size = _read_signs(data, (at, stop), classes, kinds)
        code, width = decode(data, at)
        if size:
            if signs.words:
                num_keys = _hash_words(data, at, signs, keys, num_keys)
                _count_signs(signs, counts)
                _count_odd(data, at, signs, counts)
            line, label = _add_to_lines(data, at, (signs, feeds), classes, (line, label, counts))
        elif classes[code] & SPACE:
            size += width
            if code == LINE_FEED and line[0]:
                label = _end_line(line, label, counts)
                line = (0, 0, 0, 0)
        else:
            end, characters, last = _read_word(data, (at, stop), classes, counts)
            num_keys += ONE
            keys[num_keys] = _hash_word(data, at, end)
            first = np.int64(classes[code])
            line = (line[0] + characters + 1, line[1] if line[0] else first, last, first)
            size = end - at
        at += size
        if num_keys >= uint64(WINDOW):
            _count_window(keys, WINDOW, seen, counts)
            num_keys -= uint64(WINDOW)
            for i in range(num_keys):
                keys[uint64(i) + ONE] = keys[uint64(i) + uint64(WINDOW + 1)]
    if line[0]:
        label = _end_line(line, label, counts)
    _add_label(label, counts)
    if 2 * num_keys >= WINDOW or counts[Form.WINDOW_WORDS] == 0:
        _count_window(keys, np.int64(num_keys), seen, counts)


@njit(**INLINED)
def _read_signs(
    data: Bytes, span: tuple[int, int], classes: Classes, kinds: Classes
) -> tuple[Signs, int, int]:
    """Return the signs of the whole words at the start of data[span], line feeds, and their bytes.

    These are 0 if the text begins with a word that is longer than 62 bytes or has a character of
    four, and near the end of `data`: from any byte of a mask, 64 can be read.
    """
    at, stop = span
    none = uint64(0)
    if at + RUN + RUN > uint64(len(data)):
        return Signs(none, none, none, none, none, none, none, none, none, none), none, none
    size = min(stop - at, uint64(63))
    spaces = mark_bytes(data, at, uint64(9), uint64(5)) | mark_bytes(
        data, at, uint64(28), uint64(5)
    )
    letters, uppers = small_letters(data, at), capitals(data, at)
    letters |= uppers
    digits = digit_bytes(data, at)
    joints = mark_byte(data, at, 39) | mark_byte(data, at, 45)
    clauses = mark_byte(data, at, 44) | mark_bytes(data, at, uint64(58), uint64(2))
    closings = _closings(data, at)
    later = singles = damages = none
    words = ~spaces
    wide = mark_bytes(data, at, uint64(0x80), uint64(0x80))
    if wide & ones_below(size):
        later = mark_bytes(data, at, uint64(0x80), uint64(0x40))
        size = min(size, first_one(mark_bytes(data, at, uint64(0xF0), uint64(16))))
        heads = wide & ~later & ones_below(size)
        _write_classes(data, at, heads, classes, kinds)
        letters |= mark_bits(kinds, uint64(LETTER)) & wide
        uppers |= mark_bits(kinds, uint64(UPPER)) & wide
        digits |= mark_bits(kinds, uint64(DIGIT)) & wide
        joints |= mark_bits(kinds, uint64(JOINT)) & wide
        clauses |= mark_bits(kinds, uint64(CLAUSE)) & wide
        closings |= mark_bits(kinds, uint64(CLOSING)) & wide
        damages = mark_bits(kinds, uint64(DAMAGE)) & wide & ~later
        alone = mark_bits(kinds, uint64(SINGLE)) & wide
        singles = (alone & heads) << ONE
        words = words & ~(mark_bits(kinds, uint64(SPACE)) & wide) & ~alone | singles
    if size != stop - at:
        size = size_of(~words & ~(later >> ONE) & ones_below(size))
    inside = ones_below(size)
    words &= inside
    signs = Signs(
        words, words & ~later | singles & inside, letters & words, uppers & words, digits & words,
        joints & words, clauses & words, closings & words, singles & inside, damages & words,
    )  # fmt: skip
    return signs, mark_byte(data, at, LINE_FEED) & inside, size


@njit(**INLINED)
def _write_classes(data: Bytes, at: int, heads: int, classes: Classes, kinds: Classes) -> None:
    """Write the classes of the characters that begin at the bits of a mask, for all their bytes."""
    while heads:
        place = first_one(heads)
        heads &= heads - ONE
        bits = classes[decode(data, at + place)[0]]
        for i in range(3):
            kinds[place + uint64(i)] = bits


@njit(**INLINED)
def _hash_words(data: Bytes, at: int, signs: Signs, keys: Hashes, count: int) -> int:
    """Append the hashes of words; return the number."""
    words, singles = signs.words, signs.singles
    starts = words & ~(words << ONE) ^ (singles | singles >> ONE)
    ends = ~words & (words << ONE) ^ (singles << ONE | singles << uint64(2))
    while starts:
        first, size = at + first_one(starts), first_one(ends) - first_one(starts)
        starts &= starts - ONE
        ends &= ends - ONE
        count += ONE
        if size <= uint64(16):
            low, high = read_8(data, first), read_8(data, first + EIGHT)
            unused = EIGHT * (EIGHT - size & uint64(7))
            is_long = size > EIGHT
            low &= ~uint64(0) if is_long else ~uint64(0) >> unused
            high &= ~uint64(0) >> unused if is_long else uint64(0)
            keys[count] = _key_of(size, low, high)
        else:
            keys[count] = _hash_word(data, first, first + size)
    return count


@njit(**INLINED)
def _key_of(size: int, low: int, high: int) -> int:
    return absorb(absorb(size * INCREMENT, low), high) * INCREMENT


@njit(**KERNEL)
def _hash_word(data: Bytes, start: int, stop: int) -> int:
    """Return the hash of a word, which is not empty."""
    size = stop - start
    key = size * INCREMENT
    while start + uint64(16) < stop:
        key = absorb(key, read_8(data, start))
        start += EIGHT
    low = read_some(data, start, min(stop - start, EIGHT))
    start += EIGHT
    high = read_some(data, start, stop - start) if start < stop else uint64(0)
    return absorb(absorb(key, low), high) * INCREMENT


@njit(**INLINED)
def _count_signs(signs: Signs, counts: Integers) -> None:
    """Count the characters and words of a mask."""
    words, heads, letters, uppers = signs.words, signs.heads, signs.letters, signs.uppers
    lower = letters & ~uppers
    switches = uppers & (lower | run_on(signs.joints, signs.joints & lower << ONE)) << ONE
    starts, ends = words & ~(words << ONE), ~words & (words << ONE)
    ending = signs.clauses << ONE
    clause_ends = (ending | signs.closings + (signs.closings & ending)) & ends
    with_letter, with_digit = held(words, letters), held(words, signs.digits)
    spaced = with_letter & ~(signs.singles << ONE)
    counts[Form.WORDS] += np.int64(count_ones(starts))
    counts[Form.CHARACTERS] += np.int64(count_ones(heads))
    counts[Form.LETTERS] += np.int64(count_ones(letters & heads))
    counts[Form.UPPERS] += np.int64(count_ones(uppers & heads))
    counts[Form.DIGITS] += np.int64(count_ones(signs.digits & heads))
    counts[Form.DAMAGES] += np.int64(count_ones(signs.damages))
    counts[Form.SINGLES] += np.int64(count_ones(signs.singles))
    counts[Form.LETTER_WORDS] += np.int64(count_ones(spaced))
    counts[Form.CASED_WORDS] += np.int64(count_ones(held(words, uppers) & ~held(words, switches)))
    counts[Form.ONE_LETTER_WORDS] += np.int64(count_ones(spaced & ~held(words, heads & ~starts)))
    counts[Form.MARK_WORDS] += np.int64(count_ones(ends & ~with_letter & ~with_digit))
    counts[Form.NUMBERS] += np.int64(count_ones(with_digit & ~with_letter))
    counts[Form.CLAUSE_WORDS] += np.int64(count_ones(clause_ends))


@njit(**INLINED)
def _count_odd(data: Bytes, at: int, signs: Signs, counts: Integers) -> None:
    """Count the characters of words that mix letters with digits, marks or capitals; of addresses.

    Few words are either, so that only these are looked at one by one.
    """
    words, letters, uppers, joints = signs.words, signs.letters, signs.uppers, signs.joints
    lower = letters & ~uppers
    after_lower = run_on(joints, joints & lower << ONE)
    upper_letters = uppers & letters  # circled letters and Roman numerals are no letters
    after_letters = letters | after_lower | run_on(joints, joints & upper_letters << ONE)
    switches = uppers & (lower | after_lower) << ONE
    gaps = words & ~after_letters
    later_runs = (gaps + (gaps & after_letters << ONE)) & ~gaps & letters
    odd = held(words, switches | later_runs) | held(words, letters) & held(words, signs.digits)
    starts, long = words & ~(words << ONE), words
    for i in range(4):
        long &= long >> (ONE << uint64(i))
    long &= long >> uint64(LONG_WORD - 15)
    slashes, dots = mark_byte(data, at, 47) & words, mark_byte(data, at, 46)
    w = mark_byte(data, at, 87) | mark_byte(data, at, 119)
    doubled, dotted = slashes & slashes << ONE, starts & w & dots >> uint64(3)
    looked_at = odd | held(words, doubled | dotted | long)
    while looked_at:
        end = ones_below(first_one(looked_at))
        looked_at &= looked_at - ONE
        own = end & ~ones_below(size_of(starts & end) - ONE)
        heads = signs.heads & own
        before_slash = heads & ones_below(size_of(doubled & own))
        characters = count_ones(heads)
        is_url = count_ones(before_slash) > 4 or (dotted & own and characters > 4)
        if is_url:
            counts[Form.URL_CHARACTERS] += np.int64(characters)
        elif odd & (end + ONE) or characters > LONG_WORD:
            counts[Form.ODD_CHARACTERS] += np.int64(characters)


@njit(**INLINED)
def _add_to_lines(
    data: Bytes, at: int, block: tuple[Signs, int], classes: Classes,
    state: tuple[Line, int, Integers],
) -> tuple[Line, int]:  # fmt: skip
    """Add words to the line that is open, and to those after each line feed of a mask."""
    (signs, feeds), (line, label, counts) = block, state
    words = signs.words
    starts = words & ~(words << ONE)
    while True:
        before = (feeds & (~feeds + ONE)) - ONE  # the bits before the first line feed, or all
        own = words & before
        if own:
            line = _longer(data, at, (own, starts & own, signs), classes, line)
        if feeds == 0:
            return line, label
        if line[0]:
            label = _end_line(line, label, counts)
            line = (0, 0, 0, 0)
        words &= ~before
        feeds &= feeds - ONE


@njit(**INLINED)
def _longer(
    data: Bytes, at: int, own: tuple[int, int, Signs], classes: Classes, line: Line
) -> Line:
    """Return a line with the words of a mask added."""
    words, starts, signs = own
    last_start = size_of(starts) - ONE
    counted = words & ~signs.closings & ~ones_below(last_start)
    characters = np.int64(count_ones(words & signs.heads) + count_ones(starts))
    first = line[1] if line[0] else _class_at(data, at + first_one(words), classes)
    last = _class_at(data, at + size_of(counted) - ONE, classes) if counted else 0
    return line[0] + characters, first, last, _class_at(data, at + last_start, classes)


@njit(**INLINED)
def _class_at(data: Bytes, at: int, classes: Classes) -> int:
    """Return the class of the character that the byte at a place belongs to."""
    return np.int64(classes[decode(data, last_start(data, at + ONE))[0]])


@njit(**INLINED)
def _closings(data: Bytes, at: int) -> int:
    """Mark the signs of CLOSINGS that are ASCII."""
    quotes = mark_byte(data, at, 34) | mark_byte(data, at, 39)
    brackets = mark_bytes(data, at, uint64(41), uint64(2)) | mark_byte(data, at, 93)
    return (
        quotes | brackets | mark_bytes(data, at, uint64(95), uint64(2)) | mark_byte(data, at, 125)
    )


@njit(**KERNEL)
def _count_window(keys: Hashes, size: int, seen: Seen, counts: Integers) -> None:
    """Count the words, numbered from 1, that are new, and the runs of GRAM that are not."""
    lasts, before = seen
    distinct = repeated = known = 0
    for place in range(1, size + 1):
        key = keys[uint64(place)]
        keys[0] = key  # a free slot's: one test, since as many words are new as not
        slot = key >> uint64(64 - SLOT_BITS)
        while keys[lasts[slot]] != key:
            slot = (slot + ONE) & uint64(SLOTS - 1)
        is_new = np.int64(lasts[slot] == 0)
        before[uint64(place)] = lasts[slot]
        lasts[slot] = place
        distinct, known = distinct + is_new, (known + 1) * (1 - is_new)
        if known >= GRAM:  # if the words were there before, so was each of them
            repeated += _is_repeated(keys, before, uint64(place))
    lasts[:] = 0
    counts[Form.WINDOW_WORDS] += size
    counts[Form.WINDOW_DISTINCT] += distinct
    counts[Form.WINDOW_REPEATED] += repeated


@njit(**INLINED)
def _is_repeated(keys: Hashes, before: Bytes, last: int) -> int:
    """Return 1 if the GRAM words that end at `last` are in the window before, too, else 0."""
    at = uint64(before[last])
    while at >= GRAM:
        is_equal = True
        for i in range(1, GRAM):
            is_equal &= keys[at - uint64(i)] == keys[last - uint64(i)]
        if is_equal:
            return 1
        at = uint64(before[at])
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
def _end_line(line: Line, label: int, counts: Integers) -> int:
    """Count a line and the label before it; return its characters if it may be a label."""
    characters, first, last, word_bits = line
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
