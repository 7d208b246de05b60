"""Groups of documents: packed by themselves, with buckets and identities of their own."""

import re

from msgspec import UNSET, structs
from prelude import Any, ValidationError, assert_frame_equal, given, np, pl, pytest, settings, st

from assets.bucketed.annotated_files import label_name
from assets.bucketed.bucketed_records import BucketedNumbers
from assets.bucketed.make_sequences import Groups, make_sequences
from assets.bucketed.sequences import sequence_ids
from resources.settings.buckets import (
    BucketConfig,
    BucketLayout,
    bucket_names,
    split_bucket,
)

END = 65_000
NAMES = ("class-1", "validation")
MODES = {
    "pack": BucketConfig(sequence_length=8),
    "buckets": BucketConfig(mode="buckets", edges=(2, 4)),
    "concat": BucketConfig(mode="concat", sequence_length=8),
    "decompose": BucketConfig(mode="decompose", sequence_length=8, min_length=2),
}


def tokenized(lengths: list[int]) -> pl.DataFrame:
    starts = np.cumsum([0, *lengths])
    columns = {
        "doc_id": [f"{row:032x}" for row in range(len(lengths))],
        "tokens": [list(range(starts[i], starts[i + 1])) for i in range(len(lengths))],
    }
    return pl.DataFrame(columns, schema={"doc_id": pl.String, "tokens": pl.List(pl.UInt16)})


def grouped(
    documents: pl.DataFrame, config: BucketConfig, groups: list[int]
) -> tuple[pl.DataFrame, BucketedNumbers]:
    of_documents = Groups(NAMES, np.array(groups, np.uint8))
    return make_sequences([documents], config, END, groups=of_documents)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=20),
    st.sampled_from(list(MODES.values())),
)
def test_a_group_is_packed_as_if_it_were_alone(
    documents: list[tuple[int, int]], config: BucketConfig
) -> None:
    table, groups = tokenized([length for length, _ in documents]), [g for _, g in documents]
    sequences, counts = grouped(table, config, groups)

    layout = BucketLayout(config, NAMES)
    num_plain = len(bucket_names(config))
    shown = set(bucket_names(config))
    assert sequences["bucket"].is_sorted()
    for group in range(3):
        own = table.filter(pl.Series(groups, dtype=pl.Int64) == group)
        alone, _ = make_sequences([own], config, END)
        mine = sequences.filter(pl.col("bucket") // num_plain == group)
        expected = alone.with_columns((pl.col("bucket") + group * num_plain).cast(pl.UInt8))
        assert_frame_equal(mine.drop("rows"), expected.drop("rows"))
        shown |= {layout.names[bucket] for bucket in mine["bucket"]}
    assert set(counts.bucket_sequences) == shown
    assert sum(counts.bucket_sequences.values()) == sequences.height
    assert sum(counts.bucket_tokens.values()) == int(sequences["num_tokens"].sum())


def test_documents_of_group_0_have_the_sequences_that_they_have_without_groups() -> None:
    table, config = tokenized([3, 5, 9, 1]), MODES["pack"]
    plain, of_plain = make_sequences([table], config, END)

    sequences, counts = grouped(table, config, [0] * 4)

    assert_frame_equal(sequences, plain)
    assert structs.replace(counts, documents_held_out=UNSET) == of_plain
    ids = sequence_ids(sequences, BucketLayout(config, NAMES))
    assert ids.tolist() == sequence_ids(plain).tolist()


def test_a_document_that_changes_its_group_is_another_sequence() -> None:
    table, config = tokenized([2, 2]), MODES["buckets"]
    layout = BucketLayout(config, NAMES)

    runs = [grouped(table, config, groups)[0] for groups in ([0, 0], [0, 1], [0, 2])]
    ids = [sequence_ids(run, layout) for run in runs]

    assert len({ids_of_run[0].tobytes() for ids_of_run in ids}) == 1
    assert len({ids_of_run[1].tobytes() for ids_of_run in ids}) == 3
    assert ids[2][1].tolist() == [11735882676678411341, 6322188028213376744]


def test_identities_do_not_depend_on_what_other_groups_there_are() -> None:
    table, config = tokenized([2]), MODES["buckets"]
    alone = Groups(("validation",), np.array([1], np.uint8))
    sequences, _ = make_sequences([table], config, END, groups=alone)

    ids = sequence_ids(sequences, BucketLayout(config, ("validation",)))
    among, _ = grouped(table, config, [2])

    assert ids.tolist() == sequence_ids(among, BucketLayout(config, NAMES)).tolist()


def test_padding_is_counted_by_group() -> None:
    counts = grouped(tokenized([5, 6, 7]), MODES["pack"], [0, 2, 2])[1]
    in_buckets = grouped(tokenized([5, 6, 7]), MODES["buckets"], [0, 2, 2])[1]

    assert counts.bucket_padding == {"8": 3, "8.validation": 3}
    assert counts.least_padding == 6
    assert in_buckets.bucket_padding["5-up"] == 0
    assert in_buckets.bucket_padding["5-up.validation"] == 1


def test_a_layout_names_buckets_group_after_group() -> None:
    layout = BucketLayout(MODES["buckets"], NAMES)

    assert layout.names == [
        *("0-2", "3-4", "5-up"),
        *("0-2.class-1", "3-4.class-1", "5-up.class-1"),
        *("0-2.validation", "3-4.validation", "5-up.validation"),
    ]
    assert BucketLayout.of(layout.dump()) == layout
    assert BucketLayout(layout.config).dump() == layout.config.model_dump(mode="json")
    assert BucketLayout(layout.config).with_groups_of(layout.names) == layout
    assert split_bucket("5-up.validation") == ("5-up", "validation")
    assert split_bucket("2048") == ("2048", "")


def test_forty_topics_of_five_qualities_are_packed_by_themselves() -> None:
    names = sorted(f"class-topic{topic}-{number}" for topic in range(40) for number in range(5))
    config, table = MODES["decompose"], tokenized([8] * 200)
    groups = Groups((*names, "validation"), np.arange(1, 201, dtype=np.uint16))

    sequences, counts = make_sequences([table], config, END, groups=groups)

    layout = BucketLayout(config, groups.names)
    assert len(layout.names) == 3 * 202
    assert sequences["bucket"].dtype == pl.UInt16
    assert [layout.names[bucket] for bucket in sequences["bucket"]] == [f"8.{n}" for n in names]
    assert counts.bucket_tokens == dict.fromkeys(bucket_names(config), 0) | {
        f"8.{name}": 8 for name in names
    }
    assert len(np.unique(sequence_ids(sequences, layout), axis=0)) == 200


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("finance_and_business", "finance_and_business"),
        ("C", "C"),
        ("C++", "C-f1deb75fa21d"),
        ("C#", ""),
        ("../a.b/c", ""),
        ("数学", ""),
        ("", ""),
        ("x" * 65, ""),
        ("C-f1deb75fa21d", ""),  # as a label, it is another one than "C++"
        ("f1deb75fa21d", ""),
        ("a\n", ""),
    ],
)
def test_names_of_labels_are_fit_for_paths(label: str, name: str) -> None:
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", label_name(label))
    assert label_name(label) == name or not name


