"""Similarity of pairs and the rule for duplicates against sets and fractions."""

from many_examples import many_examples
from prelude import Any, example, given, np, pytest, st

from assets.deduped.kernels.pair_similarity import (
    BY_SHINGLES,
    BY_SIGNATURE,
    NOT_VERIFIED,
    Evidence,
    compare_with_survivors,
    is_duplicate,
    similarity,
)

VALUES, ROWS = 6, 2  # of a signature, of a band


def evidence(
    texts: list[int],
    fields: list[int],
    groups: list[int],
    signatures: list[list[int]],
    signed: list[bool],
    sets: list[set[int]],
    verify: int = BY_SIGNATURE,
    threshold: float = 0.5,
) -> Evidence:
    """Documents with equal texts, fields and groups where the numbers are equal."""
    firsts = [[column.index(value) for value in column] for column in (texts, fields)]
    stops = np.cumsum([len(values) for values in sets])
    arrays = (
        np.ascontiguousarray(np.array(firsts, np.uint32).T),
        np.array(groups, np.uint64),
        np.array(signatures, np.uint32),
        np.array(signed, np.bool_),
        np.array([value for values in sets for value in sorted(values)], np.uint64),
        np.stack([np.append(0, stops[:-1]), stops], axis=1),
    )
    for array in arrays:
        array.flags.writeable = False
    return Evidence(*arrays, verify, ROWS, threshold)


@st.composite
def documents(draw: st.DrawFn, count: int = 3) -> dict[str, Any]:
    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    signature = st.lists(st.integers(0, 1), min_size=VALUES, max_size=VALUES)
    return {
        "texts": column(st.integers(0, 4)),
        "fields": column(st.integers(0, 4)),
        "groups": column(st.integers(0, 1)),
        "signatures": column(signature),
        "signed": column(st.booleans() | st.just(True)),
        "sets": column(st.sets(st.integers(0, 6) | st.just(2**64 - 1))),
        "verify": draw(st.sampled_from([NOT_VERIFIED, BY_SIGNATURE, BY_SHINGLES])),
        "threshold": draw(st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0])),
    }


def expected_similarity(docs: dict[str, Any], a: int, b: int) -> float:
    if docs["texts"][a] == docs["texts"][b]:
        return 1.0
    if not (docs["signed"][a] and docs["signed"][b]):
        return 0
    one: set[int] = docs["sets"][a]
    other: set[int] = docs["sets"][b]
    if docs["verify"] == BY_SHINGLES:
        return len(one & other) / len(one | other) if one | other else 0
    pairs = zip(docs["signatures"][a], docs["signatures"][b], strict=True)
    return float(sum(x == y for x, y in pairs) / VALUES)


def expected_duplicate(docs: dict[str, Any], a: int, b: int) -> bool:
    if docs["texts"][a] == docs["texts"][b] or docs["fields"][a] == docs["fields"][b]:
        return True
    if not (docs["signed"][a] and docs["signed"][b]) or docs["groups"][a] != docs["groups"][b]:
        return False
    if docs["verify"] == NOT_VERIFIED:
        one, other = docs["signatures"][a], docs["signatures"][b]
        return any(one[k : k + ROWS] == other[k : k + ROWS] for k in range(0, VALUES, ROWS))
    return bool(expected_similarity(docs, a, b) >= docs["threshold"])


TWINS: dict[str, Any] = {
    "texts": [0, 1, 2],
    "fields": [0, 1, 2],
    "groups": [0, 0, 0],
    "signatures": [[1] * 6, [0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]],
    "signed": [True] * 3,
    "sets": [{1, 2}, {2, 3}, set()],
    "verify": NOT_VERIFIED,
    "threshold": 1 / 3,
}


@pytest.mark.slow
@many_examples(300)
@given(documents())
@example(TWINS)
@example({**TWINS, "verify": BY_SIGNATURE})
@example({**TWINS, "verify": BY_SHINGLES})
def test_similarity_and_duplicates_equal_the_definitions(docs: dict[str, Any]) -> None:
    compared = evidence(**docs)

    for a in range(3):
        for b in range(3):
            assert similarity(compared, a, b) == expected_similarity(docs, a, b)
            assert is_duplicate(compared, a, b) == expected_duplicate(docs, a, b)


@given(documents(), st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_rows_are_compared_with_their_survivors(docs: dict[str, Any], survivors: list[int]) -> None:
    compared = evidence(**docs)

    similarities, methods = compare_with_survivors(compared, np.array(survivors, np.int32))

    for row, kept in enumerate(survivors):
        equal = [docs[name][row] == docs[name][kept] for name in ("texts", "fields")]
        measured = equal[0] or (docs["signed"][row] and docs["signed"][kept])
        like = np.float32(expected_similarity(docs, row, kept)) if measured else np.nan
        assert methods[row] == (0 if kept == row else [*equal, True].index(True))
        np.testing.assert_equal(similarities[row], np.float32(1) if kept == row else like)
