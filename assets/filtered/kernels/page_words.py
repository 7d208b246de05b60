"""Count words, their characters, and what repeats itself within windows of WINDOW words.

Method: what a run of ones of a mask holds is found by an addition, whose carry marks the place
after the run. Only words that may be addresses or noise are looked at one by one. In windows, words
are compared by hashes: a small table has the number, from 1, of the last copy of each word, so that
a run of GRAM words is compared with the earlier places of its last word. Repetition within windows
does not grow with the length of the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from assets.filtered.kernels.sign_masks import CLAUSE, SINGLE, Bytes, Integers, Signs
from assets.filtered.kernels.text_words import Hashes, Word
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.many_bytes import (
    ONE,
    count_ones,
    first_one,
    held,
    ones_below,
    run_on,
    size_of,
)
from assets.text.kernels.words import mark_byte


class Form(IntEnum):
    """Counts of the form of a page, in the order of the columns."""

    DAMAGES = 0
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
    FORM_LINES = auto()  # that are not blank
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


DOT, SLASH, W, SMALL_W = (ord(sign) for sign in "./Ww")
LONG_WORD = 30  # characters; longer ones are no words of spaced scripts


@njit(**INLINED)
def count_signs(signs: Signs, form: Integers) -> None:
    """Count the words of a mask."""
    words, heads, letters, uppers = signs.words, signs.heads, signs.letters, signs.uppers
    lower = letters & ~uppers
    # Capitals behind a small letter, or behind joints that follow one.
    switches = uppers & (lower | run_on(signs.joints, signs.joints & lower << ONE)) << ONE
    # `ends`, as what `held` returns, has a bit behind each word: these masks can be combined.
    starts, ends = words & ~(words << ONE), ~words & (words << ONE)
    ending = signs.clauses << ONE
    # Closings may follow the clause's mark: the addition carries past them.
    clause_ends = (ending | signs.closings + (signs.closings & ending)) & ends
    with_letter, with_digit = held(words, letters), held(words, signs.digits)
    spaced = with_letter & ~(signs.singles << ONE)
    form[Form.DAMAGES] += np.int64(count_ones(signs.damages))
    form[Form.SINGLES] += np.int64(count_ones(signs.singles))
    form[Form.LETTER_WORDS] += np.int64(count_ones(spaced))
    form[Form.CASED_WORDS] += np.int64(count_ones(held(words, uppers) & ~held(words, switches)))
    form[Form.ONE_LETTER_WORDS] += np.int64(count_ones(spaced & ~held(words, heads & ~starts)))
    form[Form.MARK_WORDS] += np.int64(count_ones(ends & ~with_letter & ~with_digit))
    form[Form.NUMBERS] += np.int64(count_ones(with_digit & ~with_letter))
    form[Form.CLAUSE_WORDS] += np.int64(count_ones(clause_ends))


@njit(**INLINED)
def count_odd(data: Bytes, at: int, signs: Signs, form: Integers) -> None:
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
    # Letters that follow a gap behind letters: the addition carries past the gap.
    later_runs = (gaps + (gaps & after_letters << ONE)) & ~gaps & letters
    odd = held(words, switches | later_runs) | held(words, letters) & held(words, signs.digits)
    starts, long = words & ~(words << ONE), words
    # A bit is left where 2, 4, 8, 16 bytes of a word begin, then LONG_WORD + 1.
    for i in range(4):
        long &= long >> (ONE << uint64(i))
    long &= long >> uint64(LONG_WORD - 15)
    slashes, dots = mark_byte(data, at, SLASH) & words, mark_byte(data, at, DOT)
    w = mark_byte(data, at, W) | mark_byte(data, at, SMALL_W)
    doubled, dotted = slashes & slashes << ONE, starts & w & dots >> uint64(3)
    looked_at = odd | held(words, doubled | dotted | long)
    while looked_at:
        end = ones_below(first_one(looked_at))
        looked_at &= looked_at - ONE
        # From the word's start, the last one below its end.
        own = end & ~ones_below(size_of(starts & end) - ONE)
        heads = signs.heads & own
        before_slash = heads & ones_below(size_of(doubled & own))
        characters = count_ones(heads)
        is_url = count_ones(before_slash) > 4 or (dotted & own and characters > 4)
        if is_url:
            form[Form.URL_CHARACTERS] += np.int64(characters)
        elif odd & (end + ONE) or characters > LONG_WORD:
            form[Form.ODD_CHARACTERS] += np.int64(characters)


@njit(**INLINED)
def count_word(word: Word, form: Integers) -> None:
    """Count a word that `read_word` returned."""
    characters, letters, digits, bits = word.characters, word.letters, word.digits, word.last_bits
    is_single = (bits & SINGLE) != 0 and characters == 1
    form[Form.DAMAGES] += word.damages
    form[Form.SINGLES] += is_single
    form[Form.LETTER_WORDS] += letters > 0 and not is_single
    form[Form.CASED_WORDS] += word.uppers > 0 and word.switches == 0
    form[Form.ONE_LETTER_WORDS] += letters == 1 and characters == 1 and not is_single
    form[Form.MARK_WORDS] += letters + digits == 0
    form[Form.NUMBERS] += digits > 0 and letters == 0
    form[Form.CLAUSE_WORDS] += (word.end_bits & CLAUSE) != 0
    is_mixed = word.runs > 1 or word.switches > 0 or (letters > 0 and digits > 0)
    if word.is_url:
        form[Form.URL_CHARACTERS] += characters
    elif is_mixed or characters > LONG_WORD:
        form[Form.ODD_CHARACTERS] += characters


WINDOW = 128  # words
GRAM = 4  # words
SLOT_BITS = 10
SLOTS = 1 << SLOT_BITS  # of a window's table: an eighth full at most


class Seen(NamedTuple):
    """Copies of the words of a window, which are numbered from 1; 0 for none."""

    lasts: Bytes  # the last copy of each word so far, uint8 [SLOTS], by hash
    before: Bytes  # the copy before each word, uint8 [WINDOW + 1]


@njit(**KERNEL)
def count_windows(hashes: Hashes, size: int, work: tuple[Hashes, Seen], form: Integers) -> None:
    """Count the first `size` words in windows; the last one if it is half full or the only one.

    work: the keys of a window, uint64 [WINDOW + 1], and copies, all zeros, as afterwards.
    """
    keys, seen = work
    for first in range(0, size, WINDOW):
        own = min(size - first, WINDOW)
        if 2 * own >= WINDOW or first == 0:
            for i in range(own):
                keys[uint64(i) + ONE] = hashes[uint64(first + i)]
            _count_window(keys, own, seen, form)


@njit(**KERNEL)
def _count_window(keys: Hashes, size: int, seen: Seen, form: Integers) -> None:
    """Count the words, numbered from 1, that are new, and the runs of GRAM that are not.

    keys: uint64, from 1 on; the first is overwritten. seen: all zeros, as it is again afterwards.
    """
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
    form[Form.WINDOW_WORDS] += size
    form[Form.WINDOW_DISTINCT] += distinct
    form[Form.WINDOW_REPEATED] += repeated


@njit(**INLINED)
def _is_repeated(keys: Hashes, before: Bytes, last: int) -> int:
    """Return 1 if the GRAM words that end at `last` are in the window before, too, else 0."""
    at = uint64(before[last])
    # From copy to copy of the last word, at most WINDOW of them.
    while at >= GRAM:
        is_equal = True
        for i in range(1, GRAM):
            is_equal &= keys[at - uint64(i)] == keys[last - uint64(i)]
        if is_equal:
            return 1
        at = uint64(before[at])
    return 0
