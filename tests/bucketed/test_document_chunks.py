"""Documents are cut into segments; conversations stay whole, or end with an answer."""

from many_examples import many_examples
from prelude import Any, Callable, given, np, pl, pytest, settings, st
from tables import cases

from assets.bucketed.bucketed_records import BucketedNumbers
from assets.bucketed.document_chunks import (
    CUT,
    LEFT_OUT,
    Segments,
    cut_stream,
    powers_of_two,
    split,
    truncate,
    whole,
)
from assets.bucketed.make_sequences import make_sequences
from assets.bucketed.report import long_counts
from assets.bucketed.sequences import gather_masks
from resources.settings.buckets import BucketConfig

Ways = Callable[[np.ndarray], Segments]


def rows(segments: Segments) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in segments), strict=True))


def tokens(*counts: int) -> np.ndarray:
    return np.array(counts, np.int64)


def test_segments_of_documents() -> None:
    assert rows(whole(tokens(3, 0, 2))) == [(0, 0, 3), (2, 0, 2)]
    assert rows(truncate(tokens(3, 0, 9), 4)) == [(0, 0, 3), (2, 0, 4)]
    # A stream is cut wherever a sequence ends.
    segments, cut = cut_stream(tokens(3, 0, 6, 1), 4)
    assert rows(segments) == [(0, 0, 3), (2, 0, 1), (2, 1, 4), (2, 5, 1), (3, 0, 1)]
    assert cut.tolist() == [0, 0, 1, 2, 2]
    # Powers of two from the longest down, and a rest.
    first, *others = rows(powers_of_two(tokens(8 + 8 + 4 + 1, 0, 2, 3), 8, 2))
    assert first == (0, 0, 8)
    assert others == [(0, 8, 8), (0, 16, 4), (0, 20, 1), (2, 0, 2), (3, 0, 2), (3, 2, 1)]


@cases("""
    count | overlap | expected
    4     | 0       | [(0, 4)]
    5     | 0       | [(0, 4), (4, 1)]
    8     | 0       | [(0, 4), (4, 4)]
    4     | 1       | [(0, 4)]
    5     | 1       | [(0, 4), (3, 2)]
    7     | 1       | [(0, 4), (3, 4)]
    8     | 3       | [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
""")
def test_long_documents_are_split_into_full_pieces_and_a_rest(
    count: int, overlap: int, expected: list[tuple[int, int]]
) -> None:
    segments = rows(split(tokens(0, count), 4, overlap))
    assert segments == [(1, start, length) for start, length in expected]


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 70), max_size=20),
    st.sampled_from(
        [
            whole,
            lambda counts: split(counts, 8),
            lambda counts: cut_stream(counts, 8)[0],
            lambda counts: powers_of_two(counts, 16, 4),
            lambda counts: powers_of_two(counts, 1, 1),
        ]
    ),
)
def test_pieces_lie_end_to_end_and_cover_each_document(counts: list[int], cut: Ways) -> None:
    segments = rows(cut(tokens(*counts)))

    covered = [0] * len(counts)
    for document, start, length in segments:
        assert start == covered[document]
        assert length > 0
        covered[document] += length
    assert covered == counts
    found = [document for document, _, _ in segments]
    assert found == sorted(found)


def test_a_document_of_ten_million_tokens() -> None:
    assert len(split(tokens(10_000_000), 2048).lengths) == 4883
    assert split(tokens(10_000_000), 2048).lengths[-1] == 10_000_000 - 4882 * 2048
    assert len(powers_of_two(tokens(10_000_000), 1 << 20, 64).lengths) == 9 + 6


MODES = [
    {"mode": "pack"},
    {"mode": "pack", "long_documents": "truncate"},
    {"mode": "concat"},
    {"mode": "decompose", "min_length": 2},
]
# A conversation is a list of turns: tokens of a question, then of its answer.
TURNS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=5)


def conversations(chats: list[list[tuple[int, int]]]) -> pl.DataFrame:
    flags = [[f for q, a in chat for f in [False] * q + [True] * a] for chat in chats]
    tokens = [list(range(100 * i, 100 * i + len(each))) for i, each in enumerate(flags)]
    schema = {"doc_id": pl.String, "tokens": pl.List(pl.UInt16), "loss_mask": pl.List(pl.Boolean)}
    names = [f"{i:032x}" for i in range(len(chats))]
    return pl.DataFrame({"doc_id": names, "tokens": tokens, "loss_mask": flags}, schema=schema)


def made(chats: list[list[tuple[int, int]]], **config: Any) -> tuple[pl.DataFrame, BucketedNumbers]:
    length = {} if config.get("mode") == "buckets" else {"sequence_length": 16}
    settings = BucketConfig(**length | config)
    return make_sequences([conversations(chats)], settings, padding=9)


def kept_tokens(sequences: pl.DataFrame) -> dict[int, int]:
    """Tokens of each conversation by its number; each is in one span from its first token."""
    spans = sequences["spans"].explode(empty_as_null=False).struct.unnest()
    assert (spans["start"] == 0).all() and spans["doc_id"].n_unique() == spans.height
    return {int(doc_id, 16): length for doc_id, _, length in spans.iter_rows()}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(map(str, mode.values())))
