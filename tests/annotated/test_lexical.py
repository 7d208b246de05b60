"""Vectors of words against plain Python, and what a trained model says."""

import math
import unicodedata

from prelude import NDArray, Path, example, given, np, pairwise, pl, pytest, settings, st
from slow_words import CHAIN, MASK, NASTY, TEXT, hash_slowly, words_slowly

from assets.annotated.kernels.word_vectors import find_rows, normalise_rows
from assets.annotated.vectors.lexical import LexicalModel, embed_lexical, train_lexical
from assets.text.buffers import _UNSPACED, code_point_entries, normalized_text, text_buffers

MULTIPLIER = 0xD6E8FEB86659FD93
BITS = 10


def model(seed: int = 1) -> LexicalModel:
    drawn = np.random.default_rng(seed)
    table = drawn.integers(-127, 128, (1 << BITS, 256), np.int8)
    return LexicalModel(table, drawn.integers(0, 2048, 1 << BITS, np.uint16))


def windows_slowly(text: str) -> list[str]:
    """Pieces of at most 8,192 bytes that end behind a blank of their second half, if there is."""
    data, found = text.encode(), []
    while len(data) > 8192:
        blanks = [at for at in range(4097, 8192) if data[at] <= 32]
        end = blanks[-1] + 1 if blanks else 8192
        while not blanks and data[end] & 0xC0 == 0x80:
            end -= 1
        found.append(data[:end].decode())
        data = data[end:]
    return [*found, data.decode()] if data else found


def is_single(character: str) -> bool:
    """Whether a character is a word of a script without spaces."""
    code = ord(character)
    is_word = character.isalnum() or unicodedata.category(character)[0] == "M"
    is_unspaced = any(first <= code <= last for first, last in _UNSPACED)
    return 0x20000 <= code < 0x40000 or (is_unspaced and is_word)


def row_counts_slowly(window: str) -> dict[int, int]:
    """Each row and the number of its words, and pairs of neighbouring characters that are words."""
    hashes = [hash_slowly(word) for word in words_slowly(window)]
    for one, two in pairwise(normalized_text(pl.Series([window])).item()):
        if is_single(one) and is_single(two):
            first = hash_slowly(one)
            hashes.append((first ^ first >> 29) * CHAIN + hash_slowly(two) & MASK)
    counts: dict[int, int] = {}
    for key in hashes:
        key = (key ^ key >> 32) * MULTIPLIER & MASK
        row = (key ^ key >> 29) >> (64 - BITS)
        counts[row] = counts.get(row, 0) + 1
    return counts


