"""Budgets are exact and never beyond a cap; a refused phase suggests feasible changes."""

from collections.abc import Mapping
from fractions import Fraction

from prelude import Any, given, pytest, settings, st
from tables import cases

from assets.mixed.budgets import MixError, largest_remainder, water_fill
from assets.mixed.plan import PhasePlan, plan_phase
from assets.mixed.samples import SourceRows
from resources.settings.phases import PhaseConfig

SIZES = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 10**13), min_size=1)


def plan(available: Mapping[str, int], **config: Any) -> PhasePlan:
    return plan_phase(PhaseConfig.model_validate({"name": "general"} | config), available)


def planned(available: Mapping[str, int], **config: Any) -> dict[str, int]:
    return {b.source: b.planned for b in plan(available, **config).budgets}


@cases("""
    config                                                           | budgets
    {"weights": {"a": 0.7, "b": 0.3}, "tokens": 1000}                | {"a": 700, "b": 300}
    {"weights": {"a": 0.7, "b": 0.3}}                                | {"a": 1000, "b": 428}
    {"weights": {"a": 1, "b": 1}, "one_epoch_of": "b"}               | {"a": 600, "b": 600}
    {"budgets": {"a": 3, "b": 5}}                                    | {"a": 3, "b": 5}
    {"weighting": "natural"}                                         | {"a": 1000, "b": 600}
    {"weighting": "natural", "tokens": 8}                            | {"a": 5, "b": 3}
    {"weighting": "temperature", "exponent": 0.0, "tokens": 10}      | {"a": 5, "b": 5}
    {"weighting": "temperature", "exponent": 1.0, "tokens": 8}       | {"a": 5, "b": 3}
    {"weighting": "temperature", "tokens": 1000}                     | {"a": 538, "b": 462}
    {"weighting": "unimax"}                                          | {"a": 600, "b": 600}
    {"weighting": "unimax", "tokens": 4000}                          | {"a": 2000, "b": 2000}
    {"weighting": "unimax", "tokens": 5000}                          | {"a": 2600, "b": 2400}
    {"weighting": "unimax", "tokens": 2000, "epochs": {"b": 0.5}}    | {"a": 1700, "b": 300}
    {"weighting": "unimax", "one_epoch_of": "a"}                     | {"a": 1000, "b": 1000}
    {"weighting": "unimax", "one_epoch_of": "a", "epochs": {"b": 1}} | {"a": 1000, "b": 600}
""")
def test_budgets(config: dict[str, Any], budgets: dict[str, int]) -> None:
    assert planned({"a": 1000, "b": 600}, **config) == budgets


def test_unimax_as_in_its_paper() -> None:
    sizes = {"en": 97 * 10**11, "de": 10**12, "pl": 2 * 10**11, "sw": 5 * 10**10, "yo": 10**8}
    large = {"en": 266_533_333_333, "de": 266_533_333_334, "pl": 266_533_333_333}
    small = {"sw": 4 * 5 * 10**10, "yo": 4 * 10**8}
    assert planned(sizes, weighting="unimax", tokens=10**12) == large | small


@settings(max_examples=60)
@given(SIZES, st.data())
def test_budgets_sum_to_the_length_and_keep_to_their_shares(
    sizes: dict[str, int], data: st.DataObject
) -> None:
    weights = {source: data.draw(st.floats(0.001, 1000)) for source in sizes}
    total = data.draw(st.integers(1, 10**13))
    found = plan(sizes, weights=weights, tokens=total)
    assert found.tokens == total
    for budget in found.budgets:
        exact = Fraction(repr(weights[budget.source])) / sum(
            Fraction(repr(weight)) for weight in weights.values()
        )
        assert abs(budget.planned - total * exact) < 1


@settings(max_examples=60)
@given(SIZES, st.sampled_from(["weights", "natural", "temperature", "unimax"]), st.data())
def test_default_length_needs_no_second_epoch_and_a_source_runs_out(
    sizes: dict[str, int], weighting: str, data: st.DataObject
) -> None:
    config: dict[str, Any] = {"weighting": weighting}
    if weighting == "weights":
        config = {"weights": {source: data.draw(st.floats(0.01, 10)) for source in sizes}}
    found = plan(sizes, **config)
    assert not found.faults
    assert all(b.planned <= b.available for b in found.budgets)
    assert any(b.planned >= b.available - 1 for b in found.budgets)


@settings(max_examples=60)
@given(SIZES, st.integers(1, 10**14))
def test_unimax_is_equal_shares_but_for_sources_at_their_cap(
    sizes: dict[str, int], total: int
) -> None:
    found = plan(sizes, weighting="unimax", tokens=total)
    most = sum(4 * tokens for tokens in sizes.values())
    assert found.tokens == min(total, most)
    assert bool(found.faults) == (total > most)
    largest = max(b.planned for b in found.budgets)
    assert all(b.planned >= min(b.most, largest - 1) for b in found.budgets)
    assert all(b.planned <= b.most for b in found.budgets)


