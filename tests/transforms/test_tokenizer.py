"""The tokenizer of a corpus: trained on a seeded sample, or loaded from a file."""

import hashlib
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from small_tokenizer import sample_texts, trained, with_entries, with_token

from assets.transforms.tokenizer import (
    END_OF_DOCUMENT,
    TokenizerConfig,
    TokenizerError,
    about_tokenizer,
    canonical_json,
    is_sampled,
    read_tokenizer,
    sample_quotas,
    token_dtype,
    tokenizer_fingerprint,
    train_bpe,
    vocabulary_size,
)


def test_training_does_not_depend_on_batches_or_their_order() -> None:
    texts = sample_texts()[:60]
    batches = [[text] for text in reversed(texts)]
    assert train_bpe(batches, TokenizerConfig(vocab_size=1000)) == trained()


def test_trained_tokenizer_has_the_wanted_size_and_its_special_tokens_first() -> None:
    config = TokenizerConfig(vocab_size=300, special_tokens=("<pad>", END_OF_DOCUMENT))
    tokenizer, end_id = read_tokenizer(train_bpe([sample_texts()[:20]], config), END_OF_DOCUMENT)
    assert vocabulary_size(tokenizer) == 300
    assert (tokenizer.token_to_id("<pad>"), end_id) == (0, 1)


@pytest.mark.parametrize(
    ("size", "weights", "quotas"),
    [
        (100, None, {"web": 60, "books": 40}),
        (100, {"web": 1, "books": 3}, {"web": 25, "books": 75}),
        (100, {"books": 0.1}, {"web": 0, "books": 100}),
        (800, {"web": 1, "books": 1}, {"web": 400, "books": 400}),
        (900, {"web": 1, "books": 3}, {"web": 500, "books": 400}),
        (5000, {"web": 1, "books": 3}, {"web": 600, "books": 400}),
        (5000, None, {"web": 600, "books": 400}),
        (5000, {"web": 2}, {"web": 600, "books": 0}),
    ],
)
def test_the_sample_is_shared_out_by_weight_and_what_is_short_goes_to_the_others(
    size: int, weights: dict[str, float] | None, quotas: dict[str, int]
) -> None:
    config = TokenizerConfig(sample_bytes=size, weights=weights)
    assert sample_quotas({"web": 600, "books": 400}, config) == quotas


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10**12), min_size=1),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-6, 1e6), min_size=1) | st.none(),
    st.integers(1, 2**31 - 1),
)
def test_quotas_never_exceed_what_there_is_nor_the_sample(
    available: dict[str, int], weights: dict[str, float] | None, size: int
) -> None:
    quotas = sample_quotas(available, TokenizerConfig(sample_bytes=size, weights=weights))
    there = {s: n for s, n in available.items() if weights is None or s in weights}
    assert all(0 <= quotas[source] <= available[source] for source in available)
    assert min(size, sum(there.values())) - len(available) <= sum(quotas.values()) <= size


def test_both_trainers_give_the_same() -> None:
    plain = TokenizerConfig(vocab_size=1000, trainer="tokenizers")
    assert train_bpe([sample_texts()[:60]], plain) == trained()


def test_the_begin_token_is_found_like_the_end_token() -> None:
    config = TokenizerConfig(
        vocab_size=300, special_tokens=(END_OF_DOCUMENT, "<s>"), begin_of_document="<s>"
    )
    tokenizer_json = train_bpe([["a text"]], config)

    about = about_tokenizer(tokenizer_json, config)

    assert (about["begin_of_document"], about["begin_of_document_id"]) == ("<s>", 1)
    assert (about["end_of_document"], about["end_of_document_id"]) == (END_OF_DOCUMENT, 0)
    with pytest.raises(TokenizerError, match=r"'<s>' for tokenizer.begin_of_document.*endoftext"):
        about_tokenizer(trained(), config)


def test_a_vocabulary_beyond_16_bits_is_said() -> None:
    large = with_entries({f"<{row}>": row for row in range(1000, 70_000)})
    about = about_tokenizer(large, TokenizerConfig())
    assert (about["vocab_size"], about["token_dtype"]) == (70_000, "uint32")
    assert about_tokenizer(trained(), TokenizerConfig())["token_dtype"] == "uint16"


