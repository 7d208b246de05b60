"""One row per document: columns, types, nulls, hashes."""

import polars as pl
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_frame_not_equal

from assets.transforms.minhash import DedupConfig
from assets.transforms.signatures import signatures

CONFIG = DedupConfig(bands=2, rows=3, ngram_words=2)


def documents(*texts: str | None) -> pl.DataFrame:
    ids = [f"d{number}" for number in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String})


def test_schema_is_the_same_with_and_without_rows() -> None:
    expected = {
        "doc_id": pl.String,
        "num_chars": pl.UInt32,
        "num_words": pl.UInt32,
        "text_hash": pl.Binary,
        "band_00": pl.UInt64,
        "band_01": pl.UInt64,
        "signature": pl.Array(pl.UInt32, 6),
    }

    assert dict(signatures(documents(), CONFIG).schema) == expected
    assert dict(signatures(documents("a", None), CONFIG).schema) == expected


def test_counts_are_characters_and_words() -> None:
    result = signatures(documents("Zwei Wörter", "", None, "汉字"), CONFIG)

    assert result["num_chars"].to_list() == [11, 0, 0, 2]
    assert result["num_words"].to_list() == [2, 0, 0, 2]


def test_blank_texts_match_nothing() -> None:
    result = signatures(documents("", " \n", None), CONFIG).drop("doc_id", "num_chars", "num_words")

    assert result.null_count().row(0) == (3, 3, 3, 3)


def test_text_without_words_has_a_hash_but_no_bands() -> None:
    result = signatures(documents("?!"), CONFIG)

    assert result["text_hash"].null_count() == 0
    assert result.select("band_00", "band_01", "signature").null_count().row(0) == (1, 1, 1)


@given(
    st.text() | st.lists(st.sampled_from([" ", "\n", "a", "\u2003", "\u3000", "é"])).map("".join)
)
@example("\u200b \ue000\u2028")
@settings(deadline=None, max_examples=50)
def test_text_hash_is_xxh3_of_the_text_with_whitespace_folded(text: str) -> None:
    folded = " ".join(text.split()).encode()

    result = signatures(documents(text), CONFIG)["text_hash"].to_list()

    assert result == [xxhash.xxh3_128_digest(folded) if folded else None]


def test_text_hash_keeps_case_and_punctuation_apart() -> None:
    result = signatures(documents("a + b", "a - b", "A + b", " a  +\tb\n"), CONFIG)["text_hash"]

    assert result.n_unique() == 3
    assert result[0] == result[3]


def test_case_and_punctuation_do_not_change_the_signature() -> None:
    result = signatures(documents("One two, three!", "ONE\ttwo -- three"), CONFIG)

    assert result["signature"][0].to_list() == result["signature"][1].to_list()
    assert result["band_01"].n_unique() == 1


@pytest.mark.parametrize(
    ("config", "null_columns"),
    [
        (CONFIG.model_copy(update={"exact": False}), ["text_hash"]),
        (CONFIG.model_copy(update={"near": False}), ["band_00", "band_01", "signature"]),
    ],
)
def test_what_is_turned_off_is_null(config: DedupConfig, null_columns: list[str]) -> None:
    result = signatures(documents("one two three"), config)

    expected = signatures(documents("one two three"), CONFIG).with_columns(
        pl.lit(None, CONFIG_SCHEMA[name]).alias(name) for name in null_columns
    )
    assert_frame_equal(result, expected)


CONFIG_SCHEMA = signatures(documents(), CONFIG).schema


def test_rows_do_not_depend_on_their_neighbours() -> None:
    texts = [f"text {number} of many, many" for number in range(600)]

    together = signatures(documents(*texts), CONFIG)

    alone = signatures(documents(*texts)[599:], CONFIG)
    assert_frame_equal(together[599:], alone)


def test_another_seed_gives_other_bands() -> None:
    one = signatures(documents("one two three"), CONFIG)

    other = signatures(documents("one two three"), CONFIG.model_copy(update={"seed": 2}))

    assert_frame_not_equal(one, other)


def test_a_megabyte_of_one_word_is_one_word() -> None:
    result = signatures(documents("é" * 500_000, "x " * 500_000), CONFIG)

    assert result["num_words"].to_list() == [1, 500_000]
