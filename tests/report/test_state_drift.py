"""The counts of a whole state are compared with those of the state before."""

from __future__ import annotations

import pytest

from assets.report.drift import new_drifts, octaves, state_drifts

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
