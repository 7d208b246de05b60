"""Keys of a phase that go together, and messages on those that do not."""

import math

from builders import write_corpus
from prelude import Path, ValidationError, pytest, re
from tables import cases

from resources.settings.phases import Continued, PhaseConfig
from resources.settings.pipeline import SettingsError, load_settings


def phase(**config: object) -> PhaseConfig:
    return PhaseConfig.model_validate({"name": "general"} | config)


@cases(
    r"""
    config | reason
    {} | give either `weights`, `weighting` or `budgets`
    {"weights": {"a": 1}, "budgets": {"a": 1}} | give either `weights`, `weighting`
    {"weights": {"a": 1}, "weighting": "natural"} | give either `weights`, `weighting`
    {"weighting": "equal"} | "'natural', 'temperature' or 'unimax'"
    {"budgets": {"a": 1}, "tokens": 5} | `tokens` goes with `weights` or `weighting`
    {"budgets": {"a": 1}, "one_epoch_of": "a"} | `one_epoch_of` goes with `weights`
    {"weights": {"a": 1}, "tokens": 5, "one_epoch_of": "a"} | `tokens` or `one_epoch_of`
    {"weights": {"a": 1}, "one_epoch_of": "b"} | names 'b', which has no share here
    {"weights": {"a": 1, "b": 0}, "one_epoch_of": "b"} | names 'b', which has no share
    {"weighting": "natural", "sources": ["a"], "one_epoch_of": "b"} | which has no share
    {"weights": {"a": 1}, "sources": ["a"]} | `sources` goes with `weighting`
    {"weighting": "natural", "sources": []} | `sources` is empty
    {"weighting": "natural", "exponent": 0.5} | `exponent` goes with `weighting: temperature`
    {"weighting": "temperature", "exponent": 1.5} | less than or equal to 1
    {"weights": {"a": 2, "b": -1}} | weight of 'b' is -1.0; it must be 0 or more
    {"weights": {"a": nan}} | weight of 'a' is nan
    {"weights": {"a": inf}} | weight of 'a' is inf
    {"weights": {"a": 0}} | the weights sum to 0
    {"weights": {}} | the weights sum to 0
    {"budgets": {"a": 1.5}} | valid integer
    {"weights": {"a": 1}, "tokens": 0} | greater than or equal to 1
    {"weights": {"a": 1}, "epochs": {"a": 0}} | epochs of 'a' is 0.0; it must be more than 0
    {"weights": {"a": 1}, "epochs": {"a": inf}} | epochs of 'a' is inf
    {"weights": {"a": 1}, "batch_samples": 4097} | less than or equal to 4096
    {"weights": {"a": 1}, "max_epochs": inf} | finite number
    {"weights": {"a": 1}, "target_bytes": 1 << 40} | less than or equal to 2147483648
    {"weights": {"a": 1}, "buckets": ["64", "64"]} | each once
    {"weights": {"a": 1}, "formats": ["json"]} | formats here: parquet, megatron
    {"weights": {"a": 1}, "wieghts": {}} | Extra inputs
    {"weights_at": {0.0: WEB, 1.0: BOTH}, "weights": WEB} | give either .* or `weights_at`
    {"weights_at": {0.0: WEB}} | r"for the shares \[0.0\] of the phase; they must ascend"
    {"weights_at": {}} | the weights sum to 0
    {"weights_at": {0.1: WEB, 1.0: BOTH}} | r"\[0.1, 1.0\] of the phase; they must ascend"
    {"weights_at": {0.0: WEB, 0.9: BOTH}} | they must ascend from 0.0 to 1.0
    {"weights_at": {0.0: WEB, 1.0: BOTH, 0.5: WEB}} | they must ascend from 0.0 to 1.0
    {"weights_at": {0.0: WEB, nan: WEB, 1.0: BOTH}} | they must ascend from 0.0 to
    {"weights_at": {0.0: WEB, 1.0: {"web": -1.0}}} | weight of 'web' is -1.0
    {"weights_at": {0.0: WEB, 1.0: {"web": 0}}} | the weights sum to 0
    {"weights_at": {0.0: WEB, 1.0: {}}} | the weights sum to 0
    {"weights_at": {0.0: WEB, 1.0: BOTH}, "one_bucket_batches": True}
    | `weights_at` does not go with `one_bucket_batches`
    {"weights_at": {0.0: WEB, 1.0: BOTH}, "one_epoch_of": "wiki"} | which has no share here
    {"weights_at": {0.0: WEB, 1.0: BOTH}, "sources": ["web"]} | `sources` goes with
""",
    nan=math.nan,
    inf=math.inf,
    WEB={"web": 1.0},
    BOTH={"web": 0.5, "books": 0.5},
)
def test_bad_phases_are_refused(config: dict[str, object], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        phase(**config)


def test_sources_are_those_with_a_share() -> None:
    every = ("a", "b", "c")
    assert phase(weights={"b": 1, "a": 0}).sources_of(every) == ("b",)
    assert phase(budgets={"a": 0, "c": 3}).sources_of(every) == ("c",)
    assert phase(weighting="unimax").sources_of(every) == every
    assert phase(weighting="unimax", sources=["c", "a", "c"]).sources_of(every) == ("c", "a")


def test_every_name_of_a_source_is_found_with_its_place() -> None:
    config = phase(weighting="natural", sources=["a", "b"], epochs={"c": 2}, one_epoch_of="b")
    listed = [(("sources", 0), "a"), (("sources", 1), "b")]
    others = [(("epochs", "c"), "c"), *listed, (("one_epoch_of",), "b")]
    assert list(config.references()) == others
    assert list(phase(budgets={"d": 1}).references()) == [(("budgets", "d"), "d")]


def test_a_phase_continues_another_by_its_name_or_at_a_position() -> None:
    late = {"weights": {"a": 1}, "tokens": 5}
    for general in ("general", {"phase": "general"}):
        assert phase(**late, continues=general).continues == Continued(phase="general")
    at = phase(**late, continues={"phase": "general", "at": 512})
    assert at.model_dump(mode="json")["continues"] == {"phase": "general", "at": 512}
    assert "continues" not in phase(**late).model_dump(mode="json")


MAIN = {"name": "main", "weights": {"prose": 1}}
LATE = {"name": "late", "budgets": {"prose": 8}, "continues": "main"}


@cases("""
    main | late | reason
    {} | {"continues": "mian"} | phases[1].continues: unknown phase (did you mean 'main'?)
    {} | {"continues": "late"} | the phases continue each other in a circle: late -> late
    {"continues": "late", "tokens": 5} | {}
    | the phases continue each other in a circle: main -> late -> main
    {"window_shards": 4} | {}
    | phase 'main' has window_shards 4, this one null, and so other orders of its sources
    {"buckets": ["0-16"]} | {"buckets": ["17-64"]} | has buckets ['0-16'], this one ['17-64']
    {"one_bucket_batches": True} | {} | does not go with `one_bucket_batches`
    {} | {"one_bucket_batches": True} | does not go with `one_bucket_batches`
    {"upsample": [[0.4, 0], [1.0, 1]]} | {} | one of this phase and 'main' has `upsample`
    {} | {"upsample": [[0.4, 0], [1.0, 1]]} | one of this phase and 'main' has `upsample`
    {} | {"seed": 3} | `seed` does not go with `continues`: the order is the earlier one's
    {} | {"budgets": None, "weights": {"prose": 1}} | `continues` needs a length: give `tok
    {} | {"continues": {"phase": "main", "data": "v1"}} | it was removed, since a phase goes on
    {} | {"continues": {"phase": "main", "at": 0}} | greater than or equal to 1
    {} | {"continues": {"at": 8}} | phases[1].continues.phase: missing: add it
    {} | {"continues": {"phase": "main", "to": 8}} | unknown key; allowed here: at, phase
""")
def test_phases_that_cannot_continue_another_are_refused(
    tmp_path: Path, main: dict[str, object], late: dict[str, object], reason: str
) -> None:
    config = write_corpus(tmp_path, phases=[MAIN | main, LATE | late])
    with pytest.raises(SettingsError, match=re.escape(reason)):
        load_settings(config)


def test_phases_with_the_same_windows_and_buckets_continue_each_other(tmp_path: Path) -> None:
    same = {"window_shards": 2, "buckets": ["0-16"], "upsample": None}
    phases = [MAIN | same, LATE | same | {"batch_samples": 8, "formats": ["npy"]}]
    settings = load_settings(write_corpus(tmp_path, phases=phases))
    assert settings.phase("late").continues == Continued(phase="main")


def test_sources_of_weights_that_change_are_those_with_a_weight_anywhere() -> None:
    found = phase(weights_at={0: {"web": 1, "wiki": 0}, 0.5: {"books": 1, "web": 1}, 1: {"web": 1}})

    assert found.sources_of(()) == ("web", "books")
    assert found.named_sources(()) == ("web", "wiki", "books")
    expected = [("weights_at", "0.5", "books")]
    assert [keys for keys, name in found.references() if name == "books"] == expected
    assert "weights_at" not in phase(weights={"web": 1}).model_dump(mode="json")


def test_an_unknown_source_of_a_knot_is_named_with_its_line(tmp_path: Path) -> None:
    phases = [{"name": "main", "weights_at": {0.0: {"prose": 1.0}, 1.0: {"nots": 1.0}}}]
    with pytest.raises(SettingsError, match=r"weights_at.1.0.nots: unknown source .*'notes'"):
        load_settings(write_corpus(tmp_path, phases=phases))
