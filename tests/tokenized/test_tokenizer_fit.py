"""The tokenizer's fit to a source is compared with its fit to the sample."""

from prelude import Counter, given, np, pl, pytest, st
from small_tokenizer import changed, trained

from assets.tokenized.encode_documents import count_ids
from assets.tokenized.encoders import ReferenceEncoder, make_encoders
from assets.tokenized.token_spellings import BYTE_TOKEN, UNKNOWN_TOKEN, count_kinds, token_kinds
from assets.tokenized.tokenized_records import LanguageCounts, TextFit
from assets.tokenized.tokenizer_fit import sum_by_language, text_fits, warn_of_fit


def served(
    source: str, language: str, tokens: int, per_token: float, byte: float = 0, unknown: float = 0
) -> TextFit:
    """Texts with so many bytes per token, and shares of tokens of other kinds."""
    return TextFit(
        source=source,
        language=language,
        text_bytes=int(tokens * per_token),
        tokens=tokens,
        unknown_tokens=int(tokens * unknown),
        byte_tokens=int(tokens * byte),
    )


SAMPLE = [served("web", "en", 10**6, 4.4), served("wiki", "zh", 10**6, 3.2, byte=0.02)]


def warning(*texts: TextFit, sample: list[TextFit] = SAMPLE) -> str:
    """The warning of one source; empty if there is none."""
    return "".join(warn_of_fit(texts, sample, [served("other", "en", 10**6, 4.4)]))


@pytest.mark.parametrize(
    "texts",
    [
        [served("web", "en", 10**7, 4.0)],  # like that of the sample
        [served("wiki", "zh", 10**7, 2.9, byte=0.05)],
        [served("web", "en", 4_000, 1.0)],  # too little text
        [served("laws", "el", 4_000, 1.0)],
        [served("web", "en", 5_100, 3.3)],  # 25 % fewer, of a few documents
        # A language of less than a hundredth.
        [served("web", "en", 10**6, 4.4), served("web", "th", 9_000, 1.0, byte=0.9)],
        [],
    ],
)
def test_text_that_is_no_reason_to_warn(texts: list[TextFit]) -> None:
    assert warning(*texts) == ""


def test_a_source_that_takes_more_tokens_than_in_training_is_named_with_both_numbers() -> None:
    shown = warning(served("web", "en", 10**7, 3.3))
    assert "source 'web' badly: 3.30 bytes per token, 25% fewer than 4.40" in shown
    assert "in the sample that trained it. `corpus tokenizer retrain` trains" in shown


def test_a_new_language_of_a_known_source_is_named() -> None:
    texts = [served("web", "en", 10**7, 4.4), served("web", "th", 5 * 10**5, 1.1, byte=0.9)]
    shown = warning(*texts)
    assert "'th': 1.10 bytes per token, 71% fewer than 3.80" in shown
    assert "90.0% of the tokens are single bytes of characters, not 1.0%" in shown
    assert "on average in its sample" in shown


def test_a_new_source_is_compared_with_its_language_in_other_sources() -> None:
    assert warning(served("chat", "zh", 10**6, 2.5)).count("'zh'") == 0
    shown = warning(served("chat", "zh", 10**6, 1.2))
    assert "'zh': 1.20 bytes per token, 62% fewer than 3.20 in other sources" in shown


def test_unknown_tokens_and_many_languages_are_named() -> None:
    shown = warning(served("web", "en", 10**6, 4.4, unknown=0.03))
    assert "3.0% of the tokens are unknown, not 0.0%" in shown
    texts = [served("laws", f"l{number}", 10**5, 1.0) for number in range(9)]
    assert "; and 5 more languages. `corpus" in warning(*texts)


def test_a_loaded_tokenizer_is_compared_with_the_other_sources() -> None:
    shown = warning(served("laws", "el", 10**6, 1.3, byte=0.7), sample=[])
    assert "70% fewer than 4.40" in shown and "on average in the other sources" in shown


def test_counts_of_the_same_language_add_up() -> None:
    counts = LanguageCounts(9, {"en": 9, "fr": 3}, {}, {"en": 4, "fr": 0}, {}, {"en": 1})
    parts = text_fits({"web": counts})
    assert sum_by_language(parts + parts) == [served("web", "en", 8, 18 / 8, byte=2 / 8)]


def test_single_bytes_of_longer_characters_are_counted_by_document() -> None:
    encoders = make_encoders(trained())
    kinds = token_kinds(encoders.reference, 1000, (0,))
    texts = ["the a.b,c", "\U0001f9ff\U0001f9ff", "", "\u4dbf x"]
    tokens = pl.Series(
        [[*encoders.reference.tokenizer.encode(text).ids, 0] for text in texts],
        dtype=pl.List(pl.UInt16),
    )
    vocabulary = {i: text for text, i in encoders.reference.tokenizer.get_vocab().items()}

    found = count_kinds(tokens, kinds)

    expected = [
        sum(len(vocabulary[i]) == 1 and encoders.reference.decode([[i]]) == ["\ufffd"] for i in ids)
        for ids in tokens.to_list()
    ]
    assert found[BYTE_TOKEN].tolist() == expected
    assert expected[0] == expected[2] == 0 < expected[1]
    assert found[UNKNOWN_TOKEN].tolist() == [0, 0, 0, 0]


def test_the_unknown_token_is_counted_unless_it_marks_documents() -> None:
    model = {"type": "WordLevel", "vocab": {"<|endoftext|>": 0, "a": 1, "?": 2}, "unk_token": "?"}
    reference = ReferenceEncoder(changed(model=model, decoder=None))
    assert token_kinds(reference, 3, (0,)).tolist() == [0, 0, UNKNOWN_TOKEN]
    assert token_kinds(reference, 3, (2,)).tolist() == [0, 0, 0]


def test_bytes_of_models_that_fall_back_to_them_are_counted() -> None:
    vocab = {"<|endoftext|>": 0, "<0x0A>": 1, "<0xE4>": 2, "a": 3}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True}
    reference = ReferenceEncoder(changed(model=model, decoder=None, pre_tokenizer=None))
    kinds = token_kinds(reference, 4, (0,))
    assert kinds.tolist() == [0, 0, BYTE_TOKEN, 0]
    ids = pl.Series([[1, 2, 2, 0], [0], [3, 2, 0]], dtype=pl.List(pl.UInt32))
    assert count_kinds(ids, kinds)[BYTE_TOKEN].tolist() == [2, 0, 1]
    assert count_kinds(ids, np.zeros(4, np.uint8)).sum() == 0


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=9), max_size=6))
def test_ids_and_kinds_are_counted_as_a_loop_does(ids: list[list[int]]) -> None:
    kinds = np.array([0, 0, BYTE_TOKEN, UNKNOWN_TOKEN, BYTE_TOKEN, 0], np.uint8)
    tokens = pl.Series(ids, dtype=pl.List(pl.UInt16))
    counted = Counter(token for of_text in ids for token in of_text)

    found = count_kinds(tokens, kinds)

    assert count_ids(tokens, 6).tolist() == [counted[token] for token in range(6)]
    for kind in (UNKNOWN_TOKEN, BYTE_TOKEN):
        assert found[kind].tolist() == [sum(kinds[i] == kind for i in each) for each in ids]
    assert found[0].sum() == 0
