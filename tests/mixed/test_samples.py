"""Samples of a source are counted as if one by one; batches of one bucket leave few rests."""

from prelude import Any, given, np, pytest, settings, st

from assets.mixed import samples as mix_samples
from assets.mixed.plan import PhasePlan, plan_phase
from assets.mixed.samples import SourceRows, nearest_count, nearest_equal_samples, nearest_samples
from corpus_loader.order import SourceOrder, SourceShape
from resources.settings.phases import PhaseConfig

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=40)


def count(lengths: list[int], planned: int) -> tuple[int, int]:
    """Count the samples of a source of one shard, in the order of its epochs."""
    order = SourceOrder(1, None, SourceShape("web", 1, (len(lengths),)))
    return nearest_samples(planned, np.array(lengths, np.uint32), lambda j: order.rows(j)[0])


def slow_count(lengths: list[int], planned: int) -> tuple[int, int]:
    """Count the samples one by one."""
    order = SourceOrder(1, None, SourceShape("web", 1, (len(lengths),)))
    samples, tokens = 0, 0
    while True:
        longer = tokens + lengths[order.rows([samples])[0][0]]
        if abs(longer - planned) >= abs(tokens - planned):
            return samples, tokens
        samples, tokens = samples + 1, longer


@settings(max_examples=40)
@given(LENGTHS, st.integers(0, 2000), st.sampled_from([3, 1 << 20]))
def test_samples_are_counted_as_if_one_by_one(lengths: list[int], planned: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mix_samples, "BLOCK", block)
        found = count(lengths, planned)
    assert found == slow_count(lengths, planned)
    assert abs(found[1] - planned) <= max(lengths) / 2


@settings(max_examples=40)
@given(st.integers(1, 50), st.integers(1, 9), st.integers(0, 2000))
def test_samples_of_one_length_are_a_division(length: int, rows: int, planned: int) -> None:
    assert nearest_equal_samples(planned, length) == count([length] * rows, planned)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(0, 0), (1, 0), (2, 0), (3, 1), (4, 1), (6, 1), (7, 2), (8, 2), (99, 2)],
)
def test_fewer_are_taken_on_a_tie(wanted: int, expected: int) -> None:
    assert nearest_count(np.array([4, 8]), wanted) == expected


def test_lengths_of_more_than_32_bits_together_do_not_wrap() -> None:
    assert count([3_000_000_000, 3_000_000_000], 9_000_000_000) == (3, 9_000_000_000)


def test_a_thousand_epochs_are_counted_without_going_through_them() -> None:
    assert count([2, 3], 5000) == (2000, 5000)


# 100 rows of 8 tokens and 30 of 16 in `a`; 20 of 8 in `b`.
AVAILABLE = {"a": 1280, "b": 160}
ROWS = {
    "a": SourceRows(8, {"8": (60, 480), "8.class-1": (40, 320), "16": (30, 480)}),
    "b": SourceRows(8, {"8": (20, 160)}),
}


def plan(rows: dict[str, SourceRows] = ROWS, **config: Any) -> PhasePlan:
    phase = {"name": "main", "weighting": "natural", "one_bucket_batches": True} | config
    return plan_phase(PhaseConfig.model_validate(phase), AVAILABLE, rows)


def test_blocks_and_the_share_in_none_are_noted() -> None:
    found = plan(batch_samples=25)  # 120 rows of 8 leave 20, 30 of 16 leave 5: of 150

    assert found.notes == (
        "blocks of 25 samples are of one bucket each; 16.7% of the samples fill none, and come at "
        "the end of the phase",
    )
    assert found.warnings == (
        "17% of the samples of phase 'main' fill no block of 25 samples of one bucket, and come at "
        "its end, the shortest first. Lower `batch_samples` to the global batch, or leave out "
        "`buckets` with few rows.",
    )


def test_few_samples_in_no_block_are_no_warning() -> None:
    found = plan(batch_samples=16)  # 120 leave 8 and 30 leave 14: 14.7 %

    assert len(found.warnings) == 1
    assert plan(batch_samples=7).warnings == ()  # 1 and 2
    assert plan(batch_samples=10).notes[0].startswith("blocks of 10 samples are of one bucket each")
    assert "; 0.0% of the samples fill none" in plan(batch_samples=10).notes[0]


def test_repeated_samples_are_counted_as_often_as_they_are_drawn() -> None:
    found = plan(batch_samples=60, budgets={"a": 2560, "b": 160}, weighting=None)

    assert "; 14.3% of the samples fill none" in found.notes[0]  # 220 leave 40, 60 leave none


def test_a_phase_without_the_option_is_told_what_it_would_do() -> None:
    found = plan(batch_samples=7, one_bucket_batches=False)

    assert plan(batch_samples=25, one_bucket_batches=False).notes == ()  # 16.7 % are too many
    assert found.notes == (
        "`one_bucket_batches: true` would give every batch rows of one bucket, but for 2.0% of "
        "the samples, at the end of the phase",
    )
    assert ["draws sequences of 2 lengths" in line for line in found.warnings] == [True]


@pytest.mark.parametrize("option", [True, False])
def test_rows_of_one_bucket_are_not_spoken_of(option: bool) -> None:
    one = {name: SourceRows(8, {"8": (n, 8 * n)}) for name, n in (("a", 160), ("b", 20))}
    found = plan(one, batch_samples=100, one_bucket_batches=option)

    assert (found.notes, found.warnings) == ((), ())
