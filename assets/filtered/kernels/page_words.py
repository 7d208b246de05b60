"""Count words, their characters, and what repeats itself within windows of WINDOW words.

Method: what a run of ones of a mask holds is found by an addition, whose carry marks the place
after the run. Only words that may be addresses or noise are looked at one by one. In windows, words
are compared by hashes: a small table has the number, from 1, of the last copy of each word, so that
a run of GRAM words is compared with the earlier places of its last word. Repetition within windows
does not grow with the length of the text.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.kernels.sign_masks import (
    CLAUSE,
    CLOSING,
    DAMAGE,
    DIGIT,
    JOINT,
    LETTER,
    SINGLE,
    SPACE,
    UPPER,
    Bytes,
    Classes,
    Form,
    Integers,
    Signs,
)
from assets.text.kernels.compiling import INLINED, KERNEL
from assets.text.kernels.hashing import INCREMENT, absorb
from assets.text.kernels.many_bytes import (
    EIGHT,
    ONE,
    count_ones,
    first_one,
    held,
    ones_below,
    read_8,
    read_some,
    run_on,
    size_of,
)
from assets.text.kernels.utf8 import decode
from assets.text.kernels.words import mark_byte

DOT, SLASH, W, SMALL_W = (ord(sign) for sign in "./Ww")
LONG_WORD = 30  # characters; longer ones are no words of spaced scripts


@njit(**INLINED)
def count_signs(signs: Signs, counts: Integers) -> None:
    """Count the characters and words of a mask."""
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
def count_odd(data: Bytes, at: int, signs: Signs, counts: Integers) -> None:
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
            counts[Form.URL_CHARACTERS] += np.int64(characters)
        elif odd & (end + ONE) or characters > LONG_WORD:
            counts[Form.ODD_CHARACTERS] += np.int64(characters)


@njit(**KERNEL)
def read_word(
    data: Bytes, span: tuple[int, int], classes: Classes, counts: Integers
) -> tuple[int, int, int]:
    """Count a word; return its end, its characters, and the class of the last but for closings."""
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
        slashes |= np.int64(code == SLASH) & np.int64(last == SLASH) & np.int64(characters > 4)
        before, last = before if bits & JOINT else bits, code
        end_bits = end_bits if bits & CLOSING else bits
        if bits & SINGLE:
            break
    is_url = slashes != 0 or (
        characters > 4 and data[start] | 0x20 == SMALL_W and data[start + uint64(3)] == DOT
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


@njit(**INLINED)
def _has(bits: int, bit: int) -> int:
    """Return 1 if a bit is set, else 0, without a branch."""
    return np.int64((bits & bit) != 0)


Hashes = NDArray[np.uint64]

WINDOW = 128  # words
GRAM = 4  # words
SLOT_BITS = 10
SLOTS = 1 << SLOT_BITS  # of a window's table: an eighth full at most


class Seen(NamedTuple):
    """Copies of the words of a window, which are numbered from 1; 0 for none."""

    lasts: Bytes  # the last copy of each word so far, uint8 [SLOTS], by hash
    before: Bytes  # the copy before each word, uint8 [WINDOW + 1]


@njit(**INLINED)
def hash_words(data: Bytes, at: int, signs: Signs, keys: Hashes, count: int) -> int:
    """Append the hashes of the words of a mask to the first `count`; return their new number.

    keys: uint64 [1 + WINDOW + 64], from 1 on.
    """
    words, singles = signs.words, signs.singles
    # Of a single `words` has the second byte alone: its hash begins before it, and ends behind.
    starts = words & ~(words << ONE) ^ (singles | singles >> ONE)
    ends = ~words & (words << ONE) ^ (singles << ONE | singles << uint64(2))
    while starts:
        first, size = at + first_one(starts), first_one(ends) - first_one(starts)
        starts &= starts - ONE
        ends &= ends - ONE
        count += ONE
        if size <= uint64(16):
            low, high = read_8(data, first), read_8(data, first + EIGHT)
            # Bits of the last number that are behind the word.
            unused = EIGHT * (EIGHT - size & uint64(7))
            is_long = size > EIGHT
            low &= ~uint64(0) if is_long else ~uint64(0) >> unused
            high &= ~uint64(0) >> unused if is_long else uint64(0)
            keys[count] = _key_of(size, low, high)
        else:
            keys[count] = hash_word(data, first, first + size)
    return count


@njit(**INLINED)
def _key_of(size: int, low: int, high: int) -> int:
    return absorb(absorb(size * INCREMENT, low), high) * INCREMENT


@njit(**KERNEL)
def hash_word(data: Bytes, start: int, stop: int) -> int:
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
def count_full_window(keys: Hashes, num_keys: int, seen: Seen, counts: Integers) -> int:
    """Count WINDOW of the hashes, if there are as many, and return the number of those left."""
    if num_keys >= uint64(WINDOW):
        count_window(keys, WINDOW, seen, counts)
        num_keys -= uint64(WINDOW)
        for i in range(num_keys):
            keys[uint64(i) + ONE] = keys[uint64(i) + uint64(WINDOW + 1)]
    return num_keys


@njit(**KERNEL)
def count_window(keys: Hashes, size: int, seen: Seen, counts: Integers) -> None:
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
    counts[Form.WINDOW_WORDS] += size
    counts[Form.WINDOW_DISTINCT] += distinct
    counts[Form.WINDOW_REPEATED] += repeated


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
