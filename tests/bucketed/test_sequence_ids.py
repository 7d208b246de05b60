"""Identities of sequences: the same wherever they are, others when anything in them differs."""

from prelude import Callable, np, pl, pytest

from assets.bucketed.sequences import SPAN, sequence_ids

Span = tuple[int, int, int]


def rows(
    *sequences: tuple[list[int], list[Span]], dtype: type[pl.DataType] = pl.UInt16
) -> pl.DataFrame:
    """Sequences of these tokens and spans (document, start, length)."""
    spans = [
        [{"doc_id": f"{doc:032x}", "start": start, "length": size} for doc, start, size in each]
        for _, each in sequences
    ]
    columns = {"tokens": [tokens for tokens, _ in sequences], "spans": spans}
    return pl.DataFrame(columns, schema={"tokens": pl.List(dtype), "spans": pl.List(SPAN)})


ONE = ([1, 2, 3, 0], [(7, 0, 2), (8, 5, 1)])
OTHERS = {
    "tokens": ([1, 2, 4, 0], [(7, 0, 2), (8, 5, 1)]),
    "padding": ([1, 2, 3], [(7, 0, 2), (8, 5, 1)]),
    "document": ([1, 2, 3, 0], [(7, 0, 2), (9, 5, 1)]),
    "start": ([1, 2, 3, 0], [(7, 0, 2), (8, 6, 1)]),
    "length": ([1, 2, 3, 0], [(7, 0, 1), (8, 5, 2)]),
    "order": ([1, 2, 3, 0], [(8, 5, 1), (7, 0, 2)]),
}


def as_it_is(table: pl.DataFrame) -> pl.DataFrame:
    return table


def with_masks(table: pl.DataFrame) -> pl.DataFrame:
    """The same sequences as conversations, of which each even token is learned."""
    is_even = pl.col("tokens").list.eval(pl.element() % 2 == 0)
    return table.with_columns(is_even.alias("loss_mask"))


@pytest.fixture(params=[as_it_is, with_masks])
def of_kind(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Sequences of texts, or of conversations."""
    kind: Callable[[pl.DataFrame], pl.DataFrame] = request.param
    return kind


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_sequences_that_differ_have_other_identities(
    other: tuple[list[int], list[Span]], of_kind: Callable[[pl.DataFrame], pl.DataFrame]
) -> None:
    first, second = sequence_ids(of_kind(rows(ONE, other)))

    assert first.tolist() != second.tolist()
    assert sequence_ids(of_kind(rows())).shape == (0, 2)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("column", ["tokens", "loss_mask"])
def test_each_token_and_each_flag_of_a_mask_is_in_the_identity(column: str, place: int) -> None:
    table = with_masks(rows(ONE, ONE))
    changed = table[column].to_list()
    changed[1][place] = 9 if column == "tokens" else not changed[1][place]
    other = table.with_columns(pl.Series(column, changed, table.schema[column]))

    assert sequence_ids(other)[1].tolist() != sequence_ids(table)[1].tolist()


def test_an_identity_depends_on_its_sequence_alone(
    of_kind: Callable[[pl.DataFrame], pl.DataFrame],
) -> None:
    table = of_kind(rows(*OTHERS.values(), ONE))

    alone, sliced = sequence_ids(of_kind(rows(ONE))), sequence_ids(table[3:])

    assert sequence_ids(table)[-1].tolist() == alone[0].tolist() == sliced[-1].tolist()
    assert sequence_ids(rows(ONE, dtype=pl.UInt32)).tolist() != alone.tolist()


def test_identities_never_change_and_of_like_sequences_are_told_apart_by_their_order() -> None:
    [golden] = sequence_ids(rows(ONE)).tolist()
    assert golden == [7582887606668004925, 15420898477361014539]
    masked = sequence_ids(with_masks(rows(ONE)))
    assert masked.tolist() == [[14211599727378119313, 13413591947254483198]]
    ids = sequence_ids(rows(ONE, OTHERS["start"], ONE, ONE))
    assert len(np.unique(ids, axis=0)) == 4
    assert ids[0].tolist() == golden
