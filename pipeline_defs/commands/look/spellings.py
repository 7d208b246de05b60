"""The spellings that a search without case takes as one string, as a regular expression.

They are those with the same full case folding of Unicode (ß as SS, ς as Σ), composed (NFC) or
decomposed (NFD). A pattern finds them in texts as they are, at the speed of an exact search; to
fold and compose 1 GB of text took Polars 50 s.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import polars as pl

LAST_CASED = 0x1E943
MOST_FOLDED = 3  # characters that one folds to
MOST_SHARED = 8  # characters in a row of which ligatures overlap, as in "fffi": ways double
# Marks that would belong to the last letter: "cafe" is not found in "café", decomposed or not.
NO_MARK = "(?:[^\u0300-\u036f\u11a8-\u11ff\u3099\u309a]|$)"


def spellings(text: str) -> str:
    """Return the regular expression, for Polars, of all spellings of a string."""
    text, start, pattern = folded(text), 0, ""
    while start < len(text):
        stop, at = start + 1, start
        while at < stop and stop - start < MOST_SHARED:
            stop = max(stop, *(at + len(one) for one in tokens(text, at)))
            at += 1
        pattern += either(ways(text[start:stop]))
        start = stop
    return pattern + NO_MARK


def folded(text: str) -> str:
    """Return a text in its full case folding, composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


@cache
def characters_by_folding() -> dict[str, list[str]]:
    """Return the characters that fold to something else, by what they fold to."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for one in map(chr, range(LAST_CASED + 1)):
        if (key := folded(one)) != one:
            found[key].append(one)
    return dict(found)


def tokens(text: str, at: int) -> Iterator[str]:
    """Yield the next character of a folded text, and what begins there that one folds to."""
    yield text[at]
    for size in range(2, MOST_FOLDED + 1):
        if (one := text[at : at + size]) in characters_by_folding() and len(one) == size:
            yield one


def ways(text: str) -> Iterator[str]:
    """Yield a pattern for each way to cut a folded text into what single characters fold to."""
    for one in tokens(text, 0) if text else ():
        yield from (spelled(one) + rest for rest in ways(text[len(one) :]))
    if not text:
        yield ""


def spelled(token: str) -> str:
    """Return the pattern of what folds to a token as a whole."""
    same = [token, *characters_by_folding().get(token, ())]
    forms = [unicodedata.normalize("NFD", one) for one in same]
    patterns = [pl.escape_regex(one) for one in dict.fromkeys([*same, *forms])]
    if len(token) < len(forms[0]):  # its base may be a capital that is composed with no mark
        patterns.append("".join(map(spelled, forms[0])))
    return either(patterns)


def either(patterns: Iterator[str] | list[str]) -> str:
    """Return the pattern of any of some patterns."""
    return f"(?:{'|'.join(patterns)})"
