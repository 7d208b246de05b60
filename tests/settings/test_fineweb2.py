"""The published thresholds, as published."""

import pytest

from resources.settings.fineweb2 import FINEWEB2, FineWeb2Language


def test_languages() -> None:
    assert sorted(FINEWEB2) == ["de", "en", "es", "fr", "ja", "ru", "zh"]


def test_golden_french() -> None:
    french = FINEWEB2["fr"]
    assert french[:8] == (
        0.824,
        0.264,
        (0.161, 0.149, 0.134),
        (0.15, 0.141, 0.131, 0.121, 0.111, 0.1),
        (2, 11),
        0.812,
        0.10,
        0.185,
    )
    assert french.stop_words[4:8] == ("à", "en", "l'", "des")


def test_golden_chinese() -> None:
    assert FINEWEB2["zh"][:8] == (
        0.692,
        0.287,
        (0.256, 0.201, 0.171),
        (0.198, 0.182, 0.167, 0.154, 0.14, 0.127),
        (1, 5),
        0.735,
        0.106,
        0.178,
    )


@pytest.mark.parametrize(
    ("language", "score", "lines", "terminal", "stop_words"),
    [
        ("en", 0.65, 0.3, 0.12, 8),
        ("de", 0.821, 0.263, 0.0, 15),
        ("es", 0.84, 0.252, 0.182, 16),
        ("ja", 0.886, 0.328, 0.096, 15),
        ("ru", 0.9, 0.322, 0.231, 22),
    ],
)
def test_golden_others(
    language: str, score: float, lines: float, terminal: float, stop_words: int
) -> None:
    limits = FINEWEB2[language]
    assert (limits.language_score, limits.duplicate_lines) == (score, lines)
    assert (limits.terminal_lines, len(limits.stop_words)) == (terminal, stop_words)


@pytest.mark.parametrize("language", sorted(FINEWEB2))
def test_limits_are_shares_and_fall_with_the_length_of_the_ngram(language: str) -> None:
    limits = FINEWEB2[language]
    ngrams = (*limits.top_ngrams, *limits.duplicate_ngrams)

    assert all(0 < share < 1 for share in (*ngrams, limits.duplicate_lines, limits.language_score))
    assert list(limits.top_ngrams) == sorted(limits.top_ngrams, reverse=True)
    assert list(limits.duplicate_ngrams) == sorted(limits.duplicate_ngrams, reverse=True)
    assert limits.mean_word_length[0] < limits.mean_word_length[1]
    assert len(set(limits.stop_words)) == len(limits.stop_words)


@pytest.mark.parametrize("language", sorted(set(FINEWEB2) - {"en"}))
def test_fineweb2_switches_the_same_rules_off_in_every_language(language: str) -> None:
    limits: FineWeb2Language = FINEWEB2[language]
    assert limits.duplicate_line_characters == 0.1
    assert limits[10:14] == (None, None, None, None)
