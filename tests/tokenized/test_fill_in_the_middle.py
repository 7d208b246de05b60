"""Documents rearranged for filling in the middle: their form, and that nothing of them is lost."""

from functools import cache

from prelude import given, hashlib, json, np, pl, pytest, settings, st
from small_tokenizer import VOCAB_SIZE, sample_texts

from assets.text.document_ids import doc_heads
from assets.tokenized import encode_documents as module
from assets.tokenized import text_pieces
from assets.tokenized.encode_documents import TokenFormat, encode_documents
from assets.tokenized.encoders import Encoders, load_encoders
from assets.tokenized.fill_in_the_middle import (
    NO_ID,
    Draws,
    FillForm,
    count_modes,
    draw,
    in_text_order,
    rearrange,
    whole,
)
from assets.tokenized.kept_tokenizer import config_of, refusal, training_changes
from assets.tokenized.round_trip import round_trip
from assets.tokenized.tokenizer import TokenizerError, fill_ids, train_bpe
from resources.settings.tokenizer import FillTokens, TokenizerConfig

CONFIG = TokenizerConfig(vocab_size=VOCAB_SIZE).with_fill_tokens()
PREFIX, MIDDLE, SUFFIX = 1, 2, 3
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@cache
def tokenizer_json() -> str:
    return train_bpe([sample_texts()[:60]], CONFIG)


def encoders() -> Encoders:
    return load_encoders(tokenizer_json())


def form(rate: float = 1, spm_rate: float = 0.5, begin_id: int | None = None) -> TokenFormat:
    fill = FillForm(rate, spm_rate, 0, PREFIX, MIDDLE, SUFFIX)
    return TokenFormat(VOCAB_SIZE, 0, begin_id, fill=fill)


def documents(*texts: str) -> pl.DataFrame:
    ids = [hashlib.md5(str(row).encode()).hexdigest() for row in range(len(texts))]
    return pl.DataFrame({"doc_id": ids, "text": texts}, schema={"doc_id": str, "text": str})


def spelled(given_form: TokenFormat, *texts: str) -> list[str]:
    encoded = encode_documents(documents(*texts), encoders(), given_form)
    tokenizer = encoders().reference.tokenizer
    return tokenizer.decode_batch(encoded["tokens"].to_list(), skip_special_tokens=False)


def test_prefix_first_and_suffix_first() -> None:
    # The numbers of the second document are 8 and 6 modulo its 12 places: "abc de", "f ", "ghi".
    psm = "<|fim_prefix|>abc de<|fim_suffix|>ghi<|fim_middle|>f <|endoftext|>"
    spm = "<|fim_prefix|><|fim_suffix|>ghi<|fim_middle|>abc def <|endoftext|>"
    assert spelled(form(spm_rate=0), "", "abc def ghi") == [psm]
    assert spelled(form(spm_rate=1), "", "abc def ghi") == [spm]


def test_sections_are_in_the_order_in_which_they_are_stored() -> None:
    texts = pl.Series(["ménage", "whole", "ménage", ""])
    draws = Draws(
        np.array([True, False, True, True]),
        np.array([False, False, True, True]),
        np.array([[11, 1], [0, 0], [8, 11], [5, 5]], np.uint64),  # modulo 7: 4 and 1, -, 1 and 4
    )
    fill = FillForm(1, 0.5, 0, PREFIX, MIDDLE, SUFFIX)
    sections = rearrange(whole(texts, 999, 0), draws, fill)

    assert sections.texts.to_list() == ["m", "ge", "éna", "whole", "ge", "m", "éna", ""]
    assert sections.documents.tolist() == [0, 0, 0, 1, 2, 2, 2, 3]
    assert sections.marks.tolist() == [
        [999, PREFIX, NO_ID, NO_ID],
        [NO_ID, SUFFIX, NO_ID, NO_ID],
        [NO_ID, MIDDLE, NO_ID, 0],
        [999, NO_ID, NO_ID, 0],
        [999, PREFIX, SUFFIX, NO_ID],
        [NO_ID, MIDDLE, NO_ID, NO_ID],
        [NO_ID, NO_ID, NO_ID, 0],
        [999, NO_ID, NO_ID, 0],
    ]


