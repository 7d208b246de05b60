"""Search for the phrases that mark a line, in any case of ASCII letters.

Only rows that the caller flagged (by one cheap regex over the column) are searched.
"""
# mypy: disable-error-code="untyped-decorator, no-any-return"

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from assets.text.kernels.compiling import ARRAY_KERNEL

Bytes = NDArray[np.uint8]

# Phrases of the C4 reference code, of RefinedWeb as DCLM reads it, and the nouns of counters.
PHRASES = (
    "lorem ipsum/javascript/terms of use/privacy policy/cookie policy/uses cookies/use of cookies/"
    "use cookies/edit]/citation needed]/items in cart/sign-in/read more.../read more…/likes/shares/"
    "comments/retweets/reposts/quotes/bookmarks/upvotes/downvotes/downloads/views/followers"
)
LOREM, JAVASCRIPT, FIRST_POLICY, EDIT, CITATION_NEEDED = 0, 1, 2, 8, 9
ITEMS_IN_CART, SIGN_IN, READ_MORE, READ_MORE_CHARACTER, FIRST_COUNTED = 10, 11, 12, 13, 14
_encoded = PHRASES.encode().split(b"/")
NUM_PHRASES = len(_encoded)
FIRST_LETTERS = np.array([phrase[0] for phrase in _encoded], np.uint8)
PHRASE_BYTES = np.frombuffer(b"".join(_encoded), np.uint8)
PHRASE_STARTS = np.cumsum([0, *(len(phrase) for phrase in _encoded)])


@njit(**ARRAY_KERNEL)
def begins(text: Bytes, i: int, stop: int, phrase: int, fold: bool) -> int:
    """Return the end of a phrase at byte `i`, 0 if the text differs; `fold` ignores ASCII case."""
    first, last = PHRASE_STARTS[phrase], PHRASE_STARTS[phrase + 1]
    if stop - i < last - first:
        return 0
    for at in range(first, last):
        byte = text[i + at - first]
        if fold and 0x41 <= byte <= 0x5A:
            byte |= np.uint8(0x20)
        if byte != PHRASE_BYTES[at]:
            return 0
    return i + last - first


@njit(**ARRAY_KERNEL)
def phrases_in(text: Bytes, start: int, stop: int) -> int:
    """Return 1 << LOREM, JAVASCRIPT or FIRST_POLICY, ORed, for phrases in text[start:stop]."""
    bits, end = 0, uint64(stop)
    for i in range(uint64(start), end):
        letter = text[i] | np.uint8(0x20)
        for phrase in range(EDIT):
            if letter == FIRST_LETTERS[phrase] and begins(text, np.int64(i), stop, phrase, True):
                bits |= 1 << min(phrase, FIRST_POLICY)
    return bits
