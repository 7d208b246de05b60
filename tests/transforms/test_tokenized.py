"""Token ids are those of `tokenizers`, whoever computes them; no text can spell the end."""

import hashlib
import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from assets.transforms.encoders import (
    PROBE_TEXTS,
    Encoder,
    FastEncoder,
    ReferenceEncoder,
    fast_if_equal,
    load_encoder,
)
from assets.transforms.tokenized import (
    encode_documents,
)
from assets.transforms.tokenizer import (
    END_OF_DOCUMENT,
    TokenizerConfig,
    TokenizerError,
    canonical_json,
    is_sampled,
    read_tokenizer,
    token_dtype,
    tokenizer_fingerprint,
    train_bpe,
    vocabulary_size,
)

MULTILINGUAL = Path(__file__).parents[2] / "sample_data/multilingual/part-1.parquet"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
SPELLINGS = ["<|endoftext|>", "a<|endoftext|>b", "<|endoftext|>" * 3, " <|endoftext|>\n"]


@cache
def sample_texts() -> list[str]:
    return pl.read_parquet(MULTILINGUAL)["text"].to_list()


@cache
def trained() -> str:
    return train_bpe([sample_texts()[:60]], TokenizerConfig(vocab_size=1000))


def changed(**parts: Any) -> str:
    """The trained tokenizer.json with other parts."""
    return json.dumps(json.loads(trained()) | parts)


def with_token(content: str, *, special: bool) -> str:
    """The trained tokenizer.json with one more added token."""
    tokenizer = json.loads(trained())
    end = tokenizer["added_tokens"][0]
    token_id = len(tokenizer["model"]["vocab"])
    added = {"content": content, "id": token_id, "special": special}
    return json.dumps(tokenizer | {"added_tokens": [end, end | added]})


def with_entries(entries: dict[str, int]) -> str:
    """The trained tokenizer.json with more vocabulary entries."""
    model = json.loads(trained())["model"]
    return changed(model=model | {"vocab": model["vocab"] | entries})


def reference(tokenizer_json: str) -> ReferenceEncoder:
    return ReferenceEncoder(read_tokenizer(tokenizer_json, END_OF_DOCUMENT)[0])


@cache
def encoders() -> list[Encoder]:
    return [FastEncoder(trained()), reference(trained())]


def split(encoder: Encoder, texts: list[str]) -> list[list[int]]:
    ids, offsets = encoder.encode(texts)
    return [part.tolist() for part in np.split(ids, offsets[1:-1])]


def encode(*texts: str, tokenizer_json: str = "") -> list[list[int]]:
    documents = pl.DataFrame({"doc_id": [str(row) for row in range(len(texts))], "text": texts})
    encoded = encode_documents(documents, tokenizer_json or trained(), END_OF_DOCUMENT)
    assert encoded["doc_id"].to_list() == documents["doc_id"].to_list()
    return encoded["tokens"].to_list()


def test_training_does_not_depend_on_batches_or_their_order() -> None:
    texts = sample_texts()[:60]
    batches = [[text] for text in reversed(texts)]
    assert train_bpe(batches, TokenizerConfig(vocab_size=1000)) == trained()


def test_trained_tokenizer_has_the_wanted_size_and_its_special_tokens_first() -> None:
    config = TokenizerConfig(vocab_size=300, special_tokens=("<pad>", END_OF_DOCUMENT))
    tokenizer, end_id = read_tokenizer(train_bpe([sample_texts()[:20]], config), END_OF_DOCUMENT)
    assert vocabulary_size(tokenizer) == 300
    assert (tokenizer.token_to_id("<pad>"), end_id) == (0, 1)


def test_training_without_text_gives_the_bytes() -> None:
    tokenizer, end_id = read_tokenizer(train_bpe([], TokenizerConfig()), END_OF_DOCUMENT)
    assert (vocabulary_size(tokenizer), end_id) == (257, 0)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"special_tokens": ["<pad>"]}, "is not among special_tokens"),
        ({"special_tokens": ["<|endoftext|>", ""]}, "must differ and not be empty"),
        ({"special_tokens": ["<|endoftext|>"] * 2}, "must differ and not be empty"),
        ({"vocab_size": 260, "special_tokens": ["<|endoftext|>", *"abcde"]}, "has no room for 256"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(settings: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError, match=fault):
        TokenizerConfig.model_validate(settings)


@pytest.mark.parametrize("config", [{"vocab_size": 259}, {"min_frequency": 0}, {"sed": 1}])
def test_bad_config_is_refused(config: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        TokenizerConfig.model_validate(config)


def test_fast_encoder_is_taken_and_gives_the_reference_ids_in_many_languages() -> None:
    encoder, _, _ = load_encoder(trained(), END_OF_DOCUMENT)
    texts = sample_texts()
    assert encoder.name == "fastokens"
    assert split(encoder, texts) == split(reference(trained()), texts)


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXTS | st.sampled_from([*PROBE_TEXTS, *SPELLINGS]), max_size=5))
def test_fast_and_reference_ids_are_equal(texts: list[str]) -> None:
    fast, slow = encoders()
    assert split(fast, texts) == split(slow, texts)


