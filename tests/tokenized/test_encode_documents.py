"""Documents become ids between their marks; nothing is lost, and every document can be found."""

from prelude import given, json, np, pl, pytest, settings, st
from small_tokenizer import VOCAB_SIZE, changed, sample_texts, trained, with_entries, with_token

from assets.tokenized import encode_documents as tokenized
from assets.tokenized import text_pieces
from assets.tokenized.encode_documents import (
    GrowingArray,
    TokenFormat,
    count_ids,
    doc_index,
    encode_documents,
    extend_marked,
    sample_of,
)
from assets.tokenized.encoders import Encoders, Ids, Offsets, load_encoders
from assets.tokenized.token_spellings import byte_starts, reference_starts, token_sizes
from resources.reused_array import reused_array
from resources.settings.tokenizer import END_OF_DOCUMENT

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
PLAIN = TokenFormat(VOCAB_SIZE, end_id=0)
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}


def documents(*texts: str) -> pl.DataFrame:
    ids = [f"{row * 0x9E3779B97F4A7C15 % 2**64:016x}{row:016x}" for row in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, schema={"doc_id": str, "text": str})


def encode(*texts: str, form: TokenFormat = PLAIN, tokenizer_json: str = "") -> list[list[int]]:
    encoders = load_encoders(tokenizer_json or trained())
    return encode_documents(documents(*texts), encoders, form)["tokens"].to_list()


def slow_ids(text: str, tokenizer_json: str = "") -> list[int]:
    reference = load_encoders(tokenizer_json or trained()).reference
    return reference.encode([text])[0].tolist()


@settings(max_examples=40)
@given(st.lists(TEXTS, max_size=8), st.integers(1, 60), st.sampled_from([None, 999]))
def test_slices_do_not_show(texts: list[str], slice_bytes: int, begin_id: int | None) -> None:
    first = [] if begin_id is None else [begin_id]
    form = TokenFormat(VOCAB_SIZE, 0, begin_id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenized, "SLICE_BYTES", slice_bytes)
        found = encode(*texts, form=form)
    assert found == [[*first, *slow_ids(text), 0] for text in texts if text]


class Shouting:
    """An encoder that reads every text in capitals."""

    name = "shouting"

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        return load_encoders(trained()).best.encode([text.upper() for text in texts])


def test_where_an_encoder_differs_on_a_document_the_reference_encodes() -> None:
    encoders = Encoders(Shouting(), load_encoders(trained()).reference)
    with pytest.warns(UserWarning, match="shouting differs from tokenizers on documents of this"):
        encoded = encode_documents(documents("A", "b"), encoders, PLAIN)
    assert encoded["tokens"].to_list() == [[33, 0], [66, 0]]


def test_no_text_spells_the_end_and_a_long_one_is_not_cut() -> None:
    spelled, long = encode(END_OF_DOCUMENT, "word " * 600_000)
    assert (spelled[-1], long[-1]) == (0, 0)
    assert 0 not in spelled[:-1] + long[:-1]
    assert len(long) > 1_200_000


@pytest.mark.filterwarnings("ignore:fastokens")
@pytest.mark.parametrize("begin_id", [None, 999])
@pytest.mark.parametrize("lacking", ["", "\u0100"], ids=["all bytes", "no zero byte"])
def test_pieces_do_not_show(
    lacking: str, begin_id: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = json.loads(trained())["model"]
    vocab = {entry: number for entry, number in model["vocab"].items() if entry != lacking}
    encoders = load_encoders(changed(model=model | {"vocab": vocab}))
    form = TokenFormat(VOCAB_SIZE, 0, begin_id)
    given = documents("a", "the mill\x00 " * 9, "", "\x00" * 40, *sample_texts()[:20], "", "b")
    whole = encode_documents(given, encoders, form)
    is_short = whole["tokens"].list.len() < 20
    assert is_short.any() and not is_short.all()

    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 20)
    monkeypatch.setattr(tokenized, "SLICE_BYTES", 20)

    assert encode_documents(given, encoders, form).equals(whole)


def test_memory_that_is_used_again_does_not_show() -> None:
    encoders, form = load_encoders(trained()), TokenFormat(VOCAB_SIZE, 0, 1)
    given = documents("the mill", "", "grain " * 9, *sample_texts()[:20])
    reused_array(1 << 16, np.dtype(np.uint8)).fill(255)

    encoded = encode_documents(given, encoders, form, reused_array)

    assert encoded.equals(encode_documents(given, encoders, form))
    again = encode_documents(documents("the"), encoders, form, reused_array)
    ids = again["tokens"].explode().to_numpy()
    assert np.shares_memory(ids, reused_array(ids.size, ids.dtype))


def test_documents_without_tokens_are_left_out() -> None:
    given = documents("", "a", "", "b", "")
    encoded = encode_documents(given, load_encoders(trained()), PLAIN)
    assert encoded["doc_id"].to_list() == [given["doc_id"][1], given["doc_id"][3]]
    assert encoded["tokens"].list.len().to_list() == [2, 2]


