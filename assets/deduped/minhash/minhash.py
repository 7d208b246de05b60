"""What two documents are compared by: their words, and MinHash signatures of runs of words.

Purpose: the definitions of deduplication, and the way from a column of texts to arrays of numbers.
A *word* is a maximal run of letters, digits, marks and underscores (`str.isalnum`, category M,
`_`); each Han ideograph, kana, Thai, Lao, Khmer or Myanmar character is a word by itself, as these
scripts put no spaces between words. Everything else separates. Code points of planes 2 and 3 are
ideographs, those of planes 4 to 16 separate. With punctuation kept only white space (`str.isspace`)
separates. A *shingle* is `ngram` words, one blank apart, or so many characters (code points) of all
words, one blank apart; a shorter text is one shingle.
Trade-off: signatures are datasketch 2.0's (scheme `affine32`, hash XXH32), bit for bit, so that
they can be checked and used elsewhere; datasketch itself, at 7 to 30 MB/s, is left to the tests.
Price: 290 MB of text per second and core (EPYC with AVX-512, prose to code), sets of shingles 115.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from assets.text.buffers import TextBuffers, blocks, code_point_entries, text_buffers

if TYPE_CHECKING:  # the config imports stages that take their words from here
    from resources.settings.dedup import DedupConfig


JoinedWords = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]


@cache
def permutations(num_values: int, seed: int) -> NDArray[np.uint32]:
    """Odd factors and increments, uint32 [2, num_values], drawn as datasketch draws them.

    Source: `MinHash._init_permutations` of datasketch 2.0, scheme `affine32`.
    """
    generator = np.random.RandomState(seed)
    factors = generator.randint(0, 1 << 31, num_values, dtype=np.uint32)
    increments = generator.randint(0, 1 << 32, num_values, dtype=np.uint32)
    return np.stack([factors * np.uint32(2) + np.uint32(1), increments])


def joined_words(texts: TextBuffers, config: DedupConfig) -> Iterator[tuple[slice, JoinedWords]]:
    """Rows of each block of texts, and what `join_words` makes of it, as the config says."""
    from assets.text.kernels.words import join_words

    entries = code_point_entries(config.lowercase, config.punctuation)
    for rows, block in blocks(texts[1]):
        yield rows, join_words(texts[0], block, entries)


def sketch_words(words: JoinedWords, config: DedupConfig) -> NDArray[np.uint32]:
    """Signatures, uint32 [n, bands * rows], of a block of texts.

    The signature of a text without words is 2**32 - 1 everywhere.
    """
    from assets.deduped.kernels.minhash_sketch import sketch

    permuted = permutations(config.num_values, config.seed)
    values: NDArray[np.uint32] = sketch(*words, permuted, shingle_of(config))
    return values


def shingle_of(config: DedupConfig) -> tuple[int, bool]:
    """Words or characters in a shingle, and whether it is characters."""
    return config.ngram, config.shingle == "characters"


def shingle_sets(
    texts: pl.Series, config: DedupConfig
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes, uint64, of each text's shingles, sorted, each once; offsets, int64 [n + 1].

    Text i has values[offsets[i] : offsets[i + 1]]; a null text and one without words has none.
    """
    from assets.deduped.kernels.shingle_sets import hash_sets

    values, sizes = [np.empty(0, np.uint64)], [np.zeros(1, np.int64)]
    for _, words in joined_words(text_buffers(texts.fill_null("")), config):
        block, offsets = hash_sets(*words, shingle_of(config))
        values.append(block)
        sizes.append(np.diff(offsets))
    return np.concatenate(values), np.cumsum(np.concatenate(sizes))
