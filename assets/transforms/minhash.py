"""What two documents are compared by: their words, and MinHash signatures of runs of words.

Purpose: the definitions of deduplication, and the way from a column of texts to arrays of numbers.
A *word* is a maximal run of letters, digits, marks and underscores (`str.isalnum`, category M,
`_`); each Han ideograph, kana, Thai, Lao, Khmer or Myanmar character is a word by itself, as these
scripts put no spaces between words. Everything else separates. Code points of planes 2 and 3 are
ideographs, those of planes 4 to 16 separate. A *shingle* is `ngram_words` words, one blank apart;
a shorter text is one shingle.
Trade-off: signatures are datasketch 2.0's (scheme `affine32`, hash XXH32), bit for bit, so that
they can be checked and used elsewhere; datasketch itself, at 7 to 30 MB/s, is left to the tests.
Price: 125 to 165 MB of text per second and core (2.5 GHz Xeon, prose to code).
"""

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

# Blocks of scripts written without spaces (https://www.unicode.org/Public/UNIDATA/Blocks.txt).
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # CJK extension A
    (0x4E00, 0x9FFF),  # CJK unified ideographs
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xF900, 0xFAFF),  # CJK compatibility ideographs
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x116D0, 0x116FF),  # Myanmar extended C
    (0x1AFF0, 0x1B16F),  # Kana extended and supplement
)
_BLOCK_TEXTS = 256

TextBuffers = tuple[NDArray[np.uint8], NDArray[np.int64]]
_TABLE_SIZE = 0x20000  # planes 0 and 1; the kernel knows a rule for the rest


class DedupConfig(BaseModel):
    """When two documents count as duplicates."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exact: bool = Field(
        default=True, description="Find texts that are equal up to whitespace, by a 128-bit hash."
    )
    near: bool = Field(
        default=True, description="Find texts that share most shingles, by MinHash and LSH."
    )
    ngram_words: int = Field(default=5, ge=1, le=50, description="Words in a shingle.")
    bands: int = Field(
        default=14,
        ge=1,
        le=100,
        description="LSH bands: documents are linked if they agree in any band.",
    )
    rows: int = Field(
        default=8,
        ge=1,
        le=64,
        description="Signature values in a band: all must agree. More is stricter.",
    )
    seed: int = Field(
        default=1, ge=0, le=2**32 - 1, description="Seed of the MinHash permutations."
    )

    @property
    def num_perm(self) -> int:
        """Values in a signature."""
        return self.bands * self.rows


def normalized_text(texts: pl.Series) -> pl.Series:
    """Texts as words are cut from them: lower-cased by Polars, one code point for each.

    Two letters would depend on their place or become two: İ is lower-cased to i, and the final
    sigma ς to σ. Null stays null.
    """
    lowered = texts.str.replace_all("İ", "i", literal=True).str.to_lowercase()
    return lowered.str.replace_all("ς", "σ", literal=True)


@cache
def code_point_entries() -> NDArray[np.uint32]:
    """Entry of each code point below 0x20000, uint32: see `kernels.words`; takes 0.1 s once.

    Categories are those of Python's `unicodedata`: a new Unicode version may turn a code point that
    was not assigned before from a separator into a letter.
    """
    from assets.transforms.kernels.words import BLANK, SINGLE, SPACE, WORD

    characters = [chr(c) if not 0xD800 <= c < 0xE000 else " " for c in range(_TABLE_SIZE)]
    lowered = "".join(normalized_text(pl.Series(characters)).to_list())
    is_word = np.array([_is_word_character(character) for character in characters])
    is_space = np.array([character.isspace() for character in characters])
    entries = np.where(is_word, np.frombuffer(lowered.encode("utf-32-le"), np.uint32), BLANK)
    entries = entries | np.where(is_word, WORD, 0) | np.where(is_space, SPACE, 0)
    for first, last in _UNSPACED:
        entries[first : last + 1] |= np.where(is_word[first : last + 1], SINGLE, 0)
    return entries.astype(np.uint32)


def _is_word_character(character: str) -> bool:
    return (
        character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
    )


def permutations(config: DedupConfig) -> NDArray[np.uint32]:
    """Odd factors and increments, uint32 [2, num_perm], drawn as datasketch draws them.

    Source: `MinHash._init_permutations` of datasketch 2.0, scheme `affine32`.
    """
    generator = np.random.RandomState(config.seed)
    factors = generator.randint(0, 1 << 31, config.num_perm, dtype=np.uint32)
    increments = generator.randint(0, 1 << 32, config.num_perm, dtype=np.uint32)
    return np.stack([factors * np.uint32(2) + np.uint32(1), increments])


def text_buffers(texts: pl.Series) -> TextBuffers:
    """UTF-8 bytes and offsets, int64 [n + 1], of n texts without nulls, as Arrow holds them."""
    array: Any = texts.to_arrow()
    _, offsets, data = array.buffers()
    if len(texts) == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return held, np.frombuffer(offsets, np.int64)[: len(texts) + 1]


def blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Rows and offsets of runs of 256 texts: what is made of one run stays in the cache."""
    for first in range(0, len(offsets) - 1, _BLOCK_TEXTS):
        block = offsets[first : first + _BLOCK_TEXTS + 1]
        yield slice(first, first + len(block) - 1), block


def minhash(
    texts: TextBuffers, config: DedupConfig
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Number of words, int64 [n], and signatures, uint32 [n, num_perm], of n texts.

    The signature of a text without words is 2**32 - 1 everywhere; without `near`, of every text.
    """
    from assets.transforms.kernels.minhash import sketch
    from assets.transforms.kernels.words import join_words

    data, offsets = texts
    entries, permuted = code_point_entries(), permutations(config)
    num_words = np.empty(len(offsets) - 1, np.int64)
    values = np.full((len(num_words), config.num_perm), 2**32 - 1, np.uint32)
    for rows, block in blocks(offsets):
        joined, starts, word_offsets = join_words(data, block, entries)
        num_words[rows] = np.diff(word_offsets)
        if config.near:
            values[rows] = sketch(joined, starts, word_offsets, permuted, config.ngram_words)
    return num_words, values
