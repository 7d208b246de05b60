"""Drift of a run against earlier runs, and of states: recorded nights of real text."""

from base64 import b64decode

import msgspec
from prelude import Path, pytest

from assets.report.drift import (
    LEAST_RUNS,
    judge_drift,
    length_bins,
    new_drifts,
    octaves,
    stability_index,
    state_drifts,
)
from resources.drawn_charts import with_pictures
from resources.profiles import Profile

# The profiles of benchmarks/drift_alarms.py --record: numbers by stage, no text.
NIGHTS = msgspec.json.decode(
    (Path(__file__).parents[1] / "golden" / "drift_nights.json").read_bytes(),
    type=dict[str, dict[str, list[list[Profile]]]],
)
HISTORY = 20
SHARES = [0.10, 0.11, 0.09, 0.10, 0.12, 0.10, 0.11, 0.10, 0.09, 0.10]


def drifts(night: list[Profile], earlier: list[list[Profile]]) -> list[str]:
    stages = zip(night, zip(*earlier, strict=True), strict=True)
    return [line for now, past in stages for line in judge_drift(now, past).drifts]


def with_share(share: float, documents: int = 1000) -> Profile:
    return Profile(documents, numbers={"duplicate share": share})


def test_recorded_ordinary_nights_raise_no_alarm() -> None:
    alarms = [
        line
        for kinds in NIGHTS.values()
        for number in range(HISTORY, len(kinds["ordinary"]))
        for line in drifts(kinds["ordinary"][number], kinds["ordinary"][number - HISTORY : number])
    ]
    assert alarms == []


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("language", ["index of languages"]),
        ("boilerplate", ["kept share", "index of reasons"]),
        ("truncated", ["index of lengths"]),
        ("duplicates", ["duplicate share"]),
        ("reasons", ["kept share"]),
    ],
)
def test_recorded_drifts_are_named(kind: str, names: list[str]) -> None:
    found = [
        " ".join(drifts(night, kinds["ordinary"][:HISTORY]))
        for kinds in NIGHTS.values()
        for night in kinds[kind]
    ]
    assert sum(all(name in each for name in names) for each in found) >= len(found) - 1, found


def test_short_history_says_so_and_passes() -> None:
    found = judge_drift(with_share(0.9), [with_share(0.1)] * (LEAST_RUNS - 1))

    assert not found.drifts
    assert found.note == "7 earlier runs under this config, too few to compare: 8"


def test_runs_under_another_config_are_no_history() -> None:
    earlier = [with_share(share) for share in SHARES]
    now = msgspec.structs.replace(with_share(0.9), made_under="other")

    assert not judge_drift(now, earlier).drifts
    assert judge_drift(with_share(0.9), earlier).drifts


def test_a_run_of_few_documents_is_not_compared() -> None:
    found = judge_drift(with_share(0.9, documents=20), [with_share(share) for share in SHARES])

    assert not found.drifts and "too few" in found.note


def test_chance_alone_is_no_drift_of_few_documents() -> None:
    earlier = [with_share(share) for share in SHARES]

    assert not judge_drift(with_share(0.20, documents=60), earlier).drifts
    assert judge_drift(with_share(0.20, documents=6000), earlier).drifts


def test_a_change_that_is_too_small_to_matter_is_no_drift() -> None:
    steady = [with_share(0.100) for _ in SHARES]

    assert not judge_drift(with_share(0.115, documents=10**6), steady).drifts
    assert judge_drift(with_share(0.125, documents=10**6), steady).drifts


def test_the_stability_index_is_that_of_its_definition() -> None:
    import numpy as np

    now, usual = np.array([50.0, 50.0]), np.array([90.0, 10.0])

    assert stability_index(now, usual) == pytest.approx(0.4 * np.log(9), rel=0.05)
    assert stability_index(now, now) == 0


def test_lengths_are_counted_by_power_of_two() -> None:
    assert length_bins([0, 1, 2, 3, 4, 1000]) == {"1": 2, "2": 2, "4": 1, "512": 1}


def test_the_picture_marks_what_drifted() -> None:
    found = judge_drift(with_share(0.9), [with_share(share) for share in SHARES])

    address = with_pictures(found.picture)
    image = b64decode(address.partition("base64,")[2].rstrip(")")).decode()
    assert "#d55e00" in image and "duplicate share: 0.9" in image


USUAL = {
    "all": 40,
    "documents": 40,
    "has url": 40,
    "has meta.date": 38,
    "lang=en": 30,
    "lang=de": 10,
    "mojibake": 1,
    "octave:10": 20,
    "octave:11": 20,
    "file:a.jsonl": 20,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"has url": 0}, "has url: 0.0% of the documents, 100.0% before (limit 22.4%)"),
        ({"has meta.date": 0}, "has meta.date: 0.0% of the documents, 95.0% before (limit 22.3%)"),
        ({"mojibake": 17}, "mojibake: 42.5% of the documents, 2.5% before (limit 18.7%)"),
        ({"U+FFFD": 16}, "U+FFFD: 40.0% of the documents, 0.0% before (limit 17.9%)"),
        ({"lang=de": 40}, "lang=de: 100.0% of the documents, 25.0% before (limit 25.0%)"),
        ({"removed": 9}, "removed: 22.5% of the documents, 0.0% before (limit 14.1%)"),
        ({"line:0a": 16}, "one line or sentence that many share: 40.0% of the documents, 0.0%"),
        ({"octave:9": 20, "octave:10": 20, "octave:11": 0}, "length: 0.50 times that of before"),
        ({"file:a.jsonl": 200}, "a.jsonl: 200 documents, 20 before"),
    ],
)
def test_a_drift_is_a_line_with_its_numbers(changes: dict[str, int], said: str) -> None:
    [line] = state_drifts(USUAL | changes, USUAL)
    assert line.startswith(said)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"has url": 36, "mojibake": 4, "lang=de": 18},  # by little, or no more than chance
        {"mojibake": 0},  # what is wrong may vanish
        {"octave:10": 26, "octave:11": 14},
        {"file:b.jsonl": 40, "file:a.jsonl": 60},  # a new file; one that grows threefold
        {"line:0a": 7},
    ],
)
def test_an_ordinary_night_has_none(changes: dict[str, int]) -> None:
    assert state_drifts(USUAL | changes, USUAL) == []


def test_states_of_a_few_documents_are_not_compared() -> None:
    few = {"documents": 14, "has url": 14}
    assert state_drifts({"documents": 40}, few) == []
    assert state_drifts({"documents": 14}, few | {"documents": 40}) == []
    assert state_drifts({}, USUAL) == []
    assert new_drifts({}, USUAL) == []


def test_new_documents_that_lack_a_field_are_seen_in_a_large_source() -> None:
    large = {key: 100 * number for key, number in USUAL.items()}
    new = USUAL | {"has url": 20, "lang=de": 40}
    assert new_drifts(new, large) == [
        "of the new parts, has url: 50.0% of the documents, 100.0% before (limit 30.0%)"
    ]
    assert new_drifts(USUAL | {"has url": 30}, large) == []


def test_octaves_give_mean_and_deviation() -> None:
    assert octaves({"octave:8": 2, "octave:10": 2, "documents": 9}) == (9.0, 1.0)
    assert octaves({}) == (0.0, 0.0)
