"""Tell source code from prose without a language or a file name.

Method: a line's evidence is a weighted sum of a few signs (a call, an operator between blanks,
words between blanks, a semicolon at the end, an indent); a text's score is the logistic of their
mean, and its share of code the characters of the lines on the best path through prose and code.
The weights are a logistic regression of lines of source files against lines of novels, textbooks,
articles, reviews, LaTeX and user help (benchmarks/code_accuracy.py fits and measures it).
Trade-off: no grammar. A file that is mostly documentation scores as prose, a page of signatures as
code; tables of data and markup count as code, mathematics in LaTeX as prose.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.filtered.code_signals import KEYWORDS
from assets.text.buffers import text_buffers
from resources.made_once import made_once

if TYPE_CHECKING:
    from assets.filtered.kernels.code_lines import Lexicon

# Classes of bytes, each with its sign: lower and upper case are a and A, other letters é.
_CLASSES = {
    "a": "abcdefghijklmnopqrstuvwxyz",
    "A": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0": "0123456789",
    "_": "_",
    "(": "(",
    ".": ".",
    "=": "=<>+*&|^~%/",
    ")": ")[]{}",
    ";": ";",
    '"': "\"'`",
    ",": ",:?!-",
    "\\": "\\",
    "$": "$@#",
}
_BLANK, _OTHER, _EDGE = " ", "é", "^"  # before a line is its edge
_ALL = 'aA0_(.=);",\\$ é^'
# Weights per byte of pairs of neighbours: classes of the first, of the second.
PAIRS = {
    "a word begins": (" ", "aAé", -17.0),
    "mark": (_ALL, "=);_(", 4.0),
    "call": ("aA0_", "(", 11.0),
    "underscore": (_ALL, "_", 2.0),
    "inner capital": ("a", "A", 15.0),
    "inner dot": (".", "aA_", 25.0),
    "TeX command": ("\\", "aA", -21.0),
    "quote": (_ALL, '"', 17.0),
    "digit": (_ALL, "0", -2.0),
    "punctuation": (_ALL, ".,", -1.0),
    "other letter": (_ALL, "é", -11.0),
}
# Weights of the members of the kernel's `Sign`.
SIGNS = {
    "BIAS": -1.3,
    "KEYWORD": 3.3,
    "INDENT": 2.0,
    "LOWER_CASE": 1.5,
    "SEMICOLON": 3.2,
    "BRACE": 1.0,
    "BRACKET": 0.5,
    "COMMA": 1.0,
    "FULL_STOP": -2.0,
}
_ENDINGS = {"SEMICOLON": ";", "BRACE": "{}", "BRACKET": ")]", "COMMA": ",", "FULL_STOP": ".?!"}
# First words of lines besides KEYWORDS: of shells, SQL and Lua or Ruby.
_FIRST_WORDS = (
    *("ALTER", "CREATE", "DELETE", "DROP", "FROM", "INSERT", "SELECT", "UPDATE", "VALUES", "WHERE"),
    *("done", "echo", "elif", "end", "endfor", "esac", "exit", "export", "fi", "fun", "local"),
    *("my", "print", "printf", "set", "sub", "then", "unset"),
)
_NAMES = ("evidence", "lines", "code", "characters")  # of the kernel's columns
SLOPE, MIDDLE = 2.8, 0.7  # of the logistic; MIDDLE: mean evidence at which the score is a half


def score_code(texts: pl.Series) -> pl.DataFrame:
    """Return code_score and code_text_share (Float64, 0 to 1) of each text (no nulls), in order.

    code_score is near 1 for source code. code_text_share is the share of characters in stretches of
    code and between Markdown fences. Both are 0 for a text without a line.
    """
    from assets.filtered.kernels.code_lines import find_code

    data, starts = text_buffers(texts)
    found = np.zeros((len(texts), 4))
    find_code(starts, data, lexicon(), found)
    share = (pl.col("code") / pl.col("characters").clip(lower_bound=1)).alias("code_text_share")
    return _as_table(found, _NAMES).select(_score(), share)


def is_code(texts: pl.Series, most: float) -> pl.Series:
    """Check each text for a code_score above `most`, 0 to 1 (Boolean).

    It is read until that is certain, which takes half of the time.
    """
    from assets.filtered.kernels.code_lines import weigh_texts

    data, starts = text_buffers(texts)
    found = np.zeros((len(texts), 2))
    border = MIDDLE + (np.log(most / (1 - most)) / SLOPE if 0 < most < 1 else np.inf * (most - 0.5))
    weigh_texts(starts, data, lexicon(), border, found)
    return _as_table(found, _NAMES[:2]).select(_score() > most).to_series()


def _as_table(found: NDArray[np.float64], names: Sequence[str]) -> pl.DataFrame:
    columns = dict(zip(names, found.T, strict=True))
    return pl.DataFrame(columns, dict.fromkeys(names, pl.Float64))


@cache
def _score() -> pl.Expr:
    evidence, lines = pl.col("evidence"), pl.col("lines")
    mean = evidence / lines.clip(lower_bound=1)
    score = 1 / (1 + (-SLOPE * (mean - MIDDLE)).exp())
    return pl.when(lines > 0).then(score).otherwise(evidence).alias("code_score")


@made_once
def lexicon() -> "Lexicon":
    """Return the kernel's tables of the weights above."""
    from assets.filtered.kernels.code_counts import hash_words
    from assets.filtered.kernels.code_lines import Lexicon, Sign

    signs = [SIGNS[sign.name] for sign in Sign]
    endings = np.zeros(256, np.uint8)
    for name, characters in _ENDINGS.items():
        endings[list(characters.encode())] = Sign[name]
    keywords = hash_words(sorted({*KEYWORDS, *_FIRST_WORDS}))
    weights = pair_weights([weight for _, _, weight in PAIRS.values()])
    pairs = weights.astype(np.int8)
    assert (pairs == weights).all(), "the kernel adds whole numbers from -128 to 127"
    return Lexicon(pairs, np.array(signs), endings, keywords)


def _number(name: str) -> int:
    """Return the number of a class."""
    return [_EDGE, *_CLASSES, _BLANK, _OTHER].index(name)


def _byte_classes() -> NDArray[np.uint8]:
    classes = np.full(256, _number(_OTHER), np.uint8)
    classes[: ord(" ") + 1] = _number(_BLANK)
    classes[ord("\n")] = _number(_EDGE)
    for name, characters in _CLASSES.items():
        classes[list(characters.encode())] = _number(name)
    return classes


def pair_weights(weights: list[float]) -> NDArray[np.float64]:
    """Return the weight of every pair of bytes, float64 [65536], from one weight for each of PAIRS.

    That of `first` before `second` is at first + 256 * second.
    """
    table = np.zeros((len(_ALL), len(_ALL)))
    for (firsts, seconds, _), weight in zip(PAIRS.values(), weights, strict=True):
        for first in firsts:
            table[[_number(second) for second in seconds], _number(first)] += weight
    classes = _byte_classes()
    return table[np.ix_(classes, classes)].ravel()
