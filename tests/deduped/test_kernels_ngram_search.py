"""Search for n-grams against slices of every window, and the filter without false negatives."""

from prelude import NDArray, example, given, np, pairwise, settings, st

from assets.deduped.kernels.ngram_search import (
    Table,
    Units,
    fill_filter,
    find_ngrams,
    hash_windows,
    mark_distinct,
    split_characters,
)
from assets.text.kernels.hashing import hash_bytes

Texts = list[list[str]]
PADDING = 16
words = st.sampled_from(["a", "b", "ab", "é", "中文𝒜"])
texts = st.lists(st.lists(words, max_size=12), max_size=3)


def word_columns(contents: Texts) -> tuple[NDArray[np.uint8], ...]:
    """Words with a blank after each, as `join_words` returns them."""
    spelled = [f"{word} ".encode() for text in contents for word in text]
    data = np.frombuffer(b"".join(spelled) + bytes(PADDING), np.uint8)
    starts = np.cumsum([0, *map(len, spelled)])
    return data, starts, np.cumsum([0, *map(len, contents)])


def units_of(contents: Texts) -> Units:
    return Units(*word_columns(contents))  # type: ignore[arg-type]


def key_of(window: list[str], key_bits: int = 64) -> int:
    content = np.frombuffer("".join(f"{word} " for word in window).encode(), np.uint8)
    return int(hash_bytes(content, np.uint64(0), np.uint64(len(content)))) >> (64 - key_bits)


def array(values: list[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def table_of(ngrams: Texts, key_bits: int) -> Table:
    """A table of distinct n-grams in the order of their keys."""
    shortest = min(map(len, ngrams))
    stride = max(1, shortest // 2)
    gram = shortest - stride + 1
    units = units_of(ngrams)
    edges = [int(units.starts[row]) for row in units.offsets]
    bits = min(2, key_bits)
    keys = [key_of(ngram, key_bits) for ngram in ngrams]
    buckets = [sum(key >> (key_bits - bits) < i for key in keys) for i in range(2**bits + 1)]
    return Table(
        keys=np.array(keys, np.uint64),
        starts=array(edges[:-1]),
        stops=array(edges[1:]),
        data=units.data,
        buckets=array(buckets),
        shift=key_bits - bits,
        key_bits=key_bits,
        lengths=array(sorted({len(ngram) for ngram in ngrams})),
        stride=stride,
        gram=gram,
        filter=fill_filter(units, units.offsets[:-1], stride, gram),
    )


@given(texts)
@example([["a", "中文𝒜"], [], ["é"]])
def test_words_are_split_into_characters(contents: Texts) -> None:
    letters, starts, offsets = split_characters(*word_columns(contents))

    characters = [character for text in contents for character in "".join(text)]
    assert [letters[a:b].tobytes().decode() for a, b in pairwise(starts)] == characters
    assert np.diff(offsets).tolist() == [len("".join(text)) for text in contents]


@given(st.lists(words, min_size=1, max_size=9), st.sampled_from([1, 7, 64]), st.data())
def test_windows_have_the_hash_of_their_bytes(
    text: list[str], key_bits: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(text) - 1))
    size = data.draw(st.integers(1, len(text) - first))

    keys = hash_windows(units_of([text]), array([first]), array([size]), key_bits)

    assert keys.tolist() == [key_of(text[first : first + size], key_bits)]


def test_a_filter_has_twelve_bits_per_gram_and_two_of_each_set() -> None:
    text = [f"w{i}" for i in range(5000)]
    units = units_of([text])

    few = fill_filter(units, array([0]), 2, 3)
    many = fill_filter(units, array([*range(0, 4900, 7)]), 2, 3)

    grams = [text[0:4], text[0:3], text[1:4]]
    assert len(few) == 64
    assert np.bitwise_count(few).sum() == len(
        {
            (key * 0xD6E8FEB86659FD93 % 2**64 >> 32 & 63, bit)
            for key in map(key_of, grams)
            for bit in (key & 63, key >> 6 & 63)
        }
    )
    assert len(many) == 512  # 700 n-grams of 3 grams: 25,200 bits


@given(st.lists(st.tuples(st.integers(0, 2), words), max_size=20), st.integers(1, 3))
@example([(0, "a"), (0, "a"), (1, "a"), (2, "a")], 2)
def test_an_ngram_is_kept_once_per_item_in_the_first_items(
    ngrams: list[tuple[int, str]], most: int
) -> None:
    for collide in (False, True):
        keyed = sorted(
            ((0 if collide else len(w), item, w) for item, w in ngrams), key=lambda r: r[:2]
        )
        seen: dict[str, list[int]] = {}
        expected = []
        for _, item, word in keyed:
            items = seen.setdefault(word, [])
            expected.append(item not in items and len(items) < most)
            items += [item] if expected[-1] else []
        spelled = [word.encode() for _, _, word in keyed]
        edges = np.cumsum([0, *map(len, spelled)])

        is_kept = mark_distinct(
            np.array([key for key, _, _ in keyed], np.uint64),
            array([item for _, item, _ in keyed]),
            np.stack([edges[:-1], edges[1:]], axis=1),
            np.frombuffer(b"".join(spelled) or b" ", np.uint8),
            most,
        )

        assert is_kept.tolist() == expected


@settings(max_examples=300)
@given(
    texts,
    st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=6, unique_by=tuple),
    st.sampled_from([64, 1, 5]),
)
@example([["a"] * 12] * 8, [["a"], ["a", "a"]], 64)  # more matches than there is room for at first
@example([["a", "b", "a"]], [["b", "a"], ["a", "b", "a"]], 64)
def test_all_ngrams_of_texts_are_found(contents: Texts, ngrams: Texts, key_bits: int) -> None:
    shortest = min(map(len, ngrams))
    ngrams = sorted(ngrams, key=lambda ngram: key_of(ngram, key_bits))
    expected = [
        (row, first, ngrams.index(text[first : first + size]))
        for row, text in enumerate(contents)
        for first in range(len(text))
        for size in range(shortest, len(text) - first + 1)
        if text[first : first + size] in ngrams
    ]

    matches = find_ngrams(units_of(contents), table_of(ngrams, key_bits))

    assert [tuple(match) for match in matches.tolist()] == expected