@given(st.text(alphabet="aA0_-. /+", max_size=6), st.text(alphabet="aA0_-. /+", max_size=6))
def test_no_two_labels_have_one_name(one: str, other: str) -> None:
    assert (label_name(one) == label_name(other)) == (one == other)
    assert label_name(label_name(one)) != label_name(other) or label_name(one) == other


def test_groups_are_sorted_and_as_many_buckets_as_an_index_can_name() -> None:
    with pytest.raises(ValueError, match="sorted"):
        BucketLayout(BucketConfig(), ("validation", "class-1"))
    config = {"mode": "buckets", "edges": range(1, 64), "classes": {"limits": [0.4, 0.9]}}
    assert len(BucketLayout(BucketConfig.model_validate(config), ("a", "b", "c")).names) == 256


@pytest.mark.parametrize(
    ("config", "limits", "message"),
    [
        (
            {"mode": "buckets", "edges": range(1, 256)},
            [i / 20 for i in range(1, 17)],
            "256 lengths .* 18 groups .* 4608 .*edges",
        ),
        (
            {"mode": "decompose", "sequence_length": 1 << 24, "min_length": 1},
            [i / 200 for i in range(1, 164)],
            "25 lengths of rows in each of 165 groups .* 4125 buckets.*`min_length`",
        ),
    ],
)
def test_more_buckets_than_an_index_can_name_are_refused(
    config: dict[str, Any], limits: list[float], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        BucketConfig.model_validate({"classes": {"limits": limits}} | config)
    with pytest.raises(ValueError, match=message):
        BucketLayout(
            BucketConfig.model_validate(config), tuple(f"g{i:03}" for i in range(len(limits) + 1))
        )
