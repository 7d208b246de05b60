"""Token ids are those of `tokenizers`, whoever computes them; no text can spell a special token."""

import warnings
from dataclasses import dataclass
from functools import cache

from many_examples import many_examples
from prelude import Any, given, np, pytest, settings, st
from small_tokenizer import (
    PLACES,
    changed,
    sample_texts,
    trained,
    trained_on_places,
    with_entries,
    with_token,
)

from assets.tokenized.encoders import (
    PROBE_TEXTS,
    Encoder,
    Encoders,
    FastEncoder,
    Ids,
    Offsets,
    ReferenceEncoder,
    load_encoders,
    make_encoders,
)
from resources.settings.tokenizer import PATTERNS

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDS = st.sampled_from(PLACES)
OWN = r"\p{L}+|\d|\s"  # leaves marks between its matches
SPLITS = [*((name, digits) for name in PATTERNS for digits in (None, 1, 3)), (OWN, None)]
SPELLINGS = ["<|endoftext|>", "a<|endoftext|>b", "<|endoftext|>" * 3, " <|endoftext|>\n"]


@cache
def both() -> list[Encoder]:
    return [FastEncoder(trained()), ReferenceEncoder(trained())]


def split(encoder: Encoder, texts: list[str]) -> list[list[int]]:
    ids, offsets = encoder.encode(texts)
    return [part.tolist() for part in np.split(ids, offsets[1:-1])]


@dataclass(frozen=True)
class Careless:
    """An encoder that differs from the reference on one text."""

    inner: Encoder
    text: str
    name: str = "careless"

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        return self.inner.encode(["?" if text == self.text else text for text in texts])


def test_the_fast_encoder_is_taken_without_a_warning_and_equals_the_reference() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoders = make_encoders(trained())

    assert encoders.best.name == "fastokens"
    assert split(encoders.best, sample_texts()) == split(encoders.reference, sample_texts())


@settings(max_examples=50)
@given(st.lists(TEXTS | st.sampled_from([*PROBE_TEXTS, *SPELLINGS]), max_size=5))
def test_fast_and_reference_ids_are_equal(texts: list[str]) -> None:
    fast, slow = both()
    assert split(fast, texts) == split(slow, texts)


@pytest.mark.parametrize(("pattern", "digits"), SPLITS)
def test_ids_of_every_pattern_are_equal_and_decode_to_the_texts(
    pattern: str, digits: int | None
) -> None:
    encoders = make_encoders(trained_on_places(pattern, digits))
    assert encoders.best.name == "fastokens"

    @many_examples(1000)
    @given(st.lists(st.lists(WORDS, max_size=40).map("".join) | TEXTS, min_size=1, max_size=3))
    def check(texts: list[str]) -> None:
        ids = split(encoders.best, texts)
        assert ids == split(encoders.reference, texts)
        assert encoders.reference.decode(ids) == texts

    check()


@pytest.mark.parametrize("encoder", both(), ids=lambda encoder: encoder.name)
def test_no_text_spells_a_special_token(encoder: Encoder) -> None:
    ids, _ = encoder.encode([*SPELLINGS, *PROBE_TEXTS])
    assert ids.size > 100
    assert 0 not in ids


@pytest.mark.parametrize("encoder", both(), ids=lambda encoder: encoder.name)
def test_no_texts_give_no_ids(encoder: Encoder) -> None:
    ids, offsets = encoder.encode([])
    assert (ids.dtype, offsets.dtype) == (np.uint32, np.int64)
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


@settings(max_examples=50)
@given(st.lists(TEXTS | st.sampled_from(PROBE_TEXTS), min_size=1, max_size=4))
def test_ids_decode_to_the_texts(texts: list[str]) -> None:
    encoders = load_encoders(trained())
    assert encoders.reference.decode(split(encoders.best, texts)) == texts


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
        encoders = make_encoders(changed(**parts))
    assert encoders.best is encoders.reference


def test_ids_with_gaps_are_read_by_the_reference() -> None:
    with pytest.warns(UserWarning, match="fastokens cannot encode"):
        encoders = make_encoders(with_entries({"a": 70_000}))
    assert split(encoders.best, ["a", ""]) == [[70_000], []]


@pytest.mark.parametrize("entry", ["e", "Q"], ids=["in the texts", "only spelled by the probe"])
def test_tokenizer_that_fastokens_reads_differently_is_read_by_the_reference(entry: str) -> None:
    """An added token that spells an entry gets its id; fastokens takes the one in the file."""
    with pytest.warns(UserWarning, match="fastokens differs from tokenizers on the probe"):
        encoders = make_encoders(with_token(entry, special=False))
    assert encoders.best is encoders.reference


@pytest.mark.parametrize("special", [True, False])
def test_added_tokens_are_matched_as_the_reference_does(special: bool) -> None:
    encoders = make_encoders(with_token("<tool_call>", special=special))
    texts = ["a<tool_call>b", " <tool_call> <tool_call>"]
    assert encoders.best.name == "fastokens"
    assert split(encoders.best, texts) == split(encoders.reference, texts)
    assert (1000 in encoders.best.encode(texts)[0]) is not special


def test_an_encoder_that_differs_on_a_document_is_not_used_for_its_part() -> None:
    fast, reference = FastEncoder(trained()), ReferenceEncoder(trained())
    encoders = Encoders(Careless(fast, "rare"), reference)

    assert encoders.exact_on(["common"]).name == "careless"
    with pytest.warns(UserWarning, match="careless differs from tokenizers on documents of this"):
        assert encoders.exact_on(["common", "rare"]) is reference


def test_truncation_and_padding_of_a_loaded_tokenizer_are_off() -> None:
    tokenizer = ReferenceEncoder(trained()).tokenizer
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=20)
    texts = ["a", "many words " * 30]
    encoders = make_encoders(tokenizer.to_str())
    assert split(encoders.best, texts) == split(encoders.reference, texts)
    assert split(encoders.best, texts) == split(both()[0], texts)


def test_encoders_are_loaded_once() -> None:
    assert load_encoders(trained()) is load_encoders(trained())