SHARES: list[dict[str, Any]] = [
    {"weights": {}},
    {"weights": {}, "one_epoch_of": ""},
    {"budgets": {}},
    {"weighting": "natural"},
    {"weighting": "temperature", "exponent": 0.5},
    {"weighting": "unimax"},
]


@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 10**6), min_size=1),
    st.sampled_from(SHARES),
    st.data(),
)
def test_what_is_proposed_is_accepted(
    sizes: dict[str, int], shares: dict[str, Any], data: st.DataObject
) -> None:
    config = dict(shares) | {"max_epochs": data.draw(st.sampled_from([0.01, 1.5, 16.0]))}
    rows = {source: SourceRows(data.draw(st.integers(1, 300))) for source in sizes}
    if "budgets" in config:
        config["budgets"] = {source: data.draw(st.integers(1, 10**8)) for source in sizes}
    else:
        if "weights" in config:
            config["weights"] = {source: data.draw(st.integers(1, 99)) / 100 for source in sizes}
        if "one_epoch_of" in config:
            config["one_epoch_of"] = max(sizes)
        else:
            config["tokens"] = data.draw(st.integers(1, 10**8))
    found = plan_of(config, sizes, rows)
    assert found.faults or not found.feasible
    for key, value in found.feasible.items():
        changed = config | {key: config["budgets"] | value if key == "budgets" else value}
        if key == "tokens":
            changed.pop("one_epoch_of", None)
            if "weights" in config:  # a share is 1/300 at least: 1,000 tokens are one of each more
                assert plan_of(changed | {"tokens": value + 1000}, sizes, rows).faults
        assert not plan_of(changed, sizes, rows).faults
    if "weights" in found.feasible:
        assert sum(budget.most for budget in found.budgets) >= config["tokens"]


def plan_of(
    config: dict[str, Any], sizes: dict[str, int], rows: dict[str, SourceRows]
) -> PhasePlan:
    """Plan a phase over the sources that its config asks for."""
    checked = PhaseConfig.model_validate({"name": "general"} | config)
    wanted = checked.sources_of(tuple(sizes))
    return plan_phase(checked, {source: sizes[source] for source in wanted}, rows)


@cases("""
    available | config | feasible | fault
    # Weights are proposed where other sources have the rest.
    {"a": 1000, "b": 10_000} | {"weights": {"a": 0.5, "b": 0.5}, "tokens": 40_000}
    | {"tokens": 32_000, "weights": {"a": 0.4, "b": 0.6}}
    | or at 40,000 tokens give the weights a 0.4, b 0.6; or raise
    # More than all sources have is said, and no weights are proposed; nor to a weighting.
    {"a": 100, "b": 50} | {"weights": {"a": 0.9, "b": 0.1}, "tokens": 10**9} | {"tokens": 1777}
    | All its sources have 2,400 tokens within their caps, of 1,000,000,000. Set
    {"a": 10**6} | {"weighting": "natural", "tokens": 100_000, "max_epochs": 0.01}
    | {"tokens": 10_000} | tokens
""")
def test_feasible_changes_are_proposed(
    available: dict[str, int], config: dict[str, Any], feasible: dict[str, Any], fault: str
) -> None:
    found = plan(available, **config)
    assert found.feasible == feasible
    assert fault in found.faults[0]
    assert ("give the weights" in found.faults[0]) == ("weights" in feasible)


def test_enough_tokens_in_all_are_not_called_too_few() -> None:
    found = plan({"a": 100, "b": 100}, weights={"a": 0.75, "b": 0.25}, tokens=200, max_epochs=1.0)
    assert "150 tokens of 'a', which has 100" in found.faults[0]
    assert "All its sources" not in found.faults[0]


def test_proposed_weights_sum_to_one_and_none_is_zero() -> None:
    weights = {"a": 0.5, "b": 0.25, "c": 0.25}
    found = plan({"a": 1000, "b": 10**6, "c": 10**6}, weights=weights, tokens=70_000)
    assert sum(round(weight * 10**6) for weight in found.feasible["weights"].values()) == 10**6
    weights = {"a": 0.5, "b": 1e-7, "c": 0.4999999}
    found = plan({"a": 1000, "b": 1, "c": 10**9}, weights=weights, tokens=40_000)
    assert list(found.feasible) == ["tokens"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"weights": {"a": 1}, "tokens": 1001, "max_epochs": 10.0},
            r"1,001 tokens of 'a', which has 100: 10.0 epochs, over its cap of 10. All its sources "
            r"have 1,000 tokens within their caps, of 1,001. Set `tokens` to at most 1,000 at "
            r"these shares; or raise `max_epochs`",
        ),
        ({"budgets": {"a": 250}, "epochs": {"a": 2.5}}, None),
        (
            {"budgets": {"a": 251}, "epochs": {"a": 2.5}},
            r"over its cap of 2.5. Ask for at most a 250; or raise `max_epochs` or the `epochs`",
        ),
        (
            {"weighting": "unimax", "tokens": 501},
            r"501 tokens; within the caps on epochs \(a 4\) its sources have 400. Set "
            r"`tokens` to at most 400; or raise `warn_epochs`",
        ),
    ],
)
def test_more_than_the_cap_is_refused(config: dict[str, Any], message: str | None) -> None:
    found = plan({"a": 100}, **config)
    if message is None:
        assert found.verdict == "ok" and found.accepted() is found
        return
    assert found.verdict == "refused"
    with pytest.raises(MixError, match=message):
        found.accepted()


