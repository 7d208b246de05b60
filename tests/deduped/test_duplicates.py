"""Clusters and survivors of literal documents."""

from collections.abc import Sequence

from cluster_members import Doc, as_pairs, candidates, config, doc, table
from prelude import Any, NDArray, given, np, pl, pytest, settings, st

from assets.deduped.clusters.duplicates import CLUSTER_SCHEMA, decide
from resources.settings.dedup import DedupConfig


def removals(clusters: pl.DataFrame) -> dict[int, int]:
    """{number of a removed document: number of its survivor}."""
    removed = clusters.filter(pl.col("method").is_not_null())
    numbers = removed.select(pl.col("doc_id", "kept_doc_id").str.to_integer(base=16))
    return dict(numbers.rows())


def decided(docs: Sequence[Doc], policy: DedupConfig) -> dict[int, int]:
    return removals(decide(table(docs), as_pairs(candidates(docs)), policy))


def chain(length: int) -> list[Doc]:
    """Documents each of which shares a band with the next one, and with no other."""
    return [doc(i, signature=(i // 2, 100, (i + 1) // 2, 200)) for i in range(length)]


def test_a_cluster_says_who_stays_and_why() -> None:
    docs = [
        doc(1, text=1, url=7, signature=(1, 2, 3, 4), num_chars=9, source="books"),
        doc(2, text=1, url=7, signature=(1, 2, 3, 4), num_chars=8),
        doc(3, text=2, url=7, num_chars=7),
        doc(4, text=3, signature=(1, 2, 8, 4), num_chars=6),
    ]

    clusters = decide(table(docs), as_pairs(candidates(docs)), config())

    assert clusters["method"].to_list() == [None, "exact", "field:url", "minhash"]
    assert clusters["similarity"].to_list() == [None, 1.0, None, 0.75]
    assert set(clusters["kept_doc_id"]) == set(clusters["cluster_id"]) == {docs[0].doc_id}
    assert set(clusters["kept_source"]) == {"books"}
    assert set(clusters["cluster_size"]) == {4}


@pytest.mark.parametrize("length", [10, 200])
def test_of_a_chain_a_star_removes_only_neighbours_of_what_stays(length: int) -> None:
    expected = {i: i - 1 for i in range(1, length, 2)}

    assert decided(chain(length), config(clusters="star")) == expected


def test_a_newcomer_joins_the_better_of_two_old_clusters_and_leaves_them_apart() -> None:
    docs = [
        doc(1, signature=(1, 1, 5, 5), num_chars=5),
        doc(2, signature=(6, 6, 2, 2), num_chars=9),
        doc(3, signature=(1, 1, 2, 2), num_chars=99, generation=1),
    ]

    assert decided(docs, config(keep=["ingested", "longest"])) == {3: 2}
    assert decided(docs, config(keep=["longest"])) == {1: 3, 2: 3}


def test_under_star_a_better_newcomer_displaces_unless_ingested_is_first() -> None:
    docs = [doc(1, text=1), doc(2, text=1, source="books", generation=1)]
    policy = {"clusters": "star", "priority": ["books"]}

    assert decided(docs, config(keep=["ingested", "priority"], **policy)) == {2: 1}
    assert decided(docs, config(keep=["priority", "ingested"], **policy)) == {1: 2}


def test_of_several_that_stay_the_most_similar_is_the_survivor() -> None:
    docs = [
        doc(1, signature=(1, 1, 5, 6), num_chars=9),
        doc(2, signature=(7, 8, 2, 2), num_chars=8),
        doc(3, signature=(1, 1, 2, 6), num_chars=7),
        doc(4, signature=(7, 9, 2, 2), url=5, num_chars=6),
        doc(5, signature=(1, 1, 2, 2), url=5, num_chars=5),
    ]

    assert decided(docs, config(clusters="star")) == {3: 1, 4: 2, 5: 1}


def test_unlike_documents_with_a_colliding_key_stay_apart() -> None:
    docs = [doc(i, text=i, url=i, signature=(i, i, i, i)) for i in range(3)]

    assert removals(decide(table(docs), as_pairs([(0, 1), (1, 2), (0, 2)]), config())) == {}


@pytest.mark.parametrize("clusters", ["components", "star"])
@pytest.mark.parametrize("length", [20, 300])
def test_two_kinds_that_share_a_key_are_found_apart(clusters: str, length: int) -> None:
    docs = [doc(i, signature=(1, 2, 3 + i % 2, 4 + i % 2)) for i in range(length)]
    pairs = [(first, i) for i in range(1, length) for first in (0, i - 1)]  # one bucket
    policy = config(verify="signature", threshold=0.75, clusters=clusters)

    found = removals(decide(table(docs), as_pairs(pairs), policy))

    assert found == {i: i % 2 for i in range(2, length)}


@pytest.mark.parametrize("clusters", ["components", "star"])
@pytest.mark.parametrize("policy", [{}, {"verify": "signature"}])
def test_very_many_copies_cost_no_quadratic_work(clusters: str, policy: dict[str, Any]) -> None:
    size, near = 300_000, 100_000
    docs = table([doc(0, signature=(1, 2, 3, 4), text=1)])[[0] * size].with_columns(
        ref=pl.int_range(size, dtype=pl.UInt64),
        doc_id=pl.int_range(size).cast(pl.String).str.zfill(32),
        text_hash=pl.when(pl.int_range(size) >= near).then("text_hash"),
    )
    later = np.arange(1, size, dtype=np.uint64)
    pairs = np.concatenate([np.stack([later * 0, later], 1), np.stack([later - 1, later], 1)])

    found = decide(docs, pairs, config(clusters=clusters, **policy))

    assert found["cluster_size"].unique().to_list() == [size]
    assert found["kept_doc_id"].unique().to_list() == ["0" * 32]


def exact_members() -> tuple[pl.DataFrame, tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Three documents with Jaccard similarities 3/5 (0, 1), 1/6 (0, 2) and 2/5 (1, 2)."""
    sets = [[1, 2, 3, 4], [2, 3, 4, 5], [4, 5, 6]]
    docs = [doc(i, signature=(1, 1, 1, 1)) for i in range(3)]
    offsets = np.cumsum([0, *map(len, sets)])
    return table(docs), (np.concatenate(sets).astype(np.uint64), offsets)


@pytest.mark.parametrize(
    ("threshold", "similarities"),
    [(0.6, [0.6]), (0.4, [0.6, 1 / 6]), (0.61, [])],
)
def test_exact_verification_measures_shingles(threshold: float, similarities: list[float]) -> None:
    members, shingles = exact_members()
    policy = config(verify="exact", threshold=threshold)

    found = decide(members, as_pairs([(0, 1), (0, 2)]), policy, shingles)

    assert found["similarity"].drop_nulls().to_list() == pytest.approx(similarities)


@given(st.lists(st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 9), min_size=1), min_size=2))
@settings(max_examples=50)
def test_an_exact_similarity_is_the_share_of_common_shingles(sets: list[set[int]]) -> None:
    members = table([doc(i, signature=(1, 1, 1, 1)) for i in range(len(sets))])
    values = np.array([value for each in sets for value in sorted(each)], np.uint64)
    shingles = values, np.cumsum([0, *map(len, sets)])
    pairs = as_pairs((0, i) for i in range(1, len(sets)))

    found = decide(members, pairs, config(verify="exact", threshold=0), shingles)

    expected = [np.float32(len(sets[0] & each) / len(sets[0] | each)) for each in sets[1:]]
    assert found["similarity"].drop_nulls().to_list() == expected


def test_shingles_follow_their_documents() -> None:
    members, (values, offsets) = exact_members()
    policy = config(verify="exact", threshold=0.6)
    turned = np.concatenate([values[offsets[i] : offsets[i + 1]] for i in (2, 1, 0)])

    found = decide(
        members.reverse(), as_pairs([(0, 1), (0, 2)]), policy, (turned, np.array([0, 3, 7, 11]))
    )

    assert found["ref"].to_list() == [0, 1]


def test_members_without_pairs_have_no_clusters() -> None:
    assert decide(table(chain(3)), as_pairs([]), config()).schema == CLUSTER_SCHEMA


@pytest.mark.parametrize("ref", [0, 3, (7 << 32) | 5, 2**64 - 1])
def test_a_pair_with_a_stranger_is_refused(ref: int) -> None:
    members = table([doc(1), doc(2), doc(4), doc((9 << 32) | 1)])

    with pytest.raises(ValueError, match=rf"document {ref >> 32}:{ref % 2**32} \(part:row\)"):
        decide(members, as_pairs([(1, 2), (1, ref)]), config())


def test_missing_shingles_are_named() -> None:
    with pytest.raises(ValueError, match="exact compares shingles"):
        decide(table([doc(1)]), as_pairs([]), config(verify="exact"))


def test_a_hash_of_another_size_says_what_to_do() -> None:
    members = table([doc(1, text=1)]).with_columns(text_hash=pl.lit(b"abc"))

    with pytest.raises(ValueError, match=r"found sizes=\[3\]. Materialize `signatures`"):
        decide(members, as_pairs([]), config())


def test_a_chain_is_one_component() -> None:
    assert decided(chain(200), config()) == dict.fromkeys(range(1, 200), 0)
