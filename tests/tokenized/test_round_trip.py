"""Documents whose ids do not decode to their text are found out."""

from prelude import given, pl, pytest, st
from small_tokenizer import VOCAB_SIZE, changed, sample_texts, trained, with_token

from assets.tokenized import round_trip as module
from assets.tokenized.encode_documents import TokenFormat, encode_documents
from assets.tokenized.encoders import load_encoders
from assets.tokenized.round_trip import RoundTrip, compare_sample, round_trip

PLAIN = TokenFormat(VOCAB_SIZE, end_id=0)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PREFIXED = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def documents(*texts: str) -> pl.DataFrame:
    ids = [f"{row:032x}" for row in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, schema={"doc_id": str, "text": str})


def failures(
    texts: list[str], tokenizer_json: str, form: TokenFormat = PLAIN, wrong: list[str] | None = None
) -> list[int]:
    """Rows that fail when these texts are encoded and compared with themselves, or with others."""
    encoders = load_encoders(tokenizer_json)
    encoded = encode_documents(documents(*texts), encoders, form)
    found = round_trip(documents(*(wrong or texts)), encoded, encoders, form)
    assert found.num_compared == encoded.height
    return [int(doc_id, 16) for doc_id in found.failed]


@pytest.mark.parametrize("begin_id", [None, 7])
def test_every_document_is_compared(begin_id: int | None) -> None:
    texts = ["", *sample_texts()[:200], "long word " * 200_000, "end"]
    wrong = [*texts[:150], texts[150][:-1] + "\x00", *texts[151:-2], texts[-2] + "x", "en"]
    form = TokenFormat(VOCAB_SIZE, 0, begin_id)
    assert failures(texts, trained(), form) == []
    assert failures(texts, trained(), form, wrong) == [150, len(texts) - 2, len(texts) - 1]


@pytest.mark.slow
@given(st.lists(TEXTS.filter(bool), max_size=5), st.data())
def test_what_is_found_is_what_decoding_finds(texts: list[str], data: st.DataObject) -> None:
    encoders = load_encoders(with_token("caf\u00e9", special=False))
    texts = [text + data.draw(st.sampled_from(["", "caf\u00e9"])) for text in texts]
    wrong = [data.draw(st.just(text) | TEXTS) for text in texts]
    encoded, given_texts = encode_documents(documents(*texts), encoders, PLAIN), documents(*wrong)

    found = round_trip(given_texts, encoded, encoders, PLAIN)

    decoded = compare_sample(given_texts, encoded, encoders.reference, PLAIN)
    assert (found.num_compared, found.failed) == (len(texts), sorted(decoded.failed))


@pytest.mark.filterwarnings("ignore:fastokens")
def test_failures_of_small_texts() -> None:
    assert failures([], trained()) == failures(["", ""], trained()) == []
    # A token of more than eight bytes is compared to its end.
    token, text = with_token("antidisestablishment", special=False), "antidisestablishment"
    assert failures([text, text], token, wrong=[text, "antidisestablishmenT"]) == [1]
    # A blank put in front is found out, and a tokenizer that changes the text.
    texts = ["plain", " blank", "", "\ntext"]
    assert failures(texts, changed(pre_tokenizer=PREFIXED)) == [0, 3]
    assert failures(["plain", "\ufb01ne"], changed(normalizer={"type": "NFKC"})) == [1]


@pytest.mark.filterwarnings("ignore:fastokens")
def test_of_another_tokenizer_a_sample_is_compared() -> None:
    encoders = load_encoders(changed(decoder={"type": "Fuse"}))
    given_texts = documents("", *(f"{row}" for row in range(100)), "two words")
    encoded = encode_documents(given_texts, encoders, PLAIN)
    found = round_trip(given_texts, encoded, encoders, PLAIN)
    assert found.num_compared == 64
    assert set(found.failed) <= {f"{101:032x}"}  # its blank


def test_of_a_long_document_the_beginning_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DECODED_TOKENS", 5)
    encoders, given_texts = load_encoders(trained()), documents("風車が回る", "ab", "x" * 9)
    encoded = encode_documents(given_texts, encoders, PLAIN)
    wrong = given_texts.with_columns(text=pl.Series(["風車が", "abc", "xxxxy"]))

    right = compare_sample(given_texts, encoded, encoders.reference, PLAIN)
    found = compare_sample(wrong, encoded, encoders.reference, PLAIN)

    assert right == RoundTrip(3, [])
    assert sorted(found.failed) == wrong["doc_id"][1:].to_list()


def test_a_document_of_as_many_tokens_as_are_decoded_is_compared_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoders, given_texts = load_encoders(trained()), documents("the mill")
    encoded = encode_documents(given_texts, encoders, PLAIN)
    monkeypatch.setattr(module, "DECODED_TOKENS", encoded["tokens"].list.len().item() - 1)

    found = compare_sample(documents("the mill stood"), encoded, encoders.reference, PLAIN)

    assert found == RoundTrip(1, [f"{0:032x}"])