def slow_form(text: str, is_rearranged: bool, is_spm: bool, numbers: list[int]) -> list[int]:
    """The ids of the marks and tokens of a document, without those around it."""
    first, second = sorted(number % (len(text) + 1) for number in numbers)
    prefix, middle, suffix = text[:first], text[first:second], text[second:]
    sections: list[tuple[list[int], str]] = [([], text)]
    if is_rearranged and is_spm:
        sections = [([PREFIX, SUFFIX], suffix), ([MIDDLE], prefix), ([], middle)]
    elif is_rearranged:
        sections = [([PREFIX], prefix), ([SUFFIX], suffix), ([MIDDLE], middle)]
    tokenizer = encoders().reference.tokenizer
    return [
        token_id
        for marks, section in sections
        for token_id in (*marks, *tokenizer.encode(section).ids)
    ]


@settings(max_examples=60)
@given(st.lists(TEXTS, max_size=8), st.sampled_from([None, 999]), st.sampled_from([0.0, 0.5, 1.0]))
def test_ids_are_those_of_the_sections_and_give_the_text(
    texts: list[str], begin_id: int | None, spm_rate: float
) -> None:
    given_form = form(0.7, spm_rate, begin_id)
    encoded = encode_documents(documents(*texts), encoders(), given_form)
    kept = [text for text in texts if text]
    draws = draw(doc_heads(encoded["doc_id"]), given_form.fill)  # type: ignore[arg-type]

    columns = zip(kept, *(values.tolist() for values in draws), strict=True)
    for row, (text, is_rearranged, is_spm, numbers) in enumerate(columns):
        begin = [] if begin_id is None else [begin_id]
        ids = [*begin, *slow_form(text, is_rearranged, is_spm, numbers), 0]
        assert encoded["tokens"][row].to_list() == ids
    assert round_trip(documents(*texts), encoded, encoders(), given_form).failed == []


@pytest.mark.filterwarnings("ignore:fastokens")
def test_slices_pieces_and_encoders_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    given_documents = documents("a", "", *sample_texts()[:20], "x" * 90, "the mill " * 9)
    one = encode_documents(given_documents, encoders(), form(0.7))
    reference = encoders().reference
    assert encode_documents(given_documents, Encoders(reference, reference), form(0.7)).equals(one)

    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 20)
    monkeypatch.setattr(module, "SLICE_BYTES", 20)

    assert encode_documents(given_documents, encoders(), form(0.7)).equals(one)
    reverse = encode_documents(given_documents.reverse(), encoders(), form(0.7))
    assert reverse.reverse().equals(one)


def test_what_is_drawn_is_golden() -> None:
    heads = np.arange(8, dtype=np.uint64) << np.uint64(60)
    draws = draw(heads, form(0.5).fill)  # type: ignore[arg-type]
    assert draws.is_rearranged.nonzero()[0].tolist() == [1, 2, 6, 7]
    assert draws.is_spm.nonzero()[0].tolist() == [4, 7]
    numbers = (draws.numbers[:4] % np.uint64(1000)).tolist()
    assert numbers == [[156, 588], [152, 605], [438, 67], [199, 490]]


def test_shares_are_those_of_the_config() -> None:
    heads = np.random.default_rng(0).integers(0, 1 << 63, 20_000).astype(np.uint64)
    counts = count_modes(heads, FillForm(0.4, 0.25, 0, PREFIX, MIDDLE, SUFFIX))
    assert abs(counts["psm"] - 6000) < 300 and abs(counts["spm"] - 2000) < 200
    assert counts["special_tokens"] == 3 * (counts["psm"] + counts["spm"])


