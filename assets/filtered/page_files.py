"""Files behind the scores of pages: weights of the models, and lists of words."""

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from resources.made_once import made_once

DATA = Path(__file__).parent / "data"
KINDS_FILE = DATA / "page_kinds.json"
WORDS_FILE = DATA / "page_words.json"
KINDS = (
    *("boilerplate", "navigation", "keyword_spam", "link_lists"),
    *("machine_noise", "truncated_pages"),
)


class Models(NamedTuple):
    """Weights [terms + 1, kinds], the first of them the bias, and the names behind each term."""

    weights: NDArray[np.float64]
    terms: tuple[tuple[str, ...], ...]
    letter_pairs: NDArray[np.uint8]


@made_once
def load_models() -> Models:
    """Read the weights, once per process."""
    content = json.loads(KINDS_FILE.read_text())
    weights = content["weights"]
    if tuple(content["kinds"]) != KINDS:
        raise ValueError(f"{KINDS_FILE} has the kinds {content['kinds']}, expected {KINDS}")
    pairs = np.array([int(digit) for row in content["letter_pairs"] for digit in row], np.uint8)
    terms = tuple(tuple(name.split("*")) for name in list(weights)[1:])
    return Models(np.array(list(weights.values()), np.float64), terms, pairs)


class PageWords(msgspec.Struct, frozen=True):
    """Content of data/page_words.json, by language; a text is held against all of them.

    function_words: articles, prepositions, pronouns ..., a third to a half of prose in most
    languages, next to nothing of menus, keywords and noise. frame_phrases: what surrounds the text
    of a page. notice_phrases: what pages say that have no text, and spam. more_patterns: links at
    the end of a teaser.
    """

    function_words: dict[str, str]
    frame_phrases: dict[str, list[str]]
    notice_phrases: dict[str, list[str]]
    more_patterns: list[str]


@made_once
def load_words() -> PageWords:
    """Read the lists, once per process."""
    return msgspec.json.decode(WORDS_FILE.read_bytes(), type=PageWords)
