"""Words, shingles and MinHash signatures of a column of texts.

Purpose: the definitions that deduplication compares documents by.
A *word* is a maximal run of letters, digits, marks and underscores (`str.isalnum`, category M,
`_`). Each Han ideograph, kana, Thai, Lao, Khmer or Myanmar character is a word by itself, because
these scripts put no spaces between words. All other characters separate words. Code points of
planes 2 and 3 are ideographs; those of planes 4 to 16 separate. If punctuation is kept, only white
space (`str.isspace`) separates.
A *shingle* is `ngram` consecutive words, joined by blanks, or `ngram` consecutive characters (code
points) of all words joined by blanks. A shorter text is one shingle.
A licence header of source code has no words here: it would make copies of small files.
Trade-off: signatures equal those of datasketch 2.0 (scheme `affine32`, hash XXH32) bit for bit, so
they can be checked and used elsewhere. datasketch itself is too slow and only used in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import TextBuffers, blocks, code_point_entries, text_buffers
from assets.text.table_rows import change_where

if TYPE_CHECKING:  # the config imports stages that import this module
    from resources.settings.dedup import DedupConfig


JoinedWords = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]

_LICENCE = "(?:(?i-u:copyright|licen[sc]e|spdx-)|\u00a9)"
# Of an interpreter, guards, other short comments: they go, too, since groups of a match are slow.
_LINES_BEFORE = r"(?:\s*(?:#|//|<[?!]|/\*[^\n]*\*/)[^\n]*\n){0,9}?\s*"
_LINE_MARKS = ("#", "//", "--", ";", "%")
_BLOCKS = (  # begin, content, end
    (r"/\*", r"(?:[^*]|\*+[^*/])*", r"\*+/"),
    ("<!--", "(?:[^-]|-+[^->])*", "--+>"),
    ('"{3}', '(?:[^"]|"{1,2}[^"])*', '"{3}'),
)
_HEADER_CHARACTERS = 2000  # in which a header names a licence


def without_licence(texts: pl.Series) -> pl.Series:
    """Return texts (String, no nulls) without comments on copyright or licence at their beginning.

    A comment is a block, or a run of lines with one mark. A text without a letter behind its header
    stays as it is.
    """
    hint, header = _licence_header()

    def cut(rows: pl.Series) -> pl.Series:
        rest = rows.str.replace(header, "")
        return rest.zip_with(rest.str.contains(r"\pL"), rows)

    return change_where(texts, texts.str.slice(0, _HEADER_CHARACTERS).str.contains(hint), cut)


@cache
def _licence_header() -> tuple[str, str]:
    """Return patterns of a comment at the beginning before a licence, and of a whole header."""
    begins = "|".join([*_LINE_MARKS, *(begin for begin, _, _ in _BLOCKS), "<[?!]"])
    of_lines = (
        rf"(?:{mark}[^\n]*\n[ \t]*)*?{mark}[^\n]*?{_LICENCE}[^\n]*(?:\n[ \t]*{mark}[^\n]*)*"
        for mark in _LINE_MARKS
    )
    of_blocks = (f"{begin}{content}{_LICENCE}{content}{end}" for begin, content, end in _BLOCKS)
    comments = "|".join([*of_lines, *of_blocks])
    at = r"\A\x{feff}?"
    return rf"{at}\s*(?:{begins})[\s\S]*{_LICENCE}", rf"{at}{_LINES_BEFORE}(?:(?:{comments})\s*)+"


@cache
def permutations(num_values: int, seed: int) -> NDArray[np.uint32]:
    """Draw odd factors and increments, uint32 [2, num_values], as datasketch does.

    Source: `MinHash._init_permutations` of datasketch 2.0, scheme `affine32`.
    """
    generator = np.random.RandomState(seed)
    factors = generator.randint(0, 1 << 31, num_values, dtype=np.uint32)
    increments = generator.randint(0, 1 << 32, num_values, dtype=np.uint32)
    return np.stack([factors * np.uint32(2) + np.uint32(1), increments])


def joined_words(texts: TextBuffers, config: DedupConfig) -> Iterator[tuple[slice, JoinedWords]]:
    """Yield the rows of each block of texts and its words as `join_words` returns them.

    The config decides about case and punctuation.
    """
    from assets.text.kernels.words import join_words

    entries = code_point_entries(config.lowercase, config.punctuation)
    for rows, block in blocks(texts[1]):
        yield rows, join_words(texts[0], block, entries)


def sketch_words(words: JoinedWords, config: DedupConfig) -> NDArray[np.uint32]:
    """Return the signatures, uint32 [n, bands * rows], of a block of n texts.

    All values of a text without words are 2**32 - 1.
    """
    from assets.deduped.kernels.minhash_sketch import sketch

    permuted = permutations(config.num_values, config.seed)
    values: NDArray[np.uint32] = sketch(*words, permuted, shingle_of(config))
    return values


def shingle_of(config: DedupConfig) -> tuple[int, bool]:
    """Return the number of words or characters of a shingle, and True for characters."""
    return config.ngram, config.shingle == "characters"


def shingle_sets(
    texts: pl.Series, config: DedupConfig
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the sorted distinct shingle hashes of n texts, uint64, and offsets, int64 [n + 1].

    Text i has values[offsets[i] : offsets[i + 1]]: none if it is null or has no words.
    """
    return sets_and_edges(texts, config, 0)[:2]


def sets_and_edges(
    texts: pl.Series, config: DedupConfig, edge: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return `shingle_sets` of n texts, and the hashes of their first and last `edge` shingles.

    The latter are uint64 [n, 2 * edge].
    """
    from assets.deduped.kernels.shingle_sets import hash_sets

    values, sizes = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    edges = [np.empty((0, 2 * edge), np.uint64)]
    for _, words in joined_words(text_buffers(texts.fill_null("")), config):
        block, offsets, of_block = hash_sets(*words, shingle_of(config), edge)
        values.append(block)
        sizes.append(np.diff(offsets))
        edges.append(of_block)
    return np.concatenate(values), np.cumsum(np.concatenate(sizes)), np.concatenate(edges)
