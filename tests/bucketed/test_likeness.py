"""Documents alike side by side: by their own tokens alone, whole and with as little padding."""

from prelude import ValidationError, given, np, pl, pytest, settings, st

from assets.bucketed.likeness import COMMON, near_names
from assets.bucketed.make_sequences import document_names, make_sequences
from resources.settings.buckets import BucketConfig

END = 60_000
PLAIN = BucketConfig(sequence_length=64)
SIMILAR = BucketConfig(sequence_length=64, neighbours="similar")


def tokenized(documents: list[list[int]], first: int = 0) -> pl.DataFrame:
    doc_ids = [
        f"{(first + row) * 0x9E3779B97F4A7C15 % 2**128:032x}" for row in range(len(documents))
    ]
    schema = {"doc_id": pl.String, "tokens": pl.List(pl.UInt16)}
    return pl.DataFrame({"doc_id": doc_ids, "tokens": documents}, schema=schema)


def topics(number: int, words: int = 40) -> tuple[pl.DataFrame, dict[str, int]]:
    """Documents of 40 topics, half of their tokens common ones; the topic of each by its id."""
    random = np.random.Generator(np.random.PCG64(1))
    topic = random.integers(0, 40, number)
    documents = [
        [
            *random.integers(0, COMMON, size // 2).tolist(),
            *random.integers(COMMON + words * of, COMMON + words * (of + 1), size).tolist(),
        ]
        for of, size in zip(topic.tolist(), random.integers(6, 30, number).tolist(), strict=True)
    ]
    table = tokenized(documents)
    return table, dict(zip(table["doc_id"].to_list(), topic.tolist(), strict=True))


def same_topic(sequences: pl.DataFrame, topic: dict[str, int]) -> float:
    """Share of neighbours in a sequence that have the same topic."""
    found = []
    for spans in sequences["spans"]:
        of = [topic[span["doc_id"]] for span in spans]
        found += [one == other for one, other in zip(of[1:], of[:-1], strict=True)]
    return float(np.mean(found))


def test_documents_alike_are_in_the_same_sequence() -> None:
    table, topic = topics(4000)

    plain, _ = make_sequences([table], PLAIN, END)
    similar, counts = make_sequences([table], SIMILAR, END)

    assert same_topic(plain, topic) < 0.04
    assert same_topic(similar, topic) > 0.12
    assert sorted(d["doc_id"] for row in similar["spans"] for d in row) == sorted(topic)
    assert counts.documents_cut == 0
    assert similar.height <= plain.height + 1


def test_a_document_that_goes_moves_few_sequences() -> None:
    table, _ = topics(4000)
    before, _ = make_sequences([table], SIMILAR, END)
    after, _ = make_sequences([table.with_row_index().filter(pl.col("index") != 7)], SIMILAR, END)

    kept = before["spans"].is_in(after["spans"].implode())
    assert kept.mean() > 0.9  # type: ignore[operator]


documents = st.lists(st.lists(st.integers(0, 9000), max_size=6), max_size=8)


@settings(max_examples=60)
@given(documents, documents)
def test_a_document_is_named_by_its_own_tokens(
    one: list[list[int]], other: list[list[int]]
) -> None:
    tables = [tokenized(one), tokenized(other, len(one))]

    together = near_names(tables, document_names(tables))

    alone = [near_names([table], document_names([table])) for table in tables]
    assert together.tolist() == [name for each in alone for name in each.tolist()]
    first = {}
    for tokens, name in zip([*one, *other], together.tolist(), strict=True):
        rare = frozenset(token for token in tokens if token >= COMMON)
        if rare:
            assert first.setdefault(rare, name >> 32) == name >> 32


def test_documents_of_common_tokens_keep_their_names() -> None:
    table = tokenized([[], [1, 2], [COMMON - 1]])
    names = document_names([table])

    assert near_names([table], names).tolist() == names.tolist()


def test_only_packing_puts_documents_alike_side_by_side() -> None:
    with pytest.raises(ValidationError, match="neighbours has no meaning in mode concat"):
        BucketConfig(mode="concat", neighbours="similar")
    assert "neighbours" not in PLAIN.model_dump(mode="json")