def scaled_slowly(sums: list[int]) -> list[int]:
    """A vector of length 512, each number rounded half up."""
    shift = max(max(abs(value) for value in sums).bit_length() - 24, 0)
    values = [value >> shift for value in sums]
    length = max(math.isqrt(sum(value * value for value in values)), 1)
    rounded = [(1024 * value + length) // (2 * length) for value in values]
    return [min(max(value, -127), 127) for value in rounded]


def embed_slowly(text: str, frozen: LexicalModel) -> list[int]:
    sums = np.zeros(256, np.int64)
    for window in windows_slowly(text):
        for row, count in row_counts_slowly(window).items():
            sums += int(frozen.weights[row]) * count.bit_length() * frozen.table[row].astype(int)
    return scaled_slowly(sums.tolist())


def test_vectors_of_nasty_texts_are_those_of_the_reference() -> None:
    texts = [
        *NASTY,
        "漢字 " * 3000,
        "ไทย" * 2000,
        "x" * 8191 + "漢",
        "a日b" * 5000,
        "def f(x):\n" * 2000,
    ]

    found = embed_lexical(pl.Series(texts), model())

    assert found.dtype == np.int8
    assert found.tolist() == [embed_slowly(text, model()) for text in texts]


@settings(max_examples=30)
@given(st.lists(TEXT, max_size=3), st.integers(1, 1000))
@example(["漢字 かな"], 1800)
def test_vectors_are_those_of_the_reference(texts: list[str], repeats: int) -> None:
    texts = [(text * repeats)[:9_000] for text in texts]

    found = embed_lexical(pl.Series(texts, dtype=pl.String), model())

    assert found.tolist() == [embed_slowly(text, model()) for text in texts]


@given(st.lists(st.integers(-(2**52), 2**52), min_size=1, max_size=9))
@example([2**52, -(2**52), 1])
@example([0, 0])
@example([1, 1])
def test_sums_are_scaled_as_by_the_reference(sums: list[int]) -> None:
    assert normalise_rows(np.array([sums], np.int64)).tolist() == [scaled_slowly(sums)]


def test_the_heaviest_window_fits_its_sums() -> None:
    full = LexicalModel(np.full((1 << BITS, 256), -127, np.int8), np.full(1 << BITS, 2047, "u2"))
    characters = "".join(chr(code) for code in range(0x4E00, 0x4E00 + 6000))

    assert (embed_lexical(pl.Series([characters]), full) == -32).all()


def test_the_end_of_a_text_counts_as_its_beginning() -> None:
    ends = pl.Series(["alpha beta " * 1000 + "gamma delta " * 1000, "alpha beta " * 1000])
    one, two = embed_lexical(ends, model()).astype(int)
    tail = embed_lexical(pl.Series(["gamma delta"]), model())[0].astype(int)

    assert one @ tail > 512 * 200 > two @ tail


def test_windows_of_training_are_those_of_vectors() -> None:
    texts = ["漢字 " * 3000, "", "one two two"]
    rows, times, ends = find_rows(*text_buffers(pl.Series(texts)), code_point_entries(), 1 << BITS)

    counts = [row_counts_slowly(window) for text in texts for window in windows_slowly(text)]
    found = [dict(zip(rows[a:b], times[a:b], strict=True)) for a, b in pairwise(ends)]
    assert found == [{row: n.bit_length() for row, n in each.items()} for each in counts]


def sample(count: int = 900) -> tuple[pl.Series, NDArray[np.int64]]:
    """Texts of three subjects with 300 words each, of which the last is written without spaces."""
    drawn = np.random.default_rng(3)
    subjects = drawn.integers(0, 3, count)
    words = [[f"{name}{number}" for number in range(300)] for name in ("cell", "bolt")]
    words.append([chr(0x4E00 + number) for number in range(300)])
    picked = drawn.integers(0, 300, (count, 40))
    texts = [
        ("" if subject == 2 else " ").join(words[subject][word] for word in row)
        for subject, row in zip(subjects, picked, strict=True)
    ]
    return pl.Series(texts), subjects


def test_texts_of_a_subject_are_near_each_other() -> None:
    texts, subjects = sample()
    trained = train_lexical(texts.head(600), bits=12)

    vectors = embed_lexical(texts.tail(300), trained).astype(np.int64)

    products = vectors @ vectors.T / 512**2
    is_same = subjects[-300:, None] == subjects[-300:]
    np.fill_diagonal(is_same, False)
    assert (
        products[is_same].mean()
        > 0.3
        > 0.05
        > products[subjects[-300:, None] != subjects[-300:]].mean()
    )
    assert np.abs(np.linalg.norm(vectors, axis=1) - 512).max() < 16


def test_texts_without_known_words_are_zeros() -> None:
    trained = train_lexical(sample()[0], bits=12)
    assert not embed_lexical(pl.Series(["", "...", "neverseen"]), trained).any()
    assert embed_lexical(pl.Series([], dtype=pl.String), trained).shape == (0, 256)


def test_a_sample_that_is_too_small_is_refused() -> None:
    for texts in ([], ["", "a b"], ["a few words"] * 400, ["two two", "of of"]):
        with pytest.raises(ValueError, match=r"no word is in 3 of \d+ windows.*Add documents"):
            train_lexical(pl.Series(texts, dtype=pl.String))


def test_a_lexical_model_survives_its_table(tmp_path: Path) -> None:
    model().to_table().write_parquet(tmp_path / "model.parquet")

    after = LexicalModel.from_table(pl.read_parquet(tmp_path / "model.parquet"))

    assert np.array_equal(after.table, model().table)
    assert np.array_equal(after.weights, model().weights)
    texts = pl.Series(NASTY)
    assert np.array_equal(embed_lexical(texts, after), embed_lexical(texts, model()))
