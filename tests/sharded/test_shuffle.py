"""Scatter and gather are one permutation of a source, however its rows were split into parts."""

from many_examples import many_examples
from prelude import Any, NDArray, assert_frame_equal, given, np, pl, pytest, settings, st
from tables import cases

from assets.bucketed.make_sequences import make_sequences
from assets.sharded.shuffle import (
    BucketShards,
    BucketSize,
    Pile,
    common_length,
    gather,
    plan_bucket_shards,
    scatter,
    stored_buckets,
)
from assets.sharded.shuffle_files import group_within
from resources.settings.buckets import BucketConfig, bucket_names
from resources.settings.shards import ShardConfig

TOKEN_BYTES = 2
LENGTHS = (100, 200)  # of a sequence of bucket 0 and of bucket 1


def sequences(part: int, *counts: int) -> pl.DataFrame:
    """A bucketed part: counts[b] sequences of bucket b, each with a number of its own."""
    buckets = [bucket for bucket, count in enumerate(counts) for _ in range(count)]
    names = [f"{part}/{row}" for row in range(len(buckets))]
    return pl.DataFrame(
        {
            "bucket": pl.Series(buckets, dtype=pl.UInt8),
            "num_tokens": pl.Series([LENGTHS[bucket] for bucket in buckets], dtype=pl.UInt32),
            "tokens": pl.Series([[row] for row in range(len(buckets))], dtype=pl.List(pl.UInt32)),
            "spans": pl.Series([[name] for name in names], dtype=pl.List(pl.String)),
        }
    )


def plan_of(parts: list[pl.DataFrame], config: ShardConfig) -> list[BucketShards]:
    counts = [sum(part.filter(pl.col("bucket") == b).height for part in parts) for b in (0, 1)]
    buckets = {f"b{b}": BucketSize(count, count * LENGTHS[b]) for b, count in enumerate(counts)}
    return plan_bucket_shards("web", buckets, TOKEN_BYTES, config)


def indexed(parts: list[pl.DataFrame]) -> list[tuple[pl.DataFrame, NDArray[np.int64]]]:
    """Each part with the index of its rows among all: bucket after bucket, part after part."""
    counts = np.array([[part.filter(bucket=b).height for b in (0, 1)] for part in parts])
    firsts = np.cumsum(counts.T).reshape(2, -1) - counts.T
    return [
        (part, np.concatenate([np.arange(n) + first for n, first in zip(of, at, strict=True)]))
        for part, of, at in zip(parts, counts, firsts.T, strict=True)
    ]


def shuffle(parts: list[pl.DataFrame], config: ShardConfig) -> list[pl.DataFrame]:
    """The shards of a source, the way the asset makes them."""
    plans = plan_of(parts, config)
    placed = [(part, scatter(indices, plans)) for part, indices in indexed(parts)]
    num_shards = sum(plan.num_shards for plan in plans)
    return [
        gather([pile_of(part, rows.filter(shard=shard)) for part, rows in placed])
        for shard in range(num_shards)
    ]


def pile_of(part: pl.DataFrame, rows: pl.DataFrame) -> Pile:
    return Pile(part, rows["row"].cast(pl.Int64).to_numpy(), rows["position"].to_numpy())


def names_in(frames: list[pl.DataFrame]) -> list[str]:
    return [name for frame in frames for name in frame["spans"].explode(empty_as_null=False)]


KIB = ShardConfig(target_bytes=1024)  # five sequences of bucket 0, or two and a half of bucket 1


def test_shards_are_as_many_as_the_target_size_needs() -> None:
    buckets = {
        "small": BucketSize(512, 512),
        "none": BucketSize(0, 0),
        "one over": BucketSize(513, 513),
    }
    plans = plan_bucket_shards("web", buckets, TOKEN_BYTES, KIB)
    expected = [(0, "small", 0, 1), (1, "none", 1, 0), (2, "one over", 1, 2)]
    assert [(p.bucket, p.name, p.first_shard, p.num_shards) for p in plans] == expected


def test_a_sequence_larger_than_a_shard_is_not_cut() -> None:
    plans = plan_bucket_shards("web", {"b": BucketSize(1, 10**6)}, 4, KIB)
    assert plans[0].num_shards == 1


@pytest.mark.parametrize(
    ("bucketing", "stored", "length"),
    [
        ({"mode": "pack", "sequence_length": 128}, {"128": 10 * 128}, 128),
        ({"mode": "buckets", "edges": [64]}, {"0-64": 500, "65-up": 0}, None),
        (
            {"mode": "decompose", "sequence_length": 128, "min_length": 64},
            {"64": 0, "128": 10 * 128},
            128,
        ),
    ],
    ids=["pack", "buckets", "decompose"],
)
def test_shards_are_planned_with_the_padding_that_they_store(
    bucketing: dict[str, Any], stored: dict[str, int], length: int | None
) -> None:
    config = BucketConfig.model_validate(bucketing)
    full = "0-64" if "0-64" in stored else "128"

    buckets = stored_buckets({full: 10}, {full: 500}, bucket_names(config))

    assert {name: size.tokens for name, size in buckets.items()} == stored
    assert {name: n.sequences for name, n in buckets.items() if n.sequences} == {full: 10}
    assert common_length(plan_bucket_shards("web", buckets, 2, KIB)) == length


def test_sequences_of_two_lengths_have_none_in_common() -> None:
    config = BucketConfig(mode="decompose", sequence_length=128, min_length=64)
    buckets = stored_buckets({"64": 1, "128": 1}, {"64": 64, "128": 128}, bucket_names(config))
    assert common_length(plan_bucket_shards("web", buckets, 2, KIB)) is None


