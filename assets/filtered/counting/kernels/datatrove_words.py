"""Cut a text into a tokenizer's words, and count them as datatrove 0.10 does.

The tokens are those of `chunks.Tokens`. Sentences are those of spaCy's sentencizer: one begins at
the first token after an end mark that is no punctuation.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return, assignment, return-value"

from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.filtered.counting.kernels.chunks import FREE, Tokens, chunk_at, slot_of
from assets.filtered.kernels.text_words import SPACE
from assets.text.kernels.compiling import ARRAY_INLINED, ARRAY_KERNEL
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.utf8 import decode

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]

# Flags of a token: the first four are the tokenizer's, the others depend on what is before it.
PUNCTUATION_ONLY, ALPHABETIC, ENDS_SENTENCE, IS_PUNCTUATION, BEGINS_LINE, AFTER_BLANKS = (
    1 << bit for bit in range(6)
)
LINE_FEED, BLANK = 0x0A, 0x20
ONE = uint64(1)


class TokenCount(IntEnum):
    """Counts of tokens, in the order of the columns; numba takes the members as integers."""

    TOKENS = 0
    WORDS = auto()  # tokens that are not punctuation alone
    WORD_CHARACTERS = auto()
    ALPHABETIC_TOKENS = auto()
    STOP_WORDS = auto()  # different ones, as they are written
    SENTENCES = auto()  # of each line that is not blank


class TokenList(NamedTuple):
    """Room for the tokens of a text: its bytes without white space, and each token there.

    hashes: uint64 [n]; ends and characters: int64 [n], bytes and code points up to the token's end;
    flags: uint8 [n].
    """

    data: Bytes
    hashes: Hashes
    ends: Integers
    characters: Integers
    flags: Bytes


def room_for_tokens(num_bytes: int) -> TokenList:
    """Make room for the tokens of a text of up to `num_bytes`."""
    data, flags = np.empty(num_bytes, np.uint8), np.empty(num_bytes, np.uint8)
    ends, characters = np.empty(num_bytes, np.int64), np.empty(num_bytes, np.int64)
    return TokenList(data, np.empty(num_bytes, np.uint64), ends, characters, flags)


@njit(**ARRAY_KERNEL)
def cut_text(
    data: Bytes, span: tuple[int, int], kinds: Bytes, tokens: Tokens, room: TokenList
) -> int:
    """Fill `room` with the tokens of data[span], whose chunks the table has; count them."""
    at, stop = uint64(span[0]), uint64(span[1])
    total, size, characters = 0, 0, 0
    while True:
        at, before = _skip_space(data, at, stop, kinds)
        if at >= stop:
            return total
        if total == 0:
            before = BEGINS_LINE
        end, length, _ = chunk_at(data, at, stop, kinds)
        key = hash_bytes(data, at, end)
        slot = slot_of(tokens.keys, tokens.firsts, key)
        first = tokens.firsts[slot]
        is_single = first == FREE or tokens.keys[slot] != key  # a chunk of letters
        for i in range(1 if is_single else tokens.lengths[slot]):
            width = np.int64(end - at) if is_single else tokens.sizes[first + i]
            after = at + uint64(width)
            room.hashes[total] = key if is_single else hash_bytes(data, at, after)
            room.flags[total] = before | (ALPHABETIC if is_single else tokens.flags[first + i])
            characters += length if is_single else tokens.characters[first + i]
            room.characters[total] = characters
            for source in range(at, after):
                room.data[size] = data[source]
                size += 1
            room.ends[total] = size
            total, before, at = total + 1, 0, after
        at = end


@njit(**ARRAY_INLINED)
def _skip_space(data: Bytes, at: int, stop: int, kinds: Bytes) -> tuple[int, int]:
    """Return the end of the white space at byte `at`, and the flags of the token after it.

    spaCy hangs one blank on the token before it; the rest of the line's white space is a token.
    """
    first, flags, width_before = at, 0, uint64(0)
    while at < stop:
        code, width = decode(data, at)
        if not kinds[code] & SPACE:
            break
        if code == LINE_FEED:
            flags = BEGINS_LINE
        elif not flags:
            width_before += uint64(width)
        at += width
    if width_before > ONE or (width_before == ONE and data[first] != BLANK):
        flags |= AFTER_BLANKS
    return at, flags


@njit(**ARRAY_KERNEL)
def count_tokens(text: TokenList, total: int, stop_words: Hashes, counts: Integers) -> None:
    """Fill `counts`, int64 [TokenCount], from the first tokens of a list.

    `stop_words` is sorted, uint64: hashes of words that are different.
    """
    found = np.zeros(len(stop_words), np.uint8)
    after_end, before = False, 0
    for i in range(total):
        flags, characters = np.int64(text.flags[i]), text.characters[i]
        is_word = not flags & PUNCTUATION_ONLY
        counts[TokenCount.WORDS] += is_word
        counts[TokenCount.WORD_CHARACTERS] += is_word * (characters - before)
        counts[TokenCount.ALPHABETIC_TOKENS] += (flags & ALPHABETIC) != 0
        before = characters
        if len(stop_words):
            place = np.searchsorted(stop_words, text.hashes[i])
            if place < len(stop_words) and stop_words[place] == text.hashes[i]:
                found[place] = 1
        begins, after_end = _sentence_begins(flags, after_end)
        counts[TokenCount.SENTENCES] += begins
    counts[TokenCount.TOKENS] = total
    counts[TokenCount.STOP_WORDS] = found.sum()


@njit(**ARRAY_INLINED)
def _sentence_begins(flags: int, after_end: bool) -> tuple[int, bool]:
    """Return the sentences that begin with a token or the blanks before it; is it after an end?"""
    begins = 0
    if flags & AFTER_BLANKS and after_end:
        begins, after_end = 1, False
    if flags & BEGINS_LINE:
        begins, after_end = begins + 1, False
    if flags & ENDS_SENTENCE:
        return begins, True
    if after_end and not flags & IS_PUNCTUATION:
        return begins + 1, False
    return begins, after_end
