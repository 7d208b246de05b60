"""Forecasts on literal inputs: what passes on through the stages, and how samples are scaled."""

from collections.abc import Sequence
from types import SimpleNamespace

from prelude import Any, np, pl, pytest

from assets.report.sample_intervals import DRAWS, Interval, SampledPairs
from assets.stages import BY_NAME
from pipeline_defs.forecast.estimation import (
    all_pairs,
    amount_intervals,
    amounts_of,
    less_copies,
    pairs_of,
)
from pipeline_defs.forecast.forecast import (
    NEW,
    Before,
    Forecast,
    PartForecast,
    gone_parts,
    passed_on,
    totals,
    windows_of,
)
from pipeline_defs.forecast.reasons import changes, short_digests
from pipeline_defs.forecast.sampled_store import Sampled

NOBODY: Any = SimpleNamespace(
    settings=SimpleNamespace(tokenizer=SimpleNamespace(path=None, retrain="never"))
)


def changed(stage: str, *names: str, gone: Sequence[str] = ()) -> Forecast:
    """The forecast of a stage of which parts of 10 bytes are computed."""
    parts = {name: PartForecast(name, ("new",), 10) for name in names}
    return Forecast(stage, "web", parts, reused=0, gone=tuple(gone))


def published(stage: str, *names: str, upstream: Sequence[Forecast] = ()) -> Before:
    """A stage of which parts of 100 bytes are published, and which cannot be planned now."""
    parts = [SimpleNamespace(name=n, stats=SimpleNamespace(text_bytes=100)) for n in names]
    newest: Any = SimpleNamespace(parts=parts)
    return Before(BY_NAME[stage], "web", newest, None, upstream=list(upstream))


@pytest.mark.parametrize(
    ("stage", "names", "earlier", "expected"),
    [
        ("filtered", ("a", "b"), changed("raw", "b"), {"b": 10}),
        ("deduped", ("a", "b"), changed("duplicates", NEW), {}),
        ("filtered", ("a", "b"), changed("classifier", "model"), {"a": 100, "b": 100}),
        ("duplicates", ("a",), changed("band_index", "b", "c"), {NEW: 20}),
        ("bucketed", ("a", "d"), changed("tokenized", "c"), {"a": 100}),
        ("bucketed", ("a", "d"), changed("held_out", "x"), {}),
        ("tokenizer", ("model",), changed("deduped", "a"), {}),
        ("tokenized", (), changed("tokenizer", "model"), {NEW: 10}),
    ],
)
def test_a_change_passes_on_to_the_parts_that_it_reaches(
    stage: str, names: tuple[str, ...], earlier: Forecast, expected: dict[str, int]
) -> None:
    found = passed_on(NOBODY, published(stage, *names), earlier)

    assert {name: part.text_bytes for name, part in found.items()} == expected


def test_a_window_is_touched_by_parts_up_to_the_next_one() -> None:
    windows = published("bucketed", "a", "d", "g")
    assert windows_of(windows, changed("tokenized", "f", gone=["0"])) == ["a", "d"]


def test_a_part_whose_input_is_gone_is_dropped() -> None:
    before = published("filtered", "a", "b", upstream=[changed("raw", gone=["a"])])
    assert gone_parts(before) == {"a"}


def test_partitions_of_a_stage_are_added_up() -> None:
    summed = totals([changed("raw", "a"), changed("raw", "b", gone=["c"]), changed("filtered")])

    assert {stage: [*each.computed] for stage, each in summed.items()} == {
        "raw": ["web/a", "web/b"],
        "filtered": [],
    }
    assert summed["raw"].gone == ("c",)


def test_changed_keys_are_named_with_both_values_and_short_digests() -> None:
    then, now = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5, "c": 2}}
    assert list(changes(then, now)) == ["a.b: 1 -> 5", "d: 3 -> None"]
    assert short_digests(f"x: {'ab' * 32} -> none") == "x: abababababab -> none"


def test_amounts_of_a_document_are_those_of_the_stages() -> None:
    rows = {
        "block": [0, 0, 1],
        "doc_id": ["x", "y", "z"],
        "text_bytes": [10, 20, 30],
        "kept": [True, False, True],
        "reasons": [[], ["too_short"], []],
        "text": ["four", None, "eight ch"],
    }
    sampled = Sampled(sample=None, documents=pl.DataFrame(rows), notes=[], copies=None)  # type: ignore[arg-type]

    found = amounts_of(sampled)

    assert found["removed"].to_list() == [False, True, False]
    assert found["kept_bytes"].to_list() == [4, 0, 8]
    assert found["rule too_short"].to_list() == [False, True, False]


def test_each_removed_copy_stands_for_its_share_of_the_pairs_of_its_cluster() -> None:
    documents = pl.DataFrame({"doc_id": ["x"] * 10})
    copies = pl.DataFrame({"kept_source": ["web", "books"], "cluster_size": [2, 4]})
    none = pl.DataFrame(schema={"kept_source": pl.String, "cluster_size": pl.Int64})
    sampled = {
        "web": Sampled(None, documents, [], copies),  # type: ignore[arg-type]
        "books": Sampled(None, documents, [], none),  # type: ignore[arg-type]
    }
    counts: Any = {"web": {"documents": (100.0, None)}, "books": {"documents": (20.0, None)}}

    found = pairs_of(sampled, counts)

    assert found["web"] == SampledPairs(3, 1 / 0.1 / 0.1 + 2 / 0.5 / 0.1, 2, 0.1)
    assert found["books"] == SampledPairs(0, 0.0, 0, 0.5)
    assert all_pairs(found, [(100.0, 10), (20.0, 10)]).share == pytest.approx(20 / 120)


def test_without_a_pair_in_the_sample_all_may_be_copies() -> None:
    draws = np.full(DRAWS, 100.0)
    amounts = ("documents", "text_bytes", "fewest_tokens", "most_tokens")
    totals_of_all = {name: (100.0, draws) for name in amounts} | {"removed": (0.0, 0 * draws)}

    found = amount_intervals(totals_of_all, SampledPairs(0, 0.0, 0, 0.01), missed=0.0)

    assert found["removed as copies"] == Interval(0.0, 0.0, 100.0)
    assert found["documents kept"] == Interval(100.0, 0.0, 100.0)
    assert found["tokens before deduplication"] == Interval(100.0, 100.0, 100.0)


def test_what_copies_take_is_a_share_of_what_rules_keep() -> None:
    tokens, copies = Interval(1000.0, 900.0, 1100.0), Interval(10.0, 0.0, 50.0)
    assert less_copies(tokens, copies, kept=100.0) == Interval(900.0, 450.0, 1100.0)
