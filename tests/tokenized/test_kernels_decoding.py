"""Texts spelled by tokens against joined bytes."""

from prelude import Any, NDArray, example, given, np, pytest, settings, st

from assets.tokenized.kernels.decoding import are_decoded

TOKENS = [b"a", b"b", b"ab", b"12345678", b"123456789", b"a" * 17, b"\xff\x00", b"", b"1234567"]
LETTERS = [TOKENS.index(b"a"), TOKENS.index(b"b")]
id_lists = st.lists(st.lists(st.integers(0, len(TOKENS) - 1), max_size=6), max_size=4)


def spelled() -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint64]]:
    """The bytes of all ids, their edges, and each as a number at the highest bits."""
    words = [int.from_bytes(t[:8], "little") << 8 * (8 - len(t[:8])) for t in TOKENS]
    edges = np.cumsum([0, *map(len, TOKENS)])
    return np.frombuffer(b"".join(TOKENS), np.uint8), edges, np.array(words, np.uint64)


def decoded(ids: list[list[int]], texts: list[bytes], dtype: type = np.uint16) -> list[bool]:
    edges = np.cumsum([0, *map(len, ids)])
    text_edges = np.cumsum([0, *map(len, texts)])
    flat: NDArray[Any] = np.array([i for of_text in ids for i in of_text], dtype)
    data = np.frombuffer(b"".join(texts), np.uint8)
    is_equal: list[bool] = are_decoded(
        flat, (edges[:-1, None], edges[1:, None]), spelled(), (data, text_edges)
    ).tolist()
    return is_equal


@settings(max_examples=300)
@given(id_lists, st.data())
@example([[3, 0], [4, 1], [7]], None)
def test_a_text_is_decoded_if_its_tokens_join_to_it(
    ids: list[list[int]], data: st.DataObject | None
) -> None:
    texts = [b"".join(TOKENS[i] for i in of_text) for of_text in ids]
    if data is not None and texts:
        row = data.draw(st.integers(0, len(texts) - 1))
        at = data.draw(st.integers(0, len(texts[row])))
        change = data.draw(st.sampled_from([b"", b"a", b"\x00"]))
        texts[row] = texts[row][:at] + change + texts[row][at + data.draw(st.integers(0, 1)) :]

    expected = [
        b"".join(TOKENS[i] for i in of_text) == text
        for of_text, text in zip(ids, texts, strict=True)
    ]
    assert decoded(ids, texts) == decoded(ids, texts, np.uint32) == expected


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 17, 40])
def test_a_change_in_any_byte_is_noticed(size: int) -> None:
    ids = [[LETTERS[i % 2] for i in range(size)], LETTERS * 20]
    text = (b"ab" * size)[:size]

    assert decoded(ids, [text, b"ab" * 20]) == [True, True]
    for at in range(size):
        changed = text[:at] + b"?" + text[at + 1 :]
        assert decoded(ids, [changed, b"ab" * 20]) == [False, True]


def test_a_token_must_not_reach_into_the_next_text() -> None:
    ab, a = TOKENS.index(b"ab"), TOKENS.index(b"a")

    assert decoded([[ab], [a]], [b"a", b"ba"]) == [False, False]
    assert decoded([[a, TOKENS.index(b"a" * 17)], [a]], [b"a" * 10, b"a" * 30]) == [False, False]