@cases("""
    config                      | message
    {"formats": ["mds", "mds"]} | each once
    {"formats": ["tfrecord"]}   | parquet, megatron, mds
    {"formats": []}             | at least 1 item
    {"target_bytes": 4 << 30}   | less than or equal to 2147483648
""")
def test_shards_that_cannot_be_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShardConfig.model_validate(config)


def test_keys_depend_on_seed_source_and_bucket() -> None:
    buckets = {name: BucketSize(1, 1) for name in ("a", "b")}
    plans = [
        *plan_bucket_shards("web", buckets, 2, KIB),
        *plan_bucket_shards("books", buckets, 2, KIB),
        *plan_bucket_shards("web", buckets, 2, KIB.model_copy(update={"seed": 1})),
    ]
    assert len({plan.key for plan in plans}) == 6


@pytest.mark.slow
@many_examples(40)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=5))
def test_shards_hold_every_sequence_once_and_differ_by_one_row(
    sizes: list[tuple[int, int]],
) -> None:
    parts = [sequences(number, *size) for number, size in enumerate(sizes)]

    shards = shuffle(parts, KIB)

    assert sorted(names_in(shards)) == sorted(names_in(parts))
    for plan in plan_of(parts, KIB):
        mine = shards[plan.first_shard : plan.first_shard + plan.num_shards]
        heights = [shard.height for shard in mine]
        assert max(heights, default=0) - min(heights, default=0) <= 1
        assert all(height > 0 for height in heights)
        assert {n for shard in mine for n in shard["num_tokens"]} <= {LENGTHS[plan.bucket]}


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.integers(0, 60), max_size=4).map(sorted))
def test_order_does_not_depend_on_how_rows_are_split_into_parts(cuts: list[int]) -> None:
    whole = sequences(0, 60, 0)
    parts = [whole[low:high] for low, high in zip([0, *cuts], [*cuts, 60], strict=True)]

    for split, together in zip(shuffle(parts, KIB), shuffle([whole], KIB), strict=True):
        assert_frame_equal(split, together)


def test_order_is_not_the_stored_one_and_seeds_differ() -> None:
    parts = [sequences(0, 50, 50)]
    stored = names_in(parts)
    first = names_in(shuffle(parts, KIB))
    second = names_in(shuffle(parts, ShardConfig(target_bytes=1024, seed=1)))
    assert stored != first != second != stored


def test_scatter_says_shard_and_position_and_sorts_by_them() -> None:
    part = sequences(0, 7, 5)
    placed = scatter(np.arange(12), plan_of([part], KIB))
    assert placed.schema["shard"] == pl.UInt32
    assert placed.schema["position"] == pl.UInt64
    assert placed["shard"].to_list() == [0] * 4 + [1] * 3 + [2] * 3 + [3] * 2
    assert placed["position"].to_list() == [*range(7), *range(5)]


def test_empty_part_and_one_sequence() -> None:
    parts = [sequences(0), sequences(1, 0, 1)]
    assert scatter(np.arange(0), plan_of(parts, KIB)).height == 0
    assert [shard.height for shard in shuffle(parts, KIB)] == [1]


def test_gather_drops_the_scatters_columns_and_keeps_wide_tokens() -> None:
    shard = shuffle([sequences(0, 3)], KIB)[0]
    assert shard.schema == sequences(0).drop("bucket").schema


def test_more_sequences_than_planned_are_refused() -> None:
    plans = plan_of([sequences(0, 3)], KIB)
    with pytest.raises(ValueError, match="outside of a generation of 3"):
        scatter(np.arange(4), plans)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [pl.UInt16, pl.UInt32])
@many_examples(100)
@given(
    lengths=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=3),
    config=st.sampled_from([{"mode": "pack"}, {"mode": "concat"}, {"mode": "pack", "overlap": 2}]),
    data=st.data(),
)
def test_tokens_are_gathered_from_documents_as_from_sequences(
    lengths: list[list[int]], config: dict[str, Any], dtype: type[pl.DataType], data: Any
) -> None:
    numbers = iter(range(1000))
    tables = [
        pl.DataFrame(
            {
                "doc_id": [f"{next(numbers):032x}" for _ in part],
                "tokens": [[next(numbers) for _ in range(length)] for length in part],
            },
            schema={"doc_id": pl.String, "tokens": pl.List(dtype)},
        )
        for part in lengths
    ]
    whole, _ = make_sequences(tables, BucketConfig(sequence_length=4, **config), 999)
    rows = np.array(data.draw(st.permutations(range(whole.height))), np.int64)
    rows = rows[: data.draw(st.integers(0, whole.height))]
    positions = np.arange(len(rows), dtype=np.uint64)

    gathered = gather([Pile(whole.drop("tokens"), rows, positions, tables)], 999)

    assert_frame_equal(gathered, gather([Pile(whole, rows, positions)]))


@cases("""
    sizes        | expected
    []           | []
    [5]          | [[5]]
    [4, 6, 1]    | [[4, 6], [1]]
    [4, 7, 3, 1] | [[4], [7, 3], [1]]
    [20, 1, 0]   | [[20], [1, 0]]
""")
def test_groups_are_consecutive_and_within_a_limit(
    sizes: list[int], expected: list[list[int]]
) -> None:
    assert [sizes[group] for group in group_within(sizes, 10)] == expected