def test_training_without_text_gives_the_bytes() -> None:
    tokenizer, end_id = read_tokenizer(train_bpe([], TokenizerConfig()), END_OF_DOCUMENT)
    assert (vocabulary_size(tokenizer), end_id) == (257, 0)


@pytest.mark.parametrize(
    ("given_keys", "fault"),
    [
        ({"special_tokens": ["<pad>"]}, "is not among special_tokens"),
        ({"special_tokens": ["<|endoftext|>", ""]}, "must differ and not be empty"),
        ({"special_tokens": ["<|endoftext|>"] * 2}, "must differ and not be empty"),
        ({"begin_of_document": "<s>"}, "begin_of_document '<s>' is not among special_tokens"),
        ({"vocab_size": 260, "special_tokens": ["<|endoftext|>", *"abcde"]}, "has no room for 256"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(
    given_keys: dict[str, Any], fault: str
) -> None:
    with pytest.raises(ValidationError, match=fault):
        TokenizerConfig.model_validate(given_keys)


@pytest.mark.parametrize(
    "config",
    [
        {"vocab_size": 259},
        {"min_frequency": 0},
        {"sed": 1},
        {"sample_bytes": 1 << 31},
        {"weights": {}},
        {"weights": {"web": 0}},
        {"weights": {"web": float("inf")}},
        {"trainer": "gigatoken"},
    ],
)
def test_bad_config_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TokenizerConfig.model_validate(config)


@pytest.mark.parametrize(
    ("size", "dtype"), [(1, pl.UInt16), (65_536, pl.UInt16), (65_537, pl.UInt32)]
)
def test_ids_take_two_bytes_while_they_fit(size: int, dtype: type[pl.DataType]) -> None:
    assert token_dtype(size) == dtype


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"model": 1}'])
def test_broken_file_says_what_to_check(broken: str) -> None:
    with pytest.raises(TokenizerError, match=r"not a tokenizer.json.*Check tokenizer.path"):
        read_tokenizer(canonical_json(broken), END_OF_DOCUMENT)


@pytest.mark.parametrize("end", ["</s>", "a", "<plain>"])
def test_end_token_must_be_a_special_token(end: str) -> None:
    with pytest.raises(TokenizerError, match=rf"no special token '{end}'.*\['<\|endoftext\|>'\]"):
        read_tokenizer(with_token("<plain>", special=False), end)


def test_fingerprint_ignores_layout_and_sees_content() -> None:
    pretty = json.dumps(dict(reversed(json.loads(trained()).items())), indent=2)
    assert tokenizer_fingerprint(pretty) == tokenizer_fingerprint(trained())
    assert tokenizer_fingerprint(with_entries({"zz": 5000})) != tokenizer_fingerprint(trained())
    assert canonical_json(canonical_json(pretty)) == trained()


def doc_ids(count: int) -> pl.Series:
    ids = [hashlib.sha256(str(row).encode()).hexdigest()[:32] for row in range(count)]
    return pl.Series("doc_id", ids, dtype=pl.String)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 1.0])
def test_sample_is_near_the_wanted_share(share: float) -> None:
    assert is_sampled(doc_ids(20_000), share, seed=0).mean() == pytest.approx(share, abs=0.01)


def test_sample_depends_on_the_document_and_the_seed_alone() -> None:
    ids = doc_ids(1000)
    taken = is_sampled(ids, 0.3, seed=1)
    assert is_sampled(ids.reverse(), 0.3, seed=1).reverse().equals(taken)
    assert is_sampled(ids[500:], 0.3, seed=1).equals(taken[500:])
    assert not is_sampled(ids, 0.3, seed=2).equals(taken)


def test_a_larger_sample_holds_the_smaller_and_the_extreme_ids() -> None:
    ids = pl.Series([*doc_ids(500), "f" * 32, "0" * 32])
    small, large = (is_sampled(ids, share, seed=0) for share in (0.2, 0.6))
    assert not (small & ~large).any()
    assert is_sampled(ids, 1.0, seed=0).all()