@many_examples(100)
@given(chats=st.lists(TURNS, min_size=1, max_size=6))
def test_every_row_learns_and_every_span_ends_with_an_answer(
    mode: dict[str, Any], chats: list[list[tuple[int, int]]]
) -> None:
    sequences, numbers = made(chats, **mode)
    assert all(any(mask) for mask in sequences["loss_mask"])
    kept = kept_tokens(sequences)
    for number, turns in enumerate(chats):
        ends = np.cumsum([q + a for q, a in turns])
        assert kept.get(number, 0) == max([0, *ends[ends <= 16].tolist()])
    counts = long_counts(numbers)
    assert counts.get(LEFT_OUT, 0) == len(chats) - len(kept)
    assert counts.get(CUT, 0) == sum(kept[i] < sum(map(sum, chats[i])) for i in kept)


def with_turns(chats: list[list[list[tuple[int, int]]]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Documents of several conversations each, and these conversations as documents."""
    whole = conversations([[turn for chat in document for turn in chat] for document in chats])
    sizes = [[sum(map(sum, chat)) for chat in document] for document in chats]
    whole = whole.with_columns(turns=pl.Series(sizes, dtype=pl.List(pl.Int64)))
    alone = [
        (doc_id, tokens[stop - size : stop], flags[stop - size : stop])
        for doc_id, tokens, flags, turns in whole.iter_rows()
        for size, stop in zip(turns, np.cumsum(turns), strict=True)
    ]
    return whole, pl.DataFrame(alone, whole.drop("turns").schema, orient="row")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, {"mode": "buckets", "edges": (8, 16)}], ids=str)
@many_examples(50)
@given(
    chats=st.lists(st.lists(TURNS, min_size=1, max_size=3), min_size=1, max_size=4),
    cut=st.integers(0, 4),
    left_out=st.integers(0, 4),
)
def test_turns_are_packed_as_conversations_of_their_own(
    mode: dict[str, Any], chats: list[list[list[tuple[int, int]]]], cut: int, left_out: int
) -> None:
    whole, alone = with_turns(chats)
    length = {} if mode["mode"] == "buckets" else {"sequence_length": 16}
    settings = BucketConfig(**length | mode)
    is_gone, tables = np.arange(len(chats)) == left_out, [whole[:cut], whole[cut:]]
    found, numbers = make_sequences(tables, settings, 9, is_left_out=is_gone)
    is_gone_alone = alone["doc_id"].is_in(whole["doc_id"].filter(is_gone).implode()).to_numpy()
    expected, of_alone = make_sequences([alone], settings, 9, is_left_out=is_gone_alone)
    same = ("bucket", "num_tokens", "tokens", "loss_mask")
    assert found.select(same).equals(expected.select(same))
    assert numbers.bucket_tokens == of_alone.bucket_tokens

    for rows, spans in found.select("rows", "spans").iter_rows():
        for row, span in zip(rows, spans, strict=True):
            assert whole["doc_id"][row] == span["doc_id"]
            ends = np.cumsum(whole["turns"][row]).tolist()
            assert span["start"] in (0, *ends)


LONG = [[(4, 4), (4, 8)], [(2, 2)], [(14, 4)]]


@pytest.mark.parametrize(
    ("choice", "kept", "counts"),
    [("cut_turns", {0: 8, 1: 4}, {LEFT_OUT: 1, CUT: 1}), ("drop", {1: 4}, {LEFT_OUT: 2})],
)
def test_long_conversations_are_cut_or_left_out_and_counted(
    choice: str, kept: dict[int, int], counts: dict[str, int]
) -> None:
    sequences, numbers = made(LONG, long_conversations=choice)
    assert kept_tokens(sequences) == kept and long_counts(numbers) == counts


def test_long_conversations_can_be_an_error_or_have_a_bucket() -> None:
    with pytest.raises(ValueError, match=r"2 conversations have more than 16 tokens .*first 0{32}"):
        made(LONG, long_conversations="error")
    made(LONG[1:2], long_conversations="error")
    sequences, numbers = made(LONG, mode="buckets", edges=(8,))
    assert kept_tokens(sequences) == {0: 20, 1: 4, 2: 18} and not long_counts(numbers)
    sequences, numbers = made(LONG[2:])  # a window of nothing else has no sequence
    assert sequences.height == 0 and long_counts(numbers) == {LEFT_OUT: 1}


def test_masks_are_those_of_the_tokens_of_each_segment() -> None:
    first = conversations([[(1, 2)], [(2, 3)]])  # 0 1 1, and 0 0 1 1 1
    second = conversations([[(1, 1)]])  # 0 1
    segments = Segments(np.array([0, 1, 1, 2]), np.array([0, 1, 3, 0]), np.array([2, 2, 2, 2]))
    places, offsets = np.array([7, 3, 0, 5]), np.array([0, 5, 11])

    masks = gather_masks([first, second], segments, places, offsets)["loss_mask"]

    assert [[int(flag) for flag in mask] for mask in masks] == [[1, 1, 0, 0, 1], [0, 1, 0, 1, 0, 0]]