def test_text_that_spells_the_tokens_stays_text() -> None:
    text = "<|fim_middle|><|fim_prefix|> x <|fim_suffix|>"
    encoded = encode_documents(documents(*[text] * 50), encoders(), form(0.5))
    assert sum(encoded["tokens"].explode().is_in([PREFIX, MIDDLE, SUFFIX])) == (
        3 * draw(doc_heads(encoded["doc_id"]), form(0.5).fill).is_rearranged.sum()  # type: ignore[arg-type]
    )
    assert round_trip(documents(*[text] * 50), encoded, encoders(), form(0.5)).failed == []


def test_sections_are_put_back_in_the_order_of_their_texts() -> None:
    ids = [10, 0, 1, 11, 3, 14, 15, 2, 12, 13, 0, 1, 3, 23, 2, 21, 22, 0, 1, 31, 3, 32, 0, 2, 33]
    assert in_text_order(np.array(ids, np.uint16), (1, 2, 3), np.array([0])).tolist() == [
        *(10, 0),
        *(1, 11, 12, 13, 14, 15, 3, 2, 0),
        *(1, 21, 22, 23, 3, 2, 0),
        *(1, 31, 3, 32, 0, 2, 33),  # without the middle, as it is
    ]
    assert in_text_order(np.array([1, 3, 5, 2, 4], np.uint16), (1, 2, 3), np.array([0])).size == 5
    assert in_text_order(np.array([], np.uint16), (1, 2, 3), np.array([0])).size == 0


def test_a_wrong_text_is_found_in_a_rearranged_document() -> None:
    texts = sample_texts()[:20]
    encoded = encode_documents(documents(*texts), encoders(), form())
    wrong = documents(texts[0][:-1] + "\x00", *texts[1:])
    assert round_trip(wrong, encoded, encoders(), form()).failed == [wrong["doc_id"][0]]


def added(*tokens: tuple[str, bool], **model: str | int) -> bytes:
    """A tokenizer.json of these added tokens, (spelling, whether it is special)."""
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []} | model
    entries = [
        {"id": i, "content": content, "special": special, **PLAIN}
        for i, (content, special) in enumerate(tokens, 7)
    ]
    return json.dumps({"added_tokens": entries, "model": model}).encode()


PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
ALL = [(token, True) for token in FillTokens().all]


def test_ids_are_those_of_the_tokenizer_even_if_its_file_has_others() -> None:
    assert fill_ids(added(*ALL), FillTokens(), is_trained=False) == (1, 2, 3)


@pytest.mark.parametrize(
    ("tokenizer_json", "message"),
    [
        (
            added(("<fim_prefix>", True), ("<s>", True)),
            r"look like them: \['<fim_prefix>'\]\. Name its own in tokenizer\.fill_in_the_mid",
        ),
        (added(("<|fim_prefix|>", False)), r"text may spell \['<\|fim_prefix\|>'\]"),
        (added(*ALL, unk_token="<|fim_middle|>"), r"becomes \['<\|fim_middle\|>'\], its unknown"),
        (added(*ALL, unk_id=9), r"becomes \['<\|fim_suffix\|>'\], its unknown"),
        (b"[]", "not a tokenizer.json: Expected `object`"),
        (b"{", "not a tokenizer.json"),
    ],
    ids=["others", "plain", "unknown", "unknown id", "list", "cut"],
)
def test_tokens_that_cannot_be_used_are_named(tokenizer_json: bytes, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        fill_ids(tokenizer_json, FillTokens(), is_trained=False)


def test_a_trained_tokenizer_without_the_tokens_names_the_command() -> None:
    with pytest.raises(TokenizerError, match="`corpus tokenizer retrain` trains the next one"):
        fill_ids(added(), FillTokens(), is_trained=True)


def test_a_kept_tokenizer_without_the_tokens_is_refused_and_more_tokens_are_no_change() -> None:
    plain = config_of(TokenizerConfig(vocab_size=VOCAB_SIZE))
    changes = training_changes(plain, config_of(CONFIG), ())
    shown = refusal(changes, [], CONFIG.fill_in_the_middle_tokens.all)
    assert "special_tokens, which fill_in_the_middle of a source adds to," in shown
    assert "`corpus tokenizer retrain`" in shown
    assert training_changes(config_of(CONFIG), plain, ()) == {}
