"""Long texts are encoded in pieces, to the ids of the whole."""

from itertools import accumulate, chain
from random import Random

from prelude import Any, given, json, np, pytest, settings, st
from small_tokenizer import sample_texts, trained

from assets.tokenized import text_pieces
from assets.tokenized.encoders import Encoder, Ids, Offsets, load_encoders
from assets.tokenized.text_pieces import INSIDE, encode_pieces, piece_end
from assets.tokenized.token_spellings import token_sizes

PARTS = st.sampled_from(
    [
        *(" ", "  ", "\n", "\t", "\r\n", "\x1c", "\x85", "\u00a0", "\u3000", "\u200b", "a", "word"),
        *("don't", "'s", "'", "'ll x", "I'LL", "é", "e\u0301", "ß", "河", "中文", "한", "ไ"),
        *("1", "23"),
        *("²", "Ⅳ", "٣", "x1y2", ",", ".", "...", "(", "=+", "-", "--", "!", "，", "。", "👩‍👩‍👧"),
        *("_", "<|endoftext|>", "/", "\x00", "\ufeff", "aaaa", "0000000000"),
    ]
)
FLAGS = ("add_prefix_space", "trim_offsets", "use_regex")
TEXTS = st.lists(PARTS, max_size=40).map("".join)


BYTE_LEVEL = {"type": "ByteLevel"} | dict.fromkeys(FLAGS, True)


def ids_in_pieces(encoder: Encoder, text: str, size: int) -> list[int]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_pieces, "PIECE_CHARS", size)
        patch.setattr(text_pieces, "SEARCHED_CHARS", size)
        sizes = token_sizes(load_encoders(trained()).reference)
        return np.concatenate(list(encode_pieces(encoder, text, sizes))).tolist()


def in_pieces(texts: list[str], size: int) -> tuple[list[int], list[int]]:
    ids = [ids_in_pieces(load_encoders(trained()).best, text, size) for text in texts]
    return list(chain(*ids)), list(accumulate(map(len, ids), initial=0))


def whole(texts: list[str]) -> tuple[list[int], list[int]]:
    ids, offsets = load_encoders(trained()).reference.encode(texts)
    return ids.tolist(), offsets.tolist()


@settings(max_examples=400)
@given(texts=st.lists(TEXTS, max_size=3), size=st.integers(1, 12))
def test_pieces_have_the_ids_of_the_whole(texts: list[str], size: int) -> None:
    assert in_pieces(texts, size) == whole(texts)


@pytest.mark.parametrize(
    "kind", ["prose", "digits", "letters", "one letter", "ideographs", "blanks"]
)
@pytest.mark.parametrize("size", [40, 101, 1000])
def test_long_runs_have_the_ids_of_the_whole(kind: str, size: int) -> None:
    draw = Random(size)
    text = {
        "prose": "\n".join(sample_texts()[:20]),
        "digits": "".join(draw.choices("0123456789", k=9000)),
        "letters": "".join(draw.choices("etaoinshrdlu", k=9000)),
        "one letter": "a" * 9000,
        "ideographs": "".join(draw.choices("的一是不了人我在有他这中大来上", k=9000)),
        "blanks": " " * 9000,
    }[kind]

    texts = [text, "", text[:50]]
    assert in_pieces(texts, size) == whole(texts)


@pytest.mark.parametrize("kind", ["0123456789", "etaoinshrdlu", "的一是不了人我在有他这中大来上"])
def test_runs_without_a_blank_are_encoded_in_pieces(kind: str) -> None:
    seen: list[int] = []

    class Counting:
        name = "counting"

        def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
            seen.extend(map(len, texts))
            return load_encoders(trained()).best.encode(texts)

    text = "".join(Random(1).choices(kind, k=20_000))
    ids_in_pieces(Counting(), text, 1000)

    assert max(seen) <= 1100 and sum(seen) < 4 * len(text)


def test_a_cut_is_the_last_one_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 20)

    assert piece_end("the mill by the river", 0) == 15
    assert piece_end("the mill", 0) == 8
    assert piece_end("x" * 50, 0) == 20
    assert INSIDE.match("don'tssss") is None


@pytest.mark.filterwarnings("ignore:fastokens")
@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}},
        {"pre_tokenizer": BYTE_LEVEL},
    ],
)
def test_texts_of_other_tokenizers_are_not_cut(change: dict[str, Any]) -> None:
    tokenizer_json = json.dumps(json.loads(trained()) | change)

    assert load_encoders(trained()).reference.splits_as_gpt2
    assert not load_encoders(tokenizer_json).reference.splits_as_gpt2
