"""Long texts are encoded in pieces, to the ids of the whole."""

from itertools import accumulate, chain
from random import Random

from many_examples import many_examples
from prelude import Any, given, json, np, pytest, settings, st
from small_tokenizer import sample_texts, trained, trained_on_places, trained_with

from assets.tokenized import text_pieces
from assets.tokenized.encoders import Encoder, Ids, Offsets, load_encoders
from assets.tokenized.text_pieces import INSIDE, PUBLISHED, encode_pieces, inside_words, piece_end
from assets.tokenized.token_spellings import token_sizes
from resources.settings.tokenizer import GPT2, PATTERNS

PARTS = st.sampled_from(
    [
        *(" ", "  ", "\n", "\t", "\r\n", "\x1c", "\x85", "\u00a0", "\u3000", "\u200b", "a", "word"),
        *("don't", "'s", "'", "'ll x", "I'LL", "é", "e\u0301", "ß", "河", "中文", "한", "ไ"),
        *("1", "23"),
        *("²", "Ⅳ", "٣", "x1y2", ",", ".", "...", "(", "=+", "-", "--", "!", "，", "。", "👩‍👩‍👧"),
        *("_", "<|endoftext|>", "/", "\x00", "\ufeff", "aaaa", "0000000000"),
        *("B", "AAAA", "aB", "AAb", "中A", "ǅ", "ʰ", "कि", "ा", ".\n", "(/", "\r", "\n\n", " \n"),
    ]
)
FLAGS = ("add_prefix_space", "trim_offsets", "use_regex")
TEXTS = st.lists(PARTS, max_size=40).map("".join)


BYTE_LEVEL = {"type": "ByteLevel"} | dict.fromkeys(FLAGS, True)


def two_steps(**other: Any) -> dict[str, Any]:
    """A pre-tokenizer with a split of its own, but for some keys that of Llama 3."""
    split = {"type": "Split", "pattern": {"Regex": PATTERNS["llama3"]}, "behavior": "Isolated"}
    to_bytes = BYTE_LEVEL | {"add_prefix_space": False, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [split | {"invert": False} | other, to_bytes]}


def ids_in_pieces(encoder: Encoder, text: str, size: int, tokenizer_json: str) -> list[int]:
    reference = load_encoders(tokenizer_json).reference
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_pieces, "PIECE_CHARS", size)
        patch.setattr(text_pieces, "SEARCHED_CHARS", size)
        pieces = encode_pieces(encoder, text, token_sizes(reference), inside_words(reference))
        return np.concatenate(list(pieces)).tolist()


def in_pieces(texts: list[str], size: int, tokenizer_json: str) -> tuple[list[int], list[int]]:
    best = load_encoders(tokenizer_json).best
    ids = [ids_in_pieces(best, text, size, tokenizer_json) for text in texts]
    return list(chain(*ids)), list(accumulate(map(len, ids), initial=0))


def whole(texts: list[str], tokenizer_json: str) -> tuple[list[int], list[int]]:
    ids, offsets = load_encoders(tokenizer_json).reference.encode(texts)
    return ids.tolist(), offsets.tolist()


SPLITS = [(name, digits) for name in PATTERNS for digits in (None, 1, 3)]


@pytest.mark.parametrize(("pattern", "digits"), SPLITS)
def test_pieces_of_published_patterns_have_the_ids_of_the_whole(
    pattern: str, digits: int | None
) -> None:
    tokenizer_json = trained_on_places(pattern, digits)
    assert load_encoders(tokenizer_json).reference.split_regex in PUBLISHED

    @many_examples(600)
    @given(texts=st.lists(TEXTS, max_size=3), size=st.integers(1, 12))
    def check(texts: list[str], size: int) -> None:
        assert in_pieces(texts, size, tokenizer_json) == whole(texts, tokenizer_json)

    check()


@settings(max_examples=400)
@given(texts=st.lists(TEXTS, max_size=3), size=st.integers(1, 12))
def test_pieces_have_the_ids_of_the_whole(texts: list[str], size: int) -> None:
    assert in_pieces(texts, size, trained()) == whole(texts, trained())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "kind", ["prose", "digits", "letters", "one letter", "ideographs", "blanks"]
)
@pytest.mark.parametrize("size", [40, 101, 1000])
def test_long_runs_have_the_ids_of_the_whole(kind: str, size: int, pattern: str) -> None:
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
    tokenizer_json = trained_with(pattern=pattern)
    assert in_pieces(texts, size, tokenizer_json) == whole(texts, tokenizer_json)


@pytest.mark.parametrize("kind", ["0123456789", "etaoinshrdlu", "的一是不了人我在有他这中大来上"])
def test_runs_without_a_blank_are_encoded_in_pieces(kind: str) -> None:
    seen: list[int] = []

    class Counting:
        name = "counting"

        def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
            seen.extend(map(len, texts))
            return load_encoders(trained()).best.encode(texts)

    text = "".join(Random(1).choices(kind, k=20_000))
    ids_in_pieces(Counting(), text, 1000, trained())

    assert max(seen) <= 1100 and sum(seen) < 4 * len(text)


def test_a_cut_is_the_last_one_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pieces, "PIECE_CHARS", 20)

    assert piece_end("the mill by the river", 0, INSIDE) == 15
    assert piece_end("the mill", 0, INSIDE) == 8
    assert piece_end("x" * 50, 0, INSIDE) == 20
    assert INSIDE.match("don'tssss") is None


@pytest.mark.filterwarnings("ignore:fastokens")
@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}},
        {"pre_tokenizer": BYTE_LEVEL},
        {"pre_tokenizer": BYTE_LEVEL | {"add_prefix_space": False, "use_regex": False}},
        {"pre_tokenizer": two_steps(behavior="Removed")},
        {"pre_tokenizer": two_steps(invert=True)},
        {"pre_tokenizer": two_steps(pattern={"String": " "})},
        {"pre_tokenizer": two_steps(pattern={"Regex": "a+"})},
        {"model": json.loads(trained())["model"] | {"ignore_merges": True}},
    ],
)
def test_texts_of_other_tokenizers_are_not_cut(change: dict[str, Any]) -> None:
    tokenizer_json = json.dumps(json.loads(trained()) | change)

    assert load_encoders(trained()).reference.split_regex == PATTERNS[GPT2]
    assert load_encoders(tokenizer_json).reference.split_regex not in PUBLISHED
