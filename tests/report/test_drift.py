"""Drift of a run against earlier runs: recorded nights of real text."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from assets.report.drift import (
    LEAST_RUNS,
    judge_drift,
    length_bins,
    stability_index,
)
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
    import base64

    found = judge_drift(with_share(0.9), [with_share(share) for share in SHARES])

    image = base64.b64decode(found.picture.partition("base64,")[2].rstrip(")")).decode()
    assert "#D55E00" in image and "duplicate share: 0.9" in image
