"""Words, shingles and signatures against slow and obvious references."""

import unicodedata
from collections.abc import Iterator, Sequence

import xxhash
from datasketch import MinHash
from prelude import example, given, np, pairwise, pl, pytest, settings, st

from assets.deduped.kernels.minhash_sketch import hash_bands, hash_spans
from assets.deduped.kernels.shingles import BLOCK
from assets.deduped.minhash.minhash import joined_words, permutations, shingle_sets, sketch_words
from assets.text.buffers import code_point_entries, normalized_text, text_buffers
from assets.text.kernels.hashing import hash_bytes
from assets.text.kernels.words import join_words
from resources.settings.dedup import DedupConfig

SMALL = DedupConfig(bands=4, rows=4, ngram=3)
WRITTEN = DedupConfig(bands=4, rows=4, ngram=2, lowercase=False, punctuation="keep")
CHARACTERS = DedupConfig(bands=4, rows=4, ngram=6, shingle="characters")
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


configs = st.builds(
    DedupConfig,
    bands=st.just(3),
    rows=st.just(5),
    ngram=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
    shingle=st.sampled_from(["words", "characters"]),
    lowercase=st.booleans(),
    punctuation=st.sampled_from(["remove", "keep"]),
)


def words_of(text: str, config: DedupConfig = SMALL) -> list[str]:
    words, is_open = [], False
    for character in normalized_text(pl.Series([text]))[0] if config.lowercase else text:
        keeps = config.punctuation == "keep"
        is_word = not character.isspace() if keeps else is_letter(character)
        is_single = is_letter(character) and is_unspaced(character)
        if is_word and (is_single or not is_open):
            words.append(character)
        elif is_word:
            words[-1] += character
        is_open = is_word and not is_single
    return words


def is_letter(character: str) -> bool:
    if ord(character) >= 0x20000:
        return ord(character) < 0x40000
    category = unicodedata.category(character)
    return character.isalnum() or character == "_" or category.startswith("M")


def is_unspaced(character: str) -> bool:
    if ord(character) >= 0x20000:
        return ord(character) < 0x40000
    return unicodedata.name(character, "").startswith(UNSPACED) or character in MORE_UNSPACED


def shingles_of(text: str, config: DedupConfig) -> Iterator[bytes]:
    words = words_of(text, config)
    units: Sequence[str] = " ".join(words) if config.shingle == "characters" else words
    between = "" if config.shingle == "characters" else " "
    for first in range(max(1, len(units) - config.ngram + 1) if units else 0):
        yield between.join(units[first : first + config.ngram]).encode()


def datasketch_values(text: str, config: DedupConfig) -> list[int]:
    sketch = MinHash(config.num_values, config.seed, hashfunc=xxhash.xxh32_intdigest)
    sketch.update_batch(list(shingles_of(text, config)))
    return [int(value) for value in sketch.hashvalues]


def kernel_words(text: str, config: DedupConfig = SMALL) -> list[str]:
    entries = code_point_entries(config.lowercase, config.punctuation)
    joined, starts, _ = join_words(*text_buffers(pl.Series([text])), entries)
    ends = [*(starts[1:] - 1)] if len(starts) > 1 else []
    return [bytes(joined[a:b]).decode() for a, b in zip(starts, ends, strict=False)]


def signatures(texts: list[str], config: DedupConfig) -> list[list[int]]:
    joined = joined_words(text_buffers(pl.Series(texts, dtype=pl.String)), config)
    return [row for _, words in joined for row in sketch_words(words, config).tolist()]


def signature(text: str, config: DedupConfig) -> list[int]:
    return signatures([text], config)[0]


@given(any_text, configs)
@example("\x00\u0301", SMALL)
@settings(max_examples=50)
def test_words_of_any_text_equal_the_reference(text: str, config: DedupConfig) -> None:
    assert kernel_words(text, config) == words_of(text, config)


@pytest.mark.parametrize("config", [SMALL, WRITTEN], ids=["default", "as written"])
def test_words_of_every_code_point_equal_the_reference(config: DedupConfig) -> None:
    points = [*range(0, 0x32400, 7), *range(0x32400, 0x110000, 997), 0xE0100, 0x3FFFF, 0x40000]
    sampled = [f"a{chr(c)}b {chr(c)}" for c in points if not 0xD800 <= c < 0xE000]

    text = "\n".join(sampled)

    assert kernel_words(text, config) == words_of(text, config)


def test_kept_punctuation_belongs_to_its_word() -> None:
    assert kernel_words("Don't (stop)\u00a0GPU加速!", WRITTEN) == [
        *("Don't", "(stop)", "GPU", "加", "速", "!"),
    ]


def test_each_ideograph_is_a_word_and_letters_stay_together() -> None:
    assert kernel_words("GPU加速2倍 ไทย") == ["gpu", "加", "速", "2", "倍", "ไ", "ท", "ย"]