@pytest.mark.parametrize("texts", [(), ("",)], ids=["no documents", "no tokens"])
def test_nothing_gives_an_empty_table(texts: tuple[str, ...]) -> None:
    form = TokenFormat(VOCAB_SIZE, 0, 1)
    encoded = encode_documents(documents(*texts), load_encoders(trained()), form)
    assert encoded.schema == {"doc_id": pl.String, "tokens": pl.List(pl.UInt16)}
    assert encoded.height == 0


@pytest.mark.slow
def test_ids_beyond_16_bits_survive() -> None:
    tokenizer = json.loads(with_entries({f"<{row}>": row for row in range(1000, 70_000)}))
    end = tokenizer["added_tokens"][0] | {"id": 70_000, "content": "</s>"}
    tokenizer_json = json.dumps(tokenizer | {"added_tokens": [end]})
    form = TokenFormat(70_001, end_id=70_000)
    encoded = encode_documents(documents("the mill"), load_encoders(tokenizer_json), form)
    assert encoded.schema["tokens"] == pl.List(pl.UInt32)
    assert encoded["tokens"].to_list() == [[*slow_ids("the mill"), 70_000]]


def test_marks_go_before_and_after_their_list() -> None:
    values, offsets = np.array([5, 6, 7], np.uint32), np.array([0, 2, 2, 3])
    marks = np.array([[-1, -1, -1, 0], [1, 2, 3, -1], [-1, 4, -1, 0]])
    ids = GrowingArray(np.uint16, 9)
    extend_marked(ids, values, offsets, marks)
    extend_marked(ids, values[:0], offsets[:1], marks[:0])
    assert ids.values.tolist() == [5, 6, 0, 1, 2, 3, 4, 7, 0]


def test_an_added_token_is_as_long_as_it_is_spelled() -> None:
    sizes = token_sizes(load_encoders(with_token("<ü>", special=False)).reference)
    assert sizes[[0, 88, 1000]].tolist() == [13, 1, 4]


@pytest.mark.filterwarnings("ignore:fastokens")
@pytest.mark.parametrize("parts", [{"normalizer": {"type": "NFC"}}, {"decoder": METASPACE}])
def test_lengths_of_tokens_say_nothing_where_they_are_not_bytes(parts: dict[str, object]) -> None:
    assert not token_sizes(load_encoders(changed(**parts)).reference).any()


@pytest.mark.parametrize(
    "parts",
    [
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}},
        {"normalizer": {"type": "NFD"}},
    ],
    ids=["blank in front", "normalizer"],
)
@pytest.mark.filterwarnings("ignore:fastokens")
def test_offsets_that_do_not_add_up_come_from_the_reference(parts: dict[str, object]) -> None:
    pre = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": False}
    tokenizer_json = changed(**{"pre_tokenizer": pre} | {k: pre | v for k, v in parts.items()})
    encoders = load_encoders(tokenizer_json)
    text = "é1 über 1é"
    encoding = encoders.reference.tokenizer.encode(text, add_special_tokens=False)
    expected = [len(text[:start].encode()) for start, _ in encoding.offsets]
    ids, offsets = encoders.best.encode(["", text])
    found = byte_starts(pl.Series(["", text]), ids, offsets, encoders.reference)
    assert found.tolist() == expected
    assert expected[0] == 0 and expected == sorted(expected)


def test_offsets_of_the_reference_count_one_to_four_bytes_a_character() -> None:
    tokenizer = load_encoders(trained()).reference.tokenizer
    text = "a\x7f\x80b\u07ff\u0800c\uffff\U00010000d"
    characters = [start for start, _ in tokenizer.encode(text, add_special_tokens=False).offsets]
    assert reference_starts(text, tokenizer).tolist() == [
        len(text[:start].encode()) for start in characters
    ]


def test_ids_are_counted() -> None:
    counts = count_ids(pl.Series([[3, 0], [3, 3, 0]], dtype=pl.List(pl.UInt16)), 5)
    assert (counts.dtype, counts.tolist()) == (np.uint64, [2, 0, 0, 3, 0])
    assert count_ids(pl.Series([], dtype=pl.List(pl.UInt32)), 2).tolist() == [0, 0]


def test_a_document_is_found_by_the_head_of_its_id() -> None:
    doc_ids = pl.Series(["b" * 32, "0" * 32, "ffffffffffffffff0000000000000000", "0" * 31 + "1"])
    heads, rows = doc_index(doc_ids)
    assert (heads.dtype, rows.dtype) == (np.uint64, np.uint32)
    assert heads.tolist() == [0, 0, 0xBBBBBBBBBBBBBBBB, 0xFFFFFFFFFFFFFFFF]
    assert rows.tolist() == [1, 3, 0, 2]


def test_the_sample_does_not_depend_on_the_order_and_is_bounded() -> None:
    given = documents(*(f"{row}" * 10_000 for row in range(200)))
    sample = sample_of(given)
    assert sample.equals(sample_of(given.reverse()))
    assert 500_000 < sample["text"].str.len_bytes().sum() <= 1 << 19
    assert sample_of(documents(*["x" * (1 << 18)] * 2)).height == 2
    assert sample_of(documents("x" * 600_000)).height == 1
    assert sample_of(documents(*"abc" * 50)).height == 64
