"""The published thresholds, as published."""

import pytest

from resources.settings.filtering.fineweb2 import FINEWEB2, FineWeb2Language

# All limits up to the stop words, in the order of the fields, from the files that the module names.
GOLDEN = {
    "en": (
        0.65,
        0.3,
        (0.2, 0.18, 0.16),
        (0.15, 0.14, 0.13, 0.12, 0.11, 0.1),
        (3, 10),
        0.8,
        0.12,
        0.3,
        "the be to of and that have with",
    ),
    "fr": (
        0.824,
        0.264,
        (0.161, 0.149, 0.134),
        (0.15, 0.141, 0.131, 0.121, 0.111, 0.1),
        (2, 11),
        0.812,
        0.1,
        0.185,
        "de la le et à en l' des du les est d' un une il dans par au",
    ),
    "de": (
        0.821,
        0.263,
        (0.169, 0.153, 0.137),
        (0.141, 0.134, 0.126, 0.117, 0.108, 0.098),
        (0, 15),
        0.774,
        0.0,
        0.152,
        "der und die in von im den des mit das er dem als wurde für",
    ),
    "es": (
        0.84,
        0.252,
        (0.156, 0.14, 0.125),
        (0.145, 0.136, 0.127, 0.117, 0.108, 0.099),
        (3, 14),
        0.825,
        0.182,
        0.138,
        "de la en el y a que del los se por un con una las su",
    ),
    "zh": (
        0.692,
        0.287,
        (0.256, 0.201, 0.171),
        (0.198, 0.182, 0.167, 0.154, 0.14, 0.127),
        (1, 5),
        0.735,
        0.106,
        0.178,
        "的 年 在 月 是 和 日 了 於 · 為 有 被 人 中 为 他 與 後 也 而 由",
    ),
    "ja": (
        0.886,
        0.328,
        (0.239, 0.196, 0.172),
        (0.243, 0.225, 0.207, 0.19, 0.175, 0.159),
        (1, 6),
        0.759,
        0.096,
        0.13,
        "の に を は た て が と で 年 し ・ 月 れ さ",
    ),
    "ru": (
        0.9,
        0.322,
        (0.184, 0.164, 0.146),
        (0.168, 0.156, 0.145, 0.133, 0.121, 0.109),
        (3, 11),
        0.713,
        0.231,
        0.139,
        "в и на с года по году из был к не от что за для его как а он также до после",
    ),
}


@pytest.mark.parametrize("language", sorted(GOLDEN))
def test_golden_limits(language: str) -> None:
    limits = FINEWEB2[language]
    assert (*limits[:8], " ".join(limits.stop_words)) == GOLDEN[language]
    assert (limits.words, limits.min_stop_words) == ((50, 100_000), 2)  # Gopher's, everywhere


def test_golden_limits_of_fineweb_for_english() -> None:
    assert FINEWEB2["en"][9:14] == (0.01, 0.67, 0.3, 0.2, 0.2)


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