def test_normalized_text_does_not_depend_on_position() -> None:
    result = normalized_text(pl.Series(["ΟΔΟΣ οδος", "İSTANBUL", None]))

    assert result.to_list() == ["οδοσ οδοσ", "istanbul", None]


def test_a_pair_shares_a_band_with_the_chance_of_its_similarity() -> None:
    words = [f"w{number}" for number in range(40)]
    texts = [" ".join(words[:30]), " ".join(words[10:])]  # half of all words are in both
    found = 0
    for seed in range(1, 401):
        config = DedupConfig(bands=3, rows=2, ngram=1, seed=seed)
        equal = np.equal(*map(np.array, signatures(texts, config))).reshape(3, 2)
        found += bool(equal.all(axis=1).any())
    assert found / 400 == pytest.approx(1 - (1 - 0.5**2) ** 3, abs=0.08)


def fmix32(value: int) -> int:
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13), (1, 16)):
        value = (value ^ value >> shift) * factor % 2**32
    return value


def test_hashes_of_spans_equal_xxh32_for_every_length() -> None:
    data = np.random.default_rng(5).integers(0, 256, 2000, dtype=np.uint8)
    starts, sizes = np.arange(700), np.arange(700) % 70
    spans, hashes = np.zeros((2, BLOCK), np.int64), np.zeros((6, BLOCK), np.uint32)
    spans[:, :700] = starts, starts + sizes

    hash_spans(data, spans, 700, hashes)

    assert hashes[0, :700].tolist() == [
        fmix32(xxhash.xxh32_intdigest(data[start : start + size].tobytes()))
        for start, size in zip(starts, sizes, strict=True)
    ]


@given(any_text, configs)
@settings(max_examples=100)
def test_signatures_of_any_text_and_option_equal_datasketch(text: str, config: DedupConfig) -> None:
    assert signature(text, config) == datasketch_values(text, config)


@pytest.mark.parametrize("size", [1022, 1023, 1024, 1025, 2047, 2048, 2049])
@pytest.mark.parametrize("config", [SMALL, CHARACTERS], ids=["words", "characters"])
def test_shingles_at_the_end_of_a_block_are_counted(size: int, config: DedupConfig) -> None:
    units = size + config.ngram - 1
    rng = np.random.default_rng(size)
    words = [f"é{number}" for number in rng.integers(0, 10**6, units)]
    text = " ".join(words) if config is SMALL else " ".join(words)[:units]

    assert len(list(shingles_of(text, config))) == size
    assert signature(text, config) == datasketch_values(text, config)


def test_texts_do_not_touch_each_other() -> None:
    texts = [text + tail for text in LANGUAGES for tail in ("", " a", "b" * 40)] * 10

    for config in (SMALL, CHARACTERS):
        assert signatures(texts, config) == [signature(text, config) for text in texts]


def test_a_sliced_column_is_read_from_its_own_rows() -> None:
    texts = pl.Series(["zero", "one two", "three"])

    (_, (_, _, word_offsets)), *_ = joined_words(text_buffers(texts[1:2]), SMALL)

    assert word_offsets.tolist() == [0, 2]


def test_permutations_equal_datasketch() -> None:
    expected = MinHash(112, 42).permutations

    assert permutations(112, 42).tolist() == expected.tolist()


def finalized(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 1):
        value = (value ^ value >> 33) * factor % 2**64
    return value


def band_hash(values: list[int], number: int, group: int) -> int:
    hashed = number ^ finalized(group)
    for value in values:
        hashed = finalized(hashed ^ value)
    return hashed


def test_band_hashes_equal_the_written_definition() -> None:
    values = np.random.default_rng(3).integers(0, 2**32, (5, 12), dtype=np.uint32)
    groups = np.array([0, 1, 2**64 - 1, 0, 7], np.uint64)

    hashes = hash_bands(values, 3, 10, groups)

    assert hashes.tolist() == [
        [band_hash(row[4 * b : 4 * b + 4], 10 + b, group) for b in range(3)]
        for row, group in zip(values.tolist(), groups.tolist(), strict=True)
    ]


def sets_of(texts: list[str | None], config: DedupConfig) -> list[list[int]]:
    values, offsets = shingle_sets(pl.Series(texts, dtype=pl.String), config)
    assert (values.dtype, offsets.dtype) == (np.uint64, np.int64)
    return [values[a:b].tolist() for a, b in pairwise(offsets)]


@given(st.lists(any_text | st.none(), max_size=4), configs)
@example(["a " * 3 * BLOCK, "", "a b " * BLOCK], SMALL)
@settings(max_examples=50)
def test_a_set_has_the_sorted_hashes_of_the_different_shingles(
    texts: list[str | None], config: DedupConfig
) -> None:
    assert sets_of(texts, config) == [
        sorted({hash_of(shingle) for shingle in shingles_of(text or "", config)}) for text in texts
    ]


def hash_of(content: bytes) -> int:
    return int(hash_bytes(np.frombuffer(content, np.uint8), np.uint64(0), np.uint64(len(content))))
