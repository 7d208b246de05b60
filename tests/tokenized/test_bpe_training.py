"""Our training gives the tokenizer.json of `tokenizers`, byte by byte; the split is GPT-2's."""

import json
import warnings
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tokenizer import sample_texts
from tokenizers import pre_tokenizers

from assets.tokenized import bpe_training
from assets.tokenized.bpe_merging import (
    FIRST_SLOTS,
    NUM_CODES,
    SURROGATES,
    WordCounts,
    learn_merges,
    letter_classes,
    spelling,
)
from assets.tokenized.bpe_training import (
    PROBE_TEXTS,
    is_fast_exact,
    reference_words,
    text_of_range_ends,
    train_equal,
    train_fast,
    train_with_tokenizers,
)
from assets.tokenized.kernels.gpt2_split import LETTER, NUMBER, OTHER, SPACE

END = "<|endoftext|>"
PIECES = ["'s", "'ll", "'", "re", "'ve", " ", "  ", "\n", "\t", "\u3000", "a", "é", "字", "1", "½"]
SPLIT_TEXTS = st.lists(st.sampled_from([*PIECES, "!", "<", "\U0001f600", "\u0301"])).map("".join)
# Two or three letters: nearly every pair ties with another, and most strings have two pairs.
TIES = st.lists(st.text("ab", max_size=12) | st.text("abc", max_size=30), max_size=6)
SPECIALS = st.sampled_from([(END,), (), (END, "ab"), ("b", "aab", END), ("abab", "<pad>")])


def counted(*texts: str) -> dict[bytes, int]:
    counts = WordCounts()
    counts.add(pl.Series(texts, dtype=pl.String))
    return counts.as_dict()


def merges_of(texts: list[str], vocab_size: int = 1000, min_frequency: int = 1) -> list[str]:
    """Merges as "first second", with a letter for each byte."""
    counts = WordCounts()
    counts.add(pl.Series(texts, dtype=pl.String))
    return [" ".join(pair) for pair in learn_merges(counts, [], vocab_size, min_frequency)[1]]


def test_words_are_runs_of_a_class_with_the_blank_before() -> None:
    words = counted("it's  12 apples, we'll\n\nSEE!! ")
    expected = ["it", "'s", " 12", " apples", "we", "'ll", " we", "SEE", "!!"]
    expected.remove("we")
    assert words == dict.fromkeys(map(str.encode, expected), 1)


def test_words_of_one_byte_make_no_pair_and_are_not_counted() -> None:
    assert counted("a", "", "1 ! b", " ") == {b" !": 1, b" b": 1}


@settings(deadline=None, max_examples=100)
@given(st.lists(SPLIT_TEXTS | st.text(st.characters(exclude_categories=["Cs"])), max_size=4))
def test_words_are_those_of_tokenizers(texts: list[str]) -> None:
    assert counted(*texts) == Counter(word for text in texts for word in reference_words(text))


def test_every_code_point_has_the_class_that_tokenizers_gives_it() -> None:
    """A run of one class is one word, so that the four runs are four words."""
    codes = np.arange(NUM_CODES, dtype="<u4")
    classes = letter_classes().copy()
    classes[SURROGATES] = 255
    runs = [
        first + codes[classes == number].tobytes().decode("utf-32-le")
        for first, number in (("a", LETTER), ("1", NUMBER), ("!", OTHER), ("\n", SPACE))
    ]

    words = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str("".join(runs))

    ends = np.cumsum([len(run) for run in runs]).tolist()
    assert [span for _, span in words] == list(zip([0, *ends], ends, strict=False))


def test_tables_grow_while_words_are_counted() -> None:
    text = "".join(f"word{i} {i:x}{i * 7:o}\n" for i in range(9000))
    counts = Counter(reference_words(text))
    assert counted(text) == counts
    assert len(counts) > 4 * FIRST_SLOTS


def test_the_most_frequent_pair_comes_first_and_of_equal_ones_the_lowest() -> None:
    assert merges_of(["cd cd cd", "zzz"], min_frequency=2)[0] == "c d"
    assert merges_of(["yx", "xy", "ab"]) == ["a b", "x y", "y x"]


def test_pairs_below_the_least_frequency_are_not_merged() -> None:
    assert merges_of(["ab", "ab", "cd"], min_frequency=2) == ["a b"]


def test_overlapping_pairs_are_merged_from_the_left() -> None:
    assert merges_of(["aaaaa"]) == ["a a", "aa a", "aa aaa"]


@settings(deadline=None, max_examples=150)
@given(TIES, SPECIALS, st.integers(260, 330), st.integers(1, 3))
def test_ties_and_strings_that_come_twice_are_as_in_tokenizers(
    texts: list[str], special_tokens: tuple[str, ...], vocab_size: int, min_frequency: int
) -> None:
    wanted = (special_tokens, vocab_size, min_frequency)
    assert train_fast([texts], *wanted) == train_with_tokenizers([texts], *wanted)


@pytest.mark.parametrize("vocab_size", [300, 2000, 20_000])
def test_training_on_many_languages_is_equal(vocab_size: int) -> None:
    texts = sample_texts()[:100]
    wanted = ((END, "<pad>"), vocab_size, 2)
    trained = train_fast([texts[:30], texts[30:]], *wanted)
    assert trained == train_with_tokenizers([texts], *wanted)
    assert train_equal([texts], *wanted) == trained


@pytest.mark.parametrize("texts", [[], [""], ["a"], ["aa"], ["\0\0"], ["a" * 3000], ["ab" * 5000]])
def test_training_on_little_text_is_equal(texts: list[str]) -> None:
    wanted = ((END,), 300, 1)
    assert train_fast([texts], *wanted) == train_with_tokenizers([texts], *wanted)


def test_room_for_pairs_and_long_tokens_is_made() -> None:
    letters = "".join(chr(0x4E00 + i) + chr(0x4E00 + i * i % 3001) for i in range(3000))
    texts = [letters, letters[::-1], "x" * 4000]
    wanted = ((END,), 600, 1)
    assert train_fast([texts], *wanted) == train_with_tokenizers([texts], *wanted)


def test_special_tokens_spell_bytes_only_in_the_byte_alphabet() -> None:
    assert spelling("Ġthe") == b" the"
    assert spelling("the cat") == b""


def test_the_probe_proves_the_training_and_is_quick() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_fast_exact()


@pytest.mark.parametrize("differs", ["split", "merges"])
def test_training_that_differs_on_the_probe_is_not_used(
    differs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_fast_exact.cache_clear()
    if differs == "split":
        monkeypatch.setattr(bpe_training, "reference_words", lambda text: text.encode().split())
    else:
        monkeypatch.setattr(bpe_training, "train_fast", lambda *_: "{}")
    texts = [list(PROBE_TEXTS)]

    with pytest.warns(UserWarning, match="our training differs from that of tokenizers"):
        trained = train_equal(texts, (END,), 300, 2)

    assert json.loads(trained) == json.loads(train_with_tokenizers(texts, (END,), 300, 2))
    is_fast_exact.cache_clear()


def test_the_probe_has_every_end_of_a_range() -> None:
    text = text_of_range_ends()
    assert {"A", "Z", "[", "9", "\u3000", "\u4dbf"} <= set(text)
    assert len(text) < 20_000
