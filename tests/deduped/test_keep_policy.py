"""The keep policy as a ranking."""

from prelude import Any, pl, pytest

from assets.deduped.clusters.duplicates import order_of_ids, ranking
from resources.settings.dedup import DedupConfig

NAN = float("nan")


def ranked(config: DedupConfig, **columns: list[Any]) -> list[int]:
    """Rows from the best to the worst; their doc_ids descend."""
    height = len(next(iter(columns.values())))
    types: dict[str, Any] = {
        **{"source": pl.String, "generation": pl.UInt32, "quality": pl.Float64},
        **{"num_chars": pl.UInt32, "date": pl.Int64, "cleanliness": pl.Int64},
    }
    filled = {name: columns.get(name, [None] * height) for name in types}
    members = pl.DataFrame(filled, schema=types)
    doc_ids = pl.Series([f"{9 - i:032x}" for i in range(height)])
    ranks, order = ranking(members, order_of_ids(doc_ids), config)
    assert [ranks[row] for row in order] == list(range(height))
    return [int(row) for row in order]


@pytest.mark.parametrize(
    ("keep", "columns", "order"),
    [
        ((), {"source": ["a", "b", "c"]}, [2, 1, 0]),
        (("priority",), {"source": ["x", "web", "y", "books"]}, [3, 1, 2, 0]),
        (("ingested",), {"generation": [2, 0, 1, 0]}, [3, 1, 2, 0]),
        (("quality",), {"quality": [None, 0.5, NAN, -1.0, 2.0]}, [4, 1, 3, 2, 0]),
        (("longest",), {"num_chars": [1, 2**32 - 1, 5, 5]}, [1, 3, 2, 0]),
        (("cleanest",), {"cleanliness": [7, 9, 8]}, [1, 2, 0]),
        (
            ("ingested", "cleanest", "longest"),
            {"generation": [1, 0, 0], "cleanliness": [9, 5, 5], "num_chars": [9, 1, 2]},
            [2, 1, 0],
        ),
        (("newest",), {"date": [5, None, -7, 5]}, [3, 0, 2, 1]),
        (("oldest",), {"date": [5, None, -7, 5]}, [2, 3, 0, 1]),
        (
            ("longest", "ingested"),
            {"num_chars": [1, 9, 9], "generation": [0, 2, 1]},
            [2, 1, 0],
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_the_keys_rank_in_their_order_and_doc_id_last(
    keep: Any, columns: dict[str, list[Any]], order: list[int]
) -> None:
    config = DedupConfig(
        keep=keep, priority=("books", "web", "books"), quality_field="meta.q", date_field="meta.d"
    )

    assert ranked(config, **columns) == order


def test_all_128_bits_of_a_doc_id_count() -> None:
    doc_ids = pl.Series(["f" + "0" * 31, "0" * 31 + "2", "0" * 31 + "1"])

    assert order_of_ids(doc_ids).tolist() == [2, 1, 0]


def test_a_repeated_doc_id_is_named() -> None:
    with pytest.raises(ValueError, match=r"'0{31}b' occurs more than once"):
        order_of_ids(pl.Series([f"{number:032x}" for number in (11, 3, 11)]))