def test_many_epochs_and_weights_that_do_not_sum_to_one_are_warned_of() -> None:
    found = plan({"a": 10, "b": 1000}, weights={"a": 1, "b": 3}, tokens=200)
    assert found.verdict == "warning"
    assert found.warnings == (
        "the weights sum to 4, not 1; normalised to a 0.25, b 0.75",
        "'a' is repeated 5.0 times; more than 4 epochs teach little new. Lower its weight or the "
        "phase's tokens.",
    )
    assert plan({"a": 10, "b": 1000}, weights={"a": 0.2, "b": 0.8}, tokens=200).warnings == ()
    thirds = dict.fromkeys("abc", 0.333333)
    assert plan(dict.fromkeys("abc", 10), weights=thirds, tokens=3).warnings == ()


def test_samples_that_cannot_be_drawn_are_known_before() -> None:
    rows = {"a": SourceRows(11), "b": SourceRows(10)}
    sizes, weights = {"a": 1000, "b": 1000}, {"a": 0.5, "b": 0.5}
    none = plan_phase(PhaseConfig(name="p", weights=weights, tokens=10), sizes, rows)
    assert none.faults == (
        "phase 'p' draws no sample: 10 tokens are less than half of the first of any source. Ask "
        "for more tokens.",
    )
    some = plan_phase(PhaseConfig(name="p", weights=weights, tokens=11), sizes, rows)
    assert (some.verdict, len(some.warnings)) == ("warning", 1)
    assert some.warnings[0].startswith("'b' gives no sample: its 5 tokens")
    tiny = PhaseConfig(name="p", weights={"a": 1e-300, "b": 1}, tokens=100)
    assert plan_phase(tiny, sizes, rows).warnings[-1].startswith("'a' gives no sample: its 0 tok")


def test_sequences_of_several_lengths_are_warned_of_with_their_padding() -> None:
    sizes, config = {"a": 64_000, "b": 256_000}, PhaseConfig(name="p", weighting="natural")
    short = SourceRows(64, {"64": (1000, 64_000)})
    one = plan_phase(config, sizes, {"a": short, "b": SourceRows(64, {"64": (4000, 256_000)})})
    assert one.warnings == ()
    two = plan_phase(config, sizes, {"a": short, "b": SourceRows(256, {"256": (1000, 256_000)})})
    # Half of the rows have 64 tokens: 160 on average, and nearly every batch of 8 has one of 256.
    assert two.warnings == (
        "phase 'p' draws sequences of 2 lengths: a batch of 8 would be about 37% padding; set "
        "`one_bucket_batches: true`, or give `buckets:` to a phase per length",
    )


def test_a_named_source_without_tokens_is_refused() -> None:
    with pytest.raises(MixError, match=r"'general'.*\['b'\].*corpus summary"):
        plan({"a": 10, "b": 0}, weights={"a": 1, "b": 1}).accepted()
    assert plan({"a": 0}, weighting="natural", sources=["a"]).verdict == "refused"
    assert plan({"a": 0}, weighting="natural").verdict == "refused"
    assert plan({"a": 1, "b": 0}, weighting="natural", one_epoch_of="b").verdict == "refused"


def test_a_source_that_a_weighting_finds_empty_is_left_out() -> None:
    found = plan({"a": 10, "b": 0}, weighting="temperature")
    assert [budget.source for budget in found.budgets] == ["a"]
    assert found.warnings == ("'b' has no tokens: left out",)


def test_remainders_go_to_the_largest_and_ties_to_the_first_name() -> None:
    shares = {"b": Fraction(1, 2), "a": Fraction(1, 2), "c": Fraction(19, 10)}
    assert largest_remainder(shares, 3) == {"b": 0, "a": 1, "c": 2}


def test_what_a_limit_leaves_goes_to_the_others_by_their_shares() -> None:
    shares = {"a": Fraction(1), "b": Fraction(2), "c": Fraction(1)}
    assert water_fill(shares, {"a": None, "b": 10, "c": None}, 40) == {"a": 15, "b": 10, "c": 15}
    assert water_fill(shares, {"a": 5, "b": 10, "c": 0}, 40) == {"a": 5, "b": 10, "c": 0}