@settings(deadline=None, max_examples=50)
@given(TEXTS | st.sampled_from(PROBE_TEXTS))
def test_ids_decode_to_the_text(text: str) -> None:
    tokenizer, end_id = read_tokenizer(trained(), END_OF_DOCUMENT)
    *ids, last = encode(text)[0]
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert last == end_id


@pytest.mark.parametrize("encoder", encoders(), ids=["fast", "reference"])
def test_no_text_spells_the_end_token(encoder: Encoder) -> None:
    _, end_id = read_tokenizer(trained(), END_OF_DOCUMENT)
    ids, _ = encoder.encode([*SPELLINGS, *PROBE_TEXTS])
    assert ids.size > 100
    assert end_id not in ids


def test_end_id_is_last_in_every_document_and_alone_in_an_empty_one() -> None:
    empty, spelled, long, none = encode("", END_OF_DOCUMENT, "word " * 200_000, "")
    assert empty == none == [0]
    assert spelled[-1] == long[-1] == 0
    assert 0 not in spelled[:-1] + long[:-1]


def test_no_documents_give_an_empty_frame() -> None:
    documents = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String})
    encoded = encode_documents(documents, trained(), END_OF_DOCUMENT)
    assert encoded.schema == {"doc_id": pl.String, "tokens": pl.List(pl.UInt16)}
    assert encoded.height == 0


@pytest.mark.parametrize(
    ("size", "dtype"), [(1, pl.UInt16), (65_536, pl.UInt16), (65_537, pl.UInt32)]
)
def test_ids_take_two_bytes_while_they_fit(size: int, dtype: type[pl.DataType]) -> None:
    assert token_dtype(size) == dtype


def test_ids_beyond_16_bits_survive() -> None:
    tokenizer = json.loads(with_entries({f"<{row}>": row for row in range(1000, 70_000)}))
    end = tokenizer["added_tokens"][0] | {"id": 70_000, "content": "</s>"}
    documents = pl.DataFrame({"doc_id": ["d0"], "text": ["the mill"]})
    encoded = encode_documents(documents, json.dumps(tokenizer | {"added_tokens": [end]}), "</s>")
    assert encoded.schema["tokens"] == pl.List(pl.UInt32)
    assert encoded["tokens"].to_list() == [[*encode("the mill")[0][:-1], 70_000]]


def test_ids_survive_where_the_vocabulary_has_gaps() -> None:
    tokenizer_json = with_entries({"a": 70_000})
    with pytest.warns(UserWarning, match="fastokens cannot encode"):
        assert encode("a", "", tokenizer_json=tokenizer_json) == [[70_000, 0], [0]]
    assert vocabulary_size(read_tokenizer(tokenizer_json, END_OF_DOCUMENT)[0]) == 70_001


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"model": 1}'])
def test_broken_file_says_what_to_check(broken: str) -> None:
    with pytest.raises(TokenizerError, match=r"not a tokenizer.json.*Check tokenizer.path"):
        read_tokenizer(canonical_json(broken), END_OF_DOCUMENT)


@pytest.mark.parametrize("end", ["</s>", "a", "<plain>"])
def test_end_token_must_be_a_special_token(end: str) -> None:
    with pytest.raises(TokenizerError, match=rf"no special token '{end}'.*\['<\|endoftext\|>'\]"):
        read_tokenizer(with_token("<plain>", special=False), end)


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": {"type": "WhitespaceSplit"}},
        {"pre_tokenizer": {"type": "BertPreTokenizer"}},
        {"normalizer": {"type": "NFKC"}},
    ],
    ids=["WhitespaceSplit", "BertPreTokenizer", "NFKC"],
)
def test_tokenizer_that_fastokens_refuses_is_read_by_the_reference(parts: dict[str, Any]) -> None:
    with pytest.warns(UserWarning, match="fastokens cannot encode with this tokenizer: .*type"):
        encoder = fast_if_equal(changed(**parts), reference(changed(**parts)))
    assert encoder.name == "tokenizers"


def test_tokenizer_that_fastokens_reads_differently_is_read_by_the_reference() -> None:
    """An added token that spells an entry gets its id; fastokens takes the one in the file."""
    tokenizer_json = with_token("e", special=False)
    with pytest.warns(UserWarning, match="fastokens differs from tokenizers"):
        encoder = fast_if_equal(tokenizer_json, reference(tokenizer_json))
    assert encoder.name == "tokenizers"


@pytest.mark.parametrize("special", [True, False])
def test_added_tokens_are_matched_as_the_reference_does(special: bool) -> None:
    tokenizer_json = with_token("<tool_call>", special=special)
    encoder = fast_if_equal(tokenizer_json, reference(tokenizer_json))
    texts = ["a<tool_call>b", " <tool_call> <tool_call>"]
    assert encoder.name == "fastokens"
    assert split(encoder, texts) == split(reference(tokenizer_json), texts)
    assert (1000 in encoder.encode(texts)[0]) is not special


def test_truncation_and_padding_of_a_loaded_tokenizer_are_off() -> None:
    tokenizer, _ = read_tokenizer(trained(), END_OF_DOCUMENT)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=20)
    short_or_long = ["a", "many words " * 30]
    assert encode(*short_or_long, tokenizer_json=tokenizer.to_str()) == encode(*short_or_long)


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


def test_no_warning_where_the_fast_encoder_is_exact() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fast_if_equal(trained(), reference(trained())).name == "fastokens"
