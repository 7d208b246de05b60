"""Words, shingles and signatures against slow and obvious references."""

import unicodedata
from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest
import xxhash
from datasketch import MinHash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from assets.transforms.kernels.minhash import hash_bands, xxh32
from assets.transforms.kernels.words import join_words
from assets.transforms.minhash import (
    DedupConfig,
    code_point_entries,
    minhash,
    normalized_text,
    permutations,
    text_buffers,
)

SMALL = DedupConfig(bands=4, rows=4, ngram_words=3)
UNSPACED = (
    *("THAI", "LAO", "KHMER", "MYANMAR", "CJK UNIFIED", "CJK COMPATIBILITY"),
    *("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA", "IDEOGRAPHIC NUMBER"),
)
MORE_UNSPACED = "々〆ー\u3099\u309a"
LANGUAGES = [
    "The quick brown fox jumps over the lazy dog.",
    "ÜBER-Größe: ĐẶC BIỆT İstanbul ΟΔΟΣ ὈΔΥΣΣΕΎΣ Ⱥ K",
    "机器学习是人工智能的一个分支。深度学习",
    "吾輩は猫である。名前はまだ無い。ｶﾀｶﾅ",
    "สวัสดีชาวโลก ๑๒๓ ฿100",
    "हिन्दी भाषा में लिखा हुआ पाठ",
    "السلام عليكم ورحمة الله",
    "𝒜𝓁𝑔𝑒𝒷𝓇𝒶 𐐀𐐁 𠀀𠀁 🎉🎉 \U000e0100",
    "नमस्ते\u0301 \u0301 \u0301\u0302 a\u0301b",
    "NUL\x00in\x00side \x1c\x85\u00a0 _under_score_ ½ ² x²",
    "",
    " \n\t ",
    "?!...",
]
any_text = st.text(max_size=200) | st.lists(st.sampled_from(LANGUAGES)).map(" ".join)


def words_of(text: str) -> list[str]:
    words, is_open = [], False
    for character in normalized_text(pl.Series([text]))[0]:
        category, name = unicodedata.category(character), unicodedata.name(character, "")
        is_word = character.isalnum() or character == "_" or category.startswith("M")
        is_single = 0x20000 <= ord(character) < 0x40000
        if ord(character) < 0x20000 and is_word:
            is_single = name.startswith(UNSPACED) or character in MORE_UNSPACED
        if is_single or (ord(character) < 0x20000 and is_word and not is_open):
            words.append(character)
        elif ord(character) < 0x20000 and is_word:
            words[-1] += character
        is_open = ord(character) < 0x20000 and is_word and not is_single
    return words


def shingles_of(text: str, ngram_words: int) -> Iterator[bytes]:
    words = words_of(text)
    for first in range(max(1, len(words) - ngram_words + 1) if words else 0):
        yield " ".join(words[first : first + ngram_words]).encode()


def datasketch_values(text: str, config: DedupConfig) -> list[int]:
    sketch = MinHash(config.num_perm, config.seed, hashfunc=xxhash.xxh32_intdigest)
    sketch.update_batch(list(shingles_of(text, config.ngram_words)))
    return [int(value) for value in sketch.hashvalues]


def kernel_words(text: str) -> list[str]:
    joined, starts, _ = join_words(*text_buffers(pl.Series([text])), code_point_entries())
    ends = [*(starts[1:] - 1)] if len(starts) > 1 else []
    return [bytes(joined[a:b]).decode() for a, b in zip(starts, ends, strict=False)]


def signature(text: str, config: DedupConfig) -> list[int]:
    _, values = minhash(text_buffers(pl.Series([text])), config)
    return [int(value) for value in values[0]]


@pytest.mark.parametrize("text", LANGUAGES)
def test_words_of_every_script_equal_the_reference(text: str) -> None:
    assert kernel_words(text) == words_of(text)


@given(any_text)
@example("\x00\u0301")
@settings(deadline=None, max_examples=50)
def test_words_of_any_text_equal_the_reference(text: str) -> None:
    assert kernel_words(text) == words_of(text)


def test_words_of_every_code_point_equal_the_reference() -> None:
    points = [chr(c) for c in range(0x32400) if not 0xD800 <= c < 0xE000]
    sampled = [f"a{character}b {character}" for character in points[::7]]

    text = "\n".join(sampled)

    assert kernel_words(text) == words_of(text)


def test_each_ideograph_is_a_word_and_letters_stay_together() -> None:
    assert kernel_words("GPU加速2倍 ไทย") == ["gpu", "加", "速", "2", "倍", "ไ", "ท", "ย"]


def test_normalized_text_does_not_depend_on_position() -> None:
    result = normalized_text(pl.Series(["ΟΔΟΣ οδος", "İSTANBUL", None]))

    assert result.to_list() == ["οδοσ οδοσ", "istanbul", None]


@pytest.mark.parametrize("size", range(70))
def test_xxh32_equals_the_library_for_every_length(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size + 19, dtype=np.uint8)

    assert xxh32(data, 3, 3 + size) == xxhash.xxh32_intdigest(data[3 : 3 + size].tobytes())


@pytest.mark.parametrize("text", LANGUAGES)
def test_signatures_of_every_script_equal_datasketch(text: str) -> None:
    assert signature(text, DedupConfig()) == datasketch_values(text, DedupConfig())


@given(any_text, st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_signatures_of_any_text_equal_datasketch(text: str, ngram_words: int, seed: int) -> None:
    config = DedupConfig(bands=3, rows=5, ngram_words=ngram_words, seed=seed)

    assert signature(text, config) == datasketch_values(text, config)


def test_a_megabyte_equals_datasketch() -> None:
    rng = np.random.default_rng(7)
    text = " ".join(f"w{number:x}" for number in rng.integers(0, 40_000, 180_000))

    assert len(text) > 1_000_000
    assert signature(text, SMALL) == datasketch_values(text, SMALL)


def test_texts_do_not_touch_each_other() -> None:
    texts = [text + tail for text in LANGUAGES for tail in ("", " a", "b" * 40)] * 10

    _, values = minhash(text_buffers(pl.Series(texts)), SMALL)

    assert values.tolist() == [signature(text, SMALL) for text in texts]


def test_a_sliced_column_is_read_from_its_own_rows() -> None:
    texts = pl.Series(["zero", "one two", "three"])

    num_words, _ = minhash(text_buffers(texts[1:2]), SMALL)

    assert num_words.tolist() == [2]


def test_permutations_equal_datasketch() -> None:
    config = DedupConfig(seed=42)

    expected = MinHash(config.num_perm, config.seed).permutations

    assert permutations(config).tolist() == expected.tolist()


def band_hash(values: NDArray[np.uint32], band: int) -> int:
    mask, hashed = 2**64 - 1, band + 1
    for value in values.tolist():
        hashed ^= value
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
            hashed = ((hashed ^ hashed >> 33) * factor) & mask
    return hashed


def test_band_hashes_equal_the_written_definition() -> None:
    values = np.random.default_rng(3).integers(0, 2**32, (5, 12), dtype=np.uint32)

    hashes = hash_bands(values, 3)

    expected = [[band_hash(row[4 * b : 4 * b + 4], b) for row in values] for b in range(3)]
    assert hashes.tolist() == expected


@pytest.mark.parametrize(
    "wrong", [{"bands": 0}, {"rows": 65}, {"ngram_words": 0}, {"seed": -1}, {"band": 3}]
)
def test_config_refuses_what_is_out_of_bounds(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        DedupConfig.model_validate(wrong)
